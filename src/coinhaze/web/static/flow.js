// The flow: a box pointed at lights its thread, and one line below says what it is.
// One Tab stop; arrows go by position; Enter follows the box's link; Esc clears.
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const NEAR = 4; // pixels that do not count as a move

function centre(node) {
  const box = node.querySelector(".bar").getBoundingClientRect();
  return [box.left + box.width / 2, box.top + box.height / 2];
}

// The nearest box that way: first those of the same line of boxes, then the next line.
function toward(node, all, [dx, dy]) {
  const [x, y] = centre(node);
  const along = node.ownerSVGElement.classList.contains("wide") === (dx !== 0);
  let best = null;
  let least = Infinity;
  for (const other of all) {
    if (other === node || (!along && other.dataset.c !== node.dataset.c)) continue;
    if (along && other.dataset.c === node.dataset.c) continue;
    const [ox, oy] = centre(other);
    const ahead = (ox - x) * dx + (oy - y) * dy;
    const aside = Math.abs((ox - x) * dy + (oy - y) * dx);
    if (ahead < NEAR && along) continue;
    if (!along && ahead <= 0) continue;
    const cost = along ? ahead * 4 + aside : ahead;
    if (cost < least) [best, least] = [other, cost];
  }
  return best;
}

export function flow() {
  const info = document.getElementById("info");
  if (!info) return;
  const hint = info.innerHTML;

  function clear() {
    for (const lit of document.querySelectorAll(".sankey.focus")) lit.classList.remove("focus");
    for (const lit of document.querySelectorAll(".sel, .twin, .on, .lit")) {
      lit.classList.remove("sel", "twin", "on", "lit");
    }
    info.innerHTML = hint;
  }

  function show(node) {
    clear();
    const drawing = node.closest(".sankey");
    drawing.classList.add("focus");
    node.classList.add("sel");
    const name = node.dataset.n;
    const thread = drawing.querySelector(`.thread[data-o="${name}"]`);
    if (thread) thread.classList.add("on");
    else {
      for (const band of drawing.querySelectorAll(`.ln[data-a="${name}"], .ln[data-b="${name}"]`)) {
        band.classList.add("on");
      }
    }
    if (node.dataset.t) {
      for (const twin of drawing.querySelectorAll(".nd[data-t]")) {
        if (twin.dataset.t === node.dataset.t) twin.classList.add("twin");
      }
    }
    document.querySelector(`tr[data-o="${name}"]`)?.classList.add("lit");
    const [first, ...rest] = node.getAttribute("aria-label").split(" · ");
    const strong = document.createElement("b");
    strong.textContent = first;
    info.replaceChildren(strong, rest.length ? ` · ${rest.join(" · ")}` : "");
  }

  for (const drawing of document.querySelectorAll(".sankey")) {
    const all = [...drawing.querySelectorAll(".nd")];
    for (const node of all) {
      node.addEventListener("pointerenter", () => show(node));
      node.addEventListener("pointerleave", clear);
      node.addEventListener("focus", () => {
        for (const other of all) other.setAttribute("tabindex", other === node ? "0" : "-1");
        show(node);
      });
      node.addEventListener("blur", clear);
      node.addEventListener("click", () => show(node));
      node.addEventListener("keydown", (event) => {
        if (event.key === "Escape") return clear();
        const way = ARROWS[event.key];
        if (!way) return;
        event.preventDefault();
        toward(node, all, way)?.focus();
      });
    }
  }
  for (const row of document.querySelectorAll("tr[data-o]")) {
    row.addEventListener("pointerenter", () => {
      const seen = [...document.querySelectorAll(".sankey")].find((s) => s.getBoundingClientRect().width);
      const node = seen?.querySelector(`.nd[data-n="${row.dataset.o}"]`);
      if (node) show(node);
    });
    row.addEventListener("pointerleave", clear);
  }
}
