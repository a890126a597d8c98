// What the page does beyond its links and forms: each module adds one thing, and the page works
// without any of them.
import { recall, say, store } from "./storage.js";
import { brush } from "./brush.js";
import { flow } from "./flow.js";
import { investigation } from "./investigation.js";
import { jobs } from "./jobs.js";
import { keys } from "./keys.js";
import { standing } from "./standing.js";
import { swap, swapping } from "./swap.js";

// Everything that has to be set up again when the main part was replaced.
function dress() {
  flow();
  brush();
  jobs();
  copying();
  files();
  recent();
  parts();
  investigation();
  standing((address) => swap(address, dress));
}

function copying() {
  const copy = async (text, words) => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const box = document.createElement("textarea");
      box.value = text;
      document.body.append(box);
      box.select();
      document.execCommand("copy");
      box.remove();
    }
    say(words);
  };
  for (const button of document.querySelectorAll("[data-copy]")) {
    button.onclick = async () => {
      await copy(button.dataset.copy, "Copied");
      button.textContent = "Copied";
    };
  }
  const link = document.getElementById("copy-link");
  if (link) {
    link.onclick = async () => {
      const here = new URL(location.href);
      here.searchParams.delete("code");
      link.dataset.copied = here.href;
      await copy(here.href, "Link copied");
      link.textContent = "Copied";
    };
  }
  const report = document.getElementById("report");
  if (report) {
    report.onclick = () => {
      for (const fold of document.querySelectorAll("details:not(.menu)")) fold.open = true;
      window.print();
    };
  }
}

function files() {
  for (const input of document.querySelectorAll("input[type=file][data-into]")) {
    input.onchange = async () => {
      const file = input.files[0];
      if (!file) return;
      if (file.size > 1_000_000) return say("The file is above 1 MB: paste a part of it");
      document.getElementById(input.dataset.into).value = await file.text();
      say(`Loaded ${file.name}`);
    };
  }
}

// Coins looked at last stay in this browser only.
function recent() {
  const name = document.getElementById("coin-name");
  let list = JSON.parse(recall("recent") || "[]");
  if (name) {
    const entry = { href: location.pathname, words: name.textContent };
    list = [entry, ...list.filter((e) => e.href !== entry.href)].slice(0, 6);
    store("recent", JSON.stringify(list));
  }
  const box = document.getElementById("recent");
  if (!box || !list.length) return;
  const items = list.filter((e) => /^\/l\/[a-z0-9_-]+\/coin\//.test(e.href)).map((entry) => {
    const item = document.createElement("li");
    const link = document.createElement("a");
    link.href = entry.href;
    link.className = "mono";
    link.textContent = entry.words;
    item.append(link);
    return item;
  });
  document.getElementById("recent-list").replaceChildren(...items);
  box.hidden = false;
  document.getElementById("forget").onclick = () => {
    store("recent", "[]");
    box.hidden = true;
  };
}

// Parts that take longer come after the page.
async function parts() {
  for (const place of document.querySelectorAll("[data-load]")) {
    const from = place.dataset.load;
    place.removeAttribute("data-load");
    place.setAttribute("aria-busy", "true");
    const answer = await fetch(from, { headers: { accept: "text/html" } }).catch(() => null);
    const page = new DOMParser().parseFromString((await answer?.text()) ?? "", "text/html");
    const found = page.querySelector(".others, .state");
    if (found) place.replaceChildren(document.importNode(found, true));
    place.removeAttribute("aria-busy");
  }
}

keys();
swapping(dress);
dress();
