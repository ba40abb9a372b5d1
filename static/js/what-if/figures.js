// The page's figures as the server made them. Adds what only a browser knows: the theme.

import { $, $$ } from "../lib/dom.js";
import { react } from "../lib/plotly.js";

const RESIZED_MILLISECONDS = 120;
const figures = new Map(); // name → the figure as the server sent it

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function themed({ data, layout }) {
  const text = css("--text");
  const axis = { gridcolor: css("--grid"), zerolinecolor: css("--grid"), linecolor: css("--border"), color: css("--muted") };
  return {
    data,
    layout: {
      ...layout,
      xaxis: { ...axis, ...layout.xaxis },
      yaxis: { ...axis, ...layout.yaxis },
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: "system-ui, sans-serif", size: 12, color: text },
      hoverlabel: { bgcolor: css("--surface"), bordercolor: css("--border"), font: { color: text, size: 12 } },
      autosize: true,
    },
  };
}

async function draw(name) {
  const figure = figures.get(name);
  const place = $(`[data-figure="${name}"] .plotted`);
  if (!figure || !place.clientWidth) return;
  const { data, layout } = themed(figure);
  await react(place, data, layout, { displayModeBar: false });
  place.closest("[data-figure]").dataset.drawn = "true";
}

export async function show(name, figure) {
  figures.set(name, figure);
  await draw(name);
}

export function startFigures() {
  const drawAll = () => Promise.all([...figures.keys()].map(draw));
  document.addEventListener("themechange", drawAll);
  let timer;
  const resized = new ResizeObserver(() => {
    clearTimeout(timer);
    timer = setTimeout(drawAll, RESIZED_MILLISECONDS);
  });
  for (const place of $$("[data-figure] .plotted")) resized.observe(place);
}
