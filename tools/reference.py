"""Sphinx extension: pages for the functions and for the tests.

* The API has a page for each chapter, written before the build, and an index
  with the first paragraph of each docstring.
* A function's entry leads to the cell that defines it and to the pages that
  use it, and holds the statements that its docstring cites.
* Each file of tests is a page, with an anchor for each test; the statements
  that a test names are links.
* In code that is shown, a reference to a statement is a link with its number.
"""

import ast
import html
import inspect
import re
from collections import Counter
from contextlib import suppress
from functools import cache
from pathlib import Path

import threads
from docutils import nodes
from links import link, number, reference, thread
from sphinx import addnodes
from sphinx.util.docutils import SphinxDirective
from sphinx_external_toc.api import Document, FileItem, TocTree
from tangle import ROOT, chapters, pages, public_names

API = "book/api"
PAGE = """# rkhs_lit.{name}

The code of the chapter {{doc}}`/book/{name}`.

```{{eval-rst}}
.. automodule:: rkhs_lit.{name}
```
"""
ROLE = re.compile(r":prf:ref:`([^`]+)`")


@cache
def modules():
    """Chapter -> its public names, in the order of its module."""
    found = {}
    for name in chapters():
        path = ROOT / "rkhs_lit" / f"{name}.py"
        public = public_names(path)[1]
        found[name] = [one for one, _ in threads.definitions(path) if one in public]
    return found


def write_pages(app, config):
    """Write the pages of the API, and enter them in the table of contents."""
    folder = Path(app.srcdir, API)
    folder.mkdir(exist_ok=True)
    for path in folder.glob("*.md"):
        if path.stem not in modules():
            path.unlink()
    site, files = config.external_site_map, []
    for name in modules():
        path, text = folder / f"{name}.md", PAGE.format(name=name)
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")
        files.append(FileItem(f"{API}/{name}"))
        site[files[-1]] = Document(files[-1], title=name)
    site[API].subtrees = [TocTree(files)]
    config.exclude_patterns = [
        one for one in config.exclude_patterns if not one.startswith(f"{API}/")
    ]


def show_again(app, env):
    """The pages that show what other pages say are written in every build."""
    return [name for name in env.found_docs if name.startswith(f"{API}/")]


# From a function to the pages that use it


class Names:
    """The public names that the cells of a page use, as the page imports them."""

    def __init__(self, chapter):
        self.public = {one for names in modules().values() for one in names}
        self.known = {one: one for one in modules().get(chapter, ())}
        self.modules = set()

    def used(self, code):
        try:
            tree = ast.parse(code)
        except SyntaxError:  # a line for IPython
            return set()
        found = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("rkhs_lit"):
                self.known |= {a.asname or a.name: a.name for a in node.names}
            elif isinstance(node, ast.Import):
                self.modules |= {a.asname or a.name for a in node.names
                                 if a.name.startswith("rkhs_lit")}
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                found.add(self.known.get(node.id))
            elif isinstance(node, ast.Attribute) and ast.unparse(node.value) in self.modules:
                found.add(node.attr)
        return found & self.public


def note_uses(app, doctree):
    """Remember in which section a page first uses a name."""
    env, found = app.env, {}
    names = Names(env.docname.rpartition("/")[2])
    for cell in doctree.findall(nodes.container):
        if cell.get("nb_element") == "cell_code":
            place = cell
            while not isinstance(place, nodes.section):
                place = place.parent
            for name in names.used(next(cell.findall(nodes.literal_block)).astext()):
                found.setdefault(name, place["ids"][0])
    env.used_names = {**getattr(env, "used_names", {}), env.docname: found}


def short_title(env, page):
    """The title up to its colon; all of it if other pages begin alike (errata)."""
    starts = Counter(title.astext().partition(":")[0] for title in env.titles.values())
    title = env.titles[page].astext()
    start = title.partition(":")[0]
    return nodes.Text(start if starts[start] == 1 else title)


# The prime of a transpose or of another point, as in FF' and k(x, x'); no apostrophe.
PRIME = re.compile(r"(?:(?<=\))|(?<=\b\w)|(?<=\b[A-Z]{2}))'(?!s\b)|(?<=\w)'(?=[a-ru-z]\b)")


def primed(text):
    """Words of a docstring in which what would become an apostrophe is a prime."""
    return PRIME.sub("′", text)


def link_names(app, what, name, obj, options, lines):
    """A name in a docstring is a link where it is public, and code where it is not, or is a
    parameter or an attribute of what the docstring is about."""
    if lines[:1] == ["Call self as a function."]:            # Python's own words, of type
        lines.clear()
    public = {one: chapter for chapter, names in modules().items() for one in names}
    own = set(getattr(obj, "__annotations__", ())) | set(getattr(obj, "__dict__", ()))
    with suppress(TypeError, ValueError):
        own |= set(inspect.signature(obj).parameters)

    def shown(match):
        if match[1] in public and match[1] not in own:
            return f":py:obj:`~rkhs_lit.{public[match[1]]}.{match[1]}`"
        return f"``{match[1]}``"

    example = False
    for i, line in enumerate(lines):
        example = line.lstrip().startswith(">>>") or example and bool(line.strip())
        if not example:
            lines[i] = primed(re.sub(r"(?<![:`\w])`([\w.]+)`(?!`)", shown, line))


def thread_functions(app, doctree, docname):
    """Under each entry: the cell that defines it, the pages that use it."""
    if not docname.startswith(f"{API}/"):
        return
    env, chapter = app.env, docname.rpartition("/")[2]
    home, module = f"book/{chapter}", f"rkhs_lit.{chapter}"
    for entry in doctree.findall(addnodes.desc):
        name = entry[0].get("fullname")
        if name not in modules()[chapter]:
            continue
        users = [page for page in (f"book/{one}" for one in pages())
                 if page != home and name in env.used_names.get(page, ())]
        places = [link(app, docname, page, env.used_names[page][name],
                       short_title(env, page)) for page in users]
        cell = link(app, docname, home, f"code-{name}", short_title(env, home))
        line = nodes.paragraph(classes=["threads"])
        line += thread("defined in", [cell]) + thread("used in", places)
        # previews.py puts the statements here once they are typeset.
        cited = [one for one, names in threads.code().items() if (module, name) in names]
        marks = "".join(f"<!-- statement {label} -->" for label in cited)
        entry[-1].extend([line, nodes.raw("", marks, format="html")])


def summary(docstring, docname):
    """The first paragraph of a docstring: text, references, names and what is stressed."""
    first = " ".join(docstring.split("\n\n")[0].split())
    pieces = re.split(r":prf:ref:`([^`]+)`|``?([^`]+)``?|(?<!\w)\*(\w+)\*(?!\w)", first)
    for i, piece in enumerate(pieces):
        if piece and i % 4 == 1:
            yield reference("prf", "ref", piece, piece, docname)
        elif piece:
            kind = (nodes.Text, None, nodes.literal, nodes.emphasis)[i % 4]
            yield kind("", piece) if i % 4 else nodes.Text(primed(piece))


class Index(SphinxDirective):
    """The modules, and their public names with the first words on each."""

    def run(self):
        return [self.module(chapter) for chapter in modules()]

    def module(self, chapter):
        docname, module = self.env.docname, f"rkhs_lit.{chapter}"
        path = ROOT / "rkhs_lit" / f"{chapter}.py"
        self.env.note_dependency(str(path))
        section = nodes.section(ids=[f"api-{chapter}"], names=[f"api-{chapter}"])
        page = link(self.env.app, docname, f"{API}/{chapter}", "", nodes.literal("", module))
        section += [
            nodes.title("", "", nodes.Text(public_names(path)[0])),
            nodes.paragraph("", "", page),
        ]
        rows = nodes.definition_list(classes=["names"])
        for name, docstring in threads.definitions(path, deep=False):
            if name in modules()[chapter]:
                target = reference("py", "obj", f"{module}.{name}", name, docname)
                words = nodes.paragraph("", "", *summary(docstring, docname))
                rows += nodes.definition_list_item(
                    "", nodes.term("", "", target), nodes.definition("", words))
        section += rows
        return section


# Tests


def test_files():
    return sorted((ROOT / "tests").glob("*.py"))


@cache
def tests():
    """File of tests -> the names of its tests."""
    return {
        path.stem: [name for name, _ in threads.definitions(path) if name.startswith("test_")]
        for path in test_files()
    }


def test_link(app, docname, file, name, text=None):
    """A link to the source of a test."""
    made = link(app, docname, f"tests/{file}", name, nodes.literal("", text or name))
    made["reftitle"] = name
    return made


def marked(source, code):
    """Highlighted lines of a module, with a block around each definition."""
    head, rest = code.split("<pre>", 1)
    lines = rest.split("\n")
    for node in ast.parse(source).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            start = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            lines[start - 1] = f'<div class="viewcode-block" id="{node.name}">{lines[start - 1]}'
            lines[node.end_lineno - 1] += "</div>"
    return f"{head}<pre>" + "\n".join(lines)


def show_tests(app):
    """A page for each file of tests."""
    env = app.env
    for path in test_files():
        page, source = f"tests/{path.stem}", path.read_text("utf-8")
        code = marked(source, app.builder.highlighter.highlight_block(source, "python"))

        def statement(match, page=page):
            if (label := match[0]) not in env.proof_list:
                return label
            uri = app.builder.get_relative_uri(page, env.proof_list[label]["docname"])
            return f'<a href="{uri}#{label}" title="{number(env, label)}">{label}</a>'

        code = re.sub(r'<span class="(?:sd|c1)">.*?</span>',
                      lambda match: threads.LABEL.sub(statement, match[0]), code, flags=re.S)
        index = app.builder.get_relative_uri(page, "book/tests")
        body = (f'<h1>tests/{path.name}</h1>\n<p>The source of the tests, as they are run; '
                f'<a href="{index}">all files</a>.</p>\n<div class="tests">{code}</div>')
        yield page, {"title": f"tests/{path.name}", "body": body}, "page.html"


class Tests(SphinxDirective):
    """The files of tests, what each is about, and how many tests it has."""

    def run(self):
        rows = nodes.definition_list(classes=["names"])
        for path in test_files():
            self.env.note_dependency(str(path))
            text = (ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "").split("\n\n")[0]
            count = len(tests()[path.stem])
            page = link(self.env.app, self.env.docname, f"tests/{path.stem}", "",
                        nodes.literal("", path.name))
            words = [*summary(text, self.env.docname)]
            words += [nodes.Text(f" ({count} tests)")] if count else []
            rows += nodes.definition_list_item(
                "", nodes.term("", "", page),
                nodes.definition("", nodes.paragraph("", "", *words)))
        return [rows]


def number_references(app, pagename, templatename, context, doctree):
    """In code that is shown, a reference to a statement is a link with its number."""
    def shown(match):
        label = html.unescape(match[1])
        if label not in app.env.proof_list:
            return match[0]
        uri = app.builder.get_relative_uri(pagename, app.env.proof_list[label]["docname"])
        return f'<a href="{uri}#{label}">{number(app.env, label)}</a>'

    if "body" in context and not pagename.startswith("tests/"):
        context["body"] = ROLE.sub(shown, context["body"])


def setup(app):
    app.connect("config-inited", write_pages, priority=950)
    app.connect("env-updated", show_again)
    app.connect("doctree-read", note_uses)
    app.connect("autodoc-process-docstring", link_names)
    app.connect("doctree-resolved", thread_functions)
    app.connect("html-collect-pages", show_tests)
    app.connect("html-page-context", number_references)
    app.add_directive("names", Index)
    app.add_directive("tests", Tests)
    return {"version": "1", "parallel_read_safe": False}
