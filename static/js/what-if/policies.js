// Other policies and write modes: what was found, how far trying them is, and the button that has them tried.

import { getJson, postJson } from "../lib/api.js";
import { $, h } from "../lib/dom.js";
import { current } from "../overview/query.js";

const AGAIN_MILLISECONDS = 3_000; // while a worker is at it

let timer;
let again = () => {};

export function showPolicies({ text, rows, is_running, can_start }) {
  $("#policies").hidden = !text;
  $("#policies-text").textContent = text;
  $("#policy-rows").replaceChildren(...rows.map(({ text }) => h("li", {}, text)));
  $("#policies-start").hidden = !can_start;
  clearTimeout(timer);
  if (is_running) timer = setTimeout(again, AGAIN_MILLISECONDS);
}

export function forgetPolicies() {
  clearTimeout(timer);
  $("#policies").hidden = true;
}

/** `onChange` asks for the advice anew. */
export function startPolicies(onChange) {
  again = onChange;
  $("#policies-start").addEventListener("click", async (event) => {
    event.target.hidden = true;
    try {
      await postJson(`/api/policies/?${current()}`);
      await again();
    } catch (error) {
      $("#policies-text").textContent = error.message;
      event.target.hidden = false;
    }
  });
}
