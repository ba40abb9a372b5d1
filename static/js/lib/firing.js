// How many alerts fire, wherever the header says it.

import { $, $$ } from "./dom.js";

export function showFiring(number) {
  for (const place of $$("[data-firing]")) {
    place.hidden = number === 0;
    $("[data-count]", place).textContent = number;
  }
}
