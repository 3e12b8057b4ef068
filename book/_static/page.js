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

// Parts of a long page that are out of sight are laid out when they come into
// view, or when the browser has time. An address with a hash, a click on a
// link and a printer want true positions at once.
const page = document.documentElement;
const unroll = () => page.classList.remove("lazy");
addEventListener("hashchange", unroll);
addEventListener("beforeprint", unroll);
document.addEventListener("click", (event) => event.target.closest("a[href*='#']") && unroll(), true);
if (page.classList.contains("lazy")) {
  const parts = [...document.querySelectorAll(".bd-article section > *:not(section)")];
  const step = (deadline) => {
    while (parts.length && deadline.timeRemaining() > 4)
      parts.shift().style.contentVisibility = "visible";
    if (parts.length) requestIdleCallback(step);
    else unroll();
  };
  if (window.requestIdleCallback) addEventListener("load", () => requestIdleCallback(step));
  else unroll();
}

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
  const name = link.pathname.split("/").pop().replace(".html", "");
  const html = (await previews(name))[decodeURIComponent(link.hash.slice(1))];
  if (shown !== link || !html) return;
  box.innerHTML = html;
  document.body.append(box);
  box.hidden = false;
  const place = link.getBoundingClientRect();
  const left = Math.min(place.left, innerWidth - box.offsetWidth - 12);
  const above = place.bottom + box.offsetHeight + 12 > innerHeight && place.top > box.offsetHeight;
  box.style.left = `${Math.max(8, left) + scrollX}px`;
  box.style.top = `${(above ? place.top - box.offsetHeight - 6 : place.bottom + 6) + scrollY}px`;
  link.setAttribute("aria-describedby", "preview");
}

function hide() {
  shown?.removeAttribute("aria-describedby");
  shown = null;
  box.hidden = true;
}

for (const [enter, leave] of [["mouseover", "mouseout"], ["focusin", "focusout"]]) {
  document.addEventListener(enter, (event) => target(event.target) && show(target(event.target)));
  document.addEventListener(leave, (event) => target(event.target) && hide());
}
document.addEventListener("keydown", (event) => event.key === "Escape" && hide());

})();
