// One letter keys, the theme, and hiding amounts.
import { say, store } from "./storage.js";

const root = document.documentElement;

function turnTheme() {
  const system = matchMedia("(prefers-color-scheme: dark)").matches;
  const dark = root.dataset.theme === "dark" || (root.dataset.theme === "auto" && system);
  root.dataset.theme = dark ? "light" : "dark";
  store("theme", root.dataset.theme);
}

function hideAmounts() {
  const hidden = root.classList.toggle("hide-amounts");
  store("hide", hidden ? "1" : "0");
  say(hidden ? "Amounts are hidden" : "Amounts are shown");
}

function turnTable() {
  const table = document.getElementById("by-table");
  if (!table) return;
  const shown = location.hash === "#flow-table";
  location.hash = shown ? "#flow" : "#flow-table";
}

function rule(number) {
  document.querySelectorAll(".tools [id^=rule-]")[number - 1]?.click();
}

function isTyping(target) {
  return target.closest?.("input:not([type=checkbox]), textarea, select") !== null;
}

export function keys() {
  document.getElementById("theme").onclick = turnTheme;
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    if (event.key === "/") {
      event.preventDefault();
      (document.getElementById("start-q") || document.getElementById("q")).focus();
    } else if (event.key === "t") turnTheme();
    else if (event.key === "h") hideAmounts();
    else if (event.key === "v") turnTable();
    else if (event.key === "?") {
      const help = document.getElementById("keys");
      help.classList.toggle("lit");
      help.scrollIntoView({ block: "nearest" });
    } else if (/^[1-5]$/.test(event.key)) rule(Number(event.key));
  });
}
