// One row an engine: its tokens by origin, and its hit rate as a line. All words come from the server.

import { h } from "../lib/dom.js";

const SVG = "http://www.w3.org/2000/svg";
const [WIDTH, HEIGHT] = [120, 24];

function s(tag, attributes) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

const y = (rate) => (HEIGHT - 1 - Math.min(1, rate) * (HEIGHT - 2)).toFixed(1);

/** 0 % at the bottom, 100 % at the top, in every row; a gap where nothing was asked, a dot for a value alone. */
function spark(rates, words) {
  const svg = s("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "spark", role: "img", "aria-label": words });
  const step = WIDTH / Math.max(1, rates.length - 1);
  let path = "";
  rates.forEach((rate, index) => {
    if (rate === null) return;
    const x = (index * step).toFixed(1);
    const before = rates[index - 1] ?? null;
    const after = rates[index + 1] ?? null;
    path += `${before === null ? "M" : "L"}${x} ${y(rate)}`;
    if (before === null && after === null) svg.append(s("circle", { cx: x, cy: y(rate), r: 1.5 }));
  });
  if (path) svg.append(s("path", { d: path }));
  return svg;
}

const percent = (rate) => `${(100 * rate).toFixed(1)} %`;

function sparkWords(rates) {
  const told = rates.filter((rate) => rate !== null);
  if (!told.length) return "Nothing was asked in this period.";
  return `Hit rate from ${percent(Math.min(...told))} to ${percent(Math.max(...told))}, last ${percent(told.at(-1))}.`;
}

function bar(row) {
  const words = row.origins.map((part) => `${part.tokens_text} ${part.label}`).join(", ") || "no prompt tokens";
  const whole = row.origins.reduce((sum, part) => sum + part.tokens, 0);
  const parts = row.origins.map((part) =>
    h("i", { class: "fill", "data-origin": part.origin, style: `width: ${(100 * part.tokens) / whole}%` }),
  );
  return h("span", { class: "mini", role: "img", "aria-label": words, title: words }, ...parts);
}

/** `query`: the period that the link keeps. */
export function engineRow(row, query) {
  const address = new URLSearchParams(query);
  address.set("engine", row.engine);
  const model = row.model ? h("span", { class: "muted small" }, ` ${row.model}`) : "";
  return h(
    "tr",
    { "data-engine": row.engine },
    h("th", { scope: "row" }, h("a", { href: `/?${address}` }, row.engine), model),
    h("td", {}, h("span", { class: "engine-state", "data-wrong": String(row.is_wrong) }, row.state)),
    h("td", {}, bar(row)),
    h("td", { class: "num" }, row.prompt_text),
    h("td", { class: "num" }, row.hit_rate_text),
    h("td", {}, spark(row.rates, sparkWords(row.rates))),
  );
}
