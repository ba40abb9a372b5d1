// What every page with a period in its address begins with, once it knows how to ask for its numbers.

import { $ } from "../lib/dom.js";
import { startDownloads } from "../lib/downloads.js";
import { startHints } from "../lib/hints.js";
import { markStale, startCharts } from "./charts.js";
import { startFilters } from "./filters.js";
import { startLink } from "./link.js";
import { startLive } from "./live.js";
import { current } from "./query.js";
import { showError, startSampleButton } from "./state.js";

/** Whether all that was `asked` for came and is shown; where not, `failed` greys what stays, and the reason is told. */
export async function shown(asked, failed = () => markStale(true)) {
  try {
    await Promise.all(asked);
    showError("");
    return true;
  } catch (error) {
    showError(error.message);
    failed();
    return false;
  }
}

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
