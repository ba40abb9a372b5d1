// What every page with a period in its address begins with, once it knows how to ask for its numbers.

import { $ } from "../lib/dom.js";
import { startDownloads } from "../lib/downloads.js";
import { startHints } from "../lib/hints.js";
import { startCharts } from "./charts.js";
import { startFilters } from "./filters.js";
import { startLink } from "./link.js";
import { startLive } from "./live.js";
import { current } from "./query.js";
import { startSampleButton } from "./state.js";

/** `refresh` answers whether all went well; `changed` is told of another period first; `files` as startDownloads has it. */
export function startPage(refresh, { changed = () => {}, files = current, mark = "page-drawn" } = {}) {
  startFilters();
  startHints();
  startDownloads(files);
  startLink();
  startCharts();
  startSampleButton(refresh);
  document.addEventListener("querychange", () => {
    changed();
    refresh();
  });
  $("#zone").textContent = Intl.DateTimeFormat().resolvedOptions().timeZone;
  refresh().then(() => {
    performance.mark(mark);
    document.body.dataset.ready = "true";
    startLive(refresh);
  });
}
