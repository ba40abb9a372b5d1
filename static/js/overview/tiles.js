// The tiles, the bar of origins, and the tiers as they are at this moment. All words come from the server.

import { engineAddress, periodOf } from "../lib/addresses.js";
import { $, h } from "../lib/dom.js";
import { inWords } from "../lib/time.js";
import { current } from "./query.js";

const LABEL_PIXELS = 58; // “20.7 %” and its margins

export function showTiles(tiles, comparisonNote) {
  $("#comparison-note").textContent = comparisonNote;
  $("#comparison-note").hidden = !comparisonNote;
  for (const tile of tiles) {
    const element = $(`[data-tile="${tile.key}"]`);
    element.classList.remove("skeleton");
    const value = $(".value", element);
    value.textContent = tile.value;
    value.title = tile.exact;
    $(".hint p", element).textContent = tile.help;
    const change = $(".change", element);
    change.dataset.verdict = tile.change.verdict;
    change.replaceChildren(tile.change.amount ? h("b", {}, tile.change.amount) : "", ` ${tile.change.text}`);
  }
}

export function showOrigins(origins, promptTokens) {
  const shown = origins.filter((origin) => origin.tokens > 0);
  const width = $("#main").clientWidth;
  $("#origins").hidden = !promptTokens || shown.length === 0;
  $("#origins-bar").replaceChildren(
    ...shown.map((origin) =>
      h(
        "span",
        {
          "data-origin": origin.origin,
          class: `fill${origin.share * width < LABEL_PIXELS ? " thin" : ""}`,
          style: `flex: ${origin.share} 1 0`,
          title: `${origin.label}: ${origin.tokens_text} tokens, ${origin.share_text}`,
        },
        origin.share_text,
      ),
    ),
  );
  $("#origins-bar").setAttribute("aria-label", shown.map((o) => `${o.label} ${o.share_text}`).join(", "));
  $("#origins-legend").replaceChildren(
    ...origins.map((origin) =>
      h(
        "li",
        { "data-origin": origin.origin },
        h("span", { class: "swatch" }),
        h("b", {}, origin.label),
        h("span", { class: "muted" }, `${origin.tokens_text} (${origin.share_text})`),
      ),
    ),
  );
}

export function showChanges(changes) {
  $("#changes").hidden = changes.length === 0;
  $("#changes-rows").replaceChildren(...changes.map(changeRow));
}

function changeRow(change) {
  const pair = ({ before, after, verdict }) =>
    h("td", { class: "pair", "data-verdict": verdict }, `${before} → `, h("b", {}, after));
  const compared = change.note
    ? [h("td", { class: "muted", colspan: "3" }, change.note)]
    : [h("td", {}, change.window), pair(change.hit_rate), pair(change.ttft)];
  return h("tr", {}, h("td", {}, inWords(change.at * 1000)), h("td", {}, change.text), ...compared);
}

export function showEngines(engines) {
  const ready = engines.filter((engine) => engine.status === "ready");
  const others = engines.filter((engine) => engine.status !== "ready");
  $("#engines-now").replaceChildren(...ready.map(engineNow));
  $("#tiers-now").hidden = ready.length === 0;
  $("#loading").replaceChildren(...others.map(notReady));
  $("#loading").hidden = others.length === 0;
  $("#loading").classList.toggle("error", others.some((engine) => engine.status === "failed"));
}

function engineNow(engine) {
  const facts = [engine.model_name, engine.requests_text].map((text) => h("span", { class: "muted small" }, text));
  const tiers = h("div", { class: "tiers-now" }, ...engine.tiers.map(tierNow));
  return h("div", { class: "engine-now" }, h("div", { class: "engine-head" }, h("h3", {}, h("a", { href: engineAddress(engine.name, periodOf(current())) }, engine.name)), ...facts), tiers);
}

function notReady(engine) {
  if (engine.status === "failed") return h("p", {}, h("b", {}, `Engine ${engine.name} could not start. `), engine.progress_text);
  if (engine.status === "stopping") return h("p", {}, h("b", {}, `Engine ${engine.name} is stopping. `), "It answers what it has begun.");
  const text = `${engine.progress_text || "Loading the model"} (${Math.round(engine.progress * 100)} %)`;
  return h(
    "div",
    {},
    h("p", {}, h("b", {}, `Engine ${engine.name} is loading its model. `), h("span", { class: "muted" }, text)),
    h("progress", { max: 1, value: engine.progress, "aria-label": `Engine ${engine.name} is loading` }),
  );
}

function tierNow(tier) {
  return h(
    "div",
    { class: "tier-now", "data-origin": tier.tier },
    h("div", { class: "name" }, h("span", { class: "swatch" }), tier.tier, h("span", { class: "muted small" }, tier.size_text)),
    h("div", { class: "meter" }, h("i", { style: `width: ${tier.used_percent}%` })),
    h("div", { class: "small muted" }, tier.resident_text),
    tier.modes_text ? h("div", { class: "small muted" }, tier.modes_text) : "",
    tier.reason ? h("div", { class: "small" }, tier.reason) : "",
  );
}
