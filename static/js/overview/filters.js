// The range picker, the custom period, and the engine and model filters.

import { $, $$ } from "../lib/dom.js";
import { change, current, isCustom } from "./query.js";

const FILTERS = ["engine", "model"]; // a page may have one of them, or none

const pad = (number) => String(number).padStart(2, "0");

function asLocalInput(date) {
  const day = `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}`;
  return `${day}T${pad(date.getHours())}:${pad(date.getMinutes())}`;
}

function show() {
  const query = current();
  for (const link of $$("[data-range]", $("#ranges"))) {
    link.setAttribute("aria-current", String(link.dataset.range === query.get("range")));
  }
  $("#custom-toggle").setAttribute("aria-current", String(isCustom(query)));
  $("#custom").hidden = !isCustom(query) && $("#custom-toggle").getAttribute("aria-expanded") !== "true";
  for (const name of FILTERS) if ($(`#${name}`)) $(`#${name}`).value = query.get(name) ?? "";
  if (isCustom(query)) fill(query.get("start"), query.get("end"));
}

function fill(start, end) {
  const read = (text) => new Date(/^\d+$/.test(text ?? "") ? Number(text) * 1000 : text);
  $("#start").value = asLocalInput(read(start));
  $("#end").value = asLocalInput(read(end));
}

function openCustom() {
  const button = $("#custom-toggle");
  const opens = $("#custom").hidden;
  button.setAttribute("aria-expanded", String(opens));
  $("#custom").hidden = !opens;
  if (!opens) return;
  if (!$("#start").value) fill(new Date(Date.now() - 3_600_000).toISOString(), new Date().toISOString());
  $("#start").focus();
}

function applyCustom(event) {
  event.preventDefault();
  const [start, end] = [new Date($("#start").value), new Date($("#end").value)];
  const refuse = (sentence) => {
    $("#end").setCustomValidity(sentence);
    $("#end").reportValidity();
  };
  if (!(end - start >= 60_000)) return refuse("The end has to be at least one minute after the start.");
  $("#end").setCustomValidity("");
  change({ range: "", start: start.toISOString(), end: end.toISOString() });
}

export function startFilters() {
  for (const link of $$("[data-range]", $("#ranges"))) {
    link.addEventListener("click", (event) => {
      if (event.metaKey || event.ctrlKey || event.shiftKey) return;
      event.preventDefault();
      $("#custom-toggle").setAttribute("aria-expanded", "false");
      change({ range: link.dataset.range, start: "", end: "" });
    });
  }
  $("#custom-toggle").addEventListener("click", openCustom);
  $("#custom").addEventListener("submit", applyCustom);
  for (const input of [$("#start"), $("#end")]) input.addEventListener("input", () => $("#end").setCustomValidity(""));
  for (const name of FILTERS) $(`#${name}`)?.addEventListener("change", ({ target }) => change({ [name]: target.value }));
  document.addEventListener("querychange", show);
  show();
}
