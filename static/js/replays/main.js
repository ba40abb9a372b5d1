// The page of replays: what runs there are and how far each is, again whenever something was recorded.

import { getJson, postJson } from "../lib/api.js";
import { $ } from "../lib/dom.js";
import { startLive } from "../overview/live.js";
import { startFigures } from "../what-if/figures.js";
import { compare, chosen } from "./compare.js";
import { showPages, showRuns } from "./rows.js";
import { showFiles, startUpload } from "./upload.js";

function showError(sentence) {
  $("#error").textContent = sentence;
  $("#error").hidden = !sentence;
}

const GOING_ON_MILLISECONDS = 2_000; // the last tick of a run comes close behind others, and may be passed over

let soon;
function lookAgain(replays) {
  clearTimeout(soon);
  if (replays.some((replay) => replay.is_going_on) && !document.hidden) soon = setTimeout(refresh, GOING_ON_MILLISECONDS);
}

async function refresh() {
  try {
    const asked = new URLSearchParams(location.search).get("page") ?? "1";
    const answer = await getJson(`/api/replays.json?page=${encodeURIComponent(asked)}`);
    lookAgain(answer.replays);
    showRuns(answer.replays, { act, choose: compareAgain });
    showPages(answer);
    showFiles(answer.files);
    await compare(chosen());
    showError("");
    return true;
  } catch (error) {
    showError(error.message);
    return false;
  }
}

async function compareAgain() {
  try {
    await compare(chosen());
  } catch (error) {
    showError(error.message);
  }
}

async function act(replay, action) {
  if (action === "remove" && !confirm(`Remove ${replay.name} with its series? Its trace stays.`)) return;
  try {
    await postJson(`/api/replays/${replay.id}/${action}/`);
    await refresh();
  } catch (error) {
    showError(error.message);
  }
}

function startForm() {
  const when = $("#id_when");
  const show = () => ($("#starts-at").hidden = when.value !== "at");
  when.addEventListener("change", show);
  show();
}

startForm();
startFigures();
startUpload(refresh, showError);
refresh().then(() => {
  document.body.dataset.ready = "true";
  startLive(refresh);
});
