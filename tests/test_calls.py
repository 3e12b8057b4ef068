"""The good calls are complete, and their results are data.

A result can be pickled, copied and compared; the arrays of a record are read-only,
also in the copy; and it prints as a reader would write it.
"""

import copy
import inspect
import pickle
import re
from dataclasses import Field

import calls
import numpy as np
import pytest
from rkhs_lit import Kernel, Record


def test_every_public_callable_has_a_good_call():
    """So that none is forgotten; and no row outlives its function."""
    wanted = set()
    for name, found in calls.public().items():
        if name in calls.ABSTRACT:
            continue
        if name not in calls.MADE_BY:
            wanted.add(name)
        if inspect.isclass(found):
            wanted |= {f"{name}.{method}" for method in calls.methods(found)}
    listed = {re.sub(r":\w+", "", name) for name in calls.GOOD}
    missing, stale = sorted(wanted - listed), sorted(listed - wanted)
    assert not missing, f"tests/calls.py has no good call of {', '.join(missing)}"
    assert not stale, f"tests/calls.py calls what is not public: {', '.join(stale)}"


def test_records_come_from_the_call_that_is_said_to_make_them():
    found = {kind: type(calls.made(call)) for kind, call in calls.MADE_BY.items()}
    assert {kind: found[kind].__name__ for kind in found} == {kind: kind for kind in found}


# What is wrong today -> the calls. Whoever mends one takes it out.
KNOWN = {
}


# Records that hold the arrays of the caller, as a list would.
MINE = ["Pairs"]


def arrays(value, path="it"):
    """(path, array) of everything that a result holds, its caches too."""
    if isinstance(value, np.ndarray):
        yield path, value
    elif isinstance(value, (list, tuple)):
        for i, part in enumerate(value):
            yield from arrays(part, f"{path}[{i}]")
    elif type(value).__module__.startswith("rkhs_lit"):
        for name, part in vars(value).items():
            yield from arrays(part, f"{path}.{name}")


def unlike(result, twin):
    """What a copy has lost: a value, or the protection of an array."""
    before, after = dict(arrays(result)), dict(arrays(twin))
    if type(twin) is not type(result) or before.keys() != after.keys():
        yield "copy", "has other parts"
    for path in before.keys() & after.keys():
        if not np.array_equal(before[path], after[path]):
            yield "copy", f"{path} has changed"
        if after[path].flags.writeable and not before[path].flags.writeable:
            yield "read-only", f"{path} can be written to in the copy"


def uncomparable(result, twin):
    """Where ``==`` fails, or gives anything but True or False. That a record is
    equal to its copy is not asked: two functions are equal if their distance is 0."""
    for other in (result, twin, None, 1, "a", np.ones(3), np.float64(2)):
        for left, right in ((result, other), (other, result)):
            try:
                equal = left == right
            except (TypeError, ValueError) as error:
                equal = error
            if not isinstance(equal, bool) or equal < (left is right):
                yield "compare", f"with {right!r} gives {equal!r}"


def faults(name):
    """(fault, what is wrong) of the result of a call."""
    result = calls.made(name)
    for text in (repr(result), str(result)):
        if "np.float64(" in text:
            yield "print", text
    if isinstance(result, (np.ndarray, Field)):
        return  # NumPy's and Python's own
    try:
        yield from unlike(result, pickle.loads(pickle.dumps(result)))
    except (AttributeError, TypeError, pickle.PicklingError) as error:
        yield "pickle", repr(error)
    twin = copy.deepcopy(result)
    yield from unlike(result, twin)
    if isinstance(result, Record | Kernel):
        yield from uncomparable(result, twin)
        for path, array in arrays(result):
            if array.flags.writeable and name not in MINE:
                yield "read-only", f"{path} can be written to"
    if isinstance(result, Kernel) and result != twin:
        yield "compare", "a kernel is not that of its copy, so their functions do not mix"


@pytest.mark.parametrize("name", calls.GOOD)
def test_results_can_be_pickled_copied_and_printed(name):
    known = {fault for fault, names in KNOWN.items() if name in names.split()}
    found = dict(faults(name))
    lines = [f"{fault}: {what}" for fault, what in found.items() if fault not in known]
    lines += [f"{fault} is right now: take it out of KNOWN" for fault in known - {*found}]
    assert not lines, f"result of {name}\n" + "\n".join(lines)


def test_known_faults_are_of_calls_that_exist():
    assert not {name for names in KNOWN.values() for name in names.split()} - {*calls.GOOD}
