// The page of alerts: asks again whenever something was recorded, which is more often than alerts are looked for.

import { getJson } from "../lib/api.js";
import { $, $$ } from "../lib/dom.js";
import { showFiring } from "../lib/firing.js";
import { startLive } from "../overview/live.js";
import { activeRow, resolvedRow } from "./rows.js";

function fill(name, rows, toRow) {
  const text = JSON.stringify(rows.map(({ ago, ...rest }) => rest));
  const table = $(`#${name}`);
  $(`#${name}-none`).hidden = rows.length > 0;
  table.hidden = rows.length === 0;
  if (table.dataset.shown === text) {
    $$(".ago", table).forEach((place, index) => (place.textContent = rows[index].ago)); // what has the focus keeps it
    return;
  }
  table.dataset.shown = text;
  $(`#${name}-rows`).replaceChildren(...rows.map(toRow));
}

function showError(sentence) {
  $("#error").textContent = sentence;
  $("#error").hidden = !sentence;
}

async function refresh() {
  try {
    const answer = await getJson("/api/alerts.json");
    fill("active", answer.active, activeRow);
    fill("resolved", answer.resolved, resolvedRow);
    $("#as-of").textContent = answer.as_of;
    $("#active").setAttribute("aria-busy", "false");
    showFiring(answer.num_firing);
    showError("");
    return true;
  } catch (error) {
    showError(error.message);
    return false;
  }
}

refresh().then(() => {
  document.body.dataset.ready = "true";
  startLive(refresh);
});
