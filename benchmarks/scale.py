"""How far a sum over tiles scales: constants, a model, and runs that check it.

A scheduler and one or two workers of Dask on 127.0.0.1 measure what a tile, a
run and a byte cost. From these alone the model of the appendix "How fast, how
large" says how long `hsic` takes, also where every message is late by some
milliseconds, and how long it would take for ten million points and a hundred
workers. Then `hsic` runs. All of it goes to scale.json beside this file, of
which the appendix makes its tables.

    python benchmarks/scale.py               everything (five minutes)
    python benchmarks/scale.py constants     only these
    python benchmarks/scale.py 10000 20000   only `hsic` with so many points

It needs an otherwise idle machine, NumPy, SciPy and distributed.
"""

import json
import os
import pickle
import sys
import time
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from threading import Timer
from unittest.mock import patch

import numpy as np

import rkhs_lit.tiles as tiles
from rkhs_lit import Gaussian, hsic, parallel, reduce_runs, reduce_tiles

HERE = Path(__file__).parent
RESULTS = HERE / "scale.json"
SIZES, LATENCIES = (10_000, 20_000, 40_000), (0.0, 0.01, 0.1)
PLAN = dict(n=10**7, workers=100, latency=1e-3, bandwidth=1.25e9)    # 10 Gbit/s
KERNEL = Gaussian(1.0)


# -- the model: prop-scale and prop-squares of the appendix ----------------------


def shape(n):
    """The tiles, the runs and the bytes of a total of `hsic` with n points."""
    with patch.object(tiles, "reduce_runs", lambda work, items, threads: items):
        runs = reduce_tiles(int, partial(np.zeros, (3, n)), n)
    return dict(n=n, tiles=runs[-1][1], runs=len(runs), bytes=3 * 8 * n)


def model(cost, n, workers, latency=0.0, bandwidth=float("inf"), cores=None):
    """The lower bounds of the time, in seconds, by their names."""
    one, both = shape(n), cost["tile"][min(workers, 2) - 1]
    sizes, callers, others = zip(*cost["messages"])
    R, latency = one["runs"], latency + cost["trip"] / 2
    t = one["tiles"] / R * both + float(np.interp(one["bytes"], sizes, others))
    s = float(np.interp(one["bytes"], sizes, callers)) + one["bytes"] / bandwidth
    begin = cost["begin"] + n * cost["point_bytes"] * (cost["point"] + workers / bandwidth)
    bounds = dict(work=begin + 2 * latency + -(-R // workers) * t, caller=begin + R * s,
                  window=begin + R * (t + 2 * latency) / (2 * workers))
    if cores:
        bounds["cores"] = begin + R * (t + s) / cores
    return dict(one, workers=workers, run_seconds=t, caller_seconds=s,
                begin_seconds=begin, bounds=bounds, model=max(bounds.values()))


# -- executors that count and that are late ---------------------------------------


class Counting(Executor):
    """Does at once what it is asked, and counts the bytes that would travel."""

    _max_workers = 1

    def __init__(self):
        self.there, self.back = [], []

    def submit(self, function, *arguments):
        data, future = pickle.dumps((function, arguments)), Future()
        answer = function(*pickle.loads(data)[1])
        if not isinstance(answer, list):              # it does not ask for the points
            self.there.append(len(data))
            self.back.append(len(answer))
        future.set_result(answer)
        return future


class Late(Executor):
    """Each submission and each answer arrives later, and holds up no other."""

    def __init__(self, executor, seconds):
        self.executor, self.seconds, self._client = executor, seconds, executor._client

    def submit(self, function, *arguments):
        late = Future()

        def answer(future):
            Timer(self.seconds, lambda: late.set_result(future.result())).start()

        Timer(self.seconds, lambda: self.executor.submit(
            function, *arguments).add_done_callback(answer)).start()
        return late


@contextmanager
def cluster(workers):
    """A client of a scheduler and so many worker processes with a thread each."""
    from distributed import Client, LocalCluster

    with (LocalCluster(n_workers=workers, threads_per_worker=1, host="127.0.0.1",
                       dashboard_address="127.0.0.1:0") as here, Client(here) as client):
        client.wait_for_workers(workers, timeout=60)
        yield client


# -- what is measured ----------------------------------------------------------


def timed(call):
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def pairs(n):
    return np.random.default_rng(0).normal(size=(2, n, 1))


def tile_seconds(n=5120):
    """What a tile of `hsic` takes on one thread of this process."""
    X, Y = pairs(n)
    with ThreadPoolExecutor(1) as pool, parallel(pool):
        hsic(KERNEL, KERNEL, X[:600], Y[:600])
        return timed(lambda: hsic(KERNEL, KERNEL, X, Y)) / shape(n)["tiles"]


def far_tile_seconds(n, count=300):
    """The same in the middle of the matrix of n points."""
    from rkhs_lit.hsic import _visit
    from rkhs_lit.moore_aronszajn import paired

    Phi, Psi = paired(KERNEL, KERNEL, *pairs(n), 4)
    total, middle = np.zeros((3, n)), n // 512 * 256
    rows = slice(middle, middle + 256)
    columns = [slice(j, j + 256) for j in range(middle + 256, middle + 256 * (count + 3), 256)]
    tiles = (KERNEL._summands(F.seen) for F in (Phi, Psi))
    visit = partial(_visit, *tiles, 0.0, 0.0, total, rows)
    visit(columns[0]), visit(columns[1])
    return timed(lambda: [visit(j) for j in columns[2:]]) / count


def blank(floats, item):
    return np.zeros(floats)


def see(X, item):
    return [len(X)]


def processor_seconds():
    return sum(os.times()[:2])


def message_seconds(client, floats, count):
    """The processor's seconds that a run takes from the caller, with its scheduler, and
    from a worker, if all it does is to send back so many numbers."""
    def spent():
        return np.array([processor_seconds(), sum(client.run(processor_seconds).values())])

    with parallel(client.get_executor()):
        reduce_runs(partial(blank, floats), range(2))
        before = spent()
        reduce_runs(partial(blank, floats), range(count))
    return ((spent() - before) / count).tolist()


def trip_seconds(client):
    """How long an empty run takes that is alone."""
    with parallel(client.get_executor()):
        return min(timed(lambda: reduce_runs(partial(blank, 1), [0])) for _ in range(50))


def begin_seconds(client, floats):
    """What new points cost, two parcels of them, above a sum that has its points."""
    two = [*np.random.default_rng().normal(size=(2, floats))]
    with parallel(client.get_executor()):
        first, again = (timed(lambda: reduce_runs(partial(see, two), [0])) for _ in range(2))
    return first - again


def in_workers(client, function, trials=8):
    """What the slowest of all workers finds at the same time, in the best of the trials."""
    def all_workers():
        return max(client.gather([
            client.submit(function, workers=[name], pure=False)
            for name in client.scheduler_info(n_workers=-1)["workers"]]))

    return min(all_workers() for _ in range(trials))


def constants():
    """The costs of a tile with one worker and with two, of runs, bytes and points."""
    with cluster(1) as client:
        one, far = in_workers(client, tile_seconds), in_workers(client, partial(
            far_tile_seconds, PLAN["n"]), 3)
    with cluster(2) as client:
        two = in_workers(client, tile_seconds)
        messages = [[8 * floats, *message_seconds(client, floats, count)]
                    for floats, count in ((1, 200), (10**5, 100), (10**6, 50), (10**7, 10),
                                          (5 * 10**7, 6))]
        trip = trip_seconds(client) - sum(messages[0][1:])
        (small, least), (large, most) = (
            (16 * floats, min(begin_seconds(client, floats) for _ in range(3)))
            for floats in (10**4, 10**7))
    X, Y = pairs(20_000)
    with parallel(counting := Counting()):
        hsic(KERNEL, KERNEL, X, Y)
    return dict(
        tile=[one, two], far_tile=far, messages=messages,
        trip=trip, begin=max(least, 0.0),
        point=(most - least) / (large - small), point_bytes=(max(counting.there) - min(counting.there)) / len(X),
        submission_bytes=min(counting.there), answer_bytes=median(counting.back),
        cores=os.cpu_count())


def measured(n):
    """Times of `hsic` with one worker and two, with messages that are late or not."""
    (X, Y), found = pairs(n), []
    value = hsic(KERNEL, KERNEL, X, Y)
    for workers in (1, 2):
        with cluster(workers) as client:
            hsic_there(client, 0.0, X[:600], Y[:600])
            for latency in LATENCIES:
                times, answers = [], []
                while not times or len(times) < 6 and sum(times) < 8:
                    times.append(timed(lambda: answers.append(
                        hsic_there(client, latency, X, Y))))
                assert {*answers} == {value}                    # every bit
                found.append(dict(n=n, workers=workers, latency=latency, seconds=min(times)))
                print(found[-1], flush=True)
    return found


def hsic_there(client, latency, X, Y):
    executor = client.get_executor()
    with parallel(Late(executor, latency) if latency else executor):
        return hsic(KERNEL, KERNEL, X, Y)


# -- the plan ------------------------------------------------------------------


def plan(cost):
    """The model far from home, and where more workers do not help."""
    one = model(cost, **PLAN)
    return dict(PLAN | one, memory=2 * PLAN["workers"] * one["bytes"],
                limit=one["run_seconds"] / one["caller_seconds"],
                alone=one["tiles"] * cost["tile"][1])


def main(words):
    found = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"runs": {}}
    if not words or "constants" in words:
        found["constants"] = constants()
    cost = found["constants"]
    for n in SIZES:
        if not words or str(n) in words:
            found["runs"][str(n)] = measured(n)
    for run in sum(found["runs"].values(), []):
        run.update(model(cost, run["n"], run["workers"], run["latency"], cores=cost["cores"]))
        print("{n} points, {workers} workers, {latency} s late: {seconds:.2f} s, "
              "model {model:.2f} s".format(**run))
    found["plan"] = plan(cost)
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
