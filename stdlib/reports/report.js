// Sorts tables by a click on a heading, and says the values of curves where they are pointed at. Asks for nothing; the page is whole without it.
"use strict";
// A number leads to a row that is folded away.
const unfold = () => {
  const row = location.hash && document.getElementById(location.hash.slice(1));
  if (!row) return;
  row.closest("details")?.setAttribute("open", "");
  row.scrollIntoView({ block: "center" });
};
addEventListener("hashchange", unfold);
unfold();
for (const table of document.querySelectorAll("table.sorts")) {
  const body = table.tBodies[0], rows = [...body.rows];
  // Rows of differences belong below what they compare.
  const split = rows.findIndex((row) => row.classList.contains("contrast"));
  const free = split < 0 ? rows : rows.slice(0, split), fixed = split < 0 ? [] : rows.slice(split);
  if (free.length < 3) continue;
  const key = (row, at) => {
    const cell = row.cells[at], value = cell.dataset.v ?? cell.textContent.trim().replace(/,/g, "");
    return value !== "" && isFinite(value) ? Number(value) : cell.dataset.v === undefined ? value : NaN;
  };
  const compare = (a, b) => (typeof a === typeof b ? (a < b ? -1 : a > b ? 1 : 0) : typeof a === "number" ? -1 : 1);
  const none = (value) => value === "–" || value === "" || Number.isNaN(value);
  [...table.tHead.rows[0].cells].forEach((head, at) => {
    head.classList.add("sorts");
    head.tabIndex = 0;
    const sort = () => {
      const next = { ascending: "descending", descending: "" }[head.getAttribute("aria-sort")] ?? "ascending";
      for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
      if (next) head.setAttribute("aria-sort", next);
      const sign = next === "descending" ? -1 : 1;
      const order = free.map((row) => [key(row, at), row]);
      // What has no value stays at the end either way.
      if (next) order.sort(([a], [b]) => none(a) - none(b) || sign * compare(a, b));
      body.append(...order.map(([, row]) => row), ...fixed);
    };
    head.addEventListener("click", sort);
    head.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); sort(); }
    });
  });
}

const tip = document.createElement("div");
tip.id = "tip";
tip.hidden = true;
document.body.append(tip);
for (const panel of document.querySelectorAll("svg.panel")) {
  const paths = [...panel.querySelectorAll("path[data-values]")];
  if (!paths.length) continue;
  let curves = null, cursor = null;
  const read = (path) => {
    const places = path.getAttribute("d").slice(1).split("L").map((pair) => pair.split(" ").map(Number));
    const values = path.dataset.values.split(",").map((pair) => pair.split(" ").map(Number));
    return { name: path.dataset.name, colour: path.getAttribute("stroke"), places, values };
  };
  const hide = () => { tip.hidden = true; cursor?.remove(); cursor = null; };
  panel.addEventListener("pointerleave", hide);
  panel.addEventListener("pointermove", (event) => {
    curves ??= paths.map(read);
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(panel.getScreenCTM().inverse());
    const nearest = curves.map((curve) => {
      let best = 0;
      curve.places.forEach(([x], place) => { if (Math.abs(x - at.x) < Math.abs(curve.places[best][0] - at.x)) best = place; });
      return { ...curve, place: curve.places[best], value: curve.values[best] };
    });
    const step = nearest.reduce((a, b) => (Math.abs(b.place[0] - at.x) < Math.abs(a.place[0] - at.x) ? b : a));
    if (Math.abs(step.place[0] - at.x) > 30) return hide();
    tip.replaceChildren();
    const title = document.createElement("b");
    title.textContent = "step " + step.value[0].toLocaleString("en");
    tip.append(title);
    for (const { name, colour, value } of nearest.filter((curve) => curve.value[0] === step.value[0]).sort((a, b) => b.value[1] - a.value[1])) {
      const line = document.createElement("span"), label = document.createElement("i"), number = document.createElement("span");
      label.textContent = name;
      label.style.color = colour;
      number.textContent = String(value[1]).replace("-", "−");
      line.append(label, number);
      tip.append(line);
    }
    tip.hidden = false;
    const left = event.pageX + 14, room = document.documentElement.clientWidth + scrollX - tip.offsetWidth - 8;
    tip.style.left = Math.max(scrollX + 8, Math.min(left, room)) + "px";
    tip.style.top = event.pageY + 16 + "px";
    if (!cursor) {
      cursor = document.createElementNS("http://www.w3.org/2000/svg", "line");
      cursor.setAttribute("class", "cursor");
      panel.append(cursor);
    }
    const [, , , height] = panel.getAttribute("viewBox").split(" ").map(Number);
    for (const [name, value] of Object.entries({ x1: step.place[0], x2: step.place[0], y1: 40, y2: height - 38 })) cursor.setAttribute(name, value);
  });
}
