// What a page does beyond showing itself.
(() => {

// A formula is copied as the TeX that it was made from.
document.addEventListener("copy", (event) => {
  const selection = document.getSelection();
  if (!selection.rangeCount || selection.isCollapsed) return;
  const copy = selection.getRangeAt(0).cloneContents();
  const formulas = copy.querySelectorAll("mjx-container[data-tex]");
  if (!formulas.length) return;
  for (const formula of formulas) {
    const mark = formula.hasAttribute("display") ? "$$" : "$";
    formula.replaceWith(mark + formula.dataset.tex + mark);
  }
  event.clipboardData.setData("text/plain", copy.textContent);
  event.preventDefault();
});

// The theme's bars that open a part of the contents have a picture only.
for (const bar of document.querySelectorAll("nav summary")) bar.ariaLabel = "pages inside";

// Code that is wider than its box can be reached by keyboard, to scroll it; what
// is folded away is measured when it is opened. The
// theme calls this when a page has been read and when it changes.
const page = document.documentElement;
window.scrollable = () => {
  if (!("whole" in page.dataset)) return;
  const boxes = [...document.querySelectorAll("pre, .cell_output > .output")].filter((box) => box.checkVisibility());
  // First all are measured, then all are changed: else each change costs a layout.
  const wide = boxes.map((box) => box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight);
  boxes.forEach((box, i) => (box.tabIndex = wide[i] ? 0 : -1));
};
document.addEventListener("toggle", () => window.scrollable(), true);
document.addEventListener("click", (event) => event.target.closest(".admonition.toggle") && setTimeout(window.scrollable));

// An address inside a fold opens it.
const arrive = () => {
  const place = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  let folded = false;
  for (let fold = place; fold; fold = fold.parentElement) {
    if (fold.matches("details:not([open])")) folded = fold.open = true;
    else if (fold.matches(".toggle-hidden") && fold !== place) {
      fold.querySelector(".toggle-button").click();
      folded = true;
    }
  }
  if (!folded) return;
  unroll();
  place.scrollIntoView();
};
addEventListener("hashchange", arrive);
addEventListener("DOMContentLoaded", () => setTimeout(arrive));

// Parts of a long page that are out of sight are laid out when they come into
// view, or when the browser has time. An address with a hash, a click on a
// link and a printer want true positions at once. The class stays: to take it
// off would make the browser look at every element of the page again.
const parts = !page.classList.contains("lazy") ? []
  : [...document.querySelectorAll(".bd-article section > *:not(section)")];
const unroll = () => {
  for (const part of parts.splice(0)) part.style.contentVisibility = "visible";
  if ("whole" in page.dataset) return;
  page.dataset.whole = "";
  setTimeout(window.scrollable);
};
addEventListener("hashchange", unroll);
addEventListener("beforeprint", unroll);
document.addEventListener("click", (event) => event.target.closest("a[href*='#']") && unroll(), true);
// Some hundred elements at a time: all in one frame would freeze the page.
const step = () => {
  for (let size = 0; parts.length && size < 500;) {
    const part = parts.shift();
    part.style.contentVisibility = "visible";
    size += part.getElementsByTagName("*").length;
  }
  if (parts.length) requestAnimationFrame(() => requestIdleCallback(step));
  else unroll();
};
const idle = window.requestIdleCallback || setTimeout;
const drawn = (next) => addEventListener("load", () => document.fonts.ready.then(() => setTimeout(() => idle(next), 300)));
if (parts.length && window.requestIdleCallback) drawn(step);
else unroll();

// A formula says its label until its MathML comes, through which screen readers
// can walk: from the end of the page, when there is time.
const store = document.getElementById("mathml");
let mathml, unread;
const speak = () => {
  mathml ||= JSON.parse(store.textContent);
  unread ||= [...document.querySelectorAll("mjx-container[aria-label]")];
  for (const formula of unread.splice(0, 40)) {
    const text = mathml[(formula.hasAttribute("display") ? "$$" : "$") + formula.dataset.tex];
    if (!text) continue;
    const spoken = document.createElement("mjx-assistive-mml");
    spoken.innerHTML = text;
    formula.append(spoken);
    formula.style.position = "relative";
    for (const name of ["role", "aria-label"]) formula.removeAttribute(name);
  }
  if (unread.length) idle(speak);
};
if (store) drawn(speak);

// Pointing at a reference, with mouse or keyboard, shows what it refers to.
const box = document.createElement("div");
box.className = "preview";
box.id = "preview";
box.setAttribute("role", "tooltip");
box.hidden = true;
let shown = null;

const loaded = {};

function previews(name) {
  return loaded[name] ||= new Promise((resolve) => {
    const script = document.createElement("script");
    script.src = `${page.dataset.content_root || ""}_static/previews/${name}.js`;
    script.onload = () => resolve(window.PREVIEWS[name]);
    script.onerror = () => resolve({});
    document.head.append(script);
  });
}

function target(element) {
  const link = element.closest?.(".bd-article a[href*='#']:not(.headerlink)");
  return link && !link.closest(".preview") ? link : null;
}

async function show(link) {
  shown = link;
  const to = new URL(link.getAttribute("href"), document.baseURI);
  const name = to.pathname.split("/").pop().replace(".html", "");
  const html = (await previews(name))[decodeURIComponent(to.hash.slice(1))];
  if (shown !== link || !html) return;
  box.innerHTML = html;
  for (const a of box.querySelectorAll("a[href]")) a.href = new URL(a.getAttribute("href"), to);
  document.body.append(box);
  box.hidden = false;
  box.style.maxHeight = "";
  box.scrollTop = 0;
  const place = link.getBoundingClientRect();
  const left = Math.min(place.left, innerWidth - box.offsetWidth - 12);
  // Below, if it fits or if there is more room than above, where the page has its bar.
  const over = place.top - 70, under = innerHeight - place.bottom - 14;
  const above = box.offsetHeight > under && over > under;
  box.style.maxHeight = `min(60vh, ${Math.max(90, above ? over : under)}px)`;
  box.style.left = `${Math.max(8, left) + scrollX}px`;
  box.style.top = `${(above ? place.top - box.offsetHeight - 6 : place.bottom + 6) + scrollY}px`;
  link.setAttribute("aria-describedby", "preview");
}

function hide() {
  shown?.removeAttribute("aria-describedby");
  shown = null;
  box.hidden = true;
}

// The pointer may walk into the box, to scroll it.
let leaving;
const stay = () => clearTimeout(leaving);
const leave = () => (leaving = setTimeout(hide, 200));
for (const [enter, exit, end] of [["mouseover", "mouseout", leave], ["focusin", "focusout", hide]]) {
  document.addEventListener(enter, (event) => target(event.target) && (stay(), show(target(event.target))));
  document.addEventListener(exit, (event) => target(event.target) && end());
}
box.addEventListener("mouseenter", stay);
box.addEventListener("mouseleave", leave);
document.addEventListener("keydown", (event) => event.key === "Escape" && hide());

// On a map, the place that is pointed at shows its lines: to what it builds
// on, and to what builds on it.
for (const map of document.querySelectorAll("svg.map")) {
  const lines = [...map.querySelectorAll("path")];
  const mark = (name) => {
    map.classList.toggle("marked", !!name);
    for (const line of lines) {
      const [from, to] = line.dataset.ends.split(" ");
      line.classList.toggle("uses", to === name);
      line.classList.toggle("used", from === name);
    }
  };
  for (const kind of ["mouseover", "focusin"])
    map.addEventListener(kind, (event) => mark(event.target.closest("a")?.dataset.name));
  for (const kind of ["mouseleave", "focusout"]) map.addEventListener(kind, () => mark(null));
}

// The tables of the concordance, the names of the API and the list of
// statements can be filtered: what has not all words goes.
const rows = [...document.querySelectorAll(
  "table.concordance tbody tr, ul.statements > li, dl.names > dt")];
if (rows.length) {
  const part = (row) => (row.tagName === "DT" ? [row, row.nextElementSibling] : [row]);
  const text = new Map(rows.map((row) =>
    [row, part(row).map((one) => one.textContent).join(" ").toLowerCase()]));
  const field = document.createElement("p");
  field.className = "filter";
  field.innerHTML = '<label>Filter <input type="search"></label> <output></output>';
  const first = rows[0].closest("table, ul, dl");
  const section = first.closest("section");
  // Before the first of several sections, or inside the only one.
  (section.previousElementSibling && first.matches("table, dl") ? section : first).before(field);
  field.querySelector("input").addEventListener("input", (event) => {
    unroll();
    const words = event.target.value.toLowerCase().split(/\s+/);
    let count = 0;
    for (const row of rows) {
      const kept = words.every((word) => text.get(row).includes(word));
      for (const one of part(row)) one.hidden = !kept;
      count += kept;
    }
    for (const place of document.querySelectorAll("section:has(> .pst-scrollable-table-container), section:has(> table), section:has(> dl.names)"))
      place.hidden = ![...place.querySelectorAll("tbody tr, dl.names > dt")].some((row) => !row.hidden);
    field.querySelector("output").textContent = event.target.value ? `${count} of ${rows.length}` : "";
  });
}

})();
