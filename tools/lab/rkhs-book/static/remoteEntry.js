// For JupyterLab: an exported cell is marked, statements and equations have the
// numbers of the book, and a reference to another chapter leads there. Written by hand in the form in which
// JupyterLab loads what is built with webpack, so there is nothing to build.
(() => {

const LOST = 'span[title="Cross Reference Not Found"], span[data-number]';
// JupyterLab counts from one in every notebook, each kind of statement by itself.
const COUNTED = '.jp-Notebook a[href^="#"], .myst-proof-title > span';
const COUNT = /^(?:[A-Za-z]+\s)?\(?\d+\)?$/;
const style = `
.rkhs-export .jp-InputArea-editor { border-left: 4px solid var(--jp-brand-color1); }
.rkhs-export .jp-Cell-inputWrapper { position: relative; }
.rkhs-export .jp-Cell-inputWrapper::before {
  content: "part of the package"; position: absolute; top: -1.1em; right: 0.5em;
  font-size: 0.75em; color: var(--jp-ui-font-color2);
}
[data-number] { font-size: 0; }
span[data-path] { cursor: pointer; }
[data-number]::after { content: attr(data-number); font-size: var(--jp-content-font-size1); }
a[data-number]::after, span[data-path]::after { color: var(--jp-content-link-color); }
span[data-number] > svg { display: none; }
`;
const labels = fetch(new URL("labels.json", document.currentScript.src)).then((answer) => answer.json());

async function activate(app) {
  const known = await labels;
  document.head.append(Object.assign(document.createElement("style"), {textContent: style}));
  // React owns the elements: only attributes are added, nothing is replaced.
  const cells = () => {
    for (const panel of app.shell.widgets("main"))
      for (const cell of panel.content?.widgets ?? [])
        cell.node.classList.toggle("rkhs-export", !!cell.model?.getMetadata?.("tags")?.includes("export"));
  };
  const references = () => {
    for (const place of document.querySelectorAll(LOST)) {
      const found = known[place.textContent.trim()];
      if (found && place.dataset.number !== found[0])
        Object.assign(place.dataset, {number: found[0], path: found[1]});
    }
    for (const place of document.querySelectorAll(COUNTED)) {
      // In the book equations that nobody cites have no number.
      const own = !place.matches("a") ? "Proof" :
        known[place.hash.slice(1)]?.[0] ?? (place.title.endsWith("Equation") ? "" : null);
      if (own !== null && place.dataset.number !== own && COUNT.test(place.textContent.trim()))
        place.dataset.number = own;
    }
  };
  let waiting = false;
  new MutationObserver(() => {
    references();                       // at once, before a bare label is painted
    if (waiting) return;
    waiting = true;
    setTimeout(() => { waiting = false; cells(); }, 200);
  }).observe(document.body, {childList: true, subtree: true, characterData: true, attributeFilter: ["title"]});
  document.addEventListener("click", (event) => {
    const place = event.target.closest?.("span[data-path]");
    if (place) app.commands.execute("docmanager:open", {path: place.dataset.path});
  });
  cells();
  references();
}

(window._JUPYTERLAB ??= {})["rkhs-book"] = {
  init() {},
  get: async () => () => ({__esModule: true, default: {id: "rkhs-book:plugin", autoStart: true, activate}}),
};

})();
