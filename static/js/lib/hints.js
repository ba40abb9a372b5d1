// The little question marks: one open at a time; Escape or a click elsewhere closes it.

import { $$ } from "./dom.js";

export function startHints() {
  const close = (except) => {
    for (const hint of $$(".hint[open]")) if (hint !== except) hint.open = false;
  };
  document.addEventListener("click", (event) => close(event.target.closest(".hint")));
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") close(null);
  });
}
