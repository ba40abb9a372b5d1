// The page of one engine: asks for its numbers of the period in the address, again whenever something was recorded.

import { getJson } from "../lib/api.js";
import { $$ } from "../lib/dom.js";
import { periodOf } from "../lib/addresses.js";
import { refreshCharts } from "../overview/charts.js";
import { current } from "../overview/query.js";
import { shown, startPage } from "../overview/start.js";
import { showState } from "../overview/state.js";
import { showChanges, showOrigins, showTiles } from "../overview/tiles.js";
import { showFacts } from "./facts.js";

async function refreshEngine(query) {
  const asked = query.toString();
  const answer = await getJson(`/api/engine.json?${asked}`);
  if (asked !== current().toString()) return;
  showTiles(answer.tiles, answer.comparison_note);
  showOrigins(answer.origins, answer.prompt_tokens);
  showChanges(answer.changes);
  showFacts(answer);
  showState(answer);
}

function refresh() {
  const query = current();
  return shown([refreshEngine(query), refreshCharts(query)]);
}

/** The other pages of this engine, or of all, show the same period. */
function showLinks() {
  for (const link of $$("[data-period]")) {
    const query = periodOf(current());
    if (link.dataset.period) query.set("engine", document.body.dataset.engine);
    link.href = `${link.pathname}?${query}`;
  }
}

showLinks();
startPage(refresh, { changed: showLinks });
