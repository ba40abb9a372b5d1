// A page that is one table of the period in the address: asked for anew whenever something was recorded.

import { getJson } from "../lib/api.js";
import { $, $$ } from "../lib/dom.js";
import { current } from "../overview/query.js";
import { startPage } from "../overview/start.js";
import { showError, showState } from "../overview/state.js";
import { showOrder, sorted, startSorting } from "./sorting.js";

/** `name` is that of the table and of its JSON; `toRow` makes a row of what the server says and the page's query. */
export function startTable(name, { one, many }, toRow) {
  let rows = []; // worst first, as the server has them

  function show() {
    const query = current();
    $(`#${name}-rows`).replaceChildren(...sorted(rows).map((row) => toRow(row, query)));
    showOrder();
    for (const link of $$("[data-grouping]")) link.href = `${link.dataset.grouping}${location.search}`;
  }

  async function refresh() {
    const asked = current().toString();
    try {
      const answer = await getJson(`/api/${name}.json?${asked}`);
      if (asked !== current().toString()) return true;
      rows = answer.rows;
      show();
      showState(answer);
      const count = `${rows.length} ${rows.length === 1 ? one : many}`;
      if ($(`#${name}-count`).textContent !== count) $(`#${name}-count`).textContent = count;
      $(`#${name}-none`).hidden = rows.length > 0;
      $(`#${name}`).setAttribute("aria-busy", "false");
      showError("");
      return true;
    } catch (error) {
      showError(error.message);
      return false;
    }
  }

  startSorting(show);
  startPage(refresh, { mark: `${name}-drawn` });
}
