# Everything here works on a fresh Debian or Ubuntu machine that has Python >= 3.11, make and a compiler.
# `make demo` and `make test` create .venv and install what they need.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
ARGS   ?=
NAME   ?=
# Half of the tests' time is waiting: for leases, timeouts, servers.
WORKERS ?= $(shell expr `nproc` + 1)
QUICK  ?=

.DEFAULT_GOAL := help
.PHONY: help demo test check pytest bench soak clean

help:  ## What can be made
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "tenantry needs Python 3.11 or newer; $(PYTHON) is `$(PYTHON) -V`. Try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@echo "installing into $(VENV) (once, about half a minute)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[all]' --group dev
	@touch $@

demo: $(STAMP)  ## 50 tenants on a real PostgreSQL: one burst, then 50 replays at once (less than two minutes)
	@$(BIN)/tenantry demo $(ARGS)

test: check pytest  ## ruff, import contracts, strict types, sizes, then every test

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/mypy
	$(BIN)/python tests/sizes.py

pytest: $(STAMP)
	@sh tests/install_servers.sh
	$(BIN)/pytest -q -n $(WORKERS) $(ARGS)

bench: $(STAMP)  ## every benchmark, or one: NAME=queue; QUICK=1 for a short run
	$(BIN)/python -m benchmarks $(if $(NAME),--name $(NAME)) $(if $(QUICK),--quick) $(ARGS)

soak: $(STAMP)  ## the long proofs in full: NAME=crash
	$(BIN)/pytest -q -m soak $(if $(NAME),-k $(NAME)) -p no:xdist --timeout=0 $(ARGS)

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
