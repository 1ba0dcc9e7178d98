# The two commands are `make run` and `make test`; the rest serves those who change the code.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DATA ?= ./data

.PHONY: run test lint types format bench clean

run: $(VENV)/.run
	@$(BIN)/memory-gateway serve --data-dir $(DATA)

test: $(VENV)/.dev
	@$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder

lint: $(VENV)/.dev
	@$(BIN)/ruff check gateway tests
	@$(BIN)/ruff format --check gateway tests
	@$(BIN)/lint-imports

types: $(VENV)/.dev
	@$(BIN)/pyright

format: $(VENV)/.dev
	@$(BIN)/ruff format gateway tests
	@$(BIN)/ruff check --fix gateway tests

bench: $(VENV)/.dev
	@for script in tests/bench/[a-z]*.py; do \
		case $$(basename $$script) in quality_*) ;; *) echo "== $$script"; PYTHONPATH=. $(BIN)/python $$script || exit 1;; esac; done

clean:
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache .hypothesis

$(VENV)/bin/pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed (PYTHON=...)"; exit 1; }
	@command -v git >/dev/null || { echo "git is needed"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run: pyproject.toml $(VENV)/bin/pip
	@echo "Installing into $(VENV) (once)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@$(BIN)/python -m compileall -q gateway
	@touch $@

$(VENV)/.dev: pyproject.toml $(VENV)/bin/pip
	@echo "Installing with development packages into $(VENV) (once)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check "pip>=25.1"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e . --group dev
	@$(BIN)/python -m compileall -q gateway
	@touch $@ $(VENV)/.run
