"""The mutation check: what it spares, how it draws, and its list of harmless faults."""

import csv
import importlib
import sys

import mutate
from tangle import ROOT

SOURCE = """
@dataclass(frozen=True)
class A:
    n: int = 3

def f(x: "a" | 1, y=2) -> 1 + 1:
    if x < 0:
        raise ValueError(f"{x - 1}" + "0")
    return x - y
"""


def test_annotations_decorators_and_messages_are_spared():
    """x - y is broken, the words about it are not."""
    lines, spared = SOURCE.splitlines(), mutate.spared(SOURCE)

    def is_spared(text):
        line = next(i for i, line in enumerate(lines, start=1) if text in line)
        place = line, lines[line - 1].index(text)
        return any(a <= place < b for a, b in spared)

    assert all(map(is_spared, ("True", "int", "| 1", "1 + 1", "x - 1", '"0"')))
    assert not any(map(is_spared, ("3", "2", "< 0", "- y")))


def test_every_place_is_drawn_once_before_any_is_drawn_again():
    """A seed gives one order, another seed another."""
    faults = [mutate.Fault("m", line, (line, 0), f"core/{i}", i)
              for line in range(20) for i in range(3)]
    order = mutate.drawn(faults, 0)
    assert sorted(order) == sorted(faults)
    for part in (order[:20], order[20:40], order[40:]):
        assert {fault.line for fault in part} == set(range(20))
    assert order == mutate.drawn(faults[::-1], 0) != mutate.drawn(faults, 1)


def test_a_statement_is_its_lines_without_its_body():
    """A fault in any line of a long condition is met by who comes to its first."""
    lines = mutate.statements("""\
def f(x,
      y):
    if (x
            < y):
        return x
    return (x,
            y)
""")
    assert [lines[i] for i in range(1, 8)] == [
        (1, 2), (1, 2), (3, 4), (3, 4), (5, 5), (6, 7), (6, 7)]


def test_the_tests_that_reach_a_line_are_run_the_quickest_first():
    """A line run on import is the business of all tests, one never run of none."""
    spent = {"slow": 3.0, "quick": 1.0, "other": 2.0}
    reached = {"1": [""], "4": ["slow"], "5": ["slow", "quick"]}
    spans = {3: (3, 5), 4: (3, 5), 5: (3, 5), 7: (7, 7)}
    assert mutate.reaching(1, spans, spent, reached) == ["quick", "other", "slow"]
    assert mutate.reaching(3, spans, spent, reached) == ["quick", "slow"]
    assert mutate.reaching(7, spans, spent, reached) == []


def test_a_module_can_be_replaced_in_memory(monkeypatch):
    """The broken module is imported, and the file stays as it is."""
    path = ROOT / "rkhs_lit" / "conventions.py"
    text = path.read_text("utf-8")
    broken = text.replace("low <= x <= high", "low <= x < high")
    assert mutate.difference(text, broken) == (
        "if not low <= x <= high:", "if not low <= x < high:")
    finder = mutate.Broken("conventions", broken)
    monkeypatch.setattr(sys, "meta_path", [finder, *sys.meta_path])
    spec = finder.find_spec("rkhs_lit.conventions")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.__file__ == str(path) and path.read_text("utf-8") == text
    assert module.whole(3, "n") == 3 and finder.find_spec("rkhs_lit.kernels") is None


def test_a_star_that_is_no_product_is_no_fault():
    """The operators are those of arithmetic; a marker or an argument that is unpacked is none."""
    source = "def f(x, *, y):\n    return g(*x) * y\n"
    product = mutate.arithmetic(source)
    assert mutate.arithmetic(source.replace("*,", "/,")) == product
    assert mutate.arithmetic(source.replace("g(*x)", "g(-x)")) == product
    assert mutate.arithmetic(source.replace(") * y", ") - y")) != product
    assert mutate.arithmetic("x += 1\n") != mutate.arithmetic("x -= 1\n")


def test_a_row_may_allow_any_number_or_any_fault_in_a_line():
    """A number may have another sign, but no operator may change with it."""
    known = {("m", "n = max(4, x - 1e-3) * 2", "any number"), ("m", "a < b", "a <= b")}

    def harmless(now):
        return mutate.harmless("m", "n = max(4, x - 1e-3) * 2", now, known)

    assert harmless("n = max( 5, x - 1e-3) * 2") and harmless("n = max(4, x - -0.999) * 2")
    assert not harmless("n = max(4, x - 1e-3) + 2") and not harmless("n = max(y, x - 1e-3) * 2")
    assert mutate.harmless("m", "a < b", "a <= b", known)
    assert not mutate.harmless("m", "a < b", "a > b", known)
    assert mutate.harmless("m", "a < b", "a > b", {("m", "a < b", "any fault")})


def test_harmless_faults_have_a_reason_and_a_line():
    """The list of what no test can notice does not go stale."""
    with open(mutate.EQUIVALENT, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert mutate.equivalents() and len(mutate.equivalents()) == len(rows)
    for row in rows:
        text = (ROOT / "rkhs_lit" / f"{row['module']}.py").read_text("utf-8")
        text = " ".join(text.split())
        assert " ".join(row["before"].split()) in text, f"no line {row['before']!r}"
        assert row["before"] != row["after"] and len(row["why"]) > 10
