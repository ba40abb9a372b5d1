// Keeps the tiers on an admin page as they are now: fetches the panel's words every second and writes them where they belong.
// Knows no numbers; the server has made words of them.

const EVERY_MS = 1000;
const root = document.querySelector("[data-live]");

function write(node, text) {
  if (node && node.textContent !== text) node.textContent = text;
}

function showProblem(text) {
  for (const node of document.querySelectorAll("[data-problem]")) {
    write(node, text);
    node.hidden = !text;
  }
}

function showTier(tier) {
  for (const place of document.querySelectorAll(`[data-tier="${tier.setting_id}"]`)) {
    place.dataset.state = tier.state;
    for (const node of place.querySelectorAll("[data-field]")) write(node, tier[node.dataset.field]);
    for (const bar of place.querySelectorAll("[data-percent]")) bar.value = tier.used_percent ?? 0;
  }
}

// A list that lacks a tier is older than that tier's engine: the server draws it anew.
function isIncomplete(panel) {
  const tiers = panel.engines.flatMap((engine) => engine.tiers);
  return "all" in root.dataset && tiers.some((tier) => !document.querySelector(`[data-tier="${tier.setting_id}"]`));
}

function show(panel) {
  if (isIncomplete(panel)) return location.reload();
  showProblem(panel.problem);
  for (const engine of panel.engines) {
    write(document.querySelector(`[data-engine="${CSS.escape(engine.name)}"] [data-headline]`), engine.headline);
    engine.tiers.forEach(showTier);
  }
}

async function refresh() {
  const response = await fetch(root.dataset.live, {
    headers: { Accept: "application/json" },
    signal: AbortSignal.timeout(5000),
  });
  if (response.redirected || response.status === 403) throw new Error("You are signed out; reload the page to sign in.");
  if (!response.ok) throw new Error("The server has a problem; these numbers are not live.");
  show(await response.json());
}

async function live() {
  try {
    if (!document.hidden) await refresh();
  } catch (error) {
    showProblem(error instanceof TypeError || error.name === "TimeoutError" ? "The server does not answer; these numbers are not live." : error.message);
  }
  setTimeout(live, EVERY_MS);
}

if (root) live();
