"""Sphinx extension: what this book adds to the usual ones.

* An exported cell gets a caption with the names of its module and of what it
  defines, linked to their entries in the API; not so a folded cell of private
  names, whose bar says them.
* ``{concordance}`` renders ``book/concordance.csv`` as one table a chapter,
  with links to the statements, the functions and the tests.
* ``{statements}`` lists every numbered statement of the book, in its order.
* A folded proof gets the title that the folding needs, and each proof an
  identity of its own: sphinx-proof gives every proof the same one.
* Under each statement stand its code, its tests and the proofs that use it.
* The bar of a folded cell says what is inside.
* Of a docstring in an exported cell the first paragraph shows, the rest
  unfolds: the page is about the code, and the API has the whole.
* A long name that is a link or a title may go on on the next line where a word of it ends.
* A full stop after a formula stays on the formula's line, and so does a bracket before it.
* A picture is as large as its resolution says, in a box that scrolls on a phone.
* The bibliography has no numbers, and the order of the letters without their accents.
* Launch buttons appear where the address of a repository is configured.
* On the API page a private base class gives way to its public ancestor, and
  a module's docstring to the page's own words.
"""

import csv
import os
import re
import struct
import unicodedata
from pathlib import Path

import rkhs_lit
import threads
from docutils import nodes
from links import link, number, reference, thread
from pybtex.plugin import register_plugin
from pybtex.style.formatting.plain import Style
from pybtex.style.sorting.author_year_title import SortingStyle
from reference import test_link, tests
from sphinx.util.docutils import SphinxDirective
from sphinx_proof.nodes import proof_node
from tangle import ROOT, pages, public_names

STATEMENTS = ("thm", "lem", "def", "prop", "cor", "exm", "rem", "alg")
# Prefix of a label -> the domain and role that refer to it.
ROLES = {
    **dict.fromkeys(STATEMENTS, ("prf", "ref")),
    "eq": ("math", "eq"),
    "ex": ("std", "numref"),
    "fig": ("std", "numref"),
    "sec": ("std", "ref"),
}


def caption_exported_cells(app, doctree):
    """Put the module's name above the code of each cell tagged export."""
    docname = app.env.docname
    module = f"rkhs_lit.{docname.rpartition('/')[2]}"
    for cell in list(doctree.findall(nodes.container)):
        if "tag_export" in cell["classes"]:
            code = next(cell.findall(nodes.literal_block)).astext()
            names = re.findall(r"^(?:class|def) ([A-Za-z]\w*)", code, re.M)
            if not names and cell.get("hide_mode"):
                continue                         # the bar of the fold says enough
            links = [reference("py", "mod", module, module, docname)]
            cell["ids"] += [f"code-{name}" for name in names]
            for name in names:
                target = f"{module}.{name}"
                links += [nodes.Text(" "), reference("py", "obj", target, name, docname)]
            # Behind the code, because a cell folds only if its code comes first;
            # the style sheet shows the caption above it.
            cell.insert(1, nodes.paragraph("", "", *links, classes=["export"]))


def name_folds(app, doctree):
    """Say on the bar of a folded cell what is inside."""
    for cell in doctree.findall(nodes.container):
        if not cell.get("hide_mode"):
            continue
        code = next(cell.findall(nodes.literal_block)).astext()
        names = re.findall(r"^(?:class|def) (\w+)", code, re.M)
        if code.startswith("# ") and "tag_export" not in cell["classes"]:
            first = code[2:].partition("\n")[0]
            text = f"Code: {first[:1].upper()}{first[1:]}"
        elif names:
            text = "Code: " + ", ".join(names)
        elif code.startswith(("import ", "from ")):
            text = "Imports"
        elif any(cell.findall(nodes.image)):
            text = "Code of the figure"
        else:
            text = "Code"
        cell["prompt_show"], cell["prompt_hide"] = text, text


def add_launch_buttons(app, config):
    """Where the address of a repository is known, chapters can be opened elsewhere."""
    options = config.html_theme_options
    address = options.get("repository_url") or os.environ.get("BOOK_REPOSITORY")
    if address:
        options["repository_url"] = address
        options["use_repository_button"] = True
        options["launch_buttons"] = {
            "notebook_interface": "jupyterlab",
            "binderhub_url": "https://mybinder.org",
        }


def drop_thebe(app):
    """Undo what Jupyter Book adds for running cells on a server."""
    for listeners in app.events.listeners.values():
        listeners[:] = [
            one for one in listeners
            if not one.handler.__module__.startswith("sphinx_thebe")
        ]
    app.registry.css_files[:] = [
        one for one in app.registry.css_files if "thebe" not in one[0]
    ]


def prepare_proofs(app, doctree):
    """Number the proofs of a page, and give folded ones a title."""
    for number, proof in enumerate(doctree.findall(proof_node), start=1):
        box = proof[0]
        marks = [name for name in proof["ids"] + box["ids"] if name.startswith("index-")]
        box["ids"] = [f"proof-{number}", *marks]
        box["classes"].append("argument")
        word = next(box.findall(nodes.Text))
        folded = "dropdown" in box["classes"]
        begins = [] if folded else [nodes.emphasis("", "Proof."), nodes.Text(" ")]
        word.parent.replace(word, [*begins, nodes.Text(word.removeprefix("Proof. "))])
        if folded:
            box.insert(0, nodes.title("", "Proof"))


def own_identities(app, doctree):
    """sphinx-proof calls the inside of every statement #proof-content."""
    for number, inside in enumerate(doctree.findall(nodes.section), start=1):
        inside["ids"] = [
            f"{name}-{number}" if name.endswith("-content") else name for name in inside["ids"]
        ]


def keep_stops(app, doctree):
    """No line begins with the full stop of the formula before it, or ends with the bracket that
    opens before a formula."""
    for formula in list(doctree.findall(nodes.math)):
        line = formula.parent
        # By identity: texts that are equal may occur in one paragraph.
        place = next(i for i, node in enumerate(line) if node is formula)
        before, after, parts = line[:place][-1:], line[place + 1 : place + 2], [formula]
        if before and isinstance(before[0], nodes.Text) and (mark := re.search(r"[([‘“]+$", before[0])):
            line[place - 1] = nodes.Text(before[0][: mark.start()])
            parts.insert(0, nodes.Text(mark[0]))
        if after and isinstance(after[0], nodes.Text) and (mark := re.match(r"[.,;:!?)\]’”]+", after[0])):
            line[place + 1] = nodes.Text(after[0][mark.end():])
            parts.append(nodes.Text(mark[0]))
        if len(parts) > 1:
            line[place] = nodes.inline("", "", *parts, classes=["unbroken"])


def trim_code(app, doctree):
    """The empty line that ends an example ends it for doctest, and is not seen."""
    for block in doctree.findall(nodes.literal_block):
        if block.rawsource == block.astext() != (text := block.astext().rstrip("\n")):
            block.rawsource, block[:] = text, [nodes.Text(text)]


class Alphabetical(SortingStyle):
    """The order of an index: ö stands where o does, and braces stand nowhere."""

    def sorting_key(self, entry):
        plain = (unicodedata.normalize("NFKD", part) for part in super().sorting_key(entry))
        return [re.sub(r"[{}\u0300-\u036f]", "", part) for part in plain]


class Letters(Style):
    default_sorting_style = "letters"


register_plugin("pybtex.style.sorting", "letters", Alphabetical)
register_plugin("pybtex.style.formatting", "letters", Letters)


def inches(png):
    """The width of a picture, from its own resolution."""
    width = struct.unpack(">I", png[16:20])[0]
    place = png.find(b"pHYs")
    per_metre = struct.unpack(">I", png[place + 4 : place + 8])[0] if place > 0 else 0
    return width / per_metre / 0.0254 if per_metre else width / 110


def size_pictures(app, doctree):
    """An inch of a drawing is 110 pixels of the page, however sharp it is."""
    for image in list(doctree.findall(nodes.image)):
        path = Path(app.srcdir, image["uri"].lstrip("/"))
        if path.suffix == ".png" and path.exists():
            image["width"] = f"{inches(path.read_bytes()) * 110:.0f}px"
            box = nodes.container(classes=["picture-box"])
            image.replace_self(box)
            box += image


def fold_docstrings(app, pagename, templatename, context, doctree):
    """What follows the first paragraph of a docstring waits behind a mark."""
    before, *cells = context.get("body", "").split('<div class="cell tag_export')
    for i, cell in enumerate(cells):
        code, end, after = cell.partition("</pre>")
        cells[i] = re.sub(r'<span class="sd">""".*?"""</span>', fold, code, flags=re.S) + end + after
    if cells:
        context["body"] = '<div class="cell tag_export'.join([before, *cells])


def fold(docstring):
    first, blank, rest = docstring[0].partition("\n\n")
    if not blank:
        return first
    rest, quotes = rest[: -len('"""</span>')], '<span class="sd">"""</span>'
    mark = '<label class="docstring"><input type="checkbox" aria-label="rest of the docstring"></label>'
    return f'{first}{mark}<span class="docstring">\n\n{rest}</span></span>{quotes}'


LINK = re.compile(r'(?<=<span class="pre">)\w{12,}(?=</span></code></a>)')
HEAD = re.compile(r"(?<=<h1>)[^<]*(?:rkhs_lit\.|tests/)[^<]*")


def breakable(name):
    """A name that may be broken where one of its words ends."""
    return re.sub(r"(?<=[_/])|(?<=[a-z])(?=[A-Z])|(?<=rkhs_lit\.)", "<wbr>", name)


def break_names(app, pagename, templatename, context, doctree):
    """A long name that is a link, a title or leads to the next page may be broken between words."""
    if "body" in context:
        for names in (LINK, HEAD):
            context["body"] = names.sub(lambda name: breakable(name[0]), context["body"])
    for side in ("prev", "next"):
        if (page := context.get(side)) and re.fullmatch(r"rkhs_lit\.\w+", page["title"]):
            context[side] = {**page, "title": breakable(page["title"])}


def mend_roles(app, pagename, templatename, context, doctree):
    """docutils gives the entries of a bibliography a role that is no more."""
    if "body" in context:
        context["body"] = context["body"].replace('role="doc-biblioentry"', 'role="listitem"')


def mend_search(app, error):
    """The theme's page of results has two fields with one identity."""
    page = Path(app.outdir, "search.html")
    if error is None and page.exists():
        first, *rest = page.read_text("utf-8").split(' id="search-input"')
        page.write_text(' id="search-input"'.join([first, "".join(rest)]), "utf-8")


# The theme measures each box of code and changes it before it measures the next,
# so that the page is laid out as often as there are boxes.
MEASURED = re.compile(
    r'document\.querySelectorAll\("pre, [^"]*"\)\.forEach\(\(e=>\{e\.tabIndex=[^}]*\}\)\)')


def mend_theme(app, error):
    """page.js measures all boxes of code at once, and when there is time."""
    script = Path(app.outdir, "_static/scripts/pydata-sphinx-theme.js")
    if error is None and script.exists():
        text = MEASURED.sub("window.scrollable?.()", script.read_text("utf-8"))
        script.write_text(text, "utf-8")


def code_links(app, docname, module, name):
    """Two links: to the cell that defines the name, and to its API entry."""
    page = f"book/{module.rpartition('.')[2]}"
    cell = link(app, docname, page, f"code-{name}", nodes.literal("", name))
    entry = reference("py", "obj", f"{module}.{name}", "API", docname)
    return nodes.inline("", "", cell, nodes.Text(" "), entry)


def thread_statements(app, doctree):
    """A quiet line under each statement: its code, its tests, what uses it."""
    docname = app.env.docname
    for node in doctree.findall(lambda n: "countertype" in getattr(n, "attributes", ())):
        label = node["ids"][0]
        line = nodes.paragraph(classes=["threads"])
        line += thread("code", [
            code_links(app, docname, module, name)
            for module, name in threads.code().get(label, ())
        ])
        # Names of tests are long: the fourth and later ones are a number each.
        line += thread("test", [
            test_link(app, docname, file, name, str(i) if i > 3 else name)
            for i, (file, name) in enumerate(threads.tests().get(label, ()), start=1)
        ])
        line += thread("used in", [
            reference("prf", "ref", other, other, docname)
            for other in threads.uses().get(label, ())
        ])
        if line.children:
            node += line


def drop_numbers(app, doctree, docname):
    """The text cites authors and years, so the bibliography needs no numbers."""
    for entry in doctree.findall(nodes.citation):
        if isinstance(entry[0], nodes.label):
            entry.pop(0)


class statements(nodes.General, nodes.Element):
    """Stands for the list of statements until all pages have been read."""


class Statements(SphinxDirective):
    def run(self):
        return [statements()]


def list_statements(app, doctree, docname):
    """Replace each ``statements`` node by the list, with numbers and links."""
    places = list(doctree.findall(statements))
    if not places:
        return
    items = nodes.bullet_list(classes=["statements"])
    for page in (f"book/{name}" for name in pages()):
        found = app.env.get_doctree(page).findall(lambda n: "countertype" in n)
        for node in found:
            label = node["ids"][0]
            name = nodes.Text(number(app.env, label))
            title = [child.deepcopy() for child in node[0].children]
            place = link(app, docname, page, label, name)
            items += nodes.list_item("", nodes.paragraph("", "", place, *title))
    for place in places:
        place.replace_self(items if items.children else [])


def name_public_bases(app, name, obj, options, bases):
    """Show the nearest public ancestor in place of a private base class."""
    for i, base in enumerate(bases):
        line = [c for c in getattr(base, "__mro__", ()) if c.__name__[0] != "_"]
        bases[i] = line[0] if line else base


def drop_module_docstring(app, what, name, obj, options, lines):
    """The API page has its own words, and a link, for what a module says."""
    if what == "module":
        lines.clear()


class Concordance(SphinxDirective):
    """The rows of concordance.csv, chapter by chapter."""

    HEADS = {"where": 15, "what": 24, "label": 17, "function": 18, "test": 26}
    TITLES = ("Source", "Result", "Here", "Function", "Test")

    def run(self):
        path = Path(self.env.srcdir) / "book" / "concordance.csv"
        self.env.note_dependency(str(path))
        with open(path, newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        chapters = list(dict.fromkeys(row["chapter"] for row in rows))
        return [
            self.section(name, [row for row in rows if row["chapter"] == name])
            for name in chapters
        ]

    def section(self, chapter, rows):
        title = public_names(ROOT / "rkhs_lit" / f"{chapter}.py")[0]
        section = nodes.section(ids=[f"from-{chapter}"], names=[f"from-{chapter}"])
        page = link(self.env.app, self.env.docname, f"book/{chapter}", "", nodes.Text(title))
        section += [nodes.title("", "", page), self.table(rows)]
        return section

    def table(self, rows):
        group = nodes.tgroup(cols=len(self.HEADS))
        group += [nodes.colspec(colwidth=width) for width in self.HEADS.values()]
        head = nodes.row()
        head += [nodes.entry("", nodes.paragraph("", text)) for text in self.TITLES]
        body = nodes.tbody()
        for row in rows:
            line = nodes.row()
            for column in self.HEADS:
                words = nodes.paragraph()
                words += self.words(column, row)
                line += nodes.entry("", words)
            body += line
        group += [nodes.thead("", head), body]
        return nodes.table("", group, classes=["concordance", "colwidths-given"])

    def words(self, column, row):
        """The contents of one field."""
        if column == "where":
            return [nodes.Text(row["where"])]
        if column == "what":
            return [nodes.Text(row["what"])]
        make = {"label": self.label, "function": self.function, "test": self.test}
        found = []
        for word in row[column].split():
            found += [make[column](word), nodes.Text(" ")]
        return found[:-1]

    def label(self, label):
        prefix = label.partition("-")[0]
        if prefix not in ROLES:
            raise self.error(f"concordance.csv: label {label!r} has no known prefix")
        return reference(*ROLES[prefix], label, label, self.env.docname)

    def function(self, name):
        first = getattr(rkhs_lit, name.partition(".")[0], None)
        if first is None:
            raise self.error(f"concordance.csv: rkhs_lit has no {name!r}")
        target = f"{first.__module__}.{first.__qualname__}"
        return reference("py", "obj", target, name, self.env.docname)

    def test(self, test):
        file, _, name = test.rpartition("::")
        file = file.removesuffix(".py") or next(f for f in tests() if name in tests()[f])
        return test_link(self.env.app, self.env.docname, file, name)


# A dozen scripts begin when the page has been read. Each does so in a task of its own:
# one task for all would freeze the page for longer than anything else. With a hash in
# the address all must be folded before the browser looks for the place.
APART = """\
if (!location.hash) document.addEventListener = function (type, run, options) {
  const apart = type === "DOMContentLoaded" && typeof run === "function";
  const later = (event) => setTimeout(() => run.call(this, event));
  return Document.prototype.addEventListener.call(this, type, apart ? later : run, options);
}"""


def setup(app):
    app.connect("config-inited", add_launch_buttons)
    app.connect("doctree-read", caption_exported_cells)
    app.connect("doctree-read", name_folds)
    app.connect("doctree-read", thread_statements)
    app.connect("doctree-read", prepare_proofs)
    app.connect("doctree-read", own_identities)
    app.connect("doctree-read", keep_stops)
    app.connect("doctree-read", trim_code)
    app.connect("doctree-read", size_pictures)
    app.connect("html-page-context", break_names)
    app.connect("html-page-context", mend_roles)
    app.connect("html-page-context", fold_docstrings)
    app.connect("build-finished", mend_search)
    app.connect("build-finished", mend_theme)
    app.connect("doctree-resolved", list_statements)
    app.connect("doctree-resolved", drop_numbers)
    app.connect("autodoc-process-bases", name_public_bases)
    app.connect("autodoc-process-docstring", drop_module_docstring)
    drop_thebe(app)
    # Before the page is laid out; page.js does the rest.
    lazy = 'document.documentElement.classList.add("scripts", ...(location.hash ? [] : ["lazy"]))'
    app.add_js_file(None, body=lazy)
    app.add_js_file(None, body=APART, priority=100)
    app.add_node(statements)
    app.add_directive("concordance", Concordance)
    app.add_directive("statements", Statements)
    return {"version": "1", "parallel_read_safe": True}
