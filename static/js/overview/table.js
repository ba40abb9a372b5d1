// The same numbers as a chart, as a table: for screen readers, and for whoever wants to copy them.

import { h } from "../lib/dom.js";
import { inWords } from "../lib/time.js";

const MOST_ROWS = 500;
const number = new Intl.NumberFormat("en", { maximumFractionDigits: 4 });

const cell = (value) => (value === null || value === undefined ? "–" : number.format(value));

export function tableOf(figure, caption) {
  const traces = figure.data.filter((trace) => !trace.meta?.marks);
  const marks = figure.data.find((trace) => trace.meta?.marks);
  const rows = (traces[0]?.x ?? []).map((x, index) => ({ x, cells: traces.map((trace) => trace.y[index]) }));
  const filled = rows.filter((row) => row.cells.some((value) => value !== null)).reverse().slice(0, MOST_ROWS);
  const head = h("tr", {}, h("th", { scope: "col" }, "Time"), ...traces.map((trace) => h("th", { scope: "col", class: "num" }, trace.name)));
  const body = filled.map((row) =>
    h("tr", {}, h("td", {}, inWords(row.x)), ...row.cells.map((value) => h("td", { class: "num" }, cell(value)))),
  );
  const table = h("table", {}, h("caption", { class: "visually-hidden" }, caption), h("thead", {}, head), h("tbody", {}, ...body));
  return h("div", {}, ...changes(marks), table);
}

const plain = (text) => text.replace(/<\/?b>/g, "").replace(/&lt;/g, "<").replace(/&gt;/g, ">").replace(/&amp;/g, "&");

function changes(marks) {
  if (!marks) return [];
  const items = marks.x.map((x, index) => h("li", {}, `${inWords(x)}: ${plain(marks.text[index])}`));
  return [h("p", {}, "Changes of tiers in this period:"), h("ul", {}, ...items)];
}
