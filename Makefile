# Two commands do all the set-up on a machine that has Python 3.11 and make:
#   make demo   installs shoal and discovers the penguins' species from their islands
#   make test   installs everything, lints, type-checks, runs doctests and tests
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
JOBS ?= 2
# One thread per worker: two processes with two threads each are slower than one.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_ROOT_USER_ACTION := ignore

.PHONY: demo test lint types check slow bench bench-check browser docs pages clean \
	lock lowest newest audit

demo: $(VENV)/.demo
	$(BIN)/shoal demo

test: lint types check

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.test
	$(BIN)/mypy

check: $(VENV)/.test browser
	$(ONE_THREAD) $(BIN)/python -m pytest -n $(JOBS) --dist loadfile -m "not slow" --durations 30

slow: $(VENV)/.test
	$(ONE_THREAD) $(BIN)/python -m pytest -n $(JOBS) --dist loadfile -m slow

# Time and memory against rows, domains, classes and features: what the records lack.
bench: $(VENV)/.test
	for script in growth bars kmeans; do $(ONE_THREAD) $(BIN)/python benchmarks/$$script.py || exit 1; done

# A few points anew: the ratios to the library calls against those of the record.
bench-check: $(VENV)/.test
	$(ONE_THREAD) $(BIN)/python benchmarks/growth.py --check

# Chromium for the tests of the report, from the system's packages when there is none.
browser:
	scripts/install_chromium.sh

# The documentation site, in build/docs; a warning is an error.
docs: $(VENV)/.test
	$(BIN)/python -m sphinx -q -W --keep-going -d build/trees docs build/docs

# Tables of README, docs and CHANGELOG, from the records and from changes/.
pages: $(VENV)/.demo
	$(BIN)/python scripts/update_readme.py

# By hash from locks/; where a lock cannot serve, this is said and constraints.txt decides
# (LOCKED=1 stops instead).
$(VENV)/.demo: pyproject.toml constraints.txt locks/demo.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python scripts/lock.py --install demo
	touch $@

$(VENV)/.test: pyproject.toml constraints.txt locks/test.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python scripts/lock.py --install test
	touch $@ $(VENV)/.demo

# The locks and their SBOM anew, after a change of pyproject.toml.
lock:
	$(PYTHON) scripts/lock.py

# The lowest versions that pyproject.toml allows, in an environment of their own (newest:
# today's); also with another Python: make newest PYTHON=python3.13 (TESTS= says which
# tests). What old packages say of new ones beside them is no error here.
TESTS ?= tests
lowest newest:
	$(PYTHON) -m venv $(VENV)-$@
	touch $(VENV)-$@/bounds.txt
	[ $@ = newest ] || $(PYTHON) scripts/lowest.py > $(VENV)-$@/bounds.txt
	$(VENV)-$@/bin/python -m pip install --quiet -c $(VENV)-$@/bounds.txt \
		-e ".[parquet,excel,faiss,boost,anndata,app]" hypothesis pillow pytest polars
	$(ONE_THREAD) $(VENV)-$@/bin/python -m pytest -m "not slow" \
		-W ignore::DeprecationWarning -W ignore::FutureWarning $(TESTS)

# Known holes in what the lock holds; needs the network and is no part of make test.
audit:
	$(PYTHON) -m venv $(VENV)-audit
	$(VENV)-audit/bin/python -m pip install --quiet pip-audit
	$(VENV)-audit/bin/pip-audit --no-deps --disable-pip -r locks/test.txt

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache build src/*.egg-info
