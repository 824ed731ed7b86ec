# Two commands do all the set-up on a machine that has Python 3.11 and make:
#   make demo   installs shoal and discovers the penguins' species from their islands
#   make test   installs everything, lints, type-checks, runs doctests and tests
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
JOBS ?= 2
# One thread per worker: two processes with two threads each are slower than one.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1

.PHONY: demo test lint types check slow clean

demo: $(VENV)/.demo
	$(BIN)/shoal demo

test: $(VENV)/.test lint types check

lint:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types:
	$(BIN)/mypy

check:
	$(ONE_THREAD) $(BIN)/python -m pytest -n $(JOBS) -m "not slow"

slow: $(VENV)/.test
	$(ONE_THREAD) $(BIN)/python -m pytest -n $(JOBS) -m slow

$(VENV)/.demo: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e .
	touch $@

$(VENV)/.test: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[dev]"
	touch $@ $(VENV)/.demo

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache build src/*.egg-info
