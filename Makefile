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

.PHONY: help demo quick test lint slow fuzz bench clean environment

help:
	@echo "make demo    fit a sparse model to a real data set and show the result"
	@echo "make quick   the laws and the most telling tests, in a minute"
	@echo "make test    style, types and all tests but the slow ones"
	@echo "make slow    the long statistical checks"
	@echo "make fuzz    thousands of fits to nasty data; goes on where it was stopped"
	@echo "make lint    style and types alone"
	@echo "make bench   speed and accuracy beside other packages"
	@echo "make clean   remove the environment and everything generated"

demo:
	$(SETUP) --extras demo
	@$(RUN) tools/demo.py

environment:
	$(SETUP) --extras test,lint

lint: environment
	$(RUN) -m ruff check
	$(RUN) -m ruff format --check
	$(RUN) -m mypy
	cd "$(HERE)" && .venv/bin/lint-imports

# The tests already run side by side: a thread pool in each would only make them wait for one another.
quick test slow fuzz: export OMP_NUM_THREADS = 1
quick test slow fuzz: export OPENBLAS_NUM_THREADS = 1
quick: export BAYES_SPARSE_QUICK = 1

# A file's tests stay together, so that its fits are made once, and files begin in the order of tests/conftest.py.
PYTEST = $(RUN) -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder

quick: environment
	$(PYTEST) -m "quick and not slow"

test: lint
	$(PYTEST) -m "not slow"

slow: environment
	$(RUN) -m pytest -n $(JOBS) -m slow

fuzz: environment
	$(RUN) -m tests.fuzz

bench:
	$(SETUP) --extras bench
	@$(RUN) -m benchmarks

clean:
	cd "$(HERE)" && rm -rf .venv build dist demo_output fuzz_output .pytest_cache .hypothesis .mypy_cache .ruff_cache .import_linter_cache
	cd "$(HERE)" && find . -name __pycache__ -type d -prune -exec rm -rf {} +
