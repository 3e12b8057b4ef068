"""From a statement to its code, its tests and the proofs that use it.

The threads are drawn from what is written anyway: a docstring that cites a
statement, a test that names it, a proof that refers to it.
"""

import ast
import re
from functools import cache

import nbformat
from tangle import ROOT, pages

LABEL = re.compile(r"\b(?:thm|lem|prop|cor|def|alg|exm|rem)-[a-z0-9-]*[a-z0-9]")
BLOCK = re.compile(r"^(`{3,}|:{3,})\{prf:(\w+)\}([^\n]*)\n(.*?)^\1 *$", re.S | re.M)


def definitions(path, deep=True):
    """Names of a module's functions and classes, with the docstrings of each;
    deep, with those of the methods and functions inside."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            parts = [n for n in (ast.walk(node) if deep else [node])
                     if isinstance(n, (ast.FunctionDef, ast.ClassDef))]
            yield node.name, " ".join(ast.get_docstring(n) or "" for n in parts)


@cache
def code():
    """Label -> public names whose docstrings cite it, as (module, name)."""
    found = {}
    for chapter in pages():
        path = ROOT / "rkhs_lit" / f"{chapter}.py"
        for name, text in definitions(path) if path.exists() else ():
            if not name.startswith("_"):
                for label in dict.fromkeys(re.findall(r":prf:ref:`([^`]*)`", text)):
                    found.setdefault(label, []).append((f"rkhs_lit.{chapter}", name))
    return found


@cache
def tests():
    """Label -> tests whose docstrings name it, as (file, name).

    Tests of the coursework name statements too, but check submissions.
    """
    found = {}
    for path in sorted((ROOT / "tests").glob("test_*.py")):
        if path.stem == "test_course":
            continue
        for name, text in definitions(path):
            if not name.startswith("test_"):
                continue                         # what tests share
            for label in dict.fromkeys(LABEL.findall(text)):
                found.setdefault(label, []).append((path.stem, name))
    return found


@cache
def uses():
    """Label -> labels of the statements whose proofs refer to it."""
    found = {}
    for chapter in pages():
        path = ROOT / "book" / f"{chapter}.ipynb"
        if not path.exists():
            continue
        cells = nbformat.read(path, 4).cells
        text = "\n".join(c.source for c in cells if c.cell_type == "markdown")
        proved = None
        for _, kind, _, body in BLOCK.findall(text):
            if kind != "proof":
                label = re.search(r"^:label: (\S+)", body, re.M)
                proved = label and label[1]
            elif proved:
                for label in dict.fromkeys(re.findall(r"\{prf:ref\}`([^`]*)`", body)):
                    if label != proved:
                        found.setdefault(label, []).append(proved)
    return found
