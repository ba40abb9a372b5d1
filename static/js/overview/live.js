// Calls back when the server has recorded something: by server-sent events, and by polling where they do not come.

import { $ } from "../lib/dom.js";

const POLL_MILLISECONDS = 10_000;
const SILENCE_MILLISECONDS = 25_000; // two recordings and a half: then the stream is not to be trusted
const LEAST_MILLISECONDS = 900;

export function startLive(refresh) {
  let lastTick = 0;
  let lastRefresh = 0;

  function show(state) {
    const words = { live: "Live", polling: "Polling every 10 s", offline: "Not connected" };
    const element = $("#live");
    if (element.dataset.state === state) return;
    element.dataset.state = state;
    element.textContent = words[state];
  }

  async function run() {
    if (document.hidden || Date.now() - lastRefresh < LEAST_MILLISECONDS) return;
    lastRefresh = Date.now();
    const isFine = await refresh();
    show(!isFine ? "offline" : Date.now() - lastTick < SILENCE_MILLISECONDS ? "live" : "polling");
  }

  const events = new EventSource("/events");
  const heard = () => {
    lastTick = Date.now();
    run();
  };
  events.addEventListener("hello", () => {
    lastTick = Date.now();
    show("live");
  });
  events.addEventListener("tick", heard);
  events.addEventListener("lost", () => {
    lastTick = 0;
    show("polling");
  });
  setInterval(() => {
    if (Date.now() - lastRefresh >= POLL_MILLISECONDS) run();
  }, 1000);
  document.addEventListener("visibilitychange", run);
  addEventListener("pagehide", () => events.close());
  addEventListener("pageshow", (event) => {
    if (event.persisted) location.reload();
  });
}
