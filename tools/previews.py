"""Sphinx extension: what a reference refers to, shown where the reference stands.

After the build every statement and numbered equation is copied, typeset as it
is, into one script for each page, which is loaded when a reference to that page
is first pointed at. A script can be loaded from a file as well as from a server.
The pages of the API get the statements that their functions compute.
"""

import json
import re
from pathlib import Path

from typeset import STORE, store, stored

OPENING = re.compile(
    r'<div class="(?:proof|exercise|math)\b[^>]* id="((?!proof-\d)[^"]+)"[^>]*>')
DIV = re.compile(r"<(/?)div\b")
# Links to the place itself, and identities that a second copy must not have.
DROPPED = re.compile(
    r'<p class="threads">.*?</p>|<a class="headerlink".*?</a>| id="[^"]*"', re.S)
COPIED = re.compile(r' data-tex="[^"]*"')
TITLE = re.compile(r'<p class="admonition-title">(.*?)</p>', re.S)
PLACE = re.compile(r"<!-- statement (\S+) -->")


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
    known, mathml = {}, {}
    for page in sorted(Path(app.outdir, "book").glob("*.html")):
        previews, text = {}, page.read_text(encoding="utf-8")
        mathml |= stored(text)
        for found in OPENING.finditer(text):
            html = DROPPED.sub("", element(text, found.start()))
            known[found[1]] = html = html.replace('href="#', f'href="{page.name}#')
            previews[found[1]] = COPIED.sub("", html)
        data = json.dumps(previews, ensure_ascii=False, sort_keys=True)
        script = f'(window.PREVIEWS ||= {{}})["{page.stem}"] = {data};\n'
        (folder / f"{page.stem}.js").write_text(script, encoding="utf-8")
    for page in Path(app.outdir, "book", "api").glob("*.html"):
        text = page.read_text(encoding="utf-8")
        own = mathml | stored(text)
        text = STORE.sub("", PLACE.sub(lambda found: folded(known[found[1]]), text))
        page.write_text(text.replace("</article>", store(text, own) + "</article>"), "utf-8")


def folded(statement):
    """A statement for a page one folder below, behind its title."""
    title = TITLE.search(statement)
    body = statement.replace(title[0], "")
    body = re.sub(r'(href|src)="(?!\w+:|#)', r'\1="../', body)
    return f'<details class="statement"><summary>{title[1]}</summary>{body}</details>'


def setup(app):
    app.connect("build-finished", collect, priority=900)
    return {"parallel_read_safe": True}
