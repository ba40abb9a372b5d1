// The tiers page: asks for cards, flows and charts of the period in the address, again whenever something was recorded.

import { getJson } from "../lib/api.js";
import { $ } from "../lib/dom.js";
import { startDownloads } from "../lib/downloads.js";
import { startHints } from "../lib/hints.js";
import { markStale, refreshCharts, startCharts } from "../overview/charts.js";
import { startFilters } from "../overview/filters.js";
import { startLink } from "../overview/link.js";
import { startLive } from "../overview/live.js";
import { current } from "../overview/query.js";
import { showError, showState, startSampleButton } from "../overview/state.js";
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

async function refresh() {
  const query = current();
  try {
    await Promise.all([refreshTiers(query), refreshCharts(query)]);
    showError("");
    return true;
  } catch (error) {
    showError(error.message);
    markStale(true);
    markFlowsStale();
    return false;
  }
}

startFilters();
startHints();
startDownloads(current);
startLink();
startCharts();
startFlows();
startSampleButton(refresh);
document.addEventListener("querychange", refresh);
$("#zone").textContent = Intl.DateTimeFormat().resolvedOptions().timeZone;
refresh().then(() => {
  document.body.dataset.ready = "true";
  startLive(refresh);
});
