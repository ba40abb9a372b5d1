// What stands on the right: another engine, another period, or both. Kept in the address, so that a link has both sides.

import { $ } from "../lib/dom.js";
import { current } from "../overview/query.js";

const NAMES = ["other", "against", "at"];

const asked = () => new URLSearchParams(location.search);

/** The whole question: the page's own, and the right side. */
export function question() {
  const query = current();
  for (const name of NAMES) if (asked().get(name)) query.set(name, asked().get(name));
  return query;
}

const two = (number) => String(number).padStart(2, "0");

function asLocalInput(text) {
  const at = new Date(/^\d+$/.test(text) ? Number(text) * 1000 : text);
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}T${two(at.getHours())}:${two(at.getMinutes())}`;
}

export function showSides() {
  const query = asked();
  $("#other").value = query.get("other") ?? "";
  $("#against").value = query.get("against") ?? (query.get("at") ? "at" : query.get("other") ? "same" : "before");
  $("#at-label").hidden = $("#against").value !== "at";
  if (query.get("at")) $("#at").value = asLocalInput(query.get("at"));
}

function remember(changes) {
  const query = asked();
  for (const [name, value] of Object.entries(changes)) {
    if (value) query.set(name, value);
    else query.delete(name);
  }
  history.pushState(null, "", `?${query}`);
  document.dispatchEvent(new Event("querychange"));
}

export function startSides() {
  // Another engine is looked at in the same time, the same engine in another, unless somebody chose otherwise.
  $("#other").addEventListener("change", ({ target }) => remember({ other: target.value, against: target.value ? "same" : "before", at: "" }));
  $("#against").addEventListener("change", ({ target }) => {
    $("#at-label").hidden = target.value !== "at";
    if (target.value === "at") $("#at").focus();
    else remember({ against: target.value, at: "" });
  });
  $("#at").addEventListener("change", ({ target }) => {
    const at = new Date(target.value);
    if (!Number.isNaN(at.getTime())) remember({ against: "at", at: at.toISOString() });
  });
  $("#against-form").addEventListener("submit", (event) => event.preventDefault());
  showSides();
}
