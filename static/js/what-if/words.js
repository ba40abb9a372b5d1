// Tables and lists of what the server said. All words and numbers are its own.

import { $, h } from "../lib/dom.js";

const number = new Intl.NumberFormat("en");
const percent = new Intl.NumberFormat("en", { style: "percent", minimumFractionDigits: 2, maximumFractionDigits: 2 });
const cell = (text) => h("td", { class: "num" }, text);

export function showWords(answer) {
  $("#engine-name").textContent = answer.engine;
  $("#rows").replaceChildren(...answer.rows.map(row));
  $("#curve-rows").replaceChildren(...answer.curve.map(([tokens, rate]) => h("tr", {}, cell(number.format(tokens)), cell(percent.format(rate)))));
  $("#next-gib").replaceChildren(...answer.tiers.map(({ tier, next_gib }) => h("li", { "data-next": tier }, next_gib)));
  $("#notes").replaceChildren(...answer.notes.map(({ kind, text }) => h("div", {}, h("dt", {}, kind), h("dd", {}, text))));
  $("#prices-text").textContent = answer.prices_text;
  $("#prices-text").hidden = !answer.prices_text;
  $("#reset").disabled = answer.is_today;
  const apply = $("#apply");
  if (!apply) return;
  apply.hidden = answer.is_today || !answer.apply_url;
  apply.href = answer.apply_url;
}

const row = ({ name, measured, today, chosen, change }) =>
  h("tr", {}, h("td", {}, name), cell(measured), cell(today), cell(chosen), cell(change));
