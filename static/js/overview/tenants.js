// Each tenant's tokens of the period, as a table. All words come from the server.

import { getJson } from "../lib/api.js";
import { $, h } from "../lib/dom.js";

function row(tenant) {
  const words = tenant.origins.map((part) => `${part.tokens_text} ${part.label}`).join(", ");
  const parts = tenant.origins.map((part) =>
    h("i", { class: "fill", "data-origin": part.origin, style: `width: ${(100 * part.tokens) / tenant.tokens}%` }),
  );
  const number = (text) => h("td", { class: "num" }, text);
  return h(
    "tr",
    {},
    h("th", { scope: "row" }, tenant.requests ? h("a", { href: tenant.requests }, tenant.tenant) : tenant.tenant),
    h("td", {}, h("span", { class: "mini", role: "img", "aria-label": words, title: words }, ...parts)),
    ...[tenant.tokens_text, tenant.share_text, tenant.hit_rate_text].map(number),
  );
}

export async function refreshTenants(query, isCurrent) {
  if (!$("#tenants")) return; // nobody has made one
  const { rows } = await getJson(`/api/tenants.json?${query}`);
  if (!isCurrent()) return;
  $("#tenants-rows").replaceChildren(...rows.map(row));
  $("#tenants-none").hidden = rows.length > 0;
}
