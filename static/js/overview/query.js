// The period, engine and model that the page shows: kept in its address, so that a link shows the same.

const DEFAULT_RANGE = "15m";
const KNOWN = ["range", "start", "end", "engine", "model"];

export function current() {
  const asked = new URLSearchParams(location.search);
  const query = new URLSearchParams();
  for (const name of KNOWN) if (asked.get(name)) query.set(name, asked.get(name));
  if (!query.has("start") && !query.has("range")) query.set("range", document.body.dataset.range || DEFAULT_RANGE);
  return query;
}

export const isCustom = (query) => query.has("start");

export function change(changes) {
  const query = current();
  for (const [name, value] of Object.entries(changes)) {
    if (value) query.set(name, value);
    else query.delete(name);
  }
  history.pushState(null, "", `?${query}`);
  document.dispatchEvent(new Event("querychange"));
}

addEventListener("popstate", () => document.dispatchEvent(new Event("querychange")));
