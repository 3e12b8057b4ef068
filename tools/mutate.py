"""Break every exported function in many small ways: do its tests notice?

    python tools/mutate.py [MODULE ...] [--sample 40] [--seed 0] [--jobs 1]

A module is broken in one place, by an operator of Cosmic Ray (a sign, a number,
a comparison, a flag, a loop that never runs), in memory only: no file changes.
Then those tests of ``tests/test_<module>.py``, and of the table of bad inputs, run that
reach the place, the quickest first, until one fails, in a process of its own that is
forked from one that has loaded NumPy and SciPy. A fault is noticed if a test fails or
needs far more time than before; where no test comes, nothing is run. What no test can
notice is listed in ``tests/equivalent.csv``, with a reason, and not tried.

Places are drawn at random, each once before any is drawn again, so that a small
sample sees the whole module. Text, annotations, decorators and error messages
stay as they are.
"""

import argparse
import ast
import csv
import importlib.util
import json
import os
import random
import re
import signal
import sys
import tempfile
import time
import traceback
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

ROOT = Path(__file__).resolve().parent.parent
EQUIVALENT = ROOT / "tests" / "equivalent.csv"
# Only what a person might write: arithmetic for arithmetic, an order for an order.
OPERATORS = re.compile(
    r"core/(ReplaceBinaryOperator_(Add|Sub|Mul|Div|Pow|FloorDiv|Mod)_(Add|Sub|Mul|Div|Pow)"
    r"|ReplaceBinaryOperator_BitAnd_BitOr|ReplaceBinaryOperator_BitOr_BitAnd"
    r"|ReplaceComparisonOperator_(Eq|NotEq|Lt|LtE|Gt|GtE)_(Eq|NotEq|Lt|LtE|Gt|GtE)"
    r"|ReplaceComparisonOperator_(Is_IsNot|IsNot_Is)|ReplaceUnaryOperator_Delete_\w+"
    r"|AddNot|ReplaceTrueWithFalse|ReplaceFalseWithTrue|ReplaceAndWithOr|ReplaceOrWithAnd"
    r"|ReplaceBreakWithContinue|ReplaceContinueWithBreak|NumberReplacer|ZeroIterationForLoop)")


class Fault(NamedTuple):
    module: str
    line: int
    place: tuple                   # where it begins
    operator: str
    occurrence: int                # of the operator in the module


def spared(source):
    """[(start, end)] of what stays as it is, in lines and columns."""
    found = []
    for node in ast.walk(ast.parse(source)):
        parts = list(getattr(node, "decorator_list", []))
        parts += [getattr(node, "annotation", None), getattr(node, "returns", None)]
        if isinstance(node, (ast.JoinedStr, ast.Raise)):
            parts.append(node)
        found += [((p.lineno, p.col_offset), (p.end_lineno, p.end_col_offset))
                  for p in parts if p is not None]
    return found


def faults(module, source):
    """All faults of a module."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.plugins import get_operator, operator_names

    nodes, quiet, found = list(ast_nodes(get_ast(source))), spared(source), []
    for name in filter(OPERATORS.fullmatch, operator_names()):
        operator = get_operator(name)()
        places = [p for node in nodes for p in operator.mutation_positions(node)]
        found += [Fault(module, start[0], start, name, i)
                  for i, (start, _) in enumerate(places)
                  if not any(a <= start < b for a, b in quiet)]
    return found


def broken(source, fault):
    """The source with the fault; None if it is not Python any more, or has none."""
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator

    text = mutate_code(source, get_operator(fault.operator)(), fault.occurrence)
    try:
        # A star among parameters or arguments is no product.
        marker = "BinaryOp" in fault.operator and arithmetic(source) == arithmetic(text)
    except SyntaxError:
        return None
    return None if marker else text


def arithmetic(source):
    """The binary operators, in their order."""
    return [type(node.op) for node in ast.walk(ast.parse(source))
            if isinstance(node, (ast.BinOp, ast.AugAssign))]


def drawn(all_faults, seed):
    """The faults in a random order in which every place comes first once."""
    rng, at = random.Random(seed), defaultdict(list)
    for fault in sorted(all_faults):
        at[fault.place].append(fault)
    for group in at.values():
        rng.shuffle(group)
    rounds = []
    for i in range(max(map(len, at.values()), default=0)):
        now = [group[i] for group in at.values() if len(group) > i]
        rng.shuffle(now)
        rounds += now
    return rounds


def difference(source, text):
    """The lines before and after, in one line each."""
    before, after = source.splitlines(), text.splitlines()
    pairs = [(a.strip(), b.strip()) for a, b in zip(before, after) if a != b]
    return " ".join(a for a, _ in pairs), " ".join(b for _, b in pairs)


class Broken:
    """Imports a module from other source text."""

    def __init__(self, module, text):
        self.name, self.text = f"rkhs_lit.{module}", text
        self.path = str(ROOT / "rkhs_lit" / f"{module}.py")

    def find_spec(self, name, path=None, target=None):
        if name == self.name:
            return importlib.util.spec_from_loader(name, self, origin=self.path)

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        module.__file__ = self.path
        exec(compile(self.text, self.path, "exec"), vars(module))


def statements(source):
    """{line: (first, last)}, the lines of the statement there, without its body."""
    found = {}
    for node in ast.walk(ast.parse(source)):           # what is inside comes later
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            last = max(node.lineno, body[0].lineno - 1) if body else node.end_lineno
            found |= dict.fromkeys(range(node.lineno, last + 1), (node.lineno, last))
    return found


class Watch:
    """Notes how long each test takes and the lines of the module that it runs."""

    def __init__(self, module, path):
        import coverage

        self.path, self.spent = path, {}
        self.file = str(ROOT / "rkhs_lit" / f"{module}.py")
        self.lines = coverage.Coverage(data_file=None, include=[self.file])
        self.lines.start()

    def pytest_runtest_logstart(self, nodeid):
        self.now = nodeid
        self.lines.switch_context(nodeid)

    def pytest_runtest_logfinish(self):
        self.lines.switch_context("")

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef):
        if fixturedef.scope != "function":             # for other tests as well
            self.lines.switch_context("")
        result = yield
        self.lines.switch_context(self.now)
        return result

    def pytest_runtest_logreport(self, report):
        spent = self.spent.get(report.nodeid, 0.0)
        self.spent[report.nodeid] = spent + report.duration

    def pytest_sessionfinish(self):
        self.lines.stop()
        reached = self.lines.get_data().contexts_by_lineno(self.file)
        self.path.write_text(json.dumps([self.spent, reached]), encoding="utf-8")


class Only:
    """Runs the tests that are named, in this order."""

    def __init__(self, names):
        self.place = {name: i for i, name in enumerate(names)}

    def pytest_collection_modifyitems(self, items):
        items[:] = sorted((item for item in items if item.nodeid in self.place),
                          key=lambda item: self.place[item.nodeid])


def reaching(line, spans, spent, reached):
    """The tests that run the statement in a line, the quickest first."""
    first, last = spans.get(line, (line, line))
    names = {name for i in range(first, last + 1) for name in reached.get(str(i), ())}
    # "" is what runs before the tests do, or for several of them.
    return sorted(spent if "" in names else names, key=spent.get)


def patience(seconds):
    """How long a fault may take on the clock, on a machine that does other things, too:
    one that waits for ever spends no time of the processor."""
    return 60 + 10 * seconds


def test(module, text, seconds, plugin):
    """In a child: run the tests of a module. Never returns."""
    import resource

    from hypothesis import Phase, settings

    if text is not None:
        log = os.open(os.devnull, os.O_WRONLY)
        for stream in (1, 2):
            os.dup2(log, stream)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
    resource.setrlimit(resource.RLIMIT_AS, (8 * 2**30, 8 * 2**30))
    if text is not None:
        signal.alarm(patience(seconds))
        sys.meta_path.insert(0, Broken(module, text))
    settings.register_profile("quick", deadline=None, derandomize=True, database=None,
                              phases=[Phase.explicit, Phase.generate])
    sys.path.insert(0, str(ROOT / "tests"))
    status = pytest.main(["-x", "-q", "--no-header", "-p", "no:cacheprovider",
                          "--hypothesis-profile=quick",
                          "-W", "ignore::pytest.PytestAssertRewriteWarning",
                          f"tests/test_{module}.py", "tests/test_inputs.py"],
                         plugins=[plugin])
    os._exit(int(status))


def start(module, text, seconds, plugin):
    child = os.fork()
    if child == 0:
        try:
            test(module, text, seconds, plugin())
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(99)
    return child


def run(module, chosen, source, jobs, known, on_survivor):
    """(tried, noticed, known) numbers of the chosen faults."""
    begun = time.monotonic()
    notes = Path(tempfile.gettempdir()) / f"rkhs_mutate_{os.getpid()}.json"
    before = os.wait4(start(module, None, 900, lambda: Watch(module, notes)), 0)
    if before[1]:
        sys.exit(f"the tests of {module} fail without a fault")
    spent, reached = json.loads(notes.read_text("utf-8"))
    notes.unlink()
    spans = statements(source)
    loading = before[2].ru_utime + before[2].ru_stime - sum(spent.values())
    print(f"{module}: {len(chosen)} faults, {time.monotonic() - begun:.0f} s for the "
          "tests as they are", flush=True)
    running, tried, killed, equivalent = {}, 0, 0, 0
    todo = iter(chosen)
    while True:
        for fault in todo:
            text = broken(source, fault)
            pair = text and difference(source, text)
            if text is None:
                continue
            if harmless(module, *pair, known):
                equivalent += 1
                continue
            names = reaching(fault.line, spans, spent, reached)
            if not names:
                tried += 1
                on_survivor(fault, *pair)
                continue
            seconds = int(4 * (max(loading, 0) + sum(spent[name] for name in names))) + 5
            child = start(module, text, seconds, lambda: Only(names))
            running[child] = fault, pair
            if len(running) == jobs:
                break
        if not running:
            print(flush=True)
            return tried, killed, equivalent
        child, status, _ = os.wait4(-1, 0)
        fault, (was, now) = running.pop(child)
        tried, killed = tried + 1, killed + (status != 0)
        if status == 0:
            on_survivor(fault, was, now)
        else:
            print(".", end="", flush=True)


def numberless(line):
    """A line without its numbers and their signs."""
    line = re.sub(r"(?<![\w.])\d[\d_.]*(e-?\d+)?", "#", line)
    return re.sub("-+#", "#", line.replace(" ", ""))


def harmless(module, was, now, known):
    """Whether a fault is listed, by itself or as one of several in its line."""
    if (module, was, "any number") in known and numberless(was) == numberless(now):
        return True
    return bool({(module, was, now), (module, was, "any fault")} & known)


def equivalents():
    """{(module, before, after)} that no test can notice."""
    if not EQUIVALENT.exists():
        return set()
    with open(EQUIVALENT, newline="", encoding="utf-8") as file:
        return {(row["module"], row["before"], row["after"]) for row in csv.DictReader(file)}


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("modules", nargs="*", help="all, if none is named")
    parser.add_argument("--sample", type=int, default=40,
                        help="faults in each module; 0 for all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--lines", type=str, help="only these, as in 120-160")
    options = parser.parse_args(arguments)
    modules = options.modules or sorted(
        path.stem for path in (ROOT / "rkhs_lit").glob("[a-z]*.py"))
    os.chdir(ROOT)
    sys.path[:0] = [str(ROOT), str(ROOT / "tools")]
    for name in ("numpy", "scipy.linalg", "scipy.optimize", "scipy.stats", "sklearn",
                 "hypothesis.extra.numpy", "pytest", "cosmic_ray.mutating"):
        importlib.import_module(name)             # once for all children
    known, survivors, table = equivalents(), [], []
    for module in modules:
        source = (ROOT / "rkhs_lit" / f"{module}.py").read_text("utf-8")
        found = faults(module, source)
        if options.lines:
            low, _, high = options.lines.partition("-")
            found = [f for f in found if int(low) <= f.line <= int(high or low)]
        order = drawn(found, options.seed)
        chosen = order[: options.sample] if options.sample else order

        def show(fault, was, now):
            survivors.append((module, fault.line, was, now))
            print(f"\n  rkhs_lit/{module}.py:{fault.line}\n    - {was}\n    + {now}",
                  flush=True)

        table.append((module, len(found), *run(module, chosen, source, options.jobs,
                                               known, show)))
    print(f"\n{'module':26}{'faults':>8}{'tried':>8}{'noticed':>9}{'score':>8}{'known':>8}")
    total = [sum(row[i] for row in table) for i in (1, 2, 3, 4)]
    for name, of, tried, noticed, equivalent in [*table, ("all", *total)]:
        score = f"{noticed / tried:8.0%}" if tried else f"{'-':>8}"
        print(f"{name:26}{of:8}{tried:8}{noticed:9}{score}{equivalent:8}")
    if survivors:
        print(f"\n{len(survivors)} faults that no test noticed are listed above.")


if __name__ == "__main__":
    main()
