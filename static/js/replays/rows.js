// One card a run. What is checked, open or focused stays so when the list is filled anew.

import { $, $$, h } from "../lib/dom.js";

const WORDS = { cancel: "Cancel", resume: "Resume", remove: "Remove" };

let shown = "";

export function showRuns(replays, { act, choose }) {
  $("#none").hidden = replays.length > 0;
  $("#runs").setAttribute("aria-busy", "false");
  const text = JSON.stringify(replays);
  if (text === shown) return;
  shown = text;
  const checked = new Set($$("#runs input:checked").map((input) => input.value));
  const focused = document.activeElement?.dataset?.focus;
  $("#runs").replaceChildren(...replays.map((replay) => run(replay, checked, act, choose)));
  if (focused) $(`[data-focus="${focused}"]`)?.focus();
}

export function showPages({ page, num_pages: numPages }) {
  $("#pages").hidden = numPages < 2;
  $("#page-number").textContent = `Page ${page} of ${numPages}`;
  $("#newer").hidden = page <= 1;
  $("#newer").href = `?page=${page - 1}`;
  $("#older").hidden = page >= numPages;
  $("#older").href = `?page=${page + 1}`;
}

function run(replay, checked, act, choose) {
  const box = h("input", { type: "checkbox", value: replay.id, "aria-label": `Compare ${replay.name}`, "data-focus": `c${replay.id}` });
  box.checked = checked.has(String(replay.id)) && replay.can_be_compared;
  box.disabled = !replay.can_be_compared;
  box.addEventListener("change", choose);
  return h(
    "li",
    { class: "run", "data-state": replay.state, "data-run": replay.name },
    h("label", {}, box),
    h("div", { class: "what" }, h("h3", {}, replay.name), h("p", { class: "small muted" }, replay.file), h("p", { class: "small muted" }, replay.made)),
    h("ul", { class: "small" }, ...replay.tiers.map((tier) => h("li", {}, tier))),
    progress(replay),
    h("div", { class: "actions" }, ...actions(replay).map((name) => button(replay, name, act))),
  );
}

function progress(replay) {
  const bar = replay.is_going_on ? h("progress", { max: 1, value: replay.share, "aria-label": `Replayed of ${replay.name}` }) : "";
  const hits = replay.origins.length ? h("p", {}, h("b", {}, replay.hit_rate), " hit rate") : "";
  return h(
    "div",
    {},
    h("p", { class: "small" }, h("span", { class: "state" }, replay.state), ` · ${replay.progress}`),
    bar,
    origins(replay),
    hits,
    replay.error ? h("p", { class: "small", role: "alert" }, replay.error) : "",
    ...replay.remarks.map((remark) => h("p", { class: "small muted" }, remark)),
    problems(replay),
    replay.links.length ? h("p", { class: "links small" }, ...replay.links.map(({ text, url }) => h("a", { href: url }, text))) : "",
  );
}

function origins(replay) {
  if (!replay.origins.length) return "";
  const words = replay.origins.map(({ label, percent }) => `${label} ${percent.toFixed(1)} %`).join(", ");
  const parts = replay.origins.map(({ origin, percent }) => h("i", { class: "fill", "data-origin": origin, style: `width:${percent}%` }));
  return h("span", { class: "mini", role: "img", "aria-label": words, title: words }, ...parts);
}

function problems(replay) {
  if (!replay.problems.length) return "";
  return h("details", {}, h("summary", {}, "Lines that could not be read"), h("ul", {}, ...replay.problems.map((text) => h("li", {}, text))));
}

function actions(replay) {
  if (replay.is_going_on) return ["cancel"];
  return replay.can_go_on ? ["resume", "remove"] : ["remove"];
}

function button(replay, name, act) {
  const element = h("button", { type: "button", "aria-label": `${WORDS[name]} ${replay.name}`, "data-focus": `${name}${replay.id}` }, WORDS[name]);
  element.addEventListener("click", () => act(replay, name));
  return element;
}
