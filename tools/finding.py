"""Sphinx extension: the index that the book's search page searches.

After the build the pages are read as a reader sees them: every section,
statement, term and function becomes an entry with its title and its text, with
formulas in plain signs. The index is a script, so that a page opened from a
file can load it too; ``search.js`` searches it.
"""

import json
import re
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import threads
from tangle import ROOT, chapters, pages

FORMULA = re.compile(r'<mjx-container [^>]*?aria-label="([^"]*)".*?</mjx-container>', re.S)
ARTICLE = re.compile(r'<article class="bd-article".*?</article>', re.S)
UPPER = dict(zip("0123456789+-−=()ni∗*′⊤", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁼⁽⁾ⁿⁱ**′ᵀ"))
LOWER = dict(zip("0123456789+-−=()aehijklmnoprstuvx", "₀₁₂₃₄₅₆₇₈₉₊₋₋₌₍₎ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓ"))
BOARD = dict(zip("RNZCPQE", "ℝℕℤℂℙℚ𝔼"))
ACCENTS = dict(zip("^ˆ~˜¯―‾˙˚", "\u0302\u0302\u0303\u0303\u0304\u0304\u0304\u0307\u030a"))
TIGHT = re.compile(r"[\u2061-\u2064]|[()\[\]{}⟨⟩|‖∥⌊⌋⌈⌉!/,.:;′⊤∑∏∫√∗]|^$")


def raised(text, signs, mark):
    """An index or exponent: small signs where there are any, else in brackets."""
    text = text.replace(" ", "")
    if all(letter in signs for letter in text):
        return "".join(signs[letter] for letter in text)
    return mark + (text if len(text) == 1 or text.isalnum() else f"({text})")


def group(text):
    return text if re.fullmatch(r"\S{,3}|\w+", text) else f"({text})"


def plain(node):
    """A formula in plain signs."""
    kind, parts = node.tag.rpartition("}")[2], [plain(child) for child in node]
    text = (node.text or "").strip()
    if kind == "mo":
        if text in ",;":
            return text + " "
        return re.sub("[\u2061-\u2064]", "", text) if TIGHT.search(text) else f" {text} "
    if kind == "mi" and node.get("mathvariant") == "double-struck":
        return BOARD.get(text, text)
    if kind == "mphantom":
        return ""
    if kind == "mtext":
        return (node.text or "").replace("\xa0", " ")
    if kind == "mfrac":
        return f"{group(parts[0])}/{group(parts[1])}"
    if kind == "msqrt":
        return f"√{group(''.join(parts))}"
    if kind in ("mover", "munder") and parts[1].strip() in ACCENTS:
        return parts[0] + ACCENTS[parts[1].strip()]
    if kind in ("msup", "mover"):
        return parts[0] + raised(parts[1], UPPER, "^")
    if kind in ("msub", "munder"):
        return parts[0] + raised(parts[1], LOWER, "_")
    if kind in ("msubsup", "munderover"):
        return parts[0] + raised(parts[1], LOWER, "_") + raised(parts[2], UPPER, "^")
    if kind in ("mtr", "mtable"):
        return (" " if kind == "mtr" else "; ").join(parts)
    return text + "".join(parts)


@cache
def formula(mathml):
    text = " ".join(plain(ElementTree.fromstring(mathml)).split())
    return re.sub("([,.:;]) ;", r"\1", text)             # between lines that end with a comma


class Reader(HTMLParser):
    """The entries of a page: [anchor, title, text, weight]."""

    VOID = {"br", "img", "hr", "input", "meta", "link", "source", "wbr"}
    # What is no prose, or stands elsewhere too.
    SKIPPED = re.compile(
        r"headerlink|viewcode-link|threads|cell_input|cell_output|\bstatement\b|\bexport\b"
        r"|toctree-wrapper|\bhighlight|\bnames\b|\bcollapsed\b|\bexpanded\b")
    ENTRY = re.compile(r"\b(?:proof|exercise|solution)\b")

    def __init__(self):
        super().__init__()
        self.open, self.entries, self.skip = [], [], 0

    def handle_starttag(self, tag, attributes):
        if tag in self.VOID:
            return
        a = dict(attributes)
        classes, anchor = a.get("class") or "", a.get("id") or ""
        skipped = tag in ("script", "style", "nav", "svg") or self.SKIPPED.search(classes)
        # What an element is: an entry of its own, a title, or text.
        entry = title = False
        if not (skipped or self.skip):
            if tag == "section" and anchor and not re.search(r"-content(-\d+)?$", anchor):
                entry = 1
            elif tag == "div" and anchor and self.ENTRY.search(classes) and "argument" not in classes:
                entry = 2
            elif tag == "dt" and anchor:
                entry = 3
            fresh = self.place() and not self.place()[1].strip() and self.place()[3]
            title = (fresh == 1 and re.fullmatch("h[1-6]", tag)
                     or fresh == 2 and "admonition-title" in classes)
        if tag in ("p", "li", "td", "dd", "div", "figcaption") and self.entries:
            self.write(" ")
        if entry:
            self.entries.append([anchor, "", "", entry])
        self.skip += bool(skipped)
        place = self.entries[-1] if entry else self.place()
        self.open.append((tag, place, bool(title or entry == 3), bool(skipped)))

    def place(self):
        return self.open[-1][1] if self.open else None

    def handle_endtag(self, tag):
        while self.open:
            name, place, _, skipped = self.open.pop()
            self.skip -= skipped
            if name == tag:
                break
        # The text of a definition belongs to the term before it.
        if tag == "dt" and self.open and place and place[3] == 3:
            name, _, title, skipped = self.open[-1]
            self.open[-1] = name, place, False, skipped

    def write(self, text):
        place = self.place()
        if place is not None and not self.skip:
            titled = any(one[2] for one in self.open)
            place[1 if titled and place is self.open[-1][1] else 2] += text

    handle_data = write


def entries(text):
    """(anchor, title, text, weight) of what an html page holds."""
    article = ARTICLE.search(text)
    if not article:
        return
    reader = Reader()
    reader.feed(FORMULA.sub(lambda found: f" {found[1]}"[
        'display="true"' not in found[0] :], article[0]))
    for anchor, title, words, weight in reader.entries:
        if anchor.startswith("rkhs_lit."):
            title = anchor.split(".", 2)[2]
        yield anchor, " ".join(title.split()), " ".join(words.split()), weight


def collect(app, error):
    if error is not None or app.builder.format != "html":
        return
    out = Path(app.outdir)
    own = set(chapters())
    # [group, address, title]: chapters, appendices, API, tests.
    sheets, found = [], []
    wanted = [(0 if name in own or name == "intro" else 1, f"book/{name}.html") for name in pages()]
    wanted += [(2, f"book/api/{name}.html") for name in chapters()]
    for kind, address in wanted:
        if address in ("book/api.html", "book/tests.html"):
            continue
        items = list(entries((out / address).read_text("utf-8")))
        sheets.append([kind, address, items[0][1]])
        found += [[len(sheets) - 1, *item] for item in items]
    for path in sorted((ROOT / "tests").glob("test_*.py")):
        sheets.append([3, f"tests/{path.stem}.html", f"tests/{path.name}"])
        found += [[len(sheets) - 1, name, name, " ".join(text.split()), 0]
                  for name, text in threads.definitions(path) if name.startswith("test_")]
    data = json.dumps([sheets, found], ensure_ascii=False, separators=(",", ":"))
    Path(out, "_static", "search-index.js").write_text(f"var SEARCH = {data};\n", "utf-8")


def own_page(app):
    app.builder.search = False


def setup(app):
    app.connect("builder-inited", own_page)
    app.connect("html-collect-pages", lambda app: [("search", {}, "search.html")])
    app.connect("build-finished", collect, priority=950)
    return {"parallel_read_safe": True}
