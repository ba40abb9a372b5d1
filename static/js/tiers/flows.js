// The Sankey of tokens moving between tiers, and the same numbers as a table. Adds what only a browser knows: the theme.

import { $, h } from "../lib/dom.js";
import { react } from "../lib/plotly.js";

const number = new Intl.NumberFormat("en");
const percent = new Intl.NumberFormat("en", { style: "percent", maximumFractionDigits: 1 });
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

let figure = null;

export async function showFlows(flows) {
  figure = flows.figure;
  $("#flows-rows").replaceChildren(...flows.rows.map(row));
  const message = $("#flows .message");
  message.textContent = flows.text;
  message.hidden = !flows.text;
  $("#flows .plotted").style.visibility = flows.text ? "hidden" : "";
  await draw();
}

const row = ({ from, to, tokens, share }) =>
  h(
    "tr",
    {},
    h("td", {}, from),
    h("td", {}, to),
    h("td", { class: "num" }, number.format(tokens)),
    h("td", { class: "num" }, percent.format(share)),
  );

async function draw() {
  if (!figure) return;
  const text = css("--text");
  const layout = {
    ...figure.layout,
    paper_bgcolor: "rgba(0,0,0,0)",
    font: { family: "system-ui, sans-serif", size: 12, color: text },
    hoverlabel: { bgcolor: css("--surface"), bordercolor: css("--border"), font: { color: text, size: 12 } },
    autosize: true,
  };
  await react($("#flows .plotted"), figure.data, layout, { displayModeBar: false, responsive: true });
  $("#flows").dataset.drawn = "true";
}

// As old as the charts are, which the page has just judged.
export function markFlowsStale() {
  $("#flows").dataset.stale = $(".chart").dataset.stale ?? "false";
}

export function startFlows() {
  document.addEventListener("themechange", draw);
}
