// The search page: every word must occur, in the title or in the text.
(() => {

const GROUPS = ["In the chapters", "In the appendices", "In the API", "In the tests"];
const SHOWN = 10;
const NAME = 3; // of a function or a term

// A word of the query matches the beginning of a word; a number, the whole.
function pattern(word) {
  const text = word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const [before, after] = /^[\d.]+$/.test(word) ? ["[\\d.]", "(?![\\d]|\\.\\d)"] : ["[\\p{L}\\p{N}]", ""];
  return `(?<!${before})${text}${after}`;
}

function words(query) {
  const found = query.toLowerCase().match(/[\p{L}\p{N}][\p{L}\p{N}._]*/gu) || [];
  return found.map((word) => word.replace(/\.+$/, "").replace(/^(\p{L}{3,})s$/u, "$1"));
}

// Entries that have all words, best first, in the groups above; an entry
// whose title is the query comes before everything.
function find(query, [sheets, entries]) {
  const terms = words(query).map((word) => new RegExp(pattern(word), "giu"));
  if (!terms.length) return [];
  const phrase = new RegExp(words(query).map(pattern).join("[^\\p{L}\\p{N}]+"), "iu");
  const whole = query.trim().toLowerCase();
  const found = [];
  for (const [sheet, anchor, title, text, weight] of entries) {
    let score = weight;
    for (const term of terms) {
      const inTitle = title.match(term), inText = text.match(term);
      if (!inTitle && !inText) { score = -1; break; }
      score += (inTitle ? 20 : 0) + (inText ? Math.min(inText.length, 4) : 0);
    }
    if (score < 0) continue;
    // A title that says little else; the title of a page.
    score += 20 * Math.min(1, terms.filter((term) => title.match(term)).length / title.split(" ").length);
    if (title === sheets[sheet][2]) score += 10;
    if (phrase.test(title)) score += 30;
    else if (phrase.test(text)) score += 10;
    const exact = weight === NAME && title.toLowerCase() === whole;
    const [group, page, where] = sheets[sheet];
    found.push({group, exact, score, title, text, where, address: `${page}#${anchor}`});
  }
  return found.sort((a, b) => b.exact - a.exact || a.group - b.group || b.score - a.score);
}

// The words around the first that was looked for.
function excerpt(text, query) {
  const all = new RegExp(words(query).map(pattern).join("|"), "giu");
  const first = Math.max(0, text.search(all));
  let start = Math.max(0, first - 80);
  if (start) start = text.indexOf(" ", start) + 1;
  const end = Math.min(text.length, start + 240);
  const piece = text.slice(start, end < text.length ? text.lastIndexOf(" ", end) : end);
  return [start ? "… " : "", piece, end < text.length ? " …" : "", all];
}

if (typeof module !== "undefined") {
  module.exports = {find, excerpt};
  return;
}

function element(tag, content, attributes = {}) {
  const made = Object.assign(document.createElement(tag), attributes);
  made.append(...[content].flat());
  return made;
}

function item(result, query) {
  const [before, piece, after, all] = excerpt(result.text, query);
  const marked = [before];
  let last = 0;
  for (const hit of piece.matchAll(all)) {
    marked.push(piece.slice(last, hit.index), element("mark", hit[0]));
    last = hit.index + hit[0].length;
  }
  marked.push(piece.slice(last), after);
  // A long name may go on on the next line after an underscore.
  const name = (result.title || result.where).split(/(?<=_)/).flatMap((part) => [element("wbr", []), part]);
  const link = element("a", name.slice(1), {href: result.address});
  const where = result.where === result.title ? "" : element("span", result.where, {className: "where"});
  return element("li", [link, " ", where, element("p", marked)]);
}

const form = document.querySelector(".bd-search-container form");
const input = form.querySelector("input");
const results = document.getElementById("search-results");

function show() {
  const query = input.value;
  const found = find(query, window.SEARCH);
  const parts = [];
  const list = (some) => element("ul", some.map((one) => item(one, query)));
  const add = (heading, some) => {
    if (!some.length) return;
    parts.push(element("h2", `${heading} (${some.length})`), list(some.slice(0, SHOWN)));
    if (some.length > SHOWN) {
      const rest = element("details", element("summary", `${some.length - SHOWN} more`));
      rest.addEventListener("toggle", () => rest.children.length < 2 && rest.append(list(some.slice(SHOWN))));
      parts.push(rest);
    }
  };
  add("By that name", found.filter((one) => one.exact));
  GROUPS.forEach((name, i) => add(name, found.filter((one) => !one.exact && one.group === i)));
  if (!parts.length && words(query).length) parts.push(element("p", "Nothing has all of these words."));
  results.replaceChildren(...parts);
}

input.value = new URLSearchParams(location.search).get("q") || "";
input.addEventListener("input", show);
form.addEventListener("submit", (event) => {
  event.preventDefault();
  history.replaceState(null, "", `?q=${encodeURIComponent(input.value)}`);
  show();
});
show();

})();
