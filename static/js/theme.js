// Light, dark or as the system has it; remembered under the name that Django's admin uses, so that both agree.
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
    const theme = THEMES[(THEMES.indexOf(remembered()) + 1) % THEMES.length];
    try {
      localStorage.setItem("theme", theme);
    } catch {
      // not remembered, still applied
    }
    apply(theme);
  }

  apply(remembered());
  document.addEventListener("DOMContentLoaded", () => {
    apply(remembered());
    for (const button of document.querySelectorAll("[data-theme-toggle]")) button.addEventListener("click", advance);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => apply(remembered()));
})();
