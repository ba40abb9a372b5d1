// The period, engine, model and tenant that the page shows: kept in its address, so that a link shows the same.

const KNOWN = ["range", "start", "end", "engine", "model", "tenant"];
const SIZES = ["gpu", "cpu", "disk", "remote"]; // of the what-if page; those of one engine say nothing of another, as tenants

const { engine: ofPage } = document.body.dataset; // the page of one engine has it in its path

export function current() {
  const query = inAddress();
  if (ofPage) query.set("engine", ofPage);
  return query;
}

/** What the address itself says, or the default period. */
export function inAddress() {
  const isWrong = "wrongAddress" in document.body.dataset; // the page has said so, and shows the default
  const asked = new URLSearchParams(isWrong ? "" : location.search);
  const query = new URLSearchParams();
  for (const name of KNOWN) if (asked.get(name) && !(ofPage && name === "engine")) query.set(name, asked.get(name));
  if (!query.has("start") && !query.has("range")) query.set("range", document.body.dataset.range);
  return query;
}

export const isCustom = (query) => query.has("start");

export function change(changes) {
  const query = new URLSearchParams(location.search); // also what this page does not know: the theme, sizes
  for (const name of KNOWN) query.delete(name);
  for (const [name, value] of Object.entries({ ...Object.fromEntries(inAddress()), ...changes })) {
    if (value) query.set(name, value);
    else query.delete(name);
  }
  if ("engine" in changes) for (const name of [...SIZES, "tenant"]) query.delete(name);
  delete document.body.dataset.wrongAddress;
  history.pushState(null, "", `?${query}`);
  document.dispatchEvent(new Event("querychange"));
}

/** The sizes in the address, by tier, as they were typed. */
export const sizesInAddress = () =>
  Object.fromEntries([...new URLSearchParams(location.search)].filter(([name, size]) => SIZES.includes(name) && size));

/** Writes them there without a step back: a slider is moved many times. */
export function rememberSizes(sizes) {
  const query = new URLSearchParams(location.search);
  for (const name of SIZES) query.delete(name);
  for (const [name, size] of Object.entries(sizes)) query.set(name, size);
  history.replaceState(null, "", `?${query}`);
}

addEventListener("popstate", () => document.dispatchEvent(new Event("querychange")));
