// The little question marks and menus: one open at a time; Escape or a click elsewhere closes it.

import { $, $$ } from "./dom.js";

const KINDS = ".hint, .menu";

export function startHints() {
  const close = (except) => {
    for (const open of $$(KINDS).filter((each) => each.open && each !== except)) {
      if (open.contains(document.activeElement)) $("summary", open).focus();
      open.open = false;
    }
  };
  document.addEventListener("click", (event) => close(event.target.closest(KINDS)));
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") close(null);
  });
}
