// Sizes worth their price: asked for when somebody wants it, since it tries many sizes.

import { getJson } from "../lib/api.js";
import { $, h } from "../lib/dom.js";
import { current } from "../overview/query.js";
import { show } from "./figures.js";
import { forgetPolicies, showPolicies, startPolicies } from "./policies.js";

let takeSizes = () => {};

async function advise(event) {
  event?.preventDefault();
  const query = current();
  for (const [name, value] of new FormData($("#limits"))) if (value) query.set(name, value);
  try {
    const answer = await getJson(`/api/advice.json?${query}`);
    $("#advice-text").textContent = answer.text;
    $("#advice-rows").replaceChildren(...answer.choices.map(choice));
    $("[data-figure=frontier]").hidden = !answer.figure;
    showPolicies(answer.policies);
    if (answer.figure) await show("frontier", answer.figure);
  } catch (error) {
    $("#advice-text").textContent = error.message;
  }
}

function choice({ name, sentence, sizes }) {
  const button = h("button", { type: "button", class: "small" }, "Show these sizes");
  button.addEventListener("click", () => takeSizes(sizes));
  return h("li", { "data-advice": name }, h("b", {}, `${name}: `), `${sentence} `, button);
}

export function startAdvice(onTake) {
  takeSizes = onTake;
  $("#limits").addEventListener("submit", advise);
  startPolicies(advise);
}

/** What was advised belongs to another period or engine. */
export function forgetAdvice() {
  $("#advice-text").textContent = "";
  $("#advice-rows").replaceChildren();
  $("[data-figure=frontier]").hidden = true;
  forgetPolicies();
}
