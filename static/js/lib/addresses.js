// Where pages lie whose address has a name in it.

/** The page of one engine; names are like “gpu-7/0”, so that slashes stay. */
export function engineAddress(name, query = "") {
  const path = name.split("/").map(encodeURIComponent).join("/");
  return `/engines/${path}/${String(query) ? `?${query}` : ""}`;
}

/** The period of a page, for a link to another: its engine and model stay behind. */
export function periodOf(query) {
  return new URLSearchParams([...query].filter(([name]) => ["range", "start", "end"].includes(name)));
}
