// Light, dark or as the system has it; remembered under the name that Django's admin uses, so that both agree.
// A link may name one (?theme=dark): it is shown, and remembered only once somebody chooses for themselves.
// A plain script in the head: it runs before the first paint, so that a dark page never flashes white.
(() => {
  const THEMES = ["auto", "light", "dark"];
  const WORDS = { auto: "Colours: as the system has them", light: "Colours: light", dark: "Colours: dark" };
  const SIGNS = { auto: "◐", light: "☀", dark: "☾" };

  function remembered() {
    try {
      const theme = localStorage.getItem("theme");
      return THEMES.includes(theme) ? theme : "auto";
    } catch {
      return "auto"; // storage may be forbidden
    }
  }

  const inAddress = () => THEMES.find((theme) => theme === new URLSearchParams(location.search).get("theme"));
  const shown = () => inAddress() ?? remembered();

  function leaveAddress() {
    const query = new URLSearchParams(location.search);
    if (!query.has("theme")) return;
    query.delete("theme");
    history.replaceState(history.state, "", `${location.pathname}?${query}`);
  }

  function apply(theme) {
    document.documentElement.dataset.theme = theme;
    for (const button of document.querySelectorAll("[data-theme-toggle]")) {
      button.textContent = SIGNS[theme];
      button.title = WORDS[theme];
      button.setAttribute("aria-label", WORDS[theme]);
    }
    document.dispatchEvent(new Event("themechange"));
  }

  function advance() {
    const theme = THEMES[(THEMES.indexOf(shown()) + 1) % THEMES.length];
    leaveAddress();
    try {
      localStorage.setItem("theme", theme);
    } catch {
      // not remembered, still applied
    }
    apply(theme);
  }

  apply(shown());
  document.addEventListener("DOMContentLoaded", () => {
    apply(shown());
    for (const button of document.querySelectorAll("[data-theme-toggle]")) button.addEventListener("click", advance);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => apply(shown()));
})();
