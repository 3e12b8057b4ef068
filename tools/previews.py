"""Sphinx extension: what a reference refers to, shown where the reference stands.

After the build every statement and numbered equation is copied, typeset as it
is, into one script for each page, which is loaded when a reference to that page
is first pointed at. A script can be loaded from a file as well as from a server.
"""

import json
import re
from pathlib import Path

OPENING = re.compile(
    r'<div class="(?:proof|exercise|math)\b[^>]* id="((?!proof-\d)[^"]+)"[^>]*>')
DIV = re.compile(r"<(/?)div\b")
# Links to the place itself, what screen readers read, and identities that a
# second copy must not have.
DROPPED = re.compile(
    r'<p class="threads">.*?</p>|<a class="headerlink".*?</a>'
    r'|<mjx-assistive-mml.*?</mjx-assistive-mml>| (?:id|data-tex)="[^"]*"', re.S)


def element(text, start):
    """The element that begins there, up to its own end tag."""
    depth = 0
    for tag in DIV.finditer(text, start):
        depth += -1 if tag[1] else 1
        if depth == 0:
            return text[start : text.index(">", tag.end()) + 1]
    raise ValueError("an element does not end")


def collect(app, error):
    if error is not None or app.builder.format != "html":
        return
    folder = Path(app.outdir, "_static", "previews")
    folder.mkdir(exist_ok=True)
    for page in sorted(Path(app.outdir, "book").glob("*.html")):
        previews, text = {}, page.read_text(encoding="utf-8")
        for found in OPENING.finditer(text):
            html = DROPPED.sub("", element(text, found.start()))
            previews[found[1]] = html.replace('href="#', f'href="{page.name}#')
        data = json.dumps(previews, ensure_ascii=False, sort_keys=True)
        script = f'(window.PREVIEWS ||= {{}})["{page.stem}"] = {data};\n'
        (folder / f"{page.stem}.js").write_text(script, encoding="utf-8")


def setup(app):
    app.connect("build-finished", collect, priority=900)
    return {"parallel_read_safe": True}
