// Drag over the field of bits and steps: the four numbers follow, and the coins inside are listed.
import { say } from "./storage.js";

const LEAST = 6; // pixels; less is a press, not a brush

export function brush() {
  const field = document.getElementById("field");
  const form = document.getElementById("range-form");
  if (!field || !form || field.dataset.dressed) return;
  field.dataset.dressed = "yes";
  const shade = document.createElement("div");
  shade.className = "brush";
  shade.hidden = true;
  field.append(shade);
  const number = (name) => Number(field.dataset[name]);
  let from = null;

  const at = (event) => {
    const box = field.getBoundingClientRect();
    const top = number("top");
    const y = Math.min(Math.max(event.clientY - box.top, top), top + number("tall"));
    return [Math.min(Math.max(event.clientX - box.left, 0), box.width), y, box.width];
  };

  function draw([x, y]) {
    const [left, top] = [Math.min(x, from[0]), Math.min(y, from[1])];
    shade.style.left = `${left}px`;
    shade.style.top = `${top}px`;
    shade.style.width = `${Math.abs(x - from[0])}px`;
    shade.style.height = `${Math.abs(y - from[1])}px`;
    shade.hidden = false;
  }

  function fill([x, y, width]) {
    const bits = (v) => number("bitsLow") + (v / width) * (number("bitsHigh") - number("bitsLow"));
    const steps = (v) => {
      const up = 1 - (v - number("top")) / number("tall");
      const [low, high] = [number("stepsLow"), number("stepsHigh")];
      if ("stepsLog" in field.dataset) return low * (high / low) ** up;
      return low + up * (high - low);
    };
    const set = (name, value) => (form.elements[name].value = value.toFixed(3));
    set("bits_low", bits(Math.min(x, from[0])));
    set("bits_high", bits(Math.max(x, from[0])));
    set("steps_low", steps(Math.max(y, from[1])));
    set("steps_high", steps(Math.min(y, from[1])));
  }

  field.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    from = at(event);
    field.setPointerCapture(event.pointerId);
  });
  field.addEventListener("pointermove", (event) => from && draw(at(event)));
  field.addEventListener("pointerup", (event) => {
    if (!from) return;
    const to = at(event);
    const wide = Math.abs(to[0] - from[0]) >= LEAST && Math.abs(to[1] - from[1]) >= LEAST;
    if (wide) {
      fill(to);
      list(form);
    } else shade.hidden = true;
    from = null;
  });
  form.addEventListener("submit", (event) => {
    if (!document.getElementById("brushed")) return;
    event.preventDefault();
    list(form);
  });
}

async function list(form) {
  const place = document.getElementById("brushed");
  if (!place) return form.submit();
  const query = new URLSearchParams();
  for (const [key, value] of new FormData(form)) if (value) query.set(key, value);
  const answer = await fetch(`${form.action}?${query}`, { headers: { accept: "text/html" } });
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const total = page.getElementById("total");
  const rows = page.getElementById("listed");
  if (!total || !rows) return;
  const head = document.createElement("p");
  head.className = "hd";
  const csv = document.importNode(page.getElementById("csv"), true);
  csv.removeAttribute("id");
  const all = document.createElement("a");
  all.className = "btn";
  all.href = `${form.getAttribute("action")}?${query}`;
  all.textContent = "Open as table";
  const count = document.createElement("b");
  count.id = "brushed-total";
  count.textContent = total.textContent;
  head.append(count, csv, all);
  const found = document.importNode(rows, true);
  found.className = "";
  found.removeAttribute("id");
  found.querySelector(".turning")?.remove();
  place.replaceChildren(head, found);
  say(`${total.textContent} in this range`);
}
