// The what-if page: asks what the sizes of the sliders would do, again whenever one moves or something was recorded.

import { getJson } from "../lib/api.js";
import { $ } from "../lib/dom.js";
import { startDownloads } from "../lib/downloads.js";
import { startHints } from "../lib/hints.js";
import { startFilters } from "../overview/filters.js";
import { startLink } from "../overview/link.js";
import { startLive } from "../overview/live.js";
import { current, rememberSizes } from "../overview/query.js";
import { showError, showState, startSampleButton } from "../overview/state.js";
import { forgetAdvice, startAdvice } from "./advice.js";
import { show, startFigures } from "./figures.js";
import { showTenants, startTenants } from "./tenants.js";
import { asked, readAddress, showSizeError, showSizes, startSizes, take } from "./sizes.js";
import { showWords } from "./words.js";

const REST_MILLISECONDS = 40; // a slider that is being dragged asks when it rests so long

let newest = 0; // answers that come late are not shown

function question() {
  const query = current();
  for (const [tier, size] of Object.entries(asked())) query.set(tier, size);
  return query;
}

const busy = (isBusy) => $("#prediction").setAttribute("aria-busy", String(isBusy));

async function predict(isMove = false) {
  const number = ++newest;
  busy(true);
  try {
    const answer = await getJson(`/api/what-if.json?${question()}${isMove ? "&move=1" : ""}`);
    if (number === newest) await showAnswer(answer);
  } finally {
    if (number === newest) busy(false);
  }
}

async function showAnswer(answer) {
  showSizeError("");
  showState(answer);
  $("#empty").hidden = !answer.obstacle || answer.has_any_traffic;
  $("#obstacle").textContent = answer.obstacle;
  $("#obstacle").hidden = !answer.obstacle;
  showTenants(answer);
  $("#prediction").hidden = Boolean(answer.obstacle);
  if (answer.obstacle) return;
  showSizes(answer.tiers);
  showWords(answer);
  await Promise.all(Object.entries(answer.figures).map(([name, figure]) => show(name, figure)));
}

async function refresh() {
  try {
    await predict();
    showError("");
    $("#prediction").dataset.stale = "false";
    return true;
  } catch (error) {
    showError(error.message);
    $("#prediction").dataset.stale = "true";
    return false;
  }
}

let timer;
function moved() {
  newest += 1; // what is on its way was asked before
  busy(true);
  clearTimeout(timer);
  timer = setTimeout(async () => {
    rememberSizes(asked());
    try {
      await predict(true);
    } catch (error) {
      showSizeError(error.message);
    }
  }, REST_MILLISECONDS);
}

startFilters();
startHints();
startDownloads(() => {
  const query = question();
  query.set("time", $("#time").value); // of the frontier
  return query;
});
startLink();
startFigures();
startSizes(moved);
startAdvice(take);
startTenants();
startSampleButton(refresh);
document.addEventListener("querychange", () => {
  forgetAdvice();
  readAddress();
  refresh();
});
$("#zone").textContent = Intl.DateTimeFormat().resolvedOptions().timeZone;
refresh().then(() => {
  document.body.dataset.ready = "true";
  startLive(refresh);
});
