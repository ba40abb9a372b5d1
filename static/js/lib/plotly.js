// plotly.js, as soon as it is there. It comes after the page's own scripts, which ask for the numbers meanwhile.

const script = document.querySelector("script[data-plotly]");

const loaded = new Promise((resolve, reject) => {
  if (window.Plotly) resolve();
  script.addEventListener("load", resolve);
  script.addEventListener("error", () => reject(new Error("The chart library could not be loaded; reload the page.")));
});
loaded.catch(() => {}); // whoever draws hears of it

export async function react(element, data, layout, config) {
  await loaded;
  return window.Plotly.react(element, data, layout, config);
}
