// The chat page: keeps the conversation, sends it whole each turn (that is what a prefix cache is for), shows the answer.

import { $, $$, h } from "../lib/dom.js";
import { facts, showOrigins } from "./origins.js";
import { ChatError, complete, models } from "./stream.js";

// What SmolLM2's makers advise: at temperature 1 a model this small talks nonsense, which looks like a broken cache.
const SAMPLING = { temperature: 0.2, top_p: 0.9 };

let messages = [];
let running = null; // the AbortController of the answer that is streaming

function showError(sentence) {
  $("#error").textContent = sentence;
  $("#error").hidden = !sentence;
}

function addTurn(role, text) {
  $("#welcome").hidden = true;
  const said = h("div", { class: "said" }, text);
  const turn = h("div", { class: "turn", "data-role": role }, h("div", { class: "who" }, role === "user" ? "You" : "Model"), said);
  $("#turns").append(turn);
  turn.scrollIntoView({ block: "nearest" });
  return turn;
}

function setRunning(controller) {
  running = controller;
  $("#send").hidden = Boolean(controller);
  $("#stop").hidden = !controller;
  $("#turns").setAttribute("aria-busy", String(Boolean(controller)));
}

async function stream(turn, signal) {
  const said = $(".said", turn);
  const request = { ...SAMPLING, messages, max_tokens: Number($("#max-tokens").value) || 128 };
  if ($("#model").value) request.model = $("#model").value;
  let text = "";
  for await (const chunk of complete(request, signal)) {
    const delta = chunk.choices?.[0]?.delta?.content;
    if (delta) {
      text += delta;
      said.textContent = text;
      turn.scrollIntoView({ block: "nearest" });
    }
    if (chunk.usage) {
      turn.append(facts(chunk.usage));
      showOrigins(chunk.usage, chunk.tierscope?.prompt);
    }
  }
  return text;
}

async function ask(text) {
  showError("");
  const conversation = messages; // a new conversation may begin while this answer streams
  const userTurn = addTurn("user", text);
  messages.push({ role: "user", content: text });
  const turn = addTurn("assistant", "");
  turn.dataset.state = "streaming";
  setRunning(new AbortController());
  try {
    await stream(turn, running.signal);
    conversation.push({ role: "assistant", content: $(".said", turn).textContent });
  } catch (error) {
    if (conversation === messages) settleFailure(error, turn, userTurn, text);
  } finally {
    delete turn.dataset.state;
    setRunning(null);
    $("#prompt").focus();
  }
}

function settleFailure(error, turn, userTurn, text) {
  const answered = $(".said", turn).textContent;
  if (error.name === "AbortError") turn.append(h("div", { class: "facts" }, "Stopped."));
  else showError(error instanceof ChatError ? error.message : "The connection to the server was lost.");
  if (answered) {
    messages.push({ role: "assistant", content: answered });
    return;
  }
  messages.pop(); // nothing was answered: the question goes back to where it can be sent again
  turn.remove();
  userTurn.remove();
  $("#prompt").value ||= text;
}

function submit(event) {
  event?.preventDefault();
  const text = $("#prompt").value.trim();
  if (!text || running) return;
  $("#prompt").value = "";
  ask(text);
}

function restart() {
  running?.abort();
  messages = [];
  $("#turns").replaceChildren();
  $("#welcome").hidden = false;
  showError("");
  $("#prompt").focus();
}

async function fillModels() {
  const select = $("#model");
  try {
    const names = await models();
    select.replaceChildren(...names.map((name) => h("option", {}, name)));
    if (!names.length) showError("No engine is ready yet: wait for the model to load, then reload this page.");
  } catch (error) {
    showError(error instanceof ChatError ? error.message : "The server cannot be reached.");
  }
  select.setAttribute("aria-busy", "false");
}

$("#composer").addEventListener("submit", submit);
$("#prompt").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) submit(event);
});
$("#stop").addEventListener("click", () => running?.abort());
$("#new").addEventListener("click", restart);
for (const button of $$("[data-suggestion]")) {
  button.addEventListener("click", () => {
    if (!running) ask(button.textContent);
  });
}
fillModels();
