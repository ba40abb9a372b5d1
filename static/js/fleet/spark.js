// Tokens by origin as a bar, and a hit rate as a line: the same in every table of engines. All words come from the server.

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
export function spark(rates) {
  const svg = s("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "spark", role: "img", "aria-label": sparkWords(rates) });
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

// Of all prompt tokens: what is not told is a part without a colour.
export function originsBar(origins, promptTokens) {
  const words = origins.map((part) => `${part.tokens_text} ${part.label}`).join(", ") || "no prompt tokens";
  const told = origins.reduce((sum, part) => sum + part.tokens, 0);
  const whole = Math.max(told, promptTokens);
  const parts = origins.map((part) =>
    h("i", { class: "fill", "data-origin": part.origin, style: `width: ${(100 * part.tokens) / whole}%` }),
  );
  return h("span", { class: "mini", role: "img", "aria-label": words, title: words }, ...parts);
}
