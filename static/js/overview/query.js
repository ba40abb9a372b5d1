// The period, engine and model that the page shows: kept in its address, so that a link shows the same.

const KNOWN = ["range", "start", "end", "engine", "model"];

export function current() {
  const isWrong = "wrongAddress" in document.body.dataset; // the page has said so, and shows the default
  const asked = new URLSearchParams(isWrong ? "" : location.search);
  const query = new URLSearchParams();
  for (const name of KNOWN) if (asked.get(name)) query.set(name, asked.get(name));
  if (!query.has("start") && !query.has("range")) query.set("range", document.body.dataset.range);
  return query;
}

export const isCustom = (query) => query.has("start");

export function change(changes) {
  const query = current();
  for (const [name, value] of Object.entries(changes)) {
    if (value) query.set(name, value);
    else query.delete(name);
  }
  delete document.body.dataset.wrongAddress;
  history.pushState(null, "", `?${query}`);
  document.dispatchEvent(new Event("querychange"));
}

addEventListener("popstate", () => document.dispatchEvent(new Event("querychange")));
