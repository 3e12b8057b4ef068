"""Work in pieces: sums over tiles, in parallel"""
# The exported cells of book/tiles.ipynb: `make tangle` writes them here, and
# `make untangle` carries edits made inside the cells back.
# Cells: 165a95770f05c4f7

# %% [1] Work in pieces: sums over tiles, in parallel
import io
import os
import pickle
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import (FIRST_COMPLETED, CancelledError, Executor,
                                ThreadPoolExecutor, wait)
from contextlib import contextmanager, nullcontext, suppress
from contextvars import Context, ContextVar
from functools import partial, reduce
from hashlib import blake2b
from itertools import islice, pairwise
from multiprocessing import parent_process
from numbers import Integral
from operator import iadd, length_hint
from tempfile import NamedTemporaryFile
from threading import Event
from types import SimpleNamespace

import numpy as np

import rkhs_lit.conventions as check

# %% [2] Sums over tiles
TILE = 256
np.empty(2**21)          # freed: then Linux keeps the room of tiles
_stop = ContextVar("stop", default=bool)              # bool() is False


def _run(visit, start, n, m, ends):
    """The total of the tiles first, ..., last - 1."""
    total, stop, (first, last) = start(), _stop.get(), ends
    columns = range(0, m or n, TILE)
    for u, a in enumerate(range(0, n, TILE)):
        row = columns[0 if m else u:]
        for b in row[max(first, 0):max(last, 0)]:
            if stop():
                return None
            visit(total, slice(a, min(a + TILE, n)),
                  slice(b, min(b + TILE, m or n)))
        first, last = first - len(row), last - len(row)
    return total

# %% [3] The same sum, wherever it is taken
_here = ContextVar("parallel", default=None)


class parallel:
    """A block whose sums over tiles and loops over permutations run on an
    executor, with the same results (:prf:ref:`prop-one-order`).

    Without one they run on the threads of this process. An executor is any
    of ``concurrent.futures``, or ``dask.distributed.Client(...)``'s
    ``get_executor()``, whose workers may be on other machines and may come
    and go. Points travel to a worker once. With ``progress=True`` a bar
    counts the runs, if tqdm is installed. Start Python here and there with
    OMP_NUM_THREADS=1: a core for each worker, and the same last bits.

    >>> with parallel(ThreadPoolExecutor(2)):
    ...     reduce_runs(lambda item: [item**2], range(4))
    [0, 1, 4, 9]
    """

    def __init__(self, executor: Executor | None = None, *,
                 progress: bool = False):
        if not isinstance(executor, Executor | None):
            raise ValueError("executor must be an Executor or None, got "
                             f"{type(executor).__name__}")
        self.executor, self.sent = executor, {}
        self.progress = check.flag(progress, "progress")

    def __enter__(self):
        self.before = _here.set(self)

    def __exit__(self, *error):
        _here.reset(self.before)

# %% [4] Fine print
# Runs on threads
def _obey(stop, work, item):
    """work(item), of which every tile first asks stop()."""
    _stop.set(stop)
    return None if stop() else work(item)


@contextmanager
def _threads(work, here):
    """What submits an item to threads, and the number of these."""
    stop = Event()
    with nullcontext(here.executor) if here.executor else (
            ThreadPoolExecutor(os.cpu_count())) as pool:
        try:
            yield lambda item: pool.submit(
                Context().run, _obey, stop.is_set, work, item
                ), pool._max_workers
        finally:
            stop.set()

# %% [5] Fine print
# Work as bytes
def _packed(work, parcels):
    """The work in bytes, without the large parts: these are parcels."""
    try:
        import cloudpickle as pickler            # knows closures too
    except ImportError:
        pickler = pickle

    class Packer(pickler.Pickler):
        def persistent_id(self, part):
            if not (type(part) is list and len(part) > TILE
                    or type(part) is np.ndarray and part.size > TILE):
                return None
            parcel = pickler.dumps(part)
            key = blake2b(parcel).hexdigest()
            parcels[key] = parcel
            return key

    file = io.BytesIO()
    try:
        Packer(file).dump(work)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ValueError(
            "visit and start must be picklable for this executor: write "
            "functools.partial(function, data, ...) with a function of a "
            "module, no closure; threads take any function") from error
    return file.getvalue()

# %% [6] Fine print
# What a worker does
def _abandoned(pid, path):
    """A function that tells whether the caller has given up; first, a
    process of its own gets one thread for linear algebra."""
    if parent := parent_process():
        with suppress(ImportError):
            from threadpoolctl import threadpool_limits
            threadpool_limits(1, "blas")
        if parent.pid == pid:
            return lambda: not os.path.exists(path)
    with suppress(KeyError, ValueError):              # not Dask, no worker
        worker = sys.modules["distributed.worker"].get_worker()
        tasks, key = worker.state.tasks, worker.get_current_task()
        return lambda: key not in tasks or tasks[key].state == "cancelled"
    return bool


_known = {}


def _remote(packed, item, caller, keys, *parcels):
    """The answer in bytes, or the keys of the parcels that it lacks."""
    _known.update((key, pickle.loads(parcel))
                  for key, parcel in zip(keys, parcels)
                  if parcel is not None and key not in _known)
    parts = {key: _known[key] for key in keys if key in _known}
    for key in [*_known][:-16]:
        _known.pop(key, None)
    if len(parts) < len(keys):
        return [key for key in keys if key not in parts]
    unpickler = pickle.Unpickler(io.BytesIO(packed))
    unpickler.persistent_load = parts.__getitem__
    return pickle.dumps(Context().run(
        _obey, _abandoned(*caller), unpickler.load(), pickle.loads(item)))

# %% [7] Fine print
# Runs on processes, here or elsewhere
@contextmanager
def _processes(work, here):
    """What submits an item to processes, and the number of these."""
    executor, sent, parcels = here.executor, here.sent, {}
    packed, client = _packed(work, parcels), getattr(executor, "_client", 0)

    def parcel(key, wanted):
        if not client:
            return parcels[key] if key in wanted else None
        if key not in sent or sent[key].status == "cancelled":
            sent[key] = client.scatter(parcels[key], broadcast=True,
                                       hash=False)
        return sent[key]

    workers = (sum(client.nthreads().values()) if client
               else getattr(executor, "_max_workers", 32))
    with NamedTemporaryFile(prefix="rkhs_lit") as sign:
        caller = os.getpid(), sign.name
        yield lambda item, wanted=(): executor.submit(
            _remote, packed, pickle.dumps(item), caller, [*parcels],
            *[parcel(key, wanted) for key in parcels]), workers
    for key in [*sent][:-16]:
        del sent[key]

# %% [8] Fine print
# A bar that counts runs
def _bar(progress, items):
    """tqdm's bar where it is wanted and installed, or one unseen."""
    with suppress(ImportError):
        if progress:
            from tqdm import tqdm
            return tqdm(total=length_hint(items) or None)
    return nullcontext(SimpleNamespace(update=int))

# %% [9] A sum of runs, in their order
def reduce_runs(work: Callable, items: Iterable, *, threads: bool = False):
    """The sum work(a) + work(b) + ... over the items, in their order; lists
    add up to one list. Outside of a block `parallel` it is a plain loop,
    or with `threads` as in ``parallel()`` (:prf:ref:`prop-one-order`)."""
    here = _here.get() or (parallel() if threads else None)
    if here is None:
        return reduce(iadd, map(work, items))
    queue, running, ready, done, total = enumerate(items), {}, {}, 0, None
    local = isinstance(here.executor, ThreadPoolExecutor | None)
    runs = (_threads if local else _processes)(work, here)
    with runs as (submit, workers), _bar(here.progress, items) as bar:
        try:
            while True:
                free = 2 * workers - len(running) - len(ready)
                for index, item in islice(queue, free):
                    running[submit(item)] = index, item
                if not running:
                    return total
                for future in wait(running, None, FIRST_COMPLETED).done:
                    index, item = running.pop(future)
                    try:
                        answer = future.result()
                    except CancelledError:           # lost with a worker
                        answer = []
                    if not local and isinstance(answer, list):
                        running[submit(item, answer)] = index, item
                        continue
                    ready[index] = answer if local else pickle.loads(answer)
                    bar.update()
                while done in ready:
                    part, done = ready.pop(done), done + 1
                    total = part if done == 1 else iadd(total, part)
        finally:
            for future in running:
                future.cancel()

# %% [10] A sum of runs, in their order
def reduce_tiles(visit: Callable, start: Callable | None, n: int,
                 m: int | None = None):
    """The sum over the tiles of an n × m matrix, or of a symmetric n × n
    matrix, of which only the tiles on and above the diagonal are visited
    (:prf:ref:`prop-tiles`).

    ``visit(total, i, j)`` adds to the total, in place, what the tile with
    the rows i and the columns j, both slices, contributes and, in a
    symmetric matrix (m is None) for i != j, what the transposed tile
    contributes. ``start()`` makes an empty total, one for each run; with
    None, `visit` puts its tile into an array of this process itself. For
    processes write both as ``functools.partial(function, data)``.

    >>> K = np.ones((600, 600))                    # symmetric
    >>> def visit(sums, i, j):
    ...     sums[i] += K[i, j].sum(axis=1)
    ...     if i != j:
    ...         sums[j] += K[i, j].sum(axis=0)     # = K[j, i].sum(axis=1)
    >>> reduce_tiles(visit, lambda: np.zeros(600), 600)[:3]
    array([600., 600., 600.])
    """
    begin = int if start is None else start
    shape = n, n if m is None else m
    check.function(visit, "visit")
    check.function(begin, "start")
    if not all(isinstance(size, Integral) and 0 < size < 2**31
               for size in shape):
        raise ValueError("n and m must be whole numbers of at least 1 and "
                         f"below 2**31, got {str(shape)[:60]}")
    p, q = (-(-size // TILE) for size in shape)
    tiles = p * q if m else p * (p + 1) // 2
    worth = tiles // (4 + np.size(begin()) // TILE**2 * 4)
    runs = min(max(worth, 4), tiles, max(64, min(tiles >> 14, 1024)))
    ends = [*pairwise(tiles * run // runs for run in range(runs + 1))]
    work, here = partial(_run, visit, begin, n, m), _here.get()
    if runs == 1:
        return work((0, tiles))
    with nullcontext() if start or not here else parallel(
            progress=here.progress):
        return reduce_runs(work, ends, threads=tiles > 4)
