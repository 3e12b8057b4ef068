"""Time and memory, for the benchmarks beside this file."""

import resource
import time


def best(function, repeats=3):
    """The shortest of several times of a call, in seconds."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def peak():
    """The largest memory that this process has had so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
