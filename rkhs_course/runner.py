"""What runs inside the process of a submission. It knows no right answer.

The parent gives it a job on standard input, as JSON: the cells of the notebook,
the masked modules, and questions. A question is an expression such as
``hsic_unbiased(K, L)`` and the data in it. Each reply is one line of JSON with
plain numbers, or with an error. The parent compares; nothing here does.
"""

import importlib
import json
import os
import re
import signal
import sys
import types
import warnings
from json import dumps

import numpy as np

LARGEST = 100_000                  # numbers in one reply


def build(value, find):
    """Data as Python objects: arrays, and kernels and functions of the package."""
    if isinstance(value, dict) and "array" in value:
        return np.array(value["array"], dtype=float).reshape(value["shape"])
    if isinstance(value, dict):
        return find(value["make"])(*(build(part, find) for part in value["args"]))
    if isinstance(value, list):
        return [build(part, find) for part in value]
    return value


def reply(ask, data, namespace, package=None):
    """The numbers that the expression has in the namespace, or the error."""
    try:
        package = package or importlib.import_module("rkhs_lit")

        def find(name):                # a chapter makes classes of its own
            own = namespace.get(name)
            return own if isinstance(own, type) else getattr(package, name)

        values = {name: build(value, find) for name, value in data.items()}
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            found = np.asarray(eval(ask, {**namespace, "np": np, **values}))
        if found.dtype.kind == "c":
            return {"error": "the values are complex numbers"}
        found = found.astype(float)
        if found.size > LARGEST:
            return {"error": f"the values are {found.size} numbers, which is too many"}
        return {"shape": list(found.shape), "values": found.ravel().tolist()}
    except (Exception, SystemExit, KeyboardInterrupt, RecursionError) as error:
        return {"error": describe(error), "kind": type(error).__name__}


def describe(error):
    """The error in one line of at most 300 characters."""
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return text if len(text) <= 300 else text[:297] + "..."


class Bounded:
    """A standard output that forgets, and stops a cell that prints too much."""

    def __init__(self, limit):
        self.limit = self.left = limit
        self.encoding, self.errors = "utf-8", "replace"

    def write(self, text):
        self.left -= len(text)
        if self.left < 0:
            raise OSError(f"a cell printed more than {self.limit} characters")
        return len(text)

    def flush(self):
        pass

    def isatty(self):
        return False


def fence(work, hidden):
    """From here on Python itself refuses to write outside the directory `work`, to
    look at the `hidden` places, to open connections and to start programs. Audit
    hooks cannot be taken off again by Python code; by machine code they can."""
    inside = os.path.realpath(work) + os.sep
    hidden = tuple(os.path.realpath(path) for path in hidden)

    def real(path):
        if isinstance(path, int) or path is None:
            return None
        return os.path.realpath(os.fsdecode(path))

    def ours(path):
        path = real(path)
        return path is None or path + os.sep == inside or path.startswith(inside)

    def closed(path):
        path = real(path)
        return path is not None and any(
            path == place or path.startswith(place + os.sep) for place in hidden)

    changes = {"os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.truncate",
               "os.link", "os.symlink", "os.chmod", "os.chown", "os.utime",
               "shutil.rmtree", "shutil.move"}
    programs = {"os.system", "os.fork", "os.forkpty", "os.exec", "os.posix_spawn",
                "os.spawn", "os.kill", "os.killpg", "subprocess.Popen", "pty.spawn"}
    writing = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
    null = os.path.realpath(os.devnull)

    def hook(event, args):
        if event == "open":
            path, _, flags = args
            # Relative to an open directory a path could lead anywhere.
            if closed(path) or (real(path) and os.path.isdir(path)):
                raise PermissionError("a submission may not read this place")
            if flags & writing and not ours(path) and real(path) != null:
                raise PermissionError("a submission may not write outside its "
                                      "own directory")
        elif event in ("os.listdir", "os.scandir") and closed(args[0]):
            raise PermissionError("a submission may not look here")
        elif event in changes:
            if not all(ours(a) for a in args[:2] if isinstance(a, (str, bytes))):
                raise PermissionError("a submission may not change files outside "
                                      "its own directory")
        elif event.startswith("socket."):
            raise PermissionError("a submission has no network")
        elif event in programs or event == "sqlite3.connect":
            raise PermissionError("a submission may not start or stop programs")

    sys.addaudithook(hook)


class Timeout(Exception):
    """A cell or an answer took too long."""


def within(seconds, action):
    """The action's result, stopped after so many seconds (where Python can)."""
    def stop(*_):
        raise Timeout(f"took more than {seconds:g} s")

    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        return action()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def run_cells(cells, namespace, out, seconds):
    """Run the cells; {number: error} of those that failed.

    A cell that the student left as it was and that defines nothing is passed over
    until some later cell misses a name."""
    def run(cell):
        # Lines for the notebook program, not for Python.
        source = re.sub(r"^[%!].*$", "pass", cell["source"], flags=re.M)
        code = compile(source, f"cell {cell['number']}", "exec")
        within(seconds, lambda: exec(code, namespace))

    skipped, errors = [], {}
    for cell in cells:
        out.left = out.limit
        if cell["skip"]:
            skipped.append(cell)
            continue
        try:
            try:
                run(cell)
            except NameError:
                if not skipped:
                    raise
                for earlier in skipped:
                    try:
                        run(earlier)
                    except (Exception, SystemExit):
                        pass
                skipped = []
                run(cell)
        except (Exception, SystemExit, KeyboardInterrupt) as error:
            errors[cell["number"]] = describe(error)
    return errors


def main():
    job = json.load(sys.stdin)
    pipe = os.fdopen(job["pipe"], "w", encoding="utf-8")

    def send(**line):
        pipe.write(dumps(line) + "\n")
        pipe.flush()

    mask = types.ModuleType("rkhs_mask")
    exec(compile(job["mask"], "rkhs_mask", "exec"), vars(mask))
    mask.MaskedPackage(job["masked"]).install()
    sys.path[:] = [*job["path"], *sys.path]
    package = importlib.import_module("rkhs_lit")   # before the fence: it reads files

    main_module = types.ModuleType("__main__")
    namespace = vars(main_module)
    stand_in = types.ModuleType("rkhs_course")        # for the notebook's own checks
    stand_in.begin = stand_in.check = stand_in.mask = lambda *_, **__: None
    stand_in.withheld = lambda function: function
    namespace["display"] = lambda *_, **__: None
    sys.modules.update({"__main__": main_module, "rkhs_course": stand_in})
    out = Bounded(job["output"])
    sys.stdout = sys.stderr = out
    sys.stdin = open(os.devnull)
    fence(os.getcwd(), job["hidden"])
    send(ready=True)
    errors = run_cells(job["cells"], namespace, out, job["seconds"])
    send(errors=errors)
    slow = set()
    for question in job["questions"]:
        if question["task"] in slow:
            continue
        out.left = out.limit
        try:
            answer = within(job["seconds"], lambda: reply(
                question["ask"], question["data"], namespace, package))
        except Timeout as error:
            answer = {"error": describe(error), "kind": "Timeout"}
        if answer.get("kind") == "Timeout":
            slow.add(question["task"])         # leave the time to the other tasks
        send(task=question["task"], number=question["number"], reply=answer)
    send(done=True)
    os._exit(0)                              # no exit handlers of the submission


if __name__ == "__main__":
    main()
