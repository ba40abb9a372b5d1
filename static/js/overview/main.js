// The overview: asks for tiles and charts of the period in the address, again whenever something was recorded.

import { getJson } from "../lib/api.js";
import { $ } from "../lib/dom.js";
import { startDownloads } from "../lib/downloads.js";
import { markStale, refreshCharts, startCharts } from "./charts.js";
import { startFilters } from "./filters.js";
import { startHints } from "../lib/hints.js";
import { startLink } from "./link.js";
import { startLive } from "./live.js";
import { current } from "./query.js";
import { showError, showState, startSampleButton } from "./state.js";
import { refreshTenants } from "./tenants.js";
import { showChanges, showEngines, showOrigins, showTiles } from "./tiles.js";

async function refreshTiles(query) {
  const asked = query.toString();
  const answer = await getJson(`/api/tiles.json?${asked}`);
  if (asked !== current().toString()) return;
  showTiles(answer.tiles, answer.comparison_note);
  showOrigins(answer.origins, answer.prompt_tokens);
  showChanges(answer.changes);
  showEngines(answer.engines);
  showState(answer);
}

async function refresh() {
  const query = current();
  try {
    const isCurrent = () => query.toString() === current().toString();
    await Promise.all([refreshTiles(query), refreshCharts(query), refreshTenants(query, isCurrent)]);
    showError("");
    return true;
  } catch (error) {
    showError(error.message);
    markStale(true);
    return false;
  }
}

startFilters();
startHints();
startDownloads(current);
startLink();
startCharts();
startSampleButton(refresh);
document.addEventListener("querychange", refresh);
$("#zone").textContent = Intl.DateTimeFormat().resolvedOptions().timeZone;
refresh().then(() => {
  document.body.dataset.ready = "true";
  startLive(refresh);
});
