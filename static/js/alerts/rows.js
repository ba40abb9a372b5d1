// Alerts as rows. All words come from the server.

import { engineAddress } from "../lib/addresses.js";
import { h } from "../lib/dom.js";

const cell = (attributes, ...children) => h("td", { role: "cell", ...attributes }, ...children);
const ago = (row) => [row.since, h("br"), h("span", { class: "muted small ago" }, row.ago)];

/** What it is about; the engine's page has its numbers. */
function about(row) {
  const engine = row.engine ? [h("br"), h("a", { href: engineAddress(row.engine) }, row.engine)] : [];
  return cell({ class: "wrap whole" }, h("b", {}, row.name), h("br"), row.summary, ...engine);
}

export function activeRow(row) {
  return h(
    "tr",
    { role: "row", "data-state": row.state },
    cell({ class: "whole" }, h("span", { class: "alert-state", "data-state": row.state }, row.state)),
    about(row),
    cell({ "data-label": "Since" }, ...ago(row)),
    cell({ class: "small", "data-label": "What to do" }, h("code", {}, row.runbook)),
  );
}

export function resolvedRow(row) {
  return h("tr", { role: "row" }, about(row), cell({ "data-label": "Fired" }, row.fired), cell({ "data-label": "Over" }, ...ago(row)));
}
