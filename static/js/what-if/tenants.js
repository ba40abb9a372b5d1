// Whose prompts are counted: all of them, or one tenant's. The names come from the server.

import { $, h } from "../lib/dom.js";
import { change } from "../overview/query.js";

export function showTenants({ tenants, tenant }) {
  const names = tenant && !tenants.includes(tenant) ? [...tenants, tenant] : tenants; // of another period
  const select = $("#tenant");
  if (select.dataset.names !== names.join("\n")) {
    select.replaceChildren(h("option", { value: "" }, "all tenants"), ...names.map((name) => h("option", { value: name }, name)));
    select.dataset.names = names.join("\n");
  }
  select.value = tenant ?? "";
  $("#tenant-choice").hidden = !names.length;
}

export function startTenants() {
  $("#tenant").addEventListener("change", (event) => change({ tenant: event.target.value }));
}
