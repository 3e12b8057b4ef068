"""The built pages in a real browser, as readers open them: from a file.

    make browser

Any Chromium or Chrome on the machine will do: the one that CHROMIUM names, or
the first on the path. Every page is looked at wide and narrow, light and dark.
"""

import os
import re
import shutil
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest
from tangle import ROOT, pages

playwright = pytest.importorskip("playwright.sync_api")
axe = pytest.importorskip("axe_playwright_python")

HTML = ROOT / "_build" / "html"
PAGES = sorted(HTML.rglob("*.html"))
PAGES = [page for page in PAGES if "_static" not in page.parts]
NAMES = "chromium chromium-browser google-chrome google-chrome-stable chrome msedge"
QUIET = "--disable-gpu --disable-quic --disable-background-networking --no-sandbox"
WIDE, NARROW = {"width": 1300, "height": 1600}, {"width": 390, "height": 844}
ASK = (ROOT / "tests" / "browser.js").read_text("utf-8")
AXE = (Path(axe.__file__).parent / "axe.min.js").read_text("utf-8")


def executable():
    """The browser of this machine, or None."""
    found = [os.environ.get("CHROMIUM"), *map(shutil.which, NAMES.split())]
    return next(filter(None, found), None)


pytestmark = pytest.mark.skipif(
    executable() is None,
    reason="no browser: apt install chromium, or CHROMIUM=/path/to/chrome make browser",
)


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as p:
        opened = p.chromium.launch(executable_path=executable(), args=QUIET.split())
        yield opened
        opened.close()


class Visit:
    """A page in a tab of its own, and everything that went wrong in it."""

    def __init__(self, browser, path, **options):
        self.faults = []
        self.context = browser.new_context(viewport=WIDE, **options)
        self.tab = self.context.new_page()
        self.tab.on("console", self.hear)
        self.tab.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        self.tab.on("request", self.watch)
        self.tab.on("requestfailed", lambda r: self.faults.append(f"failed: {r.url}"))
        self.tab.goto(path.as_uri())

    def hear(self, message):
        if message.type in ("error", "warning"):
            self.faults.append(f"console: {message.text}")

    def watch(self, request):
        if not request.url.startswith(("file:", "data:", "blob:")):
            self.faults.append(f"leaves the machine: {request.url}")

    def ask(self, *questions, where=""):
        for question in questions:
            answers = self.tab.evaluate(f"{question}()") or ()
            self.faults += [f"{where}{answer}" for answer in answers]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.context.close()


@pytest.fixture
def visit(browser):
    """Opens a page; at the end nothing may have gone wrong in it."""
    visits = []

    def open_page(name, **options):
        visits.append(Visit(browser, HTML / name, **options))
        return visits[-1].tab

    yield open_page
    faults = [fault for one in visits for fault in one.faults]
    for one in visits:
        one.context.close()
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(HTML)))
def test_page(browser, page):
    """Every page, wide and narrow, light and dark."""
    with Visit(browser, page, color_scheme="light") as visit:
        visit.tab.add_script_tag(content=ASK)
        visit.ask("duplicates", "mathematics", "unfold", "images")
        visit.ask("cut", "stops", where="wide: ")
        visit.tab.set_viewport_size(NARROW)
        visit.ask("cut", "stops", where="narrow: ")
        visit.tab.set_viewport_size(WIDE)
        visit.tab.add_script_tag(content=AXE)
        visit.ask("thin")
        visit.ask("contrast", where="light: ")
        visit.tab.emulate_media(color_scheme="dark")
        visit.tab.wait_for_function("document.documentElement.dataset.theme === 'dark'")
        visit.ask("contrast", "access", where="dark: ")
    assert not visit.faults, "\n".join(visit.faults)


class Page(HTMLParser):
    """The identities and the links of a page."""

    def __init__(self, path):
        super().__init__()
        self.names, self.links = set(), set()
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag, attributes):
        got = dict(attributes)
        self.names |= {got.get("id"), got.get("name")} - {None}
        self.links |= {got.get("href"), got.get("src")} - {None}


read = cache(Page)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(HTML)))
def test_every_link_leads_somewhere(page):
    lost = []
    for link in read(page).links:
        if re.match(r"(https?|data|mailto|javascript):", link):
            continue
        address, name = urldefrag(link)
        target = page.parent / unquote(address.partition("?")[0]) if address else page
        if not target.is_file():
            lost.append(f"{link}: no such file")
        elif name and target.suffix == ".html" and unquote(name) not in read(target.resolve()).names:
            lost.append(f"{link}: no such place")
    assert not lost, "\n".join(sorted(lost))


def test_the_browser_sees_every_page_of_the_book():
    assert {f"{name}.html" for name in pages()} <= {page.name for page in PAGES}
