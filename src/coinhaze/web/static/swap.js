// Switches replace the main part of the page and the address, together; everything else is a link.
import { say } from "./storage.js";

let last = 0;

export async function swap(address, dress) {
  const turn = ++last;
  const main = document.getElementById("main");
  const focused = document.activeElement?.id;
  main.classList.add("busy");
  try {
    const answer = await fetch(address, { headers: { accept: "text/html" } });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (turn !== last) return; // a later switch overtook this one
    const fresh = page.getElementById("main");
    if (!fresh) throw new Error("no page");
    document.title = page.title;
    history.replaceState(null, "", address);
    main.replaceChildren(...document.importNode(fresh, true).childNodes);
    if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
    dress();
    say(document.getElementById("say")?.textContent || page.title);
  } catch {
    location.assign(address);
  } finally {
    if (turn === last) main.classList.remove("busy");
  }
}

function queryOf(form) {
  const fields = new FormData(form);
  const ties = fields.getAll("with").flatMap((text) => text.split(/[\s,]+/)).filter(Boolean);
  const query = new URLSearchParams();
  for (const [key, value] of fields) if (key !== "with" && value) query.set(key, value);
  if (ties.length) query.set("with", [...new Set(ties)].join(","));
  return query;
}

export function swapping(dress) {
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[data-swap], a[data-opens]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    swap(link.getAttribute("href"), dress);
  });
  document.addEventListener("submit", (event) => {
    const form = event.target.closest("form[data-swap]");
    if (!form) return;
    event.preventDefault();
    const path = form.getAttribute("action").split("#")[0];
    const query = queryOf(form).toString().replaceAll("%3A", ":").replaceAll("%2C", ",").replaceAll("%40", "@");
    swap(query ? `${path}?${query}` : path, dress);
  });
  document.addEventListener("change", (event) => {
    if (event.target.matches("form[data-swap] input[type=checkbox]")) event.target.form.requestSubmit();
  });
  // A menu of choices closes when something else is pressed.
  document.addEventListener("pointerdown", (event) => {
    for (const menu of document.querySelectorAll("details.menu[open]")) {
      if (!menu.contains(event.target)) menu.open = false;
    }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    const menu = event.target.closest?.("details.menu[open]");
    if (menu) {
      menu.open = false;
      menu.querySelector("summary").focus();
    }
  });
}
