// The tiers page: asks for cards, flows and charts of the period in the address, again whenever something was recorded.

import { getJson } from "../lib/api.js";
import { $ } from "../lib/dom.js";
import { markStale, refreshCharts } from "../overview/charts.js";
import { current } from "../overview/query.js";
import { shown, startPage } from "../overview/start.js";
import { showState } from "../overview/state.js";
import { showEngines } from "../overview/tiles.js";
import { showCards } from "./cards.js";
import { markFlowsStale, showFlows, startFlows } from "./flows.js";

async function refreshTiers(query) {
  const asked = query.toString();
  const answer = await getJson(`/api/tiers.json?${asked}`);
  if (asked !== current().toString()) return;
  $("#prefill").textContent = answer.prefill_text;
  showCards(answer.cards);
  await showFlows(answer.flows);
  showEngines(answer.engines);
  showState(answer);
  markFlowsStale();
}

function refresh() {
  const query = current();
  return shown([refreshTiers(query), refreshCharts(query)], () => {
    markStale(true);
    markFlowsStale();
  });
}

startFlows();
startPage(refresh);
