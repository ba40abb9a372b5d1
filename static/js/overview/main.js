// The overview: asks for tiles and charts of the period in the address, again whenever something was recorded.

import { getJson } from "../lib/api.js";
import { markStale, refreshCharts } from "./charts.js";
import { current } from "./query.js";
import { startPage } from "./start.js";
import { showError, showState } from "./state.js";
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

startPage(refresh);
