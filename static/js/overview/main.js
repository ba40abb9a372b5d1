// The overview: asks for tiles and charts of the period in the address, again whenever something was recorded.

import { getJson } from "../lib/api.js";
import { refreshCharts } from "./charts.js";
import { current } from "./query.js";
import { shown, startPage } from "./start.js";
import { showState } from "./state.js";
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

function refresh() {
  const query = current();
  const isCurrent = () => query.toString() === current().toString();
  return shown([refreshTiles(query), refreshCharts(query), refreshTenants(query, isCurrent)]);
}

startPage(refresh);
