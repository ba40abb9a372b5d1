// One engine in words: what it is, its alerts, its tiers, what it does not tell. All words come from the server.

import { $, h } from "../lib/dom.js";

export function showFacts(answer) {
  $("#lately").textContent = answer.lately;
  $("#facts").replaceChildren(...answer.facts.map(({ name, value }) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
  showAlerts(answer.alerts);
  $("#sizes-rows").replaceChildren(...answer.sizes.map(tierRow));
  $("#sizes").hidden = answer.sizes.length === 0;
  $("#sizes-none").hidden = answer.sizes.length > 0;
  $("#untold").replaceChildren(...answer.cannot_tell.map((sentence) => h("li", {}, sentence)));
  $("#untold-none").hidden = answer.cannot_tell.length > 0;
  $("#untold-note").textContent = answer.note;
  $("#untold-note").hidden = !answer.note;
}

function showAlerts(alerts) {
  $("#engine-alerts").hidden = alerts.length === 0;
  $("#engine-alerts-rows").replaceChildren(
    ...alerts.map(({ state, name, summary, ago }) =>
      h("li", {}, h("span", { class: "alert-state", "data-state": state }, state), h("b", {}, ` ${name}. `), `${summary} `, h("span", { class: "muted small" }, ago)),
    ),
  );
}

function tierRow(tier) {
  const cell = (label, ...children) => h("td", { role: "cell", "data-label": label }, ...children);
  const meter = tier.used_percent === null ? "" : h("div", { class: "meter" }, h("i", { style: `width: ${tier.used_percent}%` }));
  return h(
    "tr",
    { role: "row", "data-origin": tier.tier },
    h("th", { role: "rowheader", scope: "row" }, h("span", { class: "swatch" }), ` ${tier.label}`),
    cell("Size", tier.size, tier.note ? h("div", { class: "small" }, tier.note) : ""),
    cell("Used", tier.used, meter),
    cell("Resident", tier.resident),
    cell("Policy and write mode", tier.modes),
  );
}
