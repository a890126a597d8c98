// Runs before the page is drawn, so that a chosen theme does not flash; no more than that.
(() => {
  const root = document.documentElement;
  root.classList.add("scripted");
  try {
    const kept = localStorage.getItem("coinhaze-theme");
    if (kept === "light" || kept === "dark") root.dataset.theme = kept;
    if (localStorage.getItem("coinhaze-hide") === "1") root.classList.add("hide-amounts");
  } catch {
    // Storage may be off: the system's theme then.
  }
})();
