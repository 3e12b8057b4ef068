"""What the pages add to the chapters: formulas, threads, previews, play, search, maps.

The second half reads the built pages, where there are any that are up to date.
"""

import io
import json
import re
import subprocess
from html import unescape
from types import SimpleNamespace
from urllib.parse import unquote

import pytest
import yaml
from docutils import nodes
from matplotlib.figure import Figure
from rkhs_lit import BSpline
from tangle import ROOT, chapters, pages, read_notebook

pytest.importorskip("sphinx", reason="the pages are made by Sphinx")

import finding
import lab
import literate
import maps
import play
import previews
import reference
import threads
import typeset
from docutils import nodes

MACROS = yaml.safe_load((ROOT / "_config.yml").read_text("utf-8"))["sphinx"]["config"][
    "mathjax3_config"
]["tex"]["macros"]


@pytest.fixture(scope="module")
def typesetter():
    made = typeset.Typesetter(MACROS)
    yield made
    made.close()


def test_a_formula_is_drawn_and_keeps_its_tex(typesetter):
    html = typesetter.formula(r"\norm{f}^2 < \inner{f}{g}", False)
    assert html.startswith("<mjx-container data-tex=")
    assert r"\norm{f}^2 &lt; \inner{f}{g}" in html and 'aria-label="‖f‖² &lt; ⟨f, g⟩"' in html
    assert typesetter.mathml[r"$\norm{f}^2 < \inner{f}{g}"].startswith("<math")
    assert 'display="true"' in typesetter.formula("x", True) and 'display="true"' not in html


def test_a_formula_that_is_none_is_an_error(typesetter):
    with pytest.raises(ValueError, match="cannot typeset"):
        typesetter.formula(r"\left( x", False)


def test_the_style_sheet_has_the_fonts_and_asks_nobody_for_them(typesetter):
    css = typesetter.style()
    assert css.count("data:font/woff;base64,") >= 8 and "FONTS" not in css
    assert "http" not in css
    signs = typeset.SIGN.findall(typesetter.formula(r"\sqrt{x}", False))
    less = typesetter.style(signs)
    assert len(less) < len(css) / 2 and all(f".{name}" in less for name, _ in signs)


def test_mathml_stands_once_at_the_end_of_a_page(typesetter):
    text = "".join(typesetter.formula(tex, display) for tex, display in [("a<b", True), ("c", False), ("c", False)])
    kept = typeset.store(text, typesetter.mathml)
    assert typeset.stored(text + kept) == {key: typesetter.mathml[key] for key in ("$$a<b", "$c")}
    assert kept.count("<") == 2 and not typeset.store("no formula", typesetter.mathml)


def test_threads_lead_from_a_statement_to_code_tests_and_proofs():
    assert ("rkhs_lit.hsic", "hsic_unbiased") in threads.code()["thm-hsic-unbiased"]
    name = "test_unbiased_hsic_equals_the_sum_over_distinct_tuples"
    assert ("test_hsic", name) in threads.tests()["thm-hsic-unbiased"]
    assert "lem-expansion-definite" in threads.uses()["lem-semi-cauchy-schwarz"]
    assert all(name.startswith("test_") for found in threads.tests().values() for _, name in found)


def test_a_preview_ends_where_its_statement_does():
    inner = '<div class="proof lemma" id="lem-a"><div>1</div><p>2</p></div>'
    text = f"<div>{inner}<div>3</div></div>"
    (found,) = previews.OPENING.finditer(text)
    assert found[1] == "lem-a" and previews.element(text, found.start()) == inner
    assert previews.DROPPED.sub("", inner).startswith('<div class="proof lemma">')
    assert not [*previews.OPENING.finditer('<div class="proof argument" id="proof-3">')]


def test_a_full_stop_stays_with_its_formula():
    line = nodes.paragraph("", "", nodes.Text("for "), nodes.math("", "x"), nodes.Text("). And "),
                           nodes.math("", "y"), nodes.Text(" too"))
    literate.keep_stops(None, line)
    together, rest, other = line[1:4]
    assert together["classes"] == ["unbroken"] and together.astext() == "x)."
    assert rest == " And " and isinstance(other, nodes.math)
    line = nodes.paragraph("", "", nodes.emphasis("", "a"), nodes.Text(", "), nodes.math("", "x"),
                           nodes.Text(", "), nodes.math("", "y"))
    literate.keep_stops(None, line)
    assert line.astext() == "a, x, y"


def test_a_bracket_stays_with_the_formula_after_it():
    line = nodes.paragraph("", "", nodes.math("", "x"), nodes.Text(" (“"), nodes.math("", "y"),
                           nodes.Text("”, "), nodes.math("", "z"))
    literate.keep_stops(None, line)
    assert [one.astext() for one in line] == ["x", " ", "(“y”,", " ", "z"]
    assert line[2]["classes"] == ["unbroken"] and isinstance(line[2][1], nodes.math)


def test_the_empty_line_that_ends_an_example_is_not_seen():
    block = nodes.literal_block(">>> 1\n1\n", ">>> 1\n1\n")
    literate.trim_code(None, nodes.container("", block))
    assert block.astext() == block.rawsource == ">>> 1\n1"


def test_a_long_name_may_be_broken_where_a_word_ends():
    code = '<a href="a_b.html#long_name_of_a_test"><code><span class="pre">{}</span></code></a>'
    alone = '<code><span class="pre">long_name_of_a_test</span></code>'
    context = {"body": code.format("long_name_of_a_test") + code.format("short_name") + alone}
    literate.break_names(None, "", "", context, None)
    assert context["body"] == (
        code.format("long_<wbr>name_<wbr>of_<wbr>a_<wbr>test") + code.format("short_name") + alone)
    context = {"body": code.format("ConditionalEmbedding") + "<h1>rkhs_lit.low_rank<a></a></h1>",
               "next": {"title": "rkhs_lit.low_rank"}, "prev": {"title": "A page"}}
    literate.break_names(None, "", "", context, None)
    title = "rkhs_<wbr>lit.<wbr>low_<wbr>rank"
    assert context["body"] == code.format("Conditional<wbr>Embedding") + f"<h1>{title}<a></a></h1>"
    assert (context["next"]["title"], context["prev"]["title"]) == (title, "A page")


def test_of_a_docstring_the_first_paragraph_shows():
    lines = ['<span class="sd">"""First</span>', '<span class="sd">    words.</span>', "",
             '<span class="sd">    More.</span>', '<span class="sd">    """</span>']
    code = '<div class="cell tag_export"><pre>def f(): {}\n</pre></div>'
    context = {"body": code.format("\n".join(lines))}
    literate.fold_docstrings(None, "", "", context, None)
    shown, mark, rest = re.split(r"(<label.*</label>)", context["body"])
    assert "words." in shown and "More." not in shown and "checkbox" in mark
    assert rest.count("<span") == rest.count("</span>") and "More." in rest
    assert re.sub("<.*?>", "", shown + rest) == re.sub("<.*?>", "", code.format("\n".join(lines)))
    short = {"body": code.format('<span class="sd">"""One line."""</span>')}
    literate.fold_docstrings(None, "", "", same := dict(short), None)
    assert same == short


@pytest.mark.parametrize("dpi", [110, 220])
def test_a_picture_knows_its_size_however_sharp_it_is(dpi):
    file, figure = io.BytesIO(), Figure(figsize=(6.5, 1))
    figure.savefig(file, dpi=dpi)
    assert literate.inches(file.getvalue()) == pytest.approx(6.5, abs=0.01)


def test_figures_to_play_with_have_still_pictures():
    places = [found for path in (ROOT / "book").glob("*.ipynb") for cell in read_notebook(path).cells
              for found in play.PLACE.findall(cell.source)]
    assert sorted(places) == sorted(play.stills())
    for name, html in play.stills().items():
        assert html.startswith(f'<figure class="play" id="play-{name}">')
        assert "<svg" in html and "NaN" not in html and "undefined" not in html


def test_names_are_those_that_a_page_imports():
    names = reference.Names("hsic")
    assert names.used("from rkhs_lit import norm as n\nimport rkhs_lit.conventions as c") == set()
    assert names.used("n(f) + hsic(K, L) + c.positive(x)") == {"norm", "hsic", "positive"}
    assert names.used("np.linalg.norm(x) + gram_solve") == set()
    assert names.used("%timeit n(f)") == set()


def test_a_summary_has_references_and_names():
    found = list(reference.summary("The `a` of\n(:prf:ref:`thm-b`).\n\nMore.", "book/api"))
    assert [one.astext() for one in found] == ["The ", "a", " of (", "thm-b", ")."]
    assert found[3]["reftarget"] == "thm-b"
    found = list(reference.summary("F F' is *not* 2 * k * l.", "book/api"))
    assert [one.astext() for one in found] == ["F F′ is ", "not", " 2 * k * l."]
    assert isinstance(found[1], nodes.emphasis)


@pytest.mark.parametrize("text", [
    "FF′ = A′y, x′Px, k(x, x′), b(x)′ G, lower′z", "the caller's, Lanczos' method, nλ's, x's and don't"])
def test_a_prime_is_no_apostrophe(text):
    assert reference.primed(text.replace("′", "'")) == text


def test_what_is_its_own_is_no_link_in_a_docstring():
    lines = ["`width`, `norm` and `other`: k(x, x')", "", ">>> f(a')"]
    reference.link_names(None, "class", "", BSpline, None, lines)
    assert lines == ["``width``, :py:obj:`~rkhs_lit.moore_aronszajn.norm` and ``other``: k(x, x′)",
                     "", ">>> f(a')"]


def test_pages_that_begin_alike_keep_their_whole_title():
    titles = "COCO: two functions", "Errata of the sources", "Errata: spaces", "Errata: learning"
    env = SimpleNamespace(titles={t: nodes.title("", t) for t in titles})
    found = [reference.short_title(env, page).astext() for page in titles]
    assert found == ["COCO", *titles[1:]]


def test_tests_are_blocks_with_their_name():
    source = "import a\n\n\n@given\ndef test_b():\n    pass\n"
    html = reference.marked(source, f"<div><pre>{source}</pre></div>")
    assert '<div class="viewcode-block" id="test_b">@given\ndef test_b():\n    pass</div>' in html


@pytest.mark.parametrize(("tex", "plain"), [
    (r"\norm{f}^2 \le 2", "‖f‖² ≤ 2"),
    (r"\sum_{i=1}^n \alpha_i k(x_i, \cdot)", "∑ᵢ₌₁ⁿαᵢk(xᵢ, ⋅ )"),
    (r"\mathring{K}", "K\u030a"),
    (r"\begin{aligned} a &= b, \\ c &= d \end{aligned}", "a = b, c = d"),
    (r"\frac{1}{n(n-1)} \hat\mu_X \in \R^d", "1/(n(n − 1))μ̂_X ∈ ℝ^d"),
])
def test_formulas_of_excerpts_are_plain(typesetter, tex, plain):
    html = typesetter.formula(tex, False)
    assert unescape(finding.FORMULA.search(html)[1]) == plain


PAGE = """<article class="bd-article"><section id="a"><h1>One<a class="headerlink">#</a></h1>
<p>Text</p><div class="proof lemma admonition" id="lem-b"><p class="admonition-title">Lemma 1 (B)</p>
<section class="lemma-content" id="proof-content"><p>Body</p></section><p class="threads">no</p></div>
<div class="proof argument" id="proof-1"><p class="admonition-title">Proof</p><p>Since</p></div>
<div class="cell_input">code</div><dl><dt id="term-c">c</dt><dd><p>Term</p></dd></dl></section></article>"""


def test_the_index_has_sections_statements_and_terms():
    assert list(finding.entries(PAGE)) == [
        ("a", "One", "Text Proof Since", 1),
        ("lem-b", "Lemma 1 (B)", "Body", 2),
        ("term-c", "c", "Term", 3),
    ]


def search(index, query):
    """Titles and groups that search.js finds, in its order."""
    program = """
    const {find} = require(process.argv[1]);
    let text = ""; process.stdin.on("data", (part) => text += part).on("end", () => {
      const [index, query] = JSON.parse(text);
      console.log(JSON.stringify(find(query, index).slice(0, 50)));
    });"""
    run = subprocess.run(
        [typeset.node(), "-e", program, ROOT / "book/_static/search.js"],
        input=json.dumps([index, query]), capture_output=True, text=True, check=True)
    return [(one["group"], one["title"]) for one in json.loads(run.stdout)]


def test_search_wants_all_words_and_puts_chapters_first():
    sheets = [[3, "t.html", "tests"], [2, "a.html", "API"], [0, "c.html", "Chapter"]]
    entries = [
        [0, "x", "test_unbiased", "hsic", 0], [1, "y", "hsic_unbiased", "of HSIC", 3],
        [2, "z", "Theorem 3.7 (HSIC, unbiased)", "words", 2], [2, "u", "Theorem 3.71", "hsic", 2],
        [2, "v", "Lemma", "unbiased, and by Theorem 3.7 hsic", 2],
    ]
    everywhere = search([sheets, entries], "unbiased HSIC")
    assert [group for group, _ in everywhere] == [0, 0, 2, 3]
    assert everywhere[0][1] == "Theorem 3.7 (HSIC, unbiased)"
    assert [title for _, title in search([sheets, entries], "theorem 3.7")] == [
        "Theorem 3.7 (HSIC, unbiased)", "Lemma"]
    assert search([sheets, entries], "hsic_unbiased")[0] == (2, "hsic_unbiased")
    assert search([sheets, entries], " . ") == []


def test_the_map_follows_the_imports():
    assert maps.imports("hsic") >= {"conventions", "two_samples", "low_rank"}
    assert maps.direct("hsic") < maps.imports("hsic")
    assert all(maps.parts()[a] <= maps.parts()[b] for b in chapters() for a in maps.imports(b))


def test_launch_buttons_need_an_address(monkeypatch):
    monkeypatch.delenv("BOOK_REPOSITORY", raising=False)
    config = SimpleNamespace(html_theme_options={"repository_url": ""})
    literate.add_launch_buttons(None, config)
    assert config.html_theme_options == {"repository_url": ""}
    monkeypatch.setenv("BOOK_REPOSITORY", "https://example.org/rkhs")
    literate.add_launch_buttons(None, config)
    assert config.html_theme_options["repository_url"] == "https://example.org/rkhs"
    assert config.html_theme_options["launch_buttons"]["binderhub_url"]


# The built pages


@pytest.fixture(scope="module")
def site():
    """Address -> text of the built pages."""
    done = ROOT / "_build/complete"
    sources = [path for folder in ("book", "tools", "rkhs_lit", "tests")
               for path in (ROOT / folder).glob("*.*") if path.is_file()]
    if not done.exists() or done.stat().st_mtime < max(p.stat().st_mtime for p in sources):
        pytest.skip("the built pages are not up to date: make book")
    html = ROOT / "_build/html"
    return {path.relative_to(html).as_posix(): path.read_text("utf-8")
            for folder in ("book", "tests", "_modules") for path in html.glob(f"{folder}/**/*.html")
            } | {"search.html": (html / "search.html").read_text("utf-8")}


def test_every_link_between_pages_leads_somewhere(site):
    ids = {name: set(re.findall(r'\bid="([^"]*)"', text)) for name, text in site.items()}
    html, broken = ROOT / "_build/html", set()
    for name, text in site.items():
        here = (html / name).parent
        for target in set(re.findall(r'<(?:a|link)\b[^>]*? href="([^"]*)"', text)):
            path, _, anchor = unescape(target).partition("#")
            if re.match(r"\w+:", target) or path.startswith("?"):
                continue
            path = (here / unquote(path.partition("?")[0])).resolve() if path else html / name
            place = path.relative_to(html.resolve()).as_posix() if path.exists() else None
            if place is None or (anchor and place in ids and unquote(anchor) not in ids[place]):
                broken.add(f"{name}: {target}")
    assert not broken, "\n".join(sorted(broken)[:20])


def test_references_in_code_show_a_number(site):
    for name, text in site.items():
        assert ":prf:ref:" not in text or name.startswith("tests/"), name
    assert "<!-- statement" not in "".join(site[f"book/api/{name}.html"] for name in chapters())


@pytest.mark.parametrize("chapter", chapters())
def test_the_api_has_a_page_for_each_chapter(site, chapter):
    text = site[f"book/api/{chapter}.html"]
    for name in reference.modules()[chapter]:
        assert f'id="rkhs_lit.{chapter}.{name}"' in text
        assert f'href="../{chapter}.html#code-{name}"' in text
        assert f'api/{chapter}.html#rkhs_lit.{chapter}.{name}"' in site["book/api.html"]
    assert 'class="statement"' in text


def test_statements_lead_to_their_tests(site):
    name = "test_unbiased_hsic_equals_the_sum_over_distinct_tuples"
    assert f'href="../tests/test_hsic.html#{name}"' in site["book/hsic.html"]
    assert f'id="{name}"' in site["tests/test_hsic.html"]
    assert "book/hsic.html#thm-hsic-unbiased" in site["tests/test_hsic.html"]


def test_a_fold_has_a_caption_where_there_is_a_public_name_to_show(site):
    folds = [cell for cell in site["book/riesz.html"].split('<div class="cell ')[1:]
             if cell.startswith("tag_export tag_hide-input")]
    captions = ['<p class="export">' in cell for cell in folds]
    assert captions == ['id="code-' in cell for cell in folds] and {*captions} == {True, False}


def test_the_search_finds_statements_functions_and_words(site):
    text = (ROOT / "_build/html/_static/search-index.js").read_text("utf-8")
    index = json.loads(text.removeprefix("var SEARCH = ").removesuffix(";\n"))
    unbiased, representer = (lab.labels()[label][0] for label in ("thm-hsic-unbiased", "thm-representer"))
    assert search(index, unbiased)[0][1].startswith(f"{unbiased} ")
    assert search(index, "unbiased HSIC")[0][1] == f"{unbiased} (Unbiased HSIC in quadratic time)"
    assert ". The representer theorem" in search(index, "representer")[0][1]
    assert (0, f"{representer} (Representer theorem)") in search(index, "representer")[:5]
    assert search(index, "hsic_unbiased")[0] == (2, "hsic_unbiased")
    assert not [one for one in index[1] if not one[2].strip() or "\\" in one[2]]
    assert "_static/search-index.js" in site["search.html"]
    assert "searchtools" not in site["search.html"]
    assert site["search.html"].count("<script defer src=\"_static/search") == 2


def test_the_maps_lead_to_every_chapter_and_every_statement(site):
    home = re.search(r"<article.*?</article>", site["book/intro.html"], re.S)[0]
    drawing = home[home.index("<svg") : home.index("</svg>")]
    assert "<p" not in home[: home.index("<svg")], "the map stands above everything else"
    assert set(re.findall(r'href="(\w+)\.html"', drawing)) == set(chapters())
    assert "HSIC" in drawing and "one number for dependence" in drawing
    labels = set(re.findall(r'data-name="([^"]*)"', site["book/map.html"]))
    stated = {found for name in chapters() for found in re.findall(
        r'<div class="proof \w+ admonition" id="([^"]*)"', site[f"book/{name}.html"])}
    assert labels == {label for label in stated if not label.startswith("proof-")}
    ends = re.findall(r'data-ends="(\S+) (\S+)"', site["book/map.html"])
    assert ("lem-semi-cauchy-schwarz", "lem-expansion-definite") in ends


def test_the_concordance_has_a_heading_for_each_chapter(site):
    found = re.findall(r'<section id="from-(\w+)">\s*<h2>', site["book/concordance.html"])
    rows = (ROOT / "book/concordance.csv").read_text("utf-8")
    assert found == [name for name in chapters() if f",{name}," in rows] and len(found) > 25


def test_the_bibliography_has_neither_numbers_nor_tex(site):
    text = re.search(r"<article.*?</article>", site["book/bibliography.html"], re.S)[0]
    assert "Mallows" in text and not re.search(r"\$|>\[?1\]?<", text)


def test_a_proof_begins_with_its_name(site):
    text = site["book/coco.html"]
    assert "<p><em>Proof.</em> " in text and not re.search(r"<p>Proof\.", text)


def test_the_theme_does_not_lay_the_page_out_for_each_box_of_code(site):
    script = (ROOT / "_build/html/_static/scripts/pydata-sphinx-theme.js").read_text("utf-8")
    assert "window.scrollable?.()" in script and "tabIndex" not in script


def test_every_page_has_the_icon(site):
    assert all("favicon.svg" in site[f"book/{name}.html"] for name in pages())


def test_jupyterlab_gets_the_numbers_of_the_pages(site):
    wrong = []
    for label, (number, notebook) in lab.labels().items():
        text = site[f"book/{notebook.removesuffix('.ipynb')}.html"]
        place = f'id="{"equation-" if label.startswith("eq-") else ""}{label}"'
        shown = text[text.index(place) : text.index(place) + 20_000]
        shown = re.sub(r"<[^>]*>", "", re.sub(r"<mjx.*?</mjx-container>", "", shown, flags=re.S))
        if not label.startswith("sec-") and number not in shown[:3000]:
            wrong.append(f"{label}: {number}")
    assert not wrong and len(lab.labels()) > 900


# What is published


def test_the_project_says_who_may_do_what():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert cited["license"] == ["BSD-3-Clause", "CC-BY-4.0"] and "version" not in cited
    for name in ("README.md", "CONTRIBUTING.md"):
        text = (ROOT / name).read_text("utf-8")
        assert "LICENSE-text" in text and "BSD" in text and "LICENSE" in text
    home = (ROOT / "book/intro.md").read_text("utf-8")
    assert "BSD" in home and "creativecommons.org/licenses/by/4.0" in home


def test_the_workflow_tests_before_it_publishes():
    jobs = yaml.safe_load((ROOT / ".github/workflows/book.yml").read_text("utf-8"))["jobs"]
    assert {"run": "make test"} in jobs["test"]["steps"]
    assert jobs["publish"]["needs"] == "test" and "main" in jobs["publish"]["if"]


def test_the_makefile_works_with_the_make_of_macos():
    """Make 3.81 knows neither one shell for a recipe nor flags for it."""
    text = (ROOT / "Makefile").read_text("utf-8")
    assert not re.search(r"^\.(ONESHELL|SHELLFLAGS)", text, re.M)
    assert "--output-sync" not in text.replace("$(if $(filter output-sync,$(.FEATURES)),--output-sync=target)", "")


def test_the_newest_change_is_that_of_the_version():
    import rkhs_lit

    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.M)[1]
    assert newest == rkhs_lit.__version__
