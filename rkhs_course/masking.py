"""Functions without their bodies, and a package that asks for them.

This file needs the standard library only, and nothing else of the package:
the process in which a submission runs loads it by itself.
"""

import ast
import functools
import importlib.abc
import importlib.util
import sys
from pathlib import Path

WRITE_ME = "write me: {name} has no body yet"


def find(tree, name):
    """The definition of a function, or of a method ``Class.method``."""
    node = tree
    for part in name.split("."):
        kinds = ast.FunctionDef | ast.ClassDef
        node = next((n for n in node.body if isinstance(n, kinds) and n.name == part),
                    None)
        if node is None:
            return None
    return node


def stub(source, name, note="", instead=""):
    """The source with signature and docstring of the function, and a body that
    raises NotImplementedError, or the line `instead`."""
    node = find(ast.parse(source), name)
    if node is None:
        raise ValueError(f"there is no function {name} in this source")
    lines, first = source.splitlines(), node.body[0]
    documented = ast.get_docstring(node) is not None
    start = first.end_lineno if documented else first.lineno - 1
    if first.lineno == node.lineno:
        raise ValueError(f"{name} must have its body on lines of its own")
    indent = " " * first.col_offset
    body = [f"{indent}# {note}"] if note else []
    text = WRITE_ME.format(name=name)
    body.append(indent + (instead or f'raise NotImplementedError("{text}")'))
    ending = "\n" if source.endswith("\n") else ""
    return "\n".join(lines[:start] + body + lines[node.end_lineno :]) + ending


def modules():
    """{module: its source} of ``rkhs_lit``, by their short names."""
    spec = importlib.util.find_spec("rkhs_lit")
    if spec is None:
        raise ModuleNotFoundError("rkhs_lit is not installed: pip install .")
    folder = Path(spec.submodule_search_locations[0])
    return {path.stem: path.read_text(encoding="utf-8")
            for path in sorted(folder.glob("*.py")) if path.stem != "__init__"}


def masked_sources(names, withheld=None):
    """{module: (source without the bodies, names in it, names withheld)} of
    ``rkhs_lit``.

    `names` are those of functions and of methods; which module defines them is found
    by looking, or said, as in ``ridge:leave_one_out``. `withheld` has what is masked
    with them, and the line that stands for the body meanwhile, if it must not raise."""
    withheld, found = withheld or {}, {}
    books = modules()
    for given in dict.fromkeys([*names, *withheld]):
        stem, _, name = given.rpartition(":")
        places = [stem] if stem else [
            other for other in books if find(ast.parse(books[other]), name)]
        if not places or find(ast.parse(books.get(places[0], "")), name) is None:
            raise ValueError(f"rkhs_lit has no function {given}")
        key = f"rkhs_lit.{places[0]}"
        source, own, others = found.get(key, (books[places[0]], [], []))
        (others if given in withheld else own).append(name)
        found[key] = stub(source, name, instead=withheld.get(given, "")), own, others
    return found


def defined(source, name, namespace):
    """The function that this source gives a name, made in the namespace."""
    made = {}
    exec(compile(ast.Module([find(ast.parse(source), name)], []),
                 f"rkhs_lit: {name}", "exec"), namespace, made)
    return made[name.rpartition(".")[2]]


def reach(place, name):
    """What has this name, maybe with dots, in a module."""
    return functools.reduce(getattr, name.split("."), place)


def put(place, name, value):
    *owner, last = name.split(".")
    setattr(functools.reduce(getattr, owner, place), last, value)


class MaskedPackage(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports modules of ``rkhs_lit`` in which some functions have no body but
    call the function of the same name in ``__main__``; and others are withheld with
    them, until `lend` gives them their bodies back.

    Whoever imports such a function gets that one, also the later modules of the
    package. The source that Python shows of these modules is the masked one."""

    def __init__(self, sources):
        self.sources, self.lent = sources, set()

    def find_spec(self, fullname, path=None, target=None):
        if fullname in self.sources:
            return importlib.util.spec_from_loader(
                fullname, self, origin=self.get_filename(fullname))

    def get_filename(self, fullname):
        return fullname.replace(".", "/") + ".py (masked)"

    def get_source(self, fullname):
        return self.sources[fullname][0]

    def exec_module(self, module):
        source, names, withheld = self.sources[module.__name__]
        module.__file__ = self.get_filename(module.__name__)
        exec(compile(source, module.__file__, "exec"), vars(module))
        for name in names:
            put(module, name, _asks_the_student(name, reach(module, name)))
        for name in withheld:
            put(module, name, withhold(reach(module, name)))
            if (module.__name__, name) in self.lent:
                self.lend(module.__name__, name)

    def lend(self, fullname, name):
        """Give a withheld function its body back."""
        self.lent.add((fullname, name))
        if fullname in sys.modules:                # otherwise when it is imported
            module, source = sys.modules[fullname], modules()[fullname.partition(".")[2]]
            reach(module, name).book = defined(source, name, vars(module))

    def install(self):
        sys.meta_path.insert(0, self)


def withhold(blank):
    """A function that is blank until it is given the book's."""
    @functools.wraps(blank)
    def wrapper(*args, **kwargs):
        return (wrapper.book or blank)(*args, **kwargs)

    wrapper.book = None
    return wrapper


def _asks_the_student(name, blank):
    @functools.wraps(blank)
    def student(*args, **kwargs):
        try:
            own = reach(sys.modules["__main__"], name)
        except AttributeError:
            own = student
        if getattr(own, "masked", False):    # the notebook has imported it back
            raise NotImplementedError(WRITE_ME.format(name=name))
        return own(*args, **kwargs)

    student.masked = True
    return student
