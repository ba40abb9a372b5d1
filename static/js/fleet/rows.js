// One row an engine: its tokens by origin, and its hit rate as a line. All words come from the server.

import { engineAddress, periodOf } from "../lib/addresses.js";
import { h } from "../lib/dom.js";
import { originsBar, spark } from "./spark.js";

/** `query`: the period that the link keeps. */
export function engineRow(row, query) {
  const model = row.model ? h("span", { class: "muted small" }, ` ${row.model}`) : "";
  const number = (label, text) => h("td", { role: "cell", class: "num", "data-label": label }, text);
  return h(
    "tr",
    { role: "row", "data-engine": row.engine },
    h("th", { role: "rowheader", scope: "row" }, h("a", { href: engineAddress(row.engine, periodOf(query)) }, row.engine), model),
    h("td", { role: "cell" }, h("span", { class: "engine-state", "data-wrong": String(row.is_wrong) }, row.state)),
    h("td", { role: "cell", class: "whole" }, originsBar(row.origins, row.prompt_tokens)),
    number("Prompt tokens", row.prompt_text),
    number("Hit rate", row.hit_rate_text),
    h("td", { role: "cell" }, spark(row.rates)),
  );
}
