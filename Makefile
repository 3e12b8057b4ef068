# The two commands: `make book` and `make test`. Both make the environment
# in .venv first, and use it again the next time.
#
# Make 3.81, which macOS brings, is enough: each line of a recipe is a shell of
# its own, and what one line sets, the next does not know.

SHELL := bash
.SILENT:
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
BIN := .venv/bin
ENVIRONMENT := .venv/complete
CHAPTERS ?=
say = printf '\n==> %s\n'
# Used as `command || $(fail) "what to do"`.
fail = bash -c 'printf "\n*** %s\n" "$$1" >&2; exit 1' make

.PHONY: help book pdf coursework test browser test-package test-pages test-notebooks-1 test-notebooks-2 test-oldest lab tangle untangle execute lint bench mutate clean distclean

help:  ## this list
	echo "make <target>, where <target> is one of"
	awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-13s %s\n", $$1, $$2}' Makefile

$(ENVIRONMENT): requirements.txt pyproject.toml
	$(say) "Making the environment in .venv (a few minutes, once)"
	"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || $(fail) \
	  "This needs Python 3.11 or newer; name one: make PYTHON=python3.12 ..."
	"$(PYTHON)" -m venv .venv || $(fail) \
	  "Python could not make an environment; on Debian and Ubuntu: apt install python3-venv"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt || $(fail) \
	  "Installing the tools failed; the first run needs access to a Python package index."
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps -e .
	touch $@

book: $(ENVIRONMENT)  ## build the book and say where to open it
	$(say) "Building the book"
# Sphinx reports a page's warnings only when it reads that page, so a build
# that did not end well must not be continued.
	[ -e _build/complete ] || rm -rf _build/html _build/.doctrees
	rm -f _build/complete
# The status goes to standard output, the warnings to standard error.
	set -o pipefail; $(BIN)/jupyter-book build . -n -W --keep-going \
	  | { grep --line-buffered -E '(reading sources|writing output).*%' || true; } \
	  || $(fail) "The book did not build: correct the warnings above."
	touch _build/complete
	$(say) "Open file://$(CURDIR)/_build/html/index.html"

pdf: book  ## print the book into one file, _build/book.pdf (needs a browser; some minutes)
	$(say) "Printing the pages"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade --target _build/pypdf pypdf==7.1.0
	PYTHONPATH=_build/pypdf $(BIN)/python tools/pdf.py

coursework: $(ENVIRONMENT)  ## write the student notebooks into _build/coursework
	$(BIN)/python -m rkhs_course make $(CHAPTERS)

SYNC := $(if $(filter output-sync,$(.FEATURES)),--output-sync=target)

# Two processes with one thread each are faster than one with two: most of
# the matrices are small.
test: $(ENVIRONMENT)  ## run everything that must hold
	$(say) "The package is what the book says"
	$(BIN)/python tools/tangle.py --check || $(fail) \
	  "Book and package differ: make tangle carries edits of the book, make untangle of the module."
	OMP_NUM_THREADS=1 $(MAKE) --jobs=2 $(SYNC) test-package test-notebooks-2 test-pages test-notebooks-1
	$(say) "Everything holds."

# CHROMIUM=/path/to/chrome names another than the first on the path.
PAGES := all
browser: book  ## look at every page in a browser, if the machine has one
	$(MAKE) look

look: $(ENVIRONMENT)
	$(say) "Pages in a browser ($(PAGES); without a browser these tests are skipped, and say how to get one)"
	BROWSER_PAGES=$(PAGES) $(BIN)/pytest -q -rs tests/browser.py || $(fail) \
	  "A page is not as it should be: the message above names it."

test-package: $(ENVIRONMENT)
	$(say) "Tests of the package and of the book; doctests"
	$(BIN)/pytest -q --doctest-modules rkhs_lit tests --ignore=tests/test_pages.py || $(fail) \
	  "A test failed: the message above names the place."

test-pages: $(ENVIRONMENT)
	$(say) "The book builds without a warning"
	rm -rf _build
	$(MAKE) book
	$(BIN)/pytest -q tests/test_pages.py || $(fail) "A built page is not as it should be."
	$(MAKE) look PAGES=some

# In two halves, so that two processes end together.
test-notebooks-1: NOTEBOOKS = book/[a-g]*.ipynb
test-notebooks-2: NOTEBOOKS = book/[h-z]*.ipynb
test-notebooks-1 test-notebooks-2: $(ENVIRONMENT)
	$(say) "Every notebook gives the outputs and the pictures that it shows ($(NOTEBOOKS))"
	$(BIN)/pytest -q --nbval --nbval-current-env -p no:cacheprovider $(NOTEBOOKS) || $(fail) \
	  "A stored output is not what its cell gives: run make execute, and read the difference."

OLDEST = $(shell sed -nE 's/^dependencies = \[(.*)\]/\1/p' pyproject.toml | tr -d '",' | sed 's/>=/==/g')

test-oldest:  ## run the tests with the oldest NumPy and SciPy that are supported
	$(say) "Making an environment in .venv/oldest"
	"$(PYTHON)" -m venv .venv/oldest
	.venv/oldest/bin/python -m pip install --quiet --disable-pip-version-check $(OLDEST) ".[test]"
	$(say) "Tests with $(OLDEST)"
	OMP_NUM_THREADS=1 PYTHONPATH=. .venv/oldest/bin/python -m pytest -q --doctest-modules rkhs_lit tests

lab: $(ENVIRONMENT)  ## open the chapters in JupyterLab
	$(BIN)/python tools/lab.py

tangle: $(ENVIRONMENT)  ## write the package from the book (CHAPTERS="...": the book wins there)
	$(BIN)/python tools/tangle.py $(CHAPTERS)

untangle: $(ENVIRONMENT)  ## write edits of the package into the book (CHAPTERS likewise)
	$(BIN)/python tools/tangle.py --untangle $(CHAPTERS)

execute: $(ENVIRONMENT)  ## run the notebooks in place (CHAPTERS="kernels riesz": only those)
	$(BIN)/python tools/execute.py $(CHAPTERS)

lint: $(ENVIRONMENT)  ## look for weak phrases, spelling, long cells
	$(BIN)/python tools/lint.py

bench:  ## time the rows of benchmarks/rows.py against the usual libraries (ROWS="hsic svm": only those)
	$(say) "Making an environment in .venv/bench"
	"$(PYTHON)" -m venv .venv/bench
	.venv/bench/bin/python -m pip install --quiet --disable-pip-version-check -r benchmarks/requirements.txt
	$(say) "Ours, peer and floor in turn (leave the machine alone)"
	PYTHONPATH=. .venv/bench/bin/python benchmarks/run.py $(ROWS)
	[ -n "$(ROWS)" ] || PYTHONPATH=. .venv/bench/bin/python benchmarks/scale.py

# For example: make mutate MODULES="hsic coco" SAMPLE=100 SEED=1; SAMPLE=0 tries every fault.
MODULES ?=
SAMPLE ?= 40
SEED ?= 0
JOBS ?= 1
mutate:  ## break functions on purpose: do their tests notice? (MODULES="hsic coco", SAMPLE=40, SEED=0)
	$(say) "Making an environment in .venv/mutate"
	"$(PYTHON)" -m venv .venv/mutate
	.venv/mutate/bin/python -m pip install --quiet --disable-pip-version-check -c requirements.txt cosmic-ray==8.7.0 coverage ".[test]"
	$(say) "Faults, one at a time, and the tests of their module"
	PYTHONPATH=. .venv/mutate/bin/python tools/mutate.py $(MODULES) --sample $(SAMPLE) --seed $(SEED) --jobs $(JOBS)

clean:  ## remove what was built
	rm -rf _build build dist book/api .pytest_cache .hypothesis
	find . -name .venv -prune -o \( -name __pycache__ -o -name .ipynb_checkpoints \) -type d -exec rm -rf {} +

distclean: clean  ## remove the environment as well
	rm -rf .venv *.egg-info
