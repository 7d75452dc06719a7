# Each command sets up the project's own environment in .venv first, from any Python 3 (see tools/bootstrap.py).
# A Python of your choice for a new .venv: make clean, then make demo PYTHON=/path/to/python3.13

PYTHON = python3
JOBS = 2
HERE := $(shell dirname "$(strip $(MAKEFILE_LIST))")
SETUP = @command -v "$(PYTHON)" > /dev/null || { echo "Python 3 is missing: install it, or name yours with PYTHON=..."; \
	exit 1; }; "$(PYTHON)" "$(HERE)/tools/bootstrap.py" $(if $(findstring command,$(origin PYTHON)),--this-python)
RUN = cd "$(HERE)" && .venv/bin/python

# With bytecode the imports take a fourth of the time.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo quick test examples lint slow fuzz bench docs notebooks clean environment

help:
	@echo "make demo    fit a sparse model to a real data set and show the result"
	@echo "make quick   the laws and the most telling tests, in a minute"
	@echo "make test    style, types and all tests but the slow ones and the notebooks"
	@echo "make examples    the notebooks, shortened"
	@echo "make slow    the long statistical checks"
	@echo "make fuzz    thousands of fits to nasty data; goes on where it was stopped"
	@echo "make lint    style and types alone"
	@echo "make bench   speed and accuracy beside other packages"
	@echo "make docs    the documentation site, in build/site"
	@echo "make notebooks   run the notebooks and store what they show (one of them: ONLY=name)"
	@echo "make clean   remove the environment and everything generated"

demo:
	$(SETUP) --extras demo
	@$(RUN) -m bayes_sparse demo

environment:
	$(SETUP) --extras test,lint

lint: environment
	$(RUN) -m ruff check
	$(RUN) -m ruff format --check
	$(RUN) -m mypy
	cd "$(HERE)" && .venv/bin/lint-imports

# The tests already run side by side: a thread pool in each would only make them wait for one another.
quick test examples slow fuzz: export OMP_NUM_THREADS = 1
quick test examples slow fuzz: export OPENBLAS_NUM_THREADS = 1
quick: export BAYES_SPARSE_QUICK = 1

# A file's tests stay together, so that its fits are made once, and files begin in the order of tests/conftest.py.
PYTEST = $(RUN) -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder

quick: environment
	$(PYTEST) -m "quick and not slow"

test: lint
	$(PYTEST) -m "not slow and not example"

examples: environment
	$(RUN) -m pytest -n $(JOBS) -m "example and not slow"

slow: environment
	$(RUN) -m pytest -n $(JOBS) -m slow

fuzz: environment
	$(RUN) -m tests.fuzz

bench:
	$(SETUP) --extras bench
	@$(RUN) -m benchmarks

# From nothing every time, so that a warning is never hidden by a page that was made before.
docs:
	$(SETUP) --extras docs
	cd "$(HERE)" && rm -rf build/site docs/api
	$(RUN) -m sphinx -q -E -W --keep-going -j $(JOBS) -b html -c docs . build/site
	@echo "The site is in $(HERE)/build/site: open index.html."

notebooks: environment
	@$(RUN) tools/notebooks.py $(ONLY)

clean:
	cd "$(HERE)" && rm -rf .venv build dist docs/api demo_output fuzz_output .pytest_cache .hypothesis .mypy_cache .ruff_cache .import_linter_cache
	cd "$(HERE)" && find . -name __pycache__ -type d -prune -exec rm -rf {} +
