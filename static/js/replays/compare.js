// Runs that are checked, side by side.

import { getJson } from "../lib/api.js";
import { $, $$ } from "../lib/dom.js";
import { show } from "../what-if/figures.js";
import { comparedRow, showNames } from "./side_by_side.js";

let newest = 0; // answers that come late are not shown

export const chosen = () => $$("#runs input:checked").map((input) => input.value);

export async function compare(ids) {
  const number = ++newest;
  if (ids.length < 2) {
    $("#compared").hidden = true;
    return;
  }
  const answer = await getJson(`/api/replays/compared.json?ids=${ids.join(",")}`);
  if (number !== newest) return;
  $("#compared").hidden = false;
  $("#compared-note").textContent = answer.note;
  showNames(answer.names);
  $("#compared-rows").replaceChildren(...answer.rows.map(({ cells, ...row }) => comparedRow(row, cells)));
  await show("compared", answer.figure);
}
