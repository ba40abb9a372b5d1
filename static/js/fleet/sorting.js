// A table whose heads sort it: smallest first, then largest first, then worst first again. The address keeps the order.

import { $$ } from "../lib/dom.js";

/** What the address says: a column, with “-” before it for the largest first; nothing is as the server has them. */
const order = () => new URLSearchParams(location.search).get("sort") ?? "";

export function sorted(rows) {
  const name = order().replace("-", "");
  if (!name || !(name in (rows[0] ?? {}))) return rows;
  const sign = order().startsWith("-") ? -1 : 1;
  const compare = (a, b) => (typeof a === "string" ? a.localeCompare(b, "en", { numeric: true }) : a - b);
  const without = (row) => row[name] === null; // no value is neither large nor small: it comes last
  return [...rows].sort((a, b) => without(a) - without(b) || sign * compare(a[name], b[name]) || 0);
}

export function showOrder() {
  for (const button of $$(".sort")) {
    const isThis = order().replace("-", "") === button.dataset.sort;
    const direction = order().startsWith("-") ? "descending" : "ascending";
    button.closest("th").setAttribute("aria-sort", isThis ? direction : "none");
  }
}

/** `show`: draws the rows that are there, in the new order. */
export function startSorting(show) {
  for (const button of $$(".sort")) {
    button.addEventListener("click", () => {
      const { sort: name } = button.dataset;
      const next = { [name]: `-${name}`, [`-${name}`]: "" }[order()] ?? name;
      const query = new URLSearchParams(location.search);
      if (next) query.set("sort", next);
      else query.delete("sort");
      history.replaceState(null, "", `?${query}`);
      show();
    });
  }
}
