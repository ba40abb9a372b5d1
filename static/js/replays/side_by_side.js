// A table of things side by side: a column each, a row a number.

import { $, h } from "../lib/dom.js";

export function showNames(names) {
  $("#compared-names").replaceChildren(h("td", {}), ...names.map((name) => h("th", { scope: "col" }, name)));
}

/** `cells`: what stands in them, words or elements. */
export function comparedRow({ name, origin }, cells) {
  const head = h("th", { scope: "row", "data-origin": origin || null }, origin ? h("span", { class: "swatch" }) : "", origin ? ` ${name}` : name);
  return h("tr", {}, head, ...cells.map((cell) => h("td", {}, cell)));
}
