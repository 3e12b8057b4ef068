"""Settings for all tests."""

from hypothesis import settings

# The same examples in every run, and no failure because a machine is busy.
settings.register_profile("book", deadline=None, derandomize=True)
settings.load_profile("book")
