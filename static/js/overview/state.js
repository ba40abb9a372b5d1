// What stands above the charts when something is not as usual: no traffic yet, a source not seen, Valkey gone.

import { postJson } from "../lib/api.js";
import { $, $$ } from "../lib/dom.js";
import { showFiring } from "../lib/firing.js";
import { markStale } from "./charts.js";

export function showState(answer) {
  const stale = answer.sources.filter((source) => source.is_stale);
  markStale(answer.sources.length > 0 && stale.length === answer.sources.length);
  const sentences = [answer.problem, ...stale.map((source) => source.text)].filter(Boolean);
  if (sentences.length) sentences.push("What was not observed is left blank, never drawn as zero.");
  notice("#stale", sentences);
  $("#empty").hidden = answer.has_any_traffic && answer.prompt_tokens > 0;
  $("#empty-ever").hidden = answer.has_any_traffic;
  $("#empty-period").hidden = !answer.has_any_traffic;
  showSample(answer.sample_traffic, answer.engines);
  showFiring(answer.num_firing);
}

export const showError = (sentence) => notice("#error", sentence ? [sentence] : []);

// One line a sentence; a screen reader hears it only when something in it changed.
function notice(selector, sentences) {
  const element = $(selector);
  const text = sentences.join("\n");
  if (element.innerText !== text) element.innerText = text;
  element.hidden = !text;
}

// A message that was closed stays closed in this browser, until sample traffic is sent again.
const CLOSED = "closed-sample-message";

function closed(text) {
  try {
    if (text === "") localStorage.removeItem(CLOSED);
    else if (text) localStorage.setItem(CLOSED, text);
    return localStorage.getItem(CLOSED);
  } catch {
    return null; // a browser that keeps nothing: the server forgets the message after ten minutes
  }
}

function showSample(sample, engines) {
  const isReady = engines.some((engine) => engine.status === "ready");
  const isRunning = Boolean(sample?.is_running);
  for (const button of $$("[data-sample-traffic]")) {
    button.disabled = isRunning || !isReady;
    button.title = isReady ? "About a minute of multi-turn chats over a few shared system prompts" : "No engine is ready yet";
  }
  if (isRunning) closed("");
  $("#sample").hidden = !isRunning && (!sample?.message || sample.message === closed());
  $("#sample-close").hidden = isRunning;
  $("#sample-close").onclick = () => {
    closed(sample.message);
    $("#sample").hidden = true;
  };
  $("#sample-progress").hidden = !isRunning;
  $("#sample-progress").value = sample?.total ? sample.sent / sample.total : 0;
  const text = `Sample traffic: ${sample?.message || `${sample?.sent ?? 0} of ${sample?.total ?? 0} requests sent`}`;
  if ($("#sample-text").textContent !== text) $("#sample-text").textContent = text;
}

export function startSampleButton(refresh) {
  async function send(event) {
    event.target.disabled = true;
    try {
      await postJson("/api/sample-traffic/");
      refresh();
    } catch (error) {
      showError(error.message);
    }
  }
  for (const button of $$("[data-sample-traffic]")) button.addEventListener("click", send);
}

