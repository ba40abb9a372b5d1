// One card a tier: verdict, sentences, facts. All words come from the server.

import { $, h } from "../lib/dom.js";

export function showCards(cards) {
  $("#cards").replaceChildren(...cards.map(card));
}

function card({ tier, label, verdict, sentences, facts }) {
  const title = h("h3", { id: `card-${tier}` }, h("span", { class: "swatch" }), label);
  const badge = h("span", { class: "verdict", "data-verdict": verdict }, verdict);
  return h(
    "article",
    { class: "panel card", "data-origin": tier, "data-tier": tier, "aria-labelledby": `card-${tier}` },
    h("header", {}, title, badge),
    ...sentences.map((sentence) => h("p", {}, sentence)),
    h("dl", {}, ...facts.map(fact)),
  );
}

const fact = ({ name, value, more }) =>
  h("div", {}, h("dt", {}, name), h("dd", {}, h("b", {}, value), more ? h("span", { class: "muted small" }, more) : ""));
