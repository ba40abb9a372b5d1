// A slider and a typed size for each tier. A slider moves in equal ratios; 0 at its left end switches the tier off.
// Knows nothing about what a size does: whoever listens asks the server.

import { $, $$, h } from "../lib/dom.js";
import { sizesInAddress } from "../overview/query.js";

const STEPS = 160;
const ROUND_TO_BITS = 6; // 1.375 GiB, not 1.37482 GiB

let tiers = [];
let wishes = sizesInAddress(); // tier → what to ask the server for; a tier that was not touched has today's size
let changed = () => {};

const first = (tier) => (tier.tier === "gpu" ? 1 : 0); // attention reads from gpu: it cannot be off

function bytesAt(tier, place) {
  if (place === 0) return 0;
  const exact = tier.least_bytes * (tier.most_bytes / tier.least_bytes) ** ((place - 1) / (STEPS - 1));
  const unit = 2 ** Math.max(0, Math.floor(Math.log2(exact)) - ROUND_TO_BITS + 1);
  return Math.round(exact / unit) * unit;
}

function placeOf(tier, bytes) {
  if (bytes < tier.least_bytes) return bytes === 0 ? first(tier) : 1;
  const place = (STEPS - 1) * (Math.log(bytes / tier.least_bytes) / Math.log(tier.most_bytes / tier.least_bytes));
  return Math.min(STEPS, 1 + Math.round(place));
}

export const asked = () => ({ ...wishes });

/** After a step back, another period or another engine. */
export function readAddress() {
  wishes = sizesInAddress();
}

/** Sizes in bytes by tier, all at once. */
export function take(sizes) {
  wishes = Object.fromEntries(Object.entries(sizes).map(([tier, bytes]) => [tier, String(bytes)]));
  changed();
}

function wish(tier, text) {
  wishes[tier] = text;
  changed();
}

function slid(event) {
  const tier = tiers.find(({ tier }) => tier === event.target.dataset.slider);
  const bytes = bytesAt(tier, Number(event.target.value));
  if (tier.slid === bytes) return;
  tier.slid = bytes;
  wish(tier.tier, String(bytes));
}

function build({ tier, label }) {
  const slider = h("input", {
    type: "range", id: `slider-${tier}`, min: first({ tier }), max: STEPS, step: 1, "data-slider": tier,
  });
  slider.addEventListener("input", slid);
  const typed = h("input", { type: "text", "data-typed": tier, "aria-label": `Size of ${label}`, autocomplete: "off", maxlength: 64 });
  typed.addEventListener("change", () => wish(tier, typed.value.trim()));
  return h(
    "div",
    { class: "size", "data-origin": tier, "data-size": tier },
    h("label", { for: `slider-${tier}` }, h("span", { class: "swatch" }), label),
    slider,
    h("div", { class: "typed" }, typed, h("span", { class: "muted small", "data-tokens": true })),
    h("div", { class: "muted small", "data-today": true }),
    h("div", { class: "small limit", "data-limit": true }),
  );
}

/** What the server made of what was asked; a field in which somebody types is left alone. */
export function showSizes(told) {
  const names = told.map(({ tier }) => tier).join();
  if (names !== $("#sizes").dataset.tiers) {
    $("#sizes").replaceChildren(...told.map(build));
    $("#sizes").dataset.tiers = names;
  }
  tiers = told;
  told.forEach(fill);
}

function fill(tier) {
  const place = $(`[data-size="${tier.tier}"]`);
  const slider = $("[data-slider]", place);
  const typed = $("[data-typed]", place);
  if (document.activeElement !== slider) slider.value = placeOf(tier, tier.bytes);
  if (document.activeElement !== typed) typed.value = tier.size;
  typed.removeAttribute("aria-invalid");
  slider.setAttribute("aria-valuetext", tier.bytes ? tier.size : "off");
  $("[data-tokens]", place).textContent = tier.tokens_text;
  $("[data-today]", place).textContent = `today ${tier.today_size}`;
  $("[data-limit]", place).textContent = tier.limit_text;
}

/** A sentence about a typed size, which stays as it was typed. */
export function showSizeError(sentence) {
  $("#size-error").textContent = sentence;
  $("#size-error").hidden = !sentence;
  if (!sentence) return;
  for (const typed of $$("[data-typed]")) if (wishes[typed.dataset.typed] !== undefined) typed.setAttribute("aria-invalid", "true");
}

export function startSizes(onChange) {
  changed = onChange;
  $("#reset").addEventListener("click", () => take({}));
}
