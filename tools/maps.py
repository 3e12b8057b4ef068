"""Sphinx extension: two maps whose places are links.

``{map} chapters`` draws the chapters and the imports between their modules;
``{map} statements`` draws the statements and the proofs that cite them. Both
are drawn anew in every build, from what the modules and the proofs say.
"""

import ast
import re
from functools import cache
from html import escape, unescape

import threads
import yaml
from docutils import nodes
from finding import FORMULA
from links import number
from sphinx.util.docutils import SphinxDirective
from tangle import ROOT, chapters
from typeset import typesetter


@cache
def parts():
    """Chapter -> the number of its part."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text("utf-8"))
    return {
        entry["file"].rpartition("/")[2]: i
        for i, part in enumerate(toc["parts"])
        for entry in part["chapters"]
    }


@cache
def imports(chapter):
    """The chapters from whose modules this chapter's module imports."""
    code = ast.parse((ROOT / "rkhs_lit" / f"{chapter}.py").read_text("utf-8"))
    found = set()
    for node in ast.walk(code):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
    return {name.removeprefix("rkhs_lit.") for name in found if name.startswith("rkhs_lit.")}


@cache
def ancestors(chapter):
    return imports(chapter).union(*map(ancestors, imports(chapter)))


def direct(chapter):
    """The imports that no other import of the chapter implies."""
    return imports(chapter).difference(*map(ancestors, imports(chapter)))


def heading(app, chapter):
    """(number, title, subtitle) of a chapter."""
    page = f"book/{chapter}"
    found = app.env.toc_secnumbers.get(page, {}).get("") or ("",)
    title, _, rest = app.env.titles[page].astext().partition(":")
    return ".".join(map(str, found)), title, rest.strip()


def svg(width, height, label, pieces, kind):
    return (f'<div class="map"><svg class="map {kind}" width="{width}" height="{height}" '
            f'role="group" aria-label="{label}">{"".join(pieces)}</svg></div>')


def chapter_map(app, docname):
    """The chapters in their order, with arcs to those that build on them."""
    names, step, left = chapters(), 27, 118
    height = {name: 16 + step * i for i, name in enumerate(names)}
    lines, places = [], []
    for name in names:
        y = height[name]
        for earlier in sorted(direct(name), key=names.index):
            x, radius = height[earlier], (y - height[earlier]) / 2
            bend = 7 * radius**0.5
            lines.append(f'<path class="part-{parts()[earlier]}" data-ends="{earlier} {name}" '
                         f'd="M{left - 8} {x}A{bend:.1f} {radius} 0 0 0 {left - 8} {y}"/>')
        found, title, rest = heading(app, name)
        uri = app.builder.get_relative_uri(docname, f"book/{name}")
        places.append(
            f'<a href="{uri}" data-name="{name}"><circle class="part-{parts()[name]}" '
            f'cx="{left}" cy="{y}" r="5"/><text x="{left + 36}" y="{y + 5}" '
            f'text-anchor="end" class="number">{found}</text>'
            f'<text x="{left + 44}" y="{y + 5}">{escape(title)}'
            f'<tspan class="rest" dx="8">{escape(rest)}</tspan></text></a>')
    label = "The chapters; an arc leads to a later chapter that builds on an earlier one"
    return svg("100%", 12 + step * len(names), label, lines + places, "chapters")


def words(app, title):
    """A title in plain signs."""
    return "".join(
        unescape(FORMULA.search(typesetter(app).formula(node.astext(), False))[1])
        if isinstance(node.parent, nodes.math) else node.astext()
        for node in title.findall(nodes.Text)
    ).strip()


def statement_map(app, docname):
    """All statements, a row or more for each chapter, and who cites whom."""
    across, left, wide, high = 17, 204, 32, 26
    place, places, lines, y = {}, [], [], 16
    for chapter in chapters():
        page = f"book/{chapter}"
        found, title, _ = heading(app, chapter)
        uri = app.builder.get_relative_uri(docname, page)
        places.append(f'<a href="{uri}"><text x="0" y="{y + 5}">'
                      f'{found} {escape(title)}</text></a>')
        stated = [node for node in app.env.get_doctree(page).findall(
                  lambda n: "countertype" in getattr(n, "attributes", ()))]
        for i, node in enumerate(stated):
            label = node["ids"][0]
            x, row = left + wide * (i % across), y + high * (i // across)
            place[label] = x, row
            name = f"{number(app.env, label)} {words(app, node[0])}"
            kind = "theorem" if node["realtype"] == "theorem" else "other"
            places.append(
                f'<a href="{uri}#{label}" data-name="{label}" aria-label="{escape(name)}">'
                f'<rect class="{kind} part-{parts()[chapter]}" x="{x - 14}" y="{row - 10}" '
                f'width="28" height="20" rx="4"/><text x="{x}" y="{row + 4}" '
                f'text-anchor="middle">{re.split("[. ]", number(app.env, label))[-1]}</text></a>')
        y += high * (1 + max(0, len(stated) - 1) // across) + 10
    for label, users in threads.uses().items():
        for user in users:
            if label in place and user in place:
                (a, b), (c, d) = place[label], place[user]
                middle = (b + d) / 2 + (12 if b == d else 0)
                lines.append(f'<path data-ends="{label} {user}" '
                             f'd="M{a} {b}C{a} {middle} {c} {middle} {c} {d}"/>')
    label = "The statements of the chapters, and lines to those whose proofs cite them"
    return svg(left + wide * across, y, label, lines + places, "statements")


class plan(nodes.General, nodes.Element):
    """Stands for a map until all pages have been read."""


class Map(SphinxDirective):
    required_arguments = 1

    def run(self):
        return [plan(kind=self.arguments[0])]


def draw(app, doctree, docname):
    makers = {"chapters": chapter_map, "statements": statement_map}
    for node in list(doctree.findall(plan)):
        html = makers[node["kind"]](app, docname)
        node.replace_self(nodes.raw("", html, format="html"))


def show_again(app, env):
    """The maps are drawn in every build."""
    return ["book/intro", "book/map"]


def setup(app):
    app.add_node(plan)
    app.add_directive("map", Map)
    app.connect("doctree-resolved", draw)
    app.connect("env-updated", show_again)
    return {"version": "1", "parallel_read_safe": True}
