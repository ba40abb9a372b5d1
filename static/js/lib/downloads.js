// The download menu of each chart: its files are of the period, filters and sizes that the page shows at that moment.

import { $$ } from "./dom.js";

/** `query`: what the page shows; it is told the menu, since a page may show two periods. */
export function startDownloads(query) {
  for (const menu of $$("[data-download]")) {
    const links = $$("[data-kind]", menu);
    const address = (link) => {
      link.href = `/api/charts/${menu.dataset.download}.${link.dataset.kind}?${query(menu)}`;
    };
    menu.addEventListener("toggle", () => links.forEach(address));
    for (const link of links) link.addEventListener("click", () => address(link));
  }
}
