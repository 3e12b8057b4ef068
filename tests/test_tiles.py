"""Sums over tiles: the identities, and the same bits wherever they are computed."""

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

import rkhs_lit.tiles as module
from rkhs_lit import (
    FeatureKernel,
    FunctionKernel,
    Gaussian,
    Laplace,
    Linear,
    Mapped,
    coco,
    coco_test,
    embedding_error,
    gram_dot,
    hsic,
    hsic_test,
    median_heuristic,
    mmd_test,
    parallel,
    reduce_runs,
    reduce_tiles,
    words,
)


def sample(n=9, d=2, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


# -- the sum ----------------------------------------------------------------


@pytest.mark.parametrize("n, m", [(1, 1), (256, 257), (700, 300), (513, None)])
def test_every_entry_is_visited_exactly_once(n, m):
    """prop-tiles: the tiles partition the matrix."""
    def visit(total, i, j):
        total[i, j] += 1
        if m is None and i != j:
            total[j, i] += 1

    shape = (n, n if m is None else m)
    assert np.array_equal(reduce_tiles(visit, lambda: np.zeros(shape), n, m),
                          np.ones(shape))


def test_symmetric_tiles_compute_half_of_the_matrix():
    """prop-tiles: equation eq-tiles."""
    seen = []
    reduce_tiles(lambda total, i, j: seen.append((i.start, j.start)), lambda: 0, 1024)
    assert sorted(seen) == [(i, j) for i in range(0, 1024, 256)
                            for j in range(i, 1024, 256)]


@pytest.mark.parametrize("n, m", [(1500, None), (300, 4000), (4000, 300)])
def test_sums_over_tiles_do_not_depend_on_the_number_of_cores(monkeypatch, n, m):
    """prop-one-order: to the last bit, in any order in which cores finish."""
    values = np.random.default_rng(0).normal(size=(n, m or n))

    def visit(total, i, j):
        time.sleep((i.start * 7 + j.start * 3) % 5 * 1e-4)
        total[0] += values[i, j].sum()

    sums = []
    for cores in (1, 2, 7, None):
        monkeypatch.setattr(module.os, "cpu_count", lambda: cores)
        sums.append(reduce_tiles(visit, lambda: np.zeros(1), n, m)[0])
    for threads in (1, 3):
        with ThreadPoolExecutor(threads) as pool, parallel(pool):
            sums.append(reduce_tiles(visit, lambda: np.zeros(1), n, m)[0])
    assert len(set(sums)) == 1


def test_runs_add_up_in_their_order():
    """prop-one-order: whoever finishes first waits for its turn."""
    def work(item):
        time.sleep(0.01 * (7 - item))
        return [item]

    with ThreadPoolExecutor(8) as pool, parallel(pool):
        assert reduce_runs(work, iter(range(7))) == [*range(7)]
    assert reduce_runs(lambda item: [item], iter(range(7))) == [*range(7)]
    here = threading.get_ident()                   # outside of a block, a plain loop
    assert reduce_runs(lambda _: [threading.get_ident()], range(3)) == [here] * 3
    with parallel():
        assert reduce_runs(work, []) is None


class Instant(Executor):
    """An executor that works when it is asked, and remembers what it was asked;
    what it gets, it sends to itself, like a process on another machine."""

    _max_workers = 2

    def __init__(self):
        self.sent, self.most, self.open = [], 0, []

    def submit(self, function, *arguments):
        data = pickle.dumps((function, arguments))
        self.sent.append(len(data))
        self.open = [future for future in self.open if not future.done()]
        future = Future()
        self.open.append(future)
        self.most = max(self.most, len(self.open))
        threading.Timer(0.002, self.answer, (future, data)).start()
        return future

    @staticmethod
    def answer(future, data):
        function, arguments = pickle.loads(data)
        try:
            future.set_result(function(*arguments))
        except BaseException as error:
            future.set_exception(error)


class ByHand(Executor):
    """An executor of which a test decides when a task is done."""

    _max_workers = 2

    def __init__(self, rule):
        self.tasks, self.rule = [], rule

    def submit(self, function, *arguments):
        future = Future()
        self.tasks.append((future, lambda: future.set_result(function(*arguments))))
        self.rule(len(self.tasks) - 1, *self.tasks[-1])
        return future


def test_two_runs_for_each_worker_are_under_way_and_no_more_wait_for_their_turn():
    """prop-one-order: four for two workers, also where all but the first are done."""
    begun = []

    def first():
        if not begun:
            begun.append(len(executor.tasks))
            executor.tasks[0][1]()

    def rule(number, future, finish):
        if number == 0:
            threading.Timer(1.0, first).start()    # it may be in vain to wait for a fourth
        else:
            finish()
        if number == 3:                            # time for a fifth, which must not come
            threading.Timer(0.03, first).start()

    with parallel(executor := ByHand(rule)):
        assert reduce_runs(partial(pow_list, 2), iter(range(12))) == [2**i for i in range(12)]
    assert begun == [4]


def test_a_run_that_is_lost_is_sent_again_and_after_an_error_all_are_cancelled():
    """prop-one-order: in the same place of the sum."""
    def losing(number, future, finish):
        if number in (0, 2):
            future.cancel()
            future.set_running_or_notify_cancel()
        else:
            finish()

    with parallel(executor := ByHand(losing)):
        assert reduce_runs(partial(pow_list, 3), range(3)) == [1, 3, 9]
    assert len(executor.tasks) == 5

    def failing(number, future, finish):
        if number == 1:
            future.set_exception(ZeroDivisionError())

    with pytest.raises(ZeroDivisionError), parallel(executor := ByHand(failing)):
        reduce_runs(partial(pow_list, 3), range(9))
    assert len(executor.tasks) == 4
    assert [task.cancelled() for task, _ in executor.tasks] == [True, False, True, True]


def plan(monkeypatch, n, m, size=1):
    """Where runs end, and whether threads are worth while."""
    seen = []
    monkeypatch.setattr(module, "reduce_runs", lambda work, ends, *, threads: seen.append(
        (ends, threads)) or work((0, 10**9)))
    reduce_tiles(lambda total, i, j: None, lambda: np.zeros(size), n, m)
    return seen[0] if seen else ([], False)


@pytest.mark.parametrize("n, m", [(257, None), (1280, None), (512, 512), (1025, 256), (2561, 1),
                                  (5120, None)])
def test_runs_are_a_partition_of_the_tiles_in_parts_of_one_size(monkeypatch, n, m):
    """prop-tiles: no tile is left out, none is counted that is not there."""
    p, q = -(-n // 256), -(-(m or n) // 256)
    tiles = p * q if m else p * (p + 1) // 2
    ends, threads = plan(monkeypatch, n, m)
    assert ends[0][0] == 0 and ends[-1][1] == tiles
    assert all(a[1] == b[0] for a, b in zip(ends, ends[1:]))
    sizes = [b - a for a, b in ends]
    assert min(sizes) >= 1 and max(sizes) - min(sizes) <= 1
    assert threads == (tiles > 4)


def test_runs_are_worth_their_total(monkeypatch):
    """sec-runs: four tiles each, and four more for each tile that a total fills; at most 64,
    or one for 16 384 tiles up to 1024."""
    for n, m, size, runs in (
        (256 * 10, 256 * 10, 1, 25), (256 * 10, 256 * 10, 2**16 - 1, 25),
        (256 * 10, 256 * 10, 2**17, 8), (256 * 4, 256 * 4, 1, 4), (256 * 3, 256, 1, 3),
        (256 * 4, None, 1, 4), (256 * 20, 256 * 20, 1, 64), (2**20, 2**29, 1, 1024), (1, 2**28, 1, 64), (1, 2**29, 1, 128), (1, 2**31 - 1, 1, 512),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(module, "_run", lambda *rest: None)
            assert len(plan(patch, n, m, size)[0]) == runs


@pytest.mark.parametrize("n, m", [(2**31, 1), (1, 2**31)])
def test_a_matrix_has_rows_and_columns_and_not_too_many(n, m):
    """prop-tiles: all indices are numbers of 32 bits, of which the largest is 2^31 - 1."""
    with pytest.raises(ValueError, match=r"^n and m must be whole numbers of at least 1 and below"):
        reduce_tiles(lambda total, i, j: None, None, n, m)
    ends = []
    reduce_tiles(lambda total, i, j: ends.append((i.stop, j.stop)), None, min(n, 700), min(m, 700))
    assert max(ends) == (min(n, 700), min(m, 700))


def test_a_worker_process_has_one_thread_and_looks_whether_its_caller_waits(monkeypatch, tmp_path):
    """prop-one-order: the last bits are those of one thread; without a caller nobody works."""
    threadpoolctl = pytest.importorskip("threadpoolctl")
    asked, sign = [], tmp_path / "sign"
    sign.touch()
    monkeypatch.setattr(threadpoolctl, "threadpool_limits", lambda *limits: asked.append(limits))
    assert module._abandoned(os.getpid(), str(sign)) is bool and not asked
    monkeypatch.setattr(module, "parent_process", lambda: SimpleNamespace(pid=os.getpid()))
    gone = module._abandoned(os.getpid(), str(sign))
    assert asked == [(1, "blas")] and not gone()
    sign.unlink()
    assert gone()
    # A process of another machine does not see the sign.
    assert module._abandoned(os.getpid() + 1, str(sign)) is bool


def test_a_worker_of_a_cluster_looks_whether_its_task_is_still_wanted(monkeypatch):
    """prop-one-order: in the list of its scheduler's tasks."""
    tasks = {"mine": SimpleNamespace(state="executing")}
    worker = SimpleNamespace(state=SimpleNamespace(tasks=tasks), get_current_task=lambda: "mine")
    monkeypatch.setitem(sys.modules, "distributed.worker",
                        SimpleNamespace(get_worker=lambda: worker))
    gone = module._abandoned(0, "")
    assert not gone()
    tasks["mine"].state = "cancelled"
    assert gone()
    tasks.clear()
    assert gone()


def test_points_travel_to_a_worker_once_and_not_with_each_run():
    """prop-one-order: what a worker has seen, it is not sent again."""
    X, k = sample(3000, 40, 7), Gaussian(1.0)
    W = [sample(3000, 1, seed)[:, 0] for seed in range(3)]
    with parallel(executor := Instant()):
        first = gram_dot(k, X, None, W[0])
        after = sum(executor.sent)
        later = [gram_dot(k, X, None, w) for w in W[1:]]
    assert len(executor.sent) > 3 * 19             # runs of tiles
    # Two at a time come back for the points before one has brought them.
    assert after < 5 * (X.nbytes + W[0].nbytes)
    assert sum(executor.sent) - after < 0.9 * X.nbytes
    assert np.array_equal(first, gram_dot(k, X, None, W[0]))
    assert all(np.array_equal(a, gram_dot(k, X, None, w)) for a, w in zip(later, W[1:]))


def test_few_runs_are_under_way_at_a_time():
    """prop-one-order: memory is bounded by the workers, not by the runs."""
    asked = []

    def items():
        for item in range(50):
            asked.append(item)
            yield item

    with parallel(executor := Instant()):
        assert reduce_runs(partial(pow_list, 2), items()) == [2**i for i in range(50)]
    assert executor.most <= 4 and len(asked) == 50


def pow_list(base, item):
    return [base**item]


def test_a_worker_that_forgets_is_sent_the_points_again(monkeypatch):
    """prop-one-order: it keeps the parts of the last works only."""
    X = sample(1500, 3, 5)
    wanted = gram_dot(Laplace(1.0), X, None, X)
    executor = Instant()
    answer, others = executor.answer, iter(range(10**6))

    def forgetful(future, data):
        function, (_, item, caller, *_) = pickle.loads(data)
        keys = [str(next(others)) for _ in range(16)]
        with pytest.raises(EOFError):              # sixteen parts of other works
            function(b"", item, caller, keys, *[pickle.dumps(0)] * 16)
        answer(future, data)

    with parallel(executor):
        gram_dot(Laplace(1.0), X, None, X)
        before, fresh = sum(executor.sent), len(executor.sent)
        monkeypatch.setattr(executor, "answer", forgetful)
        assert np.array_equal(gram_dot(Laplace(1.0), X, None, X), wanted)
    assert sum(executor.sent) > before + X.nbytes > X.nbytes * 2
    assert len(executor.sent) > 2 * fresh - 4


def test_memory_is_bounded_for_points_that_are_not_vectors():
    """prop-tiles: no more than a few tiles at a time, where the matrix has 66 MB."""
    texts = TEXTS * 5
    with ThreadPoolExecutor(2) as pool, parallel(pool):
        tracemalloc.start()
        found = gram_dot(FeatureKernel(words), texts, None, np.ones(len(texts)))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert found.shape == (2880,) and peak < 16e6 < len(texts) ** 2 * 8 / 4


def test_equal_points_in_two_arrays_are_not_taken_for_one():
    """prop-tiles: which tiles are visited is decided before the points travel."""
    X = sample(600)
    wanted = gram_dot(Linear(), X, X.copy(), X[:, 0])
    with parallel(Instant()):
        assert np.array_equal(gram_dot(Linear(), X, X.copy(), X[:, 0]), wanted)


def test_a_matrix_that_is_stored_here_is_filled_here():
    """prop-tiles: with start=None nothing is summed, and nothing travels."""
    X, K = sample(600), Gaussian(1.0)(sample(600))
    with parallel(executor := Instant()):
        assert np.array_equal(Gaussian(1.0)(X), K)
    assert not executor.sent


def test_a_matrix_of_one_tile_needs_no_executor():
    """prop-tiles, sec-runs: not even work that can travel."""
    def visit(total, i, j):
        total[0] += 1

    with parallel(executor := Instant()):
        assert reduce_tiles(visit, lambda: np.zeros(1), 256, 256)[0] == 1
    assert not executor.sent


def test_work_that_cannot_travel_is_refused_and_stays_possible_on_threads():
    """prop-one-order: the error says what to write instead."""
    lock = threading.Lock()

    def visit(total, i, j):
        with lock:
            total[0] += 1

    with parallel(Instant()), pytest.raises(ValueError, match=r"functools\.partial"):
        reduce_tiles(visit, lambda: np.zeros(1), 600)
    assert reduce_tiles(visit, lambda: np.zeros(1), 600)[0] == 6


def test_a_block_ends_where_it_ends():
    """prop-one-order: after an error too, and inside of another block."""
    inner, outer = Instant(), Instant()
    X = sample(600)
    with parallel(outer):
        with pytest.raises(ZeroDivisionError), parallel(inner):
            raise ZeroDivisionError
        gram_dot(Linear(), X, None, X)
        assert outer.sent and not inner.sent
    count = len(outer.sent)
    gram_dot(Linear(), X, None, X)
    assert len(outer.sent) == count


def test_a_sum_inside_of_a_run_does_not_wait_for_its_own_executor():
    """prop-one-order: one thread, which would wait for itself for ever."""
    def visit(total, i, j):
        total += reduce_tiles(lambda t, i, j: t.__iadd__(1), lambda: np.zeros(1), 600)

    with ThreadPoolExecutor(1) as pool, parallel(pool):
        assert reduce_tiles(visit, lambda: np.zeros(1), 600)[0] == 36


def test_progress_is_shown_where_tqdm_is_installed(capsys, monkeypatch):
    """prop-one-order: a bar for each sum, and none without the option."""
    with parallel(progress=True):
        gram_dot(Linear(), sample(600), None, sample(600))
        assert "4/4" in capsys.readouterr().err    # runs, of six tiles
    with parallel(progress=True):
        reduce_runs(partial(pow_list, 2), [1, 2, 3])
    assert "3/3" in capsys.readouterr().err
    with parallel():
        reduce_runs(partial(pow_list, 2), [1, 2, 3])
    assert not capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "tqdm", None)
    with parallel(progress=True):
        assert reduce_runs(partial(pow_list, 2), [1, 2, 3]) == [2, 4, 8]
    assert not capsys.readouterr().err


def test_an_error_in_one_tile_ends_the_others(monkeypatch):
    """prop-tiles: at most the tile at hand is finished."""
    monkeypatch.setattr(module.os, "cpu_count", lambda: 4)
    visited = []

    def visit(total, i, j):
        visited.append((i, j))
        if i.start == 0 and j.start == 256:        # in the first run
            raise ZeroDivisionError
        time.sleep(0.02)

    with pytest.raises(ZeroDivisionError):
        reduce_tiles(visit, lambda: 0, 256 * 20, 256 * 20)
    assert len(visited) < 40                       # of 400


SLOW = """
import os, signal, time
from rkhs_lit import reduce_tiles

# A job in the background is started with interrupts ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)

def visit(total, i, j):
    os.write(1, b"tile\\n")
    time.sleep(0.2)

reduce_tiles(visit, lambda: 0, 256 * 60, 256 * 60)
"""


def test_an_interrupt_takes_effect_within_a_tile():
    """prop-tiles: 3600 tiles of 0.2 s take minutes, Ctrl-C ends them."""
    with subprocess.Popen(
        [sys.executable, "-c", SLOW],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        for _ in range(3):
            assert process.stdout.readline() == "tile\n"
        begin = time.monotonic()
        process.send_signal(signal.SIGINT)
        try:
            _, errors = process.communicate(timeout=8)
        finally:
            process.kill()
    # With 64 cores the tiles would still take 11 s; one takes 0.2 s.
    assert time.monotonic() - begin < 9
    assert "KeyboardInterrupt" in errors and process.returncode != 0


# -- processes and clusters ---------------------------------------------------


def sine(X):
    return np.sin(X)


def common(a, b):
    return float(len({*a} & {*b}))


TEXTS = [f"{a} {b} {c}" for a in "abcdefgh" for b in "bcdefghi" for c in "acegikmoq"]
X, Y = sample(700), sample(700, 3, 1)
WIDE = sample(700, 12, 2)[:, ::2]                  # not contiguous
CALLS = {
    "gram_dot": lambda: gram_dot(Gaussian(1.0), X, X[:400], Y[:400]),
    "gram_dot of one list": lambda: gram_dot(Mapped(Laplace(1.0), sine), X, None, Y),
    "gram_dot of columns": lambda: gram_dot(Linear(), WIDE, None, Y.T.copy().T),
    "gram_dot of texts": lambda: gram_dot(FeatureKernel(words), TEXTS, None, np.ones(576)),
    "gram_dot of objects": lambda: gram_dot(FunctionKernel(common), TEXTS[:300], None,
                                            np.ones(300)),
    "hsic": lambda: hsic(Gaussian(1.0), Laplace(1.0), X, Y),
    "hsic of columns": lambda: hsic(Linear(), Gaussian(1.0), WIDE, Y),
    "hsic_test": lambda: hsic_test(Gaussian(1.0), Gaussian(1.0), X[:300, :1], Y[:300, :1],
                                   n_permutations=99, rng=0),
    "hsic_test of full rank": lambda: hsic_test(Laplace(0.1), Laplace(0.1), X[:300],
                                                Y[:300], n_permutations=599, rng=0),
    "mmd_test": lambda: mmd_test(Gaussian(1.0), X[:300], Y[:300, :2],
                                 n_permutations=999, rng=0),
    "coco": lambda: coco(Gaussian(1.0), Gaussian(1.0), X[:310], Y[:310]),
    "coco_test": lambda: coco_test(Gaussian(1.0), Gaussian(1.0), X[:100], Y[:100],
                                   n_permutations=19, rng=0),
    "embedding_error": lambda: embedding_error(Gaussian(1.0), X),
    "median_heuristic": lambda: median_heuristic(X),
}


def bits(result):
    """All numbers of a result, as bytes."""
    if isinstance(result, (float, np.ndarray)):
        return np.asarray(result).tobytes()
    if hasattr(result, "null_distribution"):
        return bits(result.null_distribution), result.statistic, result.pvalue
    return result.value, bits(result.f.weights), bits(result.g.weights)


@pytest.fixture(scope="module")
def processes():
    """Two processes that share nothing with this one."""
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        yield pool


@pytest.fixture(scope="module")
def client():
    """A scheduler and two worker processes of Dask on the loopback address."""
    distributed = pytest.importorskip("distributed")
    with (distributed.LocalCluster(n_workers=2, threads_per_worker=1, host="127.0.0.1",
                                   dashboard_address="127.0.0.1:0") as cluster,
          distributed.Client(cluster) as client):
        client.wait_for_workers(2, timeout=30)
        yield client


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_processes_find_the_same_bits(processes, call):
    """prop-one-order."""
    wanted = bits(call())
    with parallel(processes):
        assert bits(call()) == wanted


@pytest.mark.parametrize("name", [
    "gram_dot", "gram_dot of texts", "hsic", "hsic_test", "hsic_test of full rank",
    "mmd_test", "coco"])
def test_a_cluster_finds_the_same_bits(client, name):
    """prop-one-order: a real scheduler, with workers in their own processes."""
    wanted = bits(CALLS[name]())
    with parallel(client.get_executor()):
        assert bits(CALLS[name]()) == wanted


def test_equal_points_of_a_later_block_have_keys_of_their_own(client, monkeypatch):
    """prop-one-order: the scheduler may be about to forget what the earlier block sent,
    and a run that waits for it would wait for ever."""
    keys, scatter = [], client.scatter

    def watched(*data, **options):
        future = scatter(*data, **options)
        assert future.key not in keys
        keys.append(future.key)
        return future

    monkeypatch.setattr(client, "scatter", watched)
    for _ in range(2):
        with parallel(client.get_executor()):
            gram_dot(Gaussian(1.0), X, None, Y)
    assert len(keys) == 4                          # X and Y, in two blocks


def slow(x, path, total, i, j):
    with open(path, "a") as file:
        file.write(f"{os.getpid()}\n")
    time.sleep(0.03)
    total[i] += x[i] * x[j].sum()


def slow_sum(tmp_path, tiles):
    x = sample(256 * tiles, 1)[:, 0]
    return reduce_tiles(partial(slow, x, tmp_path / "tiles"), partial(np.zeros, len(x)),
                        len(x), len(x))


def when_at_work(path, action):
    """Calls the action with the process of the tenth tile, soon after it."""
    def watch():
        end = time.monotonic() + 60
        while time.monotonic() < end:
            if path.exists() and len(lines := path.read_text().split()) >= 10:
                return action(int(lines[9]))
            time.sleep(0.01)

    thread = threading.Thread(target=watch)
    thread.start()
    return thread


def test_a_worker_that_is_killed_costs_time_and_no_correctness(client, tmp_path):
    """prop-one-order: its runs, and its points, are sent again."""
    wanted = slow_sum(tmp_path, 10)
    (tmp_path / "tiles").unlink()
    killer = when_at_work(tmp_path / "tiles", lambda pid: os.kill(pid, signal.SIGKILL))
    with parallel(client.get_executor()):
        found = slow_sum(tmp_path, 10)
    killer.join()
    pids = (tmp_path / "tiles").read_text().split()
    assert np.array_equal(found, wanted)
    assert len(pids) > 100 and str(os.getpid()) not in pids       # one run is repeated


@pytest.mark.parametrize("kind", ["processes", "client"])
def test_an_interrupt_leaves_no_task_behind(request, kind, tmp_path):
    """prop-one-order: 1600 tiles of 0.03 s, of which workers finish the ones at hand."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
    executor = request.getfixturevalue(kind)
    executor = executor if kind == "processes" else executor.get_executor()
    tiles = tmp_path / "tiles"
    killer = when_at_work(tiles, lambda _: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt), parallel(executor):
        slow_sum(tmp_path, 40)
    killer.join()
    executor.submit(int).result(timeout=20)        # somebody is free again
    time.sleep(0.3)
    count = len(tiles.read_text())
    time.sleep(0.3)
    assert len(tiles.read_text()) == count         # nobody visits tiles
    if kind == "client":
        client, deadline = request.getfixturevalue(kind), time.monotonic() + 20
        while any(client.run(active).values()) or any(client.processing().values()):
            assert time.monotonic() < deadline
            time.sleep(0.1)


def active(dask_worker):
    """How many threads of a worker have a task in hand."""
    return len(dask_worker.active_threads)
