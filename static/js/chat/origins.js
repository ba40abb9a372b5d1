// The panel that shows where a prompt's tokens came from: coloured text, counts, time to first token.

import { $, h } from "../lib/dom.js";

const ORDER = ["gpu", "cpu", "disk", "remote", "computed"];
const number = new Intl.NumberFormat("en");
const percent = (share) => `${(share * 100).toFixed(1)} %`;
const duration = (seconds) => (seconds < 1 ? `${Math.round(seconds * 1000)} ms` : `${seconds.toFixed(2)} s`);

// usage → [[origin, tokens]], the tiers that there are and what was computed
export function counted(usage) {
  const told = { ...usage.tierscope.hit_tokens, computed: usage.tierscope.computed_tokens };
  return ORDER.filter((origin) => origin in told).map((origin) => [origin, told[origin]]);
}

export function miniBar(usage) {
  const parts = counted(usage).filter(([, tokens]) => tokens > 0);
  const words = parts.map(([origin, tokens]) => `${tokens} ${origin}`).join(", ");
  const bars = parts.map(([origin, tokens]) => h("i", { "data-origin": origin, class: "fill", style: `flex: ${tokens} 1 0` }));
  return h("span", { class: "mini", role: "img", "aria-label": words, title: words }, ...bars);
}

export function facts(usage) {
  const hits = usage.prompt_tokens_details?.cached_tokens ?? 0;
  const ttft = usage.tierscope.ttft_seconds;
  const words = [
    `${number.format(hits)} of ${number.format(usage.prompt_tokens)} prompt tokens reused`,
    ttft === null || ttft === undefined ? "" : `first token after ${duration(ttft)}`,
    `${number.format(usage.completion_tokens)} tokens generated`,
  ];
  return h("div", { class: "facts" }, miniBar(usage), ...words.filter(Boolean).map((text) => h("span", {}, text)));
}

export function showOrigins(usage, runs) {
  const total = usage.prompt_tokens;
  const hits = usage.prompt_tokens_details?.cached_tokens ?? 0;
  const ttft = usage.tierscope.ttft_seconds;
  $("#ttft").textContent = ttft === null || ttft === undefined ? "–" : duration(ttft);
  $("#prompt-tokens").textContent = number.format(total);
  $("#hit-rate").textContent = total ? percent(hits / total) : "–";
  $("#counts").replaceChildren(...counted(usage).map(([origin, tokens]) => countRow(origin, tokens, total)));
  if (runs) $("#prompt-text").replaceChildren(...runs.map(run));
}

function countRow(origin, tokens, total) {
  return h(
    "tr",
    { "data-origin": origin, "data-tokens": String(tokens) },
    h("th", { scope: "row" }, h("span", { class: "swatch" }), ` ${origin}`),
    h("td", { class: "num" }, number.format(tokens)),
    h("td", { class: "num muted" }, total ? percent(tokens / total) : "–"),
  );
}

function run({ text, num_tokens: numTokens, cache_tier: tier }) {
  const origin = tier ?? "computed";
  return h("span", { class: "run", "data-origin": origin, title: `${numTokens} tokens ${tier ? `from ${tier}` : "computed"}` }, text);
}
