// One row a model: the tokens of its engines by origin, and their hit rate as a line. All words come from the server.

import { h } from "../lib/dom.js";
import { engineAddress, periodOf } from "../lib/addresses.js";
import { originsBar, spark } from "../fleet/spark.js";

/** `query`: the period that the link to the model's engines keeps. */
export function modelRow(row, query) {
  const number = (label, text) => h("td", { role: "cell", class: "num", "data-label": label }, text);
  const wrong = row.wrong_text ? h("span", { class: "engine-state", "data-wrong": "true" }, `, ${row.wrong_text}`) : "";
  return h(
    "tr",
    { role: "row", "data-model": row.model },
    h("th", { role: "rowheader", scope: "row" }, name(row, query), row.note ? h("div", { class: "muted small note" }, row.note) : ""),
    h("td", { role: "cell" }, row.engines_text, wrong),
    h("td", { role: "cell", class: "whole" }, originsBar(row.origins, row.prompt_tokens)),
    number("Prompt tokens", row.prompt_text),
    number("Hit rate", row.hit_rate_text),
    h("td", { role: "cell" }, spark(row.rates)),
  );
}

/** The fleet, of this model only; it cannot be asked for what has no model, so the first few such engines are named. */
function name(row, query) {
  if (!row.model) return h("span", {}, h("span", { class: "muted" }, row.name), ...row.engine_names.flatMap(engine(query)));
  const address = periodOf(query);
  address.set("model", row.model);
  return h("a", { href: `/fleet/?${address}` }, row.name);
}

const engine = (query) => (name) => [" ", h("a", { class: "small", href: engineAddress(name, periodOf(query)) }, name)];
