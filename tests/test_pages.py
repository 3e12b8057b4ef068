"""What the rendered pages add: typeset formulas, threads, previews, play."""

import io

import literate
import play
import previews
import pytest
import threads
import typeset
import yaml
from docutils import nodes
from matplotlib.figure import Figure
from tangle import ROOT, read_notebook

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
    assert r"\norm{f}^2 &lt; \inner{f}{g}" in html and "<math" in html
    assert 'display="true"' in typesetter.formula("x", True) and 'display="true"' not in html


def test_a_formula_that_is_none_is_an_error(typesetter):
    with pytest.raises(ValueError, match="cannot typeset"):
        typesetter.formula(r"\left( x", False)


def test_the_style_sheet_has_the_fonts_and_asks_nobody_for_them(typesetter):
    css = typesetter.style()
    assert css.count("data:font/woff;base64,") >= 8 and "FONTS" not in css
    assert "http" not in css


def test_threads_lead_from_a_statement_to_code_tests_and_proofs():
    assert ("rkhs_lit.hsic", "hsic_unbiased") in threads.code()["thm-hsic-unbiased"]
    name = "test_unbiased_hsic_equals_the_sum_over_distinct_tuples"
    assert ("test_hsic", name) in threads.tests()["thm-hsic-unbiased"]
    assert "lem-expansion-definite" in threads.uses()["lem-semi-cauchy-schwarz"]


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
