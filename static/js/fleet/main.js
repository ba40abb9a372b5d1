// The fleet page: asks for every engine's tokens of the period in the address, again whenever something was recorded.

import { getJson } from "../lib/api.js";
import { $, $$ } from "../lib/dom.js";
import { startHints } from "../lib/hints.js";
import { startFilters } from "../overview/filters.js";
import { startLink } from "../overview/link.js";
import { startLive } from "../overview/live.js";
import { current } from "../overview/query.js";
import { showError, showState, startSampleButton } from "../overview/state.js";
import { engineRow } from "./rows.js";

let rows = []; // worst first, as the server has them

/** What the address says: a column, with “-” before it for the largest first; nothing is worst first. */
const order = () => new URLSearchParams(location.search).get("sort") ?? "";

function sorted() {
  const name = order().replace("-", "");
  if (!name || !(name in (rows[0] ?? {}))) return rows;
  const sign = order().startsWith("-") ? -1 : 1;
  const compare = (a, b) => (typeof a === "string" ? a.localeCompare(b, "en", { numeric: true }) : a - b);
  const without = (row) => row[name] === null; // no value is neither large nor small: it comes last
  return [...rows].sort((a, b) => without(a) - without(b) || sign * compare(a[name], b[name]) || 0);
}

function show() {
  const query = current();
  $("#fleet-rows").replaceChildren(...sorted().map((row) => engineRow(row, query)));
  for (const button of $$(".sort")) {
    const isThis = order().replace("-", "") === button.dataset.sort;
    const direction = order().startsWith("-") ? "descending" : "ascending";
    button.closest("th").setAttribute("aria-sort", isThis ? direction : "none");
  }
}

/** Smallest first, then largest first, then worst first again. */
function sortBy(name) {
  const next = { [name]: `-${name}`, [`-${name}`]: "" }[order()] ?? name;
  const query = new URLSearchParams(location.search);
  if (next) query.set("sort", next);
  else query.delete("sort");
  history.replaceState(null, "", `?${query}`);
  show();
}

async function refresh() {
  const asked = current().toString();
  try {
    const answer = await getJson(`/api/fleet.json?${asked}`);
    if (asked !== current().toString()) return true;
    rows = answer.rows;
    show();
    showState(answer);
    const count = `${rows.length} ${rows.length === 1 ? "engine" : "engines"}`;
    if ($("#fleet-count").textContent !== count) $("#fleet-count").textContent = count;
    $("#fleet-none").hidden = rows.length > 0;
    $("#fleet").setAttribute("aria-busy", "false");
    showError("");
    return true;
  } catch (error) {
    showError(error.message);
    return false;
  }
}

startFilters();
startHints();
startLink();
startSampleButton(refresh);
for (const button of $$(".sort")) button.addEventListener("click", () => sortBy(button.dataset.sort));
document.addEventListener("querychange", refresh);
$("#zone").textContent = Intl.DateTimeFormat().resolvedOptions().timeZone;
refresh().then(() => {
  performance.mark("fleet-drawn");
  document.body.dataset.ready = "true";
  startLive(refresh);
});
