PYTHON ?= python3
BIN := .venv/bin
CORES := $(shell nproc 2>/dev/null || echo 2)
# Small matrices gain nothing from threads, and lose much when there is a process on every core.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 NUMBA_NUM_THREADS=1
# Bytecode is made when a module is first imported, and kept: most of what is installed never is. Where it may not
# be kept, every process of a test would compile all of numpy, scipy and numba again.
unexport PYTHONDONTWRITEBYTECODE
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --no-compile

.PHONY: demo serve test test-long lint types bench docs readme changelog clean

demo: .venv/core
	@# 1 says that a claim is refuted: a finding of the report, not a failure to write it.
	$(BIN)/orthobandit reproduce --quick --out report || [ $$? -eq 1 ]

# A server with a dashboard, and made-up visitors; PORT=8001 where 8000 is taken.
serve: .venv/service
	@$(BIN)/orthobandit demo-traffic --serve $(if $(PORT),--port $(PORT)) || [ $$? -eq 130 ]

# Workers keep to neighbouring tests, which share servers and compiled code. What they compile runs for moments, so
# most of the compiler's optimisations, which change no number, would take longer than they save; it is kept apart
# from the package's own. The long tests use that one.
QUICKLY_COMPILED := NUMBA_OPT=1 NUMBA_CACHE_DIR=$(CURDIR)/.pytest_cache/compiled
test: .venv/test
	$(ONE_THREAD) $(QUICKLY_COMPILED) $(BIN)/python -m pytest -n $(CORES) --dist worksteal --durations=15 -m "not long"

# What `make test` leaves out: hours on two cores.
test-long: .venv/test
	$(ONE_THREAD) $(BIN)/python -m pytest -n $(CORES) --dist worksteal --durations=15 -m long

lint: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: .venv/dev
	$(BIN)/mypy

bench: .venv/dev
	$(ONE_THREAD) $(BIN)/python -m benchmarks $(NAMES)

docs: .venv/dev
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build/html
	@echo "docs: docs/_build/html/index.html"

# README's numbers from a report: a --full one, when there is time for it.
readme: .venv/core
	$(BIN)/python docs/headlines.py store $(or $(REPORT),report)
	$(BIN)/python docs/headlines.py write

changelog: .venv/bin/python
	$(BIN)/python changes/build.py $(VERSION)

# One stamp per set of dependencies, so that a newcomer installs no more than the command needs.
.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.11")'
	$(PYTHON) -m venv .venv

.venv/core: .venv/bin/python pyproject.toml constraints.txt
	@echo "installing what a report needs: under a minute where packages are near"
	$(PIP) -c constraints.txt -e '.[plots,parquet]'
	@touch $@

.venv/service: .venv/bin/python pyproject.toml constraints.txt
	@echo "installing the service: under a minute where packages are near"
	$(PIP) -c constraints.txt -e '.[client,service]'
	@touch $@

.venv/test: .venv/bin/python pyproject.toml constraints.txt
	$(PIP) -c constraints.txt -e '.[test]'
	@touch $@

.venv/dev: .venv/bin/python pyproject.toml constraints.txt
	$(PIP) -c constraints.txt -e '.[dev]'
	@touch $@

clean:
	rm -rf .venv report docs/_build .mypy_cache .ruff_cache .pytest_cache .hypothesis
