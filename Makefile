# make demo | test | check | bench | clean.  Needs Python >= 3.11, git, make and bash; everything else goes into $(VENV).
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
JOBS ?= 2

.PHONY: help demo test check lint format types floors bench parity pyz mcpb clean env

help:            ## this list
	@grep -E '^[a-z]+:.*##' Makefile | sed 's/:.*## /\t/' | expand -t 12

env: $(STAMP)    ## the environment everything else runs in

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("toolroll needs Python 3.11 or newer, %s is %s; try: make PYTHON=python3.12 ..." % (sys.executable, sys.version.split()[0]) if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --editable . --group test --group lint
	$(BIN)/python -m pip install --quiet --target $(VENV)/sdk1 mcp==1.30.0  # its 1.x clients, for a test
	@touch $@

demo: $(STAMP)   ## a real MCP session through every tool, on this checkout
	@$(BIN)/toolroll demo

test: $(STAMP)   ## the whole suite, in parallel
	$(BIN)/python -m pytest -n $(JOBS)

check: lint types floors test  ## format, lint, types, floors, tests

lint: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

format: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

types: $(STAMP)
	$(BIN)/mypy

floors: $(STAMP)
	$(BIN)/lint-imports --no-cache

bench: $(STAMP)  ## side-by-side measurements, tables into benchmarks/README.md
	$(BIN)/python benchmarks/run.py $(ONLY)

parity: $(STAMP) ## the same answers as ripgrep, on real trees
	$(BIN)/python scripts/parity.py

pyz: $(STAMP)    ## every tool as one file, into dist/
	$(BIN)/python scripts/pyz.py

mcpb: pyz        ## and as MCP bundles
	$(BIN)/python scripts/mcpb.py

clean:           ## remove the environment and everything built
	rm -rf .venv .venv-* dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
