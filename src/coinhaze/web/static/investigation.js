// An investigation: views that were kept, each with a note. It stays in this browser, and in the
// files it is saved to; nothing of it is sent anywhere. A file may come from anybody, so that what
// it says is shown as text, and only pages of this server are linked.
import { recall, say, store } from "./storage.js";

const FORMAT = "coinhaze investigation";
const MOST = { bytes: 1_000_000, views: 500, href: 8_000, title: 300, note: 10_000 };
const PAGES = /^\/l\/[a-z0-9_-]{1,64}\/(coin|tx|address|block)\/[^\s\\]+$/;

// The address of a page of this server, or null: no other host, scheme or kind of page.
function ours(href) {
  if (typeof href !== "string" || href.length > MOST.href || !PAGES.test(href)) return null;
  const to = new URL(href, location.origin);
  const same = to.origin === location.origin && to.pathname + to.search + to.hash === href;
  return same && !to.searchParams.has("code") ? href : null;
}

function text(value, most) {
  return typeof value === "string" ? value.slice(0, most) : "";
}

// What of a text can be shown; null if it is no investigation.
function read(json) {
  let given;
  try {
    given = JSON.parse(json);
  } catch {
    return null;
  }
  if (given?.format !== FORMAT || !Array.isArray(given.views)) return null;
  const views = given.views.slice(0, MOST.views).flatMap((view) => {
    const href = ours(view?.href);
    return href ? [{ href, title: text(view.title, MOST.title), note: text(view.note, MOST.note) }] : [];
  });
  return { title: text(given.title, MOST.title), views, left: given.views.length - views.length };
}

function held() {
  return read(recall("investigation") ?? "") ?? { title: "", views: [], left: 0 };
}

function written({ title, views }) {
  return JSON.stringify({ format: FORMAT, version: 1, title, views }, null, 1);
}

function hold(now) {
  store("investigation", written(now));
}

function keeping() {
  const button = document.getElementById("keep");
  if (!button) return;
  button.onclick = () => {
    const now = held();
    const href = ours(location.pathname + location.search);
    if (!href || now.views.length >= MOST.views) return say("This view cannot be kept");
    now.views.push({ href, title: document.title.replace(/ · coinhaze$/, ""), note: "" });
    hold(now);
    button.textContent = "Kept";
    say("Kept in the investigation");
  };
}

function item(now, place) {
  const view = now.views[place];
  const row = document.createElement("li");
  row.className = "kept";
  const link = document.createElement("a");
  link.href = view.href;
  link.textContent = view.title || view.href;
  const where = document.createElement("span");
  where.className = "sub";
  where.textContent = view.href;
  const label = document.createElement("label");
  label.className = "field-label";
  label.textContent = "Note";
  label.htmlFor = `note-${place}`;
  const note = document.createElement("textarea");
  note.id = label.htmlFor;
  note.rows = 2;
  note.maxLength = MOST.note;
  note.value = view.note;
  note.oninput = () => {
    view.note = note.value;
    hold(now);
  };
  const remove = document.createElement("button");
  remove.type = "button";
  remove.className = "btn small";
  remove.textContent = "Remove";
  remove.setAttribute("aria-label", `Remove ${link.textContent}`);
  remove.onclick = () => {
    now.views.splice(place, 1);
    hold(now);
    show(now);
    say("Removed");
  };
  row.append(link, where, label, note, remove);
  return row;
}

function show(now) {
  document.getElementById("kept-title").value = now.title;
  document.getElementById("kept").replaceChildren(...now.views.map((_, place) => item(now, place)));
  document.getElementById("kept-none").hidden = now.views.length > 0;
}

function download(now) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([written(now)], { type: "application/json" }));
  link.download = "investigation.json";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

export function investigation() {
  keeping();
  const title = document.getElementById("kept-title");
  if (!title) return;
  let now = held();
  show(now);
  const report = (words) => {
    document.getElementById("kept-said").textContent = words;
  };
  title.oninput = () => {
    now.title = title.value;
    hold(now);
  };
  document.getElementById("kept-save").onclick = () => download(now);
  document.getElementById("kept-clear").onclick = () => {
    now = { title: "", views: [], left: 0 };
    hold(now);
    show(now);
    report("Cleared.");
  };
  const file = document.getElementById("kept-open");
  file.onchange = async () => {
    const chosen = file.files[0];
    file.value = "";
    if (!chosen) return;
    if (chosen.size > MOST.bytes) return report("The file is above 1 MB: it is no investigation.");
    const found = read(await chosen.text());
    if (!found) return report(`${chosen.name} is no investigation that was saved here.`);
    now = found;
    hold(now);
    show(now);
    report(
      found.left
        ? `Opened, without ${found.left} that are no pages of this server.`
        : "Opened.",
    );
  };
}
