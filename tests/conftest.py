"""Settings for all tests."""

import os

from hypothesis import settings

# The same last bits here and in other processes, which have one thread each; and tests
# run side by side. It must be said before NumPy is imported.
for library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

# The same examples in every run, and no failure because a machine is busy.
settings.register_profile("book", deadline=None, derandomize=True)
settings.load_profile("book")
