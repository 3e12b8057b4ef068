// What tests/browser.py asks of a page. Each function returns a list of
// sentences, one for each fault.

function place(element) {
  const named = element.closest("[id]");
  const text = (element.dataset?.tex || element.textContent || "").trim().replace(/\s+/g, " ");
  return `<${element.localName} class="${element.className}"> in #${named?.id}: ${text.slice(0, 90)}`;
}

// Everything that is folded away is opened and laid out, and nothing moves.
function unfold() {
  document.head.append(Object.assign(document.createElement("style"), { textContent: "* { transition: none !important; }" }));
  for (const part of document.querySelectorAll(".bd-article section > *")) part.style.contentVisibility = "visible";
  for (const fold of document.querySelectorAll(".bd-article details")) fold.open = true;
  for (const mark of document.querySelectorAll("label.docstring input")) mark.checked = true;
  for (const button of document.querySelectorAll(".toggle-hidden .toggle-button")) button.click();
}

function duplicates() {
  const seen = new Set(), faults = [];
  for (const { id } of document.querySelectorAll("[id]")) {
    if (seen.has(id)) faults.push(`two elements are called #${id}`);
    seen.add(id);
  }
  return faults;
}

function mathematics() {
  const faults = [];
  for (const node of document.querySelectorAll("mjx-merror, merror, [data-mjx-error]"))
    faults.push(`a formula failed: ${place(node)}`);
  for (const node of document.querySelectorAll(".math:not(:has(mjx-container)):not(.preview *)"))
    faults.push(`a formula is not typeset: ${place(node)}`);
  for (const node of document.querySelectorAll("mjx-container[tabindex], mjx-container [tabindex]"))
    faults.push(`a formula is a stop of the tab key: ${place(node)}`);
  const texts = document.createTreeWalker(document.querySelector(".bd-article") || document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = texts.nextNode());) {
    if (node.parentElement.closest("code, pre, script, style, mjx-container, .search")) continue;
    if (/\$[^$]*[\\_^][^$]*\$|\\[(\[]|\{(prf:ref|eq|ref|numref|doc|cite)\}|:prf:ref:/.test(node.data))
      faults.push(`raw markup: ${node.data.trim().slice(0, 90)}`);
  }
  return faults;
}

function images() {
  const faults = [];
  for (const image of document.querySelectorAll(".bd-article img")) {
    if (!image.complete || !image.naturalWidth) faults.push(`not loaded: ${image.src}`);
    if (!image.alt.trim()) faults.push(`without alternative text: ${image.src}`);
  }
  return faults;
}

// The page itself never scrolls sideways; on a wide screen nothing else does.
function cut() {
  const faults = [], page = document.scrollingElement;
  if (page.scrollWidth > page.clientWidth) faults.push(`the page is ${page.scrollWidth} px wide`);
  const room = (document.querySelector(".bd-article")?.clientWidth ?? 0) - 90;
  for (const formula of document.querySelectorAll(".bd-article p mjx-container:not([display])"))
    if (formula.clientWidth && formula.scrollWidth > 1.5 * formula.clientWidth + 8 && formula.scrollWidth < room)
      faults.push(`squeezed: ${place(formula)}`);
  // A formula clips what leaves its box: letters need room above them.
  for (const formula of document.querySelectorAll(".bd-article mjx-container")) {
    if (getComputedStyle(formula).overflowY === "visible" || !formula.clientHeight) continue;
    const top = Math.min(...[...formula.querySelectorAll("mjx-c")].map((letter) => letter.getBoundingClientRect().top));
    if (top < formula.getBoundingClientRect().top + 1) faults.push(`letters touch the upper edge: ${place(formula)}`);
  }
  // On a phone the contents wait beside the page.
  for (const link of document.querySelectorAll(innerWidth < 1200 ? ".prev-next-area a" : ".prev-next-area a, .bd-toc-nav a")) {
    const { left, right } = link.getBoundingClientRect();
    if (link.checkVisibility() && (link.scrollWidth > link.clientWidth + 1 && link.clientWidth || left < 0 || right > innerWidth))
      faults.push(`a way to another place is cut: ${place(link)}`);
  }
  for (const link of document.querySelectorAll("dt.sig > a[href*='_modules']"))
    if (link.getBoundingClientRect().bottom > link.parentElement.getBoundingClientRect().bottom + 1)
      faults.push(`a link to the source stands in the text: ${place(link.parentElement)}`);
  if (innerWidth < 1200) return faults;
  const boxes = ".bd-article :is(div.math, mjx-container[display], pre, table, div.cell_output, figure)";
  for (const box of document.querySelectorAll(boxes))
    if (box.scrollWidth > box.clientWidth + 1 && box.clientWidth && !box.closest(".preview"))
      faults.push(`cut by ${box.scrollWidth - box.clientWidth} px: ${place(box)}`);
  return faults;
}

// A line that begins with the full stop of the line before.
function stops() {
  const faults = [], range = document.createRange();
  for (const formula of document.querySelectorAll(".bd-article :is(mjx-container:not([display]), a, code, em, strong)")) {
    let next = formula;
    while (next && !next.nextSibling && next.parentElement.matches("span, a, em, strong, code")) next = next.parentElement;
    next = next.nextSibling;
    if (next?.nodeType !== Node.TEXT_NODE || !/^[.,;:!?)]/.test(next.data)) continue;
    range.setStart(next, 0);
    range.setEnd(next, 1);
    const mark = range.getBoundingClientRect(), boxes = formula.getClientRects();
    const last = boxes[boxes.length - 1];
    if (last && mark.height && mark.top > last.bottom - 3 && mark.left < last.left)
      faults.push(`a line begins with ${next.data[0]} after ${place(formula)}`);
  }
  return faults;
}

// One element for each look of text: axe measures its contrast, and that of
// its hundreds of likenesses with it.
function looks() {
  const found = new Map(), known = new Map();
  // The colours behind an element; each element is asked once.
  const grounds = (element) => {
    if (!element) return [];
    if (!known.has(element))
      known.set(element, [...new Set([getComputedStyle(element).backgroundColor, ...grounds(element.parentElement)])]);
    return known.get(element);
  };
  for (const element of document.querySelectorAll("body *")) {
    const text = [...element.childNodes].some((n) => n.nodeType === Node.TEXT_NODE && n.data.trim());
    if (!text || element.closest("mjx-container, script, style") || !element.checkVisibility()) continue;
    const { color, fontSize, fontWeight, opacity } = getComputedStyle(element);
    const look = [color, fontSize, fontWeight, opacity, ...grounds(element)].join();
    if (!found.has(look)) found.set(look, element);
  }
  return [...found.values()];
}

// Axe is slow on many elements, and a formula has hundreds.
function thin() {
  for (const formula of document.querySelectorAll("mjx-container")) formula.replaceWith("x");
}

// When the contrast has been measured the colours of code have no more to say.
function fade() {
  for (const span of document.querySelectorAll("pre span:not(:has(a, input, label))")) span.replaceWith(...span.childNodes);
}

const OPTIONS = { resultTypes: ["violations"], preload: false };
const violations = async (context, options) => {
  const { violations } = await axe.run(context, { ...OPTIONS, ...options });
  return violations.flatMap(({ help, nodes }) => nodes.map(({ target, any, all, none }) =>
    `${help}: ${target}: ${[...any, ...all, ...none][0]?.message}`));
};
const contrast = () => violations({ include: looks() }, { runOnly: ["color-contrast"] });
const access = () => violations(document, { rules: { "color-contrast": { enabled: false } } });
