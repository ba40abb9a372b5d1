// Runs that are checked, side by side.

import { getJson } from "../lib/api.js";
import { $, $$, h } from "../lib/dom.js";
import { show } from "../what-if/figures.js";

let newest = 0; // answers that come late are not shown

export const chosen = () => $$("#runs input:checked").map((input) => input.value);

export async function compare(ids) {
  const number = ++newest;
  if (ids.length < 2) {
    $("#compared").hidden = true;
    return;
  }
  const answer = await getJson(`/api/replays/compared.json?ids=${ids.join(",")}`);
  if (number !== newest) return;
  $("#compared").hidden = false;
  $("#compared-note").textContent = answer.note;
  $("#compared-names").replaceChildren(h("td", {}), ...answer.names.map((name) => h("th", { scope: "col" }, name)));
  $("#compared-rows").replaceChildren(...answer.rows.map(row));
  await show("compared", answer.figure);
}

function row({ name, origin, cells }) {
  const head = h("th", { scope: "row", "data-origin": origin || null }, origin ? h("span", { class: "swatch" }) : "", origin ? ` ${name}` : name);
  return h("tr", {}, head, ...cells.map((cell) => h("td", {}, cell)));
}
