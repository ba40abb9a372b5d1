// Two sides: asks for both and for what lies between them, again whenever something was recorded.

import { getJson } from "../lib/api.js";
import { $, $$, h } from "../lib/dom.js";
import { markStale, showFigure } from "../overview/charts.js";
import { startPage } from "../overview/start.js";
import { showError, showState } from "../overview/state.js";
import { comparedRow, showNames } from "../replays/side_by_side.js";
import { show, startFigures } from "../what-if/figures.js";
import { question, showSides, startSides } from "./sides.js";

const SIDES = ["left", "right"];
let queries = [{}, {}]; // what asks files for one side alone

function showTable({ names, periods, rows, note }) {
  showNames([...names.map((name, index) => h("span", {}, name, h("small", {}, periods[index]))), "left against right"]);
  $("#compared-rows").replaceChildren(
    ...rows.map((row) => comparedRow(row, [...row.cells.map(withMore), withVerdict(row.difference)])),
  );
  $("#compared-note").textContent = note;
}

const withMore = ({ text, more }) => h("span", {}, text, more ? h("small", {}, more) : "");
const withVerdict = ({ text, verdict }) => h("span", { "data-verdict": verdict }, text);

async function showCharts({ names, periods, figures }) {
  SIDES.forEach((side, index) => {
    for (const place of $$(`[data-side-name=${side}]`)) place.textContent = `${names[index]} · ${periods[index]}`;
  });
  const charts = Object.entries(figures).flatMap(([name, pair]) => pair.map((figure, index) => [`${name}-${SIDES[index]}`, figure]));
  await Promise.all(charts.map(([name, figure]) => showFigure($(`[data-chart="${name}"]`), figure)));
}

let refused = ""; // a question that cannot be answered is asked once

async function refresh() {
  const asked = question().toString();
  if (asked === refused) return true;
  try {
    const answer = await getJson(`/api/compare.json?${asked}`);
    if (asked !== question().toString()) return true;
    queries = answer.queries;
    $("#compared").hidden = $("#sides").hidden = false;
    showTable(answer);
    showState(answer);
    showError("");
    await Promise.all([show("compared", answer.overlay), showCharts(answer)]);
    return true;
  } catch (error) {
    if (asked !== question().toString()) return true;
    showError(error.message);
    const isRefused = error.status === 400; // what is asked for cannot be compared: there is nothing to show
    if (isRefused) refused = asked;
    $("#compared").hidden = $("#sides").hidden = isRefused || $("#compared").hidden;
    markStale(!isRefused);
    return isRefused;
  }
}

const files = ({ dataset }) => (dataset.side ? new URLSearchParams(queries[SIDES.indexOf(dataset.side)]) : question());

startSides();
startFigures();
startPage(refresh, { changed: showSides, files });
