// The list of pages, on a phone behind a button: Escape, a click elsewhere or the choice of a page closes it.
// A plain script in the head: before the first paint it says that scripts run, without which the list stays open.
(() => {
  document.documentElement.dataset.scripted = "";
  document.addEventListener("DOMContentLoaded", () => {
    const button = document.querySelector(".pages-toggle");
    if (!button) return;
    const list = document.getElementById(button.getAttribute("aria-controls"));
    const isOpen = () => "open" in list.dataset;
    const open = (opens) => {
      list.toggleAttribute("data-open", opens);
      button.setAttribute("aria-expanded", String(opens));
    };
    button.addEventListener("click", () => open(!isOpen()));
    document.addEventListener("click", ({ target }) => {
      if (isOpen() && !list.contains(target) && !button.contains(target)) open(false);
    });
    document.addEventListener("keydown", ({ key }) => {
      if (key !== "Escape" || !isOpen()) return;
      open(false);
      button.focus();
    });
  });
})();
