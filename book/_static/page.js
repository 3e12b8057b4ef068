// What a page does beyond showing itself.

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
