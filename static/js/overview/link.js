// “Copy link”: an address that shows the same to whoever opens it, filters, sizes and colours included.

import { $, $$ } from "../lib/dom.js";
import { current, inAddress, isCustom } from "./query.js";

const SECONDS = { m: 60, h: 3_600, d: 86_400 };

const lengthOf = (range) => Number.parseInt(range, 10) * SECONDS[range.at(-1)];
const moment = (seconds) => `${new Date(seconds * 1000).toISOString().slice(0, 19)}Z`;

/** `isFixed`: the period as it is now, instead of a range that ends whenever the link is opened. */
export function permalink(isFixed) {
  const query = new URLSearchParams(location.search);
  for (const name of ["range", "start", "end", "theme"]) query.delete(name);
  for (const [name, value] of inAddress()) query.set(name, value);
  if (isFixed && !isCustom(query)) {
    const now = Math.floor(Date.now() / 1000);
    query.set("start", moment(now - lengthOf(query.get("range"))));
    query.set("end", moment(now));
    query.delete("range");
  }
  const { theme } = document.documentElement.dataset;
  if (theme !== "auto") query.set("theme", theme);
  return `${location.origin}${location.pathname}?${query}`;
}

async function copy(event) {
  const text = permalink(event.target.dataset.link === "fixed");
  const field = $("#link-text");
  field.value = text;
  try {
    await navigator.clipboard.writeText(text);
    field.hidden = true;
    $("#link-said").textContent = "Copied.";
  } catch {
    field.hidden = false; // browsers copy on encrypted pages and on this machine only
    field.select();
    $("#link-said").textContent = "This browser does not let pages copy: copy it from here.";
  }
}

export function startLink() {
  for (const button of $$("[data-link]")) button.addEventListener("click", copy);
  $("#link").addEventListener("toggle", () => {
    $("[data-link=moving]").hidden = isCustom(current());
    $("#link-text").hidden = true;
    $("#link-said").textContent = "";
  });
}
