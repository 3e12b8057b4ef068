"""Sphinx extension: what this book adds to the usual ones.

* An exported cell gets a caption with the name of its module, linked to that
  module's entry on the API page.
* ``{concordance}`` renders ``book/concordance.csv`` as one table a chapter,
  with links to the statements and to the functions.
* On the API page a private base class gives way to its public ancestor, and
  a module's docstring to the page's own words.
"""

import csv
from pathlib import Path

import rkhs_lit
from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.util.docutils import SphinxDirective

STATEMENTS = ("thm", "lem", "def", "prop", "cor", "exm", "rem", "alg")
# Prefix of a label -> the domain and role that refer to it.
ROLES = {
    **dict.fromkeys(STATEMENTS, ("prf", "ref")),
    "eq": ("math", "eq"),
    "ex": ("std", "numref"),
    "fig": ("std", "numref"),
    "sec": ("std", "ref"),
}


def reference(domain, role, target, text, docname, **options):
    """A link that Sphinx resolves, and warns about when it cannot."""
    return pending_xref(
        "",
        nodes.literal("", text),
        refdomain=domain,
        reftype=role,
        reftarget=target,
        refdoc=docname,
        refexplicit=False,
        refwarn=True,
        **options,
    )


def caption_exported_cells(app, doctree):
    """Put the module's name above the code of each cell tagged export."""
    docname = app.env.docname
    module = f"rkhs_lit.{docname.rpartition('/')[2]}"
    for cell in list(doctree.findall(nodes.container)):
        if "tag_export" in cell["classes"]:
            link = reference("py", "mod", module, module, docname)
            cell.insert(0, nodes.paragraph("", "", link, classes=["export"]))


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

    HEADS = {"where": 22, "what": 34, "label": 16, "function": 14, "test": 14}
    TITLES = ("Source", "Result", "Here", "Function", "Test")

    def run(self):
        path = Path(self.env.srcdir) / "book" / "concordance.csv"
        self.env.note_dependency(str(path))
        with open(path, newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        chapters = list(dict.fromkeys(row["chapter"] for row in rows))
        return [
            self.table(name, [row for row in rows if row["chapter"] == name])
            for name in chapters
        ]

    def table(self, chapter, rows):
        docname = self.env.docname
        link = pending_xref(
            "",
            nodes.inline("", chapter),
            refdomain="std",
            reftype="doc",
            reftarget=f"/book/{chapter}",
            refdoc=docname,
            refexplicit=False,
            refwarn=True,
        )
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
        title = nodes.title("", "", nodes.Text("Chapter "), link)
        return nodes.table("", title, group, classes=["concordance"])

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

    def test(self, name):
        return nodes.literal("", name.rpartition("::")[2])


def setup(app):
    app.connect("doctree-read", caption_exported_cells)
    app.connect("autodoc-process-bases", name_public_bases)
    app.connect("autodoc-process-docstring", drop_module_docstring)
    app.add_directive("concordance", Concordance)
    return {"version": "1", "parallel_read_safe": True}
