"""The built pages in a real browser, as readers open them: from a file.

    make browser

Any Chromium or Chrome on the machine will do: the one that CHROMIUM names, or
the first on the path. Every page is looked at wide and narrow, light and dark.
"""

import os
import re
import shutil
import subprocess
import sys
from functools import cache, partial
from html import unescape
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import unquote, urldefrag, urlsplit

import axe_playwright_python as axe
import numpy as np
import pytest
import rkhs_lit
from playwright.sync_api import sync_playwright
from tangle import ROOT, chapters, pages

HTML = ROOT / "_build" / "html"
PAGES = sorted(HTML.rglob("*.html"))
PAGES = [page for page in PAGES if "_static" not in page.parts]
SEEN = [page for page in PAGES if 'http-equiv="Refresh"' not in page.read_text("utf-8")]
# `make test` looks at one page of each kind, `make browser` at all.
KINDS = ("search.html book/intro.html book/coco.html book/concordance.html book/map.html book/api.html "
         "book/api/coco.html book/teaching.html tests/test_coco.html _modules/rkhs_lit/coco.html").split()
SOME = os.environ.get("BROWSER_PAGES") == "some"
if SOME:
    SEEN = [page for page in SEEN if page.relative_to(HTML).as_posix() in KINDS]
LONGEST = ["riesz"]
NAMES = "chromium chromium-browser google-chrome google-chrome-stable chrome msedge"
QUIET = "--disable-gpu --disable-quic --disable-background-networking --no-sandbox"
WIDE, NARROW = {"width": 1300, "height": 1600}, {"width": 390, "height": 844}
ASK = (ROOT / "tests" / "browser.js").read_text("utf-8")
SLOWER, LARGER = 12, 5
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
    with sync_playwright() as p:
        opened = p.chromium.launch(executable_path=executable(), args=QUIET.split())
        yield opened
        opened.close()


class Silent(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def server():
    """The address of the pages on a server of this machine."""
    handler = partial(Silent, directory=HTML)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}/"
        running.shutdown()


class Visit:
    """A page in a tab of its own, and everything that went wrong in it."""

    def __init__(self, browser, path, at="", home="file:", **options):
        self.faults, self.bytes, self.home = [], 0, home
        self.context = browser.new_context(viewport=WIDE, **options)
        self.tab = self.context.new_page()
        self.tab.on("console", self.hear)
        self.tab.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        self.tab.on("request", self.watch)
        if options.get("java_script_enabled", True):     # else scripts fail to load
            self.tab.on("requestfailed", self.miss)
        self.tab.goto((home + path if isinstance(path, str) else path.as_uri()) + at)

    def hear(self, message):
        if message.type in ("error", "warning"):
            self.faults.append(f"console: {message.text}")

    def miss(self, request):
        if request.failure != "net::ERR_ABORTED":        # only of a page that was left
            self.faults.append(f"failed: {request.url}")

    def watch(self, request):
        if not request.url.startswith(("file:", "data:", "blob:", self.home)):
            self.faults.append(f"leaves the machine: {request.url}")
        elif request.url.startswith("file:") and request.resource_type != "document":
            path = unquote(urlsplit(request.url).path)
            self.bytes += Path(path).stat().st_size

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


@pytest.mark.parametrize("page", SEEN, ids=lambda p: str(p.relative_to(HTML)))
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
        visit.ask("contrast", "fade", "access", where="dark: ")
    assert not visit.faults, "\n".join(visit.faults)


@cache
def read(path):
    """The identities and the links of a page. (A parser would take a minute for all.)"""
    text = path.read_text("utf-8")
    names, links = (
        {unescape(found) for found in re.findall(rf'<[a-z][^>]*?\s(?:{kinds})="([^"]*)"', text)}
        for kinds in ("id|name", "href|src"))
    return names, links


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(HTML)))
def test_every_link_leads_somewhere(page):
    lost = []
    for link in read(page)[1]:
        if re.match(r"(https?|data|mailto|javascript):", link):
            continue
        address, name = urldefrag(link)
        target = page.parent / unquote(address.partition("?")[0]) if address else page
        if not target.is_file():
            lost.append(f"{link}: no such file")
        elif name and target.suffix == ".html" and unquote(name) not in read(target.resolve())[0]:
            lost.append(f"{link}: no such place")
    assert not lost, "\n".join(sorted(lost))


def test_the_browser_sees_every_page_of_the_book():
    assert {f"{name}.html" for name in pages()} <= {page.name for page in PAGES}


# What a page does


def test_pointing_at_a_reference_shows_what_it_refers_to(visit):
    tab = visit("book/coco.html")
    link, box = tab.locator(".bd-article p a[href*='#thm-']").first, tab.locator("#preview")
    link.hover()
    box.wait_for()
    assert "Theorem" in box.inner_text() and box.locator("mjx-container").count()
    tab.keyboard.press("Escape")
    assert box.is_hidden()
    link.focus()
    box.wait_for()
    # All of it can be seen, wherever the reference stands, and the pointer may walk into it.
    link.evaluate("link => (link.blur(), scrollBy(0, link.getBoundingClientRect().top - innerHeight + 60))")
    link.hover()
    box.wait_for()
    place = box.bounding_box()
    assert place["y"] >= 0 and place["y"] + place["height"] <= WIDE["height"]
    box.hover()
    tab.wait_for_timeout(400)
    assert box.is_visible()


def test_a_formula_is_copied_as_tex_and_read_aloud(visit):
    tab = visit("book/coco.html")
    tex, copied = tab.evaluate("""() => {
        const formula = document.querySelector(".bd-article p mjx-container");
        document.getSelection().selectAllChildren(formula.closest("p"));
        const clipboardData = new DataTransfer();
        document.dispatchEvent(new ClipboardEvent("copy", { clipboardData, cancelable: true }));
        return [formula.dataset.tex, clipboardData.getData("text/plain")];
    }""")
    assert f"${tex}$" in copied and "mjx" not in copied
    assert tab.locator("mjx-container[aria-label], mjx-container:has(math)").count() == tab.locator("mjx-container").count()
    tab.wait_for_function("!document.querySelector('.bd-article mjx-container[aria-label]')")
    tree = tab.context.new_cdp_session(tab).send("Accessibility.getFullAXTree")["nodes"]
    spoken = [node["role"]["value"] for node in tree if not node["ignored"]]
    assert "MathMLMath" in spoken and "MathMLSup" in spoken


def test_the_concordance_can_be_filtered(visit):
    tab = visit("book/concordance.html")
    rows = tab.locator("table.concordance tbody tr")
    tab.locator("p.filter input").fill("gretton representer")
    shown, every = re.fullmatch(r"(\d+) of (\d+)", tab.locator("p.filter output").inner_text()).groups()
    assert 0 < int(shown) < int(every) == rows.count()
    visible = "all => all.filter((row) => row.getClientRects().length).map((row) => row.textContent.toLowerCase())"
    kept = rows.evaluate_all(visible)
    assert len(kept) == int(shown) and all("gretton" in row and "representer" in row for row in kept)


def test_folds_open_by_mouse_and_by_keyboard(visit):
    tab = visit("book/coco.html")
    fold = tab.locator(".bd-article details").first
    bar, inside = fold.locator("summary"), fold.locator("pre").first
    assert not inside.is_visible()
    bar.click()
    assert inside.is_visible()
    bar.press("Enter")
    assert not inside.is_visible()


def test_a_folded_proof_has_its_sign_when_it_is_open(visit):
    tab = visit("book/hsic.html")
    proof = tab.locator("div.argument.toggle").first
    sign = "box => getComputedStyle(box, '::after').display"
    inside = proof.locator("p:not(.admonition-title)").first
    assert proof.evaluate(sign) == "none" and inside.evaluate("p => getComputedStyle(p).display") == "none"
    proof.locator(".admonition-title").click()
    assert proof.evaluate(sign) == "block" and inside.is_visible()
    edge = "list => parseFloat(getComputedStyle(list).paddingLeft)"
    assert tab.locator("div.argument.toggle > ul").first.evaluate(edge) >= 20   # room for the bullets


def test_an_address_inside_a_fold_opens_it(visit):
    tab = visit("book/hsic.html")
    name = tab.evaluate("document.querySelector('.toggle-hidden :is(section, div)[id]').id")
    place = tab.locator(f"[id='{name}']")
    assert not place.is_visible()
    tab.evaluate("(name) => location.hash = name", name)
    place.wait_for()
    tab.wait_for_function(f"""() => {{
        const {{ top }} = document.getElementById("{name}").getBoundingClientRect();
        return top >= 0 && top < innerHeight;
    }}""")


def test_names_of_code_are_quiet_and_keep_their_underscores(visit):
    tab = visit("book/coco.html")
    look = "(one, what) => getComputedStyle(one)[what]"
    for place in ("p.export code", "p.threads code", "figcaption p"):
        assert tab.locator(place).first.evaluate(look, "fontWeight") == "400", place
    for place in ("p.export a", "p.threads a"):
        link = tab.locator(place).first
        size, offset = (float(link.evaluate(look, one)[:-2]) for one in ("fontSize", "textUnderlineOffset"))
        assert offset >= 0.28 * size
    long = tab.locator("p.threads a code", has_text=re.compile(r"^test_\w{20}")).first
    assert long.locator("wbr").count() >= 3 and "\n" not in long.inner_text()


def test_folds_stand_close_to_what_they_belong_to(visit):
    tab = visit("book/hsic.html")
    tops = tab.locator(".bd-article div.cell > details").evaluate_all(
        "all => all.slice(0, 2).map((one) => one.getBoundingClientRect().top)")
    assert tops[1] - tops[0] < 60


def test_boxes_of_code_that_scroll_can_be_reached_by_keyboard(visit):
    tab = visit("book/coco.html")
    tab.set_viewport_size(NARROW)
    tab.reload()
    tab.wait_for_function("'whole' in document.documentElement.dataset")
    tab.wait_for_function("""() => [...document.querySelectorAll(".bd-article pre")].every((box) => !box.checkVisibility() ||
        box.tabIndex === (box.scrollWidth > box.clientWidth ? 0 : -1))""")
    assert tab.locator(".bd-article pre[tabindex='0']").count()


def test_the_rest_of_a_docstring_unfolds(visit):
    tab = visit("book/coco.html")
    mark = tab.locator("label.docstring input").first
    rest = tab.locator("span.docstring").first
    assert not rest.is_visible()
    mark.focus()
    tab.keyboard.press("Space")
    assert rest.is_visible()


@pytest.mark.parametrize("name", LONGEST if SOME else chapters())
def test_no_chapter_is_longer_than_thirty_thousand_pixels(visit, name):
    tab = visit(f"book/{name}.html", at="#summary")
    assert tab.evaluate("document.documentElement.scrollHeight") <= 30_000


def test_a_chapter_prints_without_bars_and_buttons(visit):
    tab = visit("book/coco.html")
    tab.emulate_media(media="print")
    assert tab.locator("#jb-print-docs-body h1").is_visible()
    gone = "details.hide > summary, label.docstring, button.copybtn, nav, p.threads"
    seen = "all => all.filter((one) => one.getClientRects().length).map((one) => one.outerHTML)"
    assert not tab.locator(gone).evaluate_all(seen)
    assert tab.locator("span.docstring").first.is_visible()
    whole = tab.locator("div.cell.tag_export pre").first
    assert whole.evaluate("pre => getComputedStyle(pre.parentElement).breakInside") == "auto"


@pytest.mark.skipif(SOME, reason="a matter of minutes: make browser")
def test_pages_become_one_pdf(tmp_path):
    """With a list of contents, and with links that stay inside."""
    run = subprocess.run(
        [sys.executable, "-c", "import sys, pdf; pdf.main(['duality', 'teaching'], sys.argv[1])",
         tmp_path / "book.pdf"], capture_output=True, text=True, check=False,
        env={**os.environ, "CHROMIUM": executable(), "PYTHONPATH": os.pathsep.join(sys.path)})
    if "No module named 'pypdf'" in run.stderr:
        pytest.skip("pypdf comes with make pdf")
    assert run.returncode == 0, run.stderr
    pypdf = pytest.importorskip("pypdf")
    made = pypdf.PdfReader(tmp_path / "book.pdf")
    first, second = (one for one in made.outline if not isinstance(one, list))
    assert first.title.startswith("14. Duality") and second.title == "Teaching from this book"
    links = [link.get_object() for page in made.pages for link in page.get("/Annots", ())]
    assert not [link for link in links if "file:" in str(link.get("/A", ""))]
    assert sum("/Dest" in link for link in links) > 50
    text = made.pages[0].extract_text()
    assert "14. Duality" in text and "Contents" not in text


def test_an_address_with_a_hash_lands_on_its_place(visit):
    tab = visit("book/hsic.html", at="#cor-hsic-level")
    place = "document.getElementById('cor-hsic-level').getBoundingClientRect().top"
    tab.wait_for_function(f"Math.abs({place} - 100) < 105")
    tab.evaluate("() => new Promise((done) => requestIdleCallback(() => requestAnimationFrame(done)))")
    assert abs(tab.evaluate(place) - 100) < 105


def test_search_finds_a_chapter(browser, server):
    with Visit(browser, "search.html?q=representer", home=server) as seen:
        seen.tab.locator("#search-results li a").first.wait_for()
        links = seen.tab.locator("#search-results li a").evaluate_all("all => all.map((a) => a.href)")
    assert any("book/representer.html" in link for link in links)
    assert not seen.faults, "\n".join(seen.faults)


def test_search_works_from_a_file(visit):
    tab = visit("search.html", at="?q=unbiased+HSIC")
    first = tab.locator("#search-results li a").first
    first.wait_for()
    assert "Unbiased HSIC in quadratic time" in first.inner_text()
    assert tab.locator("#search-results h2").first.is_visible()
    glass = tab.locator(".bd-search-container form i, .bd-search-container form svg").first.bounding_box()
    field = tab.locator(".bd-search-container input")
    padding = float(field.evaluate("field => parseFloat(getComputedStyle(field).paddingLeft)"))
    assert glass["x"] + glass["width"] <= field.bounding_box()["x"] + padding
    field.fill("test_")
    assert tab.locator("#search-results li a", has_text="test_").first.locator("wbr").count()


def test_on_a_map_no_name_touches_a_box(visit):
    tab = visit("book/map.html")
    places = tab.locator("svg.map a").evaluate_all("""all => all.map((a) =>
        [!a.querySelector("rect"), a.getBBox()]).map(([name, box]) => [name, box.x, box.x + box.width])""")
    boxes = min(left for name, left, _ in places if not name)
    assert max(right for name, _, right in places if name) < boxes - 4


@pytest.mark.parametrize("name", sorted(path.stem for path in (ROOT / "book").glob("*.ipynb")))
def test_notebook_can_be_downloaded(name):
    page = HTML / "book" / f"{name}.html"
    found = [link for link in read(page)[1] if link.endswith(".ipynb")]
    assert found, "no link to the notebook"
    stored = (ROOT / "book" / f"{name}.ipynb").read_bytes()
    assert all((page.parent / link).read_bytes() == stored for link in found)


def test_pages_work_from_a_server_too(browser, server):
    with Visit(browser, "book/coco.html", home=server) as seen:
        seen.tab.locator(".bd-article p a[href*='#thm-']").first.hover()
        seen.tab.locator("#preview").wait_for()
    assert not seen.faults, "\n".join(seen.faults)


# Figures to play with: the same numbers as the package's, to 1e-6.

T = np.linspace(-3, 3, 241)
close = partial(np.testing.assert_allclose, rtol=1e-6, atol=1e-6)


def played(tab, name, **sliders):
    """The state and the numbers of a figure after its sliders were moved."""
    for slider, value in sliders.items():
        tab.locator(f"#play-{name} input[name={slider}]").fill(str(value))
    state, numbers = tab.evaluate(
        f"(({{ play }}) => [play.state, play.numbers])(document.getElementById('play-{name}'))")
    return state, {key: np.array(value) for key, value in numbers.items()}


def drag(tab, name, index, dx, dy=0):
    """Move a point of a figure with the mouse, when the page above it has its height."""
    tab.wait_for_function("'whole' in document.documentElement.dataset")
    handle = tab.locator(f"#play-{name} .handle").nth(index)
    handle.scroll_into_view_if_needed()
    box = handle.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    tab.mouse.move(x, y)
    tab.mouse.down()
    tab.mouse.move(x + dx, y + dy, steps=3)
    tab.mouse.up()


def test_play_with_the_space_of_a_kernel(visit):
    """thm-power-function"""
    tab = visit("book/interpolation.html")
    before, _ = played(tab, "space")
    drag(tab, "space", 1, 30, -20)
    tab.locator("#play-space .handle").first.press("ArrowLeft")
    for kernel in (rkhs_lit.Gaussian, rkhs_lit.Laplace):
        tab.locator("#play-space select").select_option(kernel.__name__)
        state, got = played(tab, "space", sigma=0.6, B=4)
        assert state["X"][1] != before["X"][1] and state["y"][1] != before["y"][1]
        assert state["X"][0] == pytest.approx(before["X"][0] - 0.1)
        k, s = kernel(0.6), rkhs_lit.interpolate(kernel(0.6), state["X"], state["y"])
        close(got["alpha"], s.weights)
        close(got["norm"], rkhs_lit.norm(s))
        close(got["s"], s(T))
        away = np.abs(np.subtract.outer(T, state["X"])).min(axis=1) > 1e-3
        close(got["P"][away], rkhs_lit.power_function(k, state["X"], T[away]))
        close(got["rest"], np.sqrt(16 - rkhs_lit.norm(s) ** 2))


def test_play_with_ridge_regression(visit):
    """thm-ridge-fold"""
    tab = visit("book/ridge.html")
    before, _ = played(tab, "ridge")
    tab.locator("#play-ridge .picture").click(position={"x": 200, "y": 40})
    tab.locator("#play-ridge .handle").first.press("Delete")
    drag(tab, "ridge", 3, 0, 30)
    state, got = played(tab, "ridge", lam=-1, sigma=-0.3)
    X, y, lam, k = state["X"], state["y"], state["lam"], rkhs_lit.Gaussian(state["sigma"])
    assert lam == pytest.approx(0.1) and len(X) == len(before["X"]) and X != before["X"]
    f = rkhs_lit.ridge(k, X, y, lam)
    close(got["alpha"], f.weights)
    close(got["f"], f(T))
    close(got["norm"], rkhs_lit.norm(f))
    close(got["df"], rkhs_lit.degrees_of_freedom(k, X, lam))
    close(got["loo"], rkhs_lit.leave_one_out(k, X, y, lam))


def test_play_with_the_witness(visit):
    """thm-mmd-three"""
    tab = visit("book/mmd.html", has_touch=True)
    drag(tab, "witness", 0, 40)
    tab.locator("#play-witness .handle").last.press("ArrowLeft")
    state, got = played(tab, "witness", sigma=0.7)
    k, X, Y = rkhs_lit.Gaussian(0.7), state["X"], state["Y"]
    close(got["biased"], rkhs_lit.mmd2_biased(k, X, Y))
    close(got["unbiased"], rkhs_lit.mmd2_unbiased(k, X, Y))
    close(got["w"], rkhs_lit.witness(k, X, Y)(T))


def test_play_with_the_permutation_test(visit):
    """cor-hsic-level"""
    tab = visit("book/hsic.html")
    for cloud in ("ring", "line", "nothing"):
        tab.locator("#play-shuffle select").select_option(cloud)
        tab.get_by_role("button", name="Shuffle once").click()
        tab.get_by_role("button", name="Shuffle 100 times").press("Enter")
        state, got = played(tab, "shuffle", sigma=0.5)
        k, Y = rkhs_lit.Gaussian(0.5), np.array(state["Y"])
        K, L = k(state["X"]), k(Y)
        assert len(state["orders"]) == len(got["null"]) == 101
        assert all(sorted(pi) == list(range(len(Y))) for pi in state["orders"])
        close(got["T"], rkhs_lit.hsic_biased(K, L), atol=1e-12)
        null = [rkhs_lit.hsic_biased(K, L[np.ix_(pi, pi)]) for pi in state["orders"]]
        close(got["null"], null, atol=1e-12)
        close(got["p"], (1 + sum(value >= got["T"] for value in null)) / 102)


def test_play_with_one_step_of_the_filter(visit):
    """thm-filter-recursion"""
    tab = visit("book/filtering.html")
    state, got = played(tab, "filter", y0=0.3, y1=-0.5)
    k = rkhs_lit.Gaussian(state["sigma"])
    states, observations = np.array(state["states"]), np.array(state["observations"])
    learnt = rkhs_lit.KernelBayesFilter(
        k, k, states, observations, state["lam"], state["eps"], tol=1e-15)
    first = learnt.step(state["y0"])
    angles = np.linspace(-np.pi, np.pi, 181)
    wheel = np.column_stack([np.cos(angles), np.sin(angles)])
    close(got["now"], first(wheel))
    close(got["predicted"], learnt.predict(first)(wheel))
    close(got["then"], learnt.step(state["y1"], first)(wheel))


@pytest.mark.parametrize("name, page", [
    ("space", "interpolation"), ("ridge", "ridge"), ("witness", "mmd"), ("shuffle", "hsic"),
    ("filter", "filtering")][slice(1 if SOME else None)])
def test_without_scripts_there_is_a_still_picture(visit, name, page):
    tab = visit(f"book/{page}.html", java_script_enabled=False)
    figure = tab.locator(f"#play-{name}")
    assert figure.locator("svg").is_visible() and figure.locator(".result").inner_text()
    assert not figure.locator("button, input").count()


# Budgets, as ratios to the same page without its contents and without its formulas.


def load(browser, path):
    """The processor's seconds until the page is drawn, and its bytes."""
    with Visit(browser, path) as seen:
        seen.tab.evaluate("""() => new Promise((done) =>
            requestAnimationFrame(() => requestAnimationFrame(done)))""")
        asked = seen.context.new_cdp_session(seen.tab)
        asked.send("Performance.enable")
        metrics = asked.send("Performance.getMetrics")["metrics"]
    seconds = next(one["value"] for one in metrics if one["name"] == "ProcessTime")
    return seconds, path.stat().st_size + seen.bytes


@pytest.mark.skipif(SOME, reason="a matter of time: make browser")
@pytest.mark.parametrize("name", ["hsic", "bochner", "duality"])
def test_a_page_costs_little_more_than_an_empty_one(browser, name):
    page = HTML / "book" / f"{name}.html"
    text, costs = page.read_text("utf-8"), {}
    for kind, pattern in {"full": "(?!)", "plain": "<mjx-container.*?</mjx-container>",
                          "empty": "(?<=<article).*(?=</article>)"}.items():
        copy = page.with_name(f"_{kind}_{name}.html")
        copy.write_text(re.sub(pattern, ">", text, flags=re.S), "utf-8")
        try:
            costs[kind] = np.min([load(browser, copy) for _ in range(3)], axis=0)
        finally:
            copy.unlink()
    seconds, size = costs["full"] / costs["empty"]
    assert seconds < SLOWER and size < LARGER, f"{seconds:.1f} and {size:.1f} times an empty page"
    seconds, _ = costs["full"] / costs["plain"]
    assert seconds < 4, f"{seconds:.1f} times the page without formulas"
