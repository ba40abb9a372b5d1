// Draws figures that the server made. Adds what only a browser knows: theme, time zone, width.

import { getJson } from "../lib/api.js";
import { $, $$, h } from "../lib/dom.js";
import { react } from "../lib/plotly.js";
import { tableOf } from "./table.js";

const RESIZED_MILLISECONDS = 120; // a window that is being dragged is drawn when it rests

const drawn = new Map(); // chart name → the figure as the server sent it

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// Plotly knows no time zones: it is given the local time as if it were UTC.
export const toLocal = (milliseconds) => milliseconds - new Date(milliseconds).getTimezoneOffset() * 60_000;

function themed(figure, isNarrow) {
  const text = css("--text");
  const axis = { gridcolor: css("--grid"), zerolinecolor: css("--grid"), linecolor: css("--border"), color: css("--muted") };
  const layout = {
    ...figure.layout,
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: css("--plot-font") || "system-ui, sans-serif", size: 12, color: text },
    hoverlabel: { bgcolor: css("--surface"), bordercolor: css("--border"), font: { color: text, size: 12 } },
    autosize: true,
    dragmode: "zoom",
  };
  for (const name of Object.keys(layout)) if (/^[xy]axis/.test(name)) layout[name] = { ...axis, ...layout[name] };
  layout.xaxis = { ...layout.xaxis, range: layout.xaxis.range?.map(toLocal), nticks: isNarrow ? 4 : 8 };
  layout.shapes = layout.shapes.map((shape) => localShape(shape, text));
  if (isNarrow) layout.margin = { ...layout.margin, l: 48, r: 6 };
  return { data: figure.data.map((trace) => localTrace(trace, text)), layout };
}

const localShape = (shape, text) => ({
  ...shape,
  x0: toLocal(shape.x0),
  x1: toLocal(shape.x1),
  ...(shape.name === "mark" ? { line: { ...shape.line, color: text } } : {}),
});

function localTrace(trace, text) {
  const local = { ...trace, x: trace.x.map(toLocal) };
  if (!trace.meta?.themed) return local;
  return { ...local, line: { ...trace.line, color: text }, marker: { ...trace.marker, color: text } };
}

const hasValues = (figure) =>
  figure.data.some((trace) => !trace.meta?.marks && trace.y.some((value) => value !== null));

function say(chart, sentence) {
  const message = $(".message", chart);
  message.textContent = sentence;
  message.hidden = !sentence;
  $(".plotted", chart).style.visibility = sentence ? "hidden" : "";
}

async function draw(chart) {
  const figure = drawn.get(chart.dataset.chart);
  if (!figure) return;
  say(chart, hasValues(figure) ? "" : chart.dataset.empty);
  const { data, layout } = themed(figure, chart.clientWidth < 480);
  await react($(".plotted", chart), data, layout, { displayModeBar: false });
  chart.dataset.drawn = "true";
}

function fillTable(chart) {
  const details = $(":scope > details", chart);
  const figure = drawn.get(chart.dataset.chart);
  if (!details.open || !figure) return;
  $(".scroll", details).replaceChildren(tableOf(figure, $("h2", chart).textContent));
}

/** The figure as the server made it, and its numbers as a table. */
export async function showFigure(chart, figure) {
  drawn.set(chart.dataset.chart, figure);
  await draw(chart);
  fillTable(chart);
}

async function refresh(chart, query) {
  const asked = query.toString();
  chart.dataset.asked = asked;
  try {
    const { figure } = await getJson(`/api/charts/${chart.dataset.chart}.json?${asked}`);
    if (chart.dataset.asked !== asked) return; // a newer question is on its way
    await showFigure(chart, figure);
  } catch (error) {
    if (!drawn.has(chart.dataset.chart)) say(chart, error.message);
    throw error;
  }
}

/** Those in the window first: the server answers one question at a time, and plotly draws one chart at a time. */
export async function refreshCharts(query) {
  const charts = $$(".chart");
  const seen = charts.filter((chart) => chart.getBoundingClientRect().top < innerHeight);
  await Promise.all(seen.map((chart) => refresh(chart, query)));
  performance.mark("charts-in-view-drawn");
  await Promise.all(charts.filter((chart) => !seen.includes(chart)).map((chart) => refresh(chart, query)));
}

export function markStale(isStale) {
  for (const chart of $$(".chart")) chart.dataset.stale = String(isStale);
}

// A whole draw, not Plotly's own resizing: that keeps the columns of the legend that fitted the old width.
function redrawWhenResized() {
  if (!$(".charts")) return;
  let timer;
  let width = $(".charts").clientWidth;
  new ResizeObserver(([entry]) => {
    if (Math.round(entry.contentRect.width) === width) return;
    width = Math.round(entry.contentRect.width);
    clearTimeout(timer);
    timer = setTimeout(() => $$(".chart").forEach(draw), RESIZED_MILLISECONDS);
  }).observe($(".charts"));
}

export function startCharts() {
  for (const chart of $$(".chart")) {
    $(".plot", chart).append(h("div", { class: "message" }, "Loading"));
    $(":scope > details", chart).addEventListener("toggle", () => fillTable(chart));
  }
  document.addEventListener("themechange", () => $$(".chart").forEach(draw));
  redrawWhenResized();
}
