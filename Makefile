# Needs only Python 3.11+ (with venv and pip) and make. `make` alone lists the targets.

PYTHON ?= python3
UV_VERSION := 0.13.7

VENV := .venv
BIN := $(VENV)/bin
UV := $(BIN)/uv
STAMP := $(VENV)/.setup-stamp
PEERS := .venv-bench
PEERS_STAMP := $(PEERS)/.setup-stamp

# Directories that exist today; mypy refuses a path that does not.
CODE := $(wildcard src tests examples benchmarks tools)

.DEFAULT_GOAL := help
.PHONY: help setup ready demo run test suite coverage check types style bench simulate chaos proof docs lock proto clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# Some machines set it, and every start of the command line, and of the tests, would then pay for
# parsing.
export PYTHONDONTWRITEBYTECODE :=

# Two `make`s in one folder take turns, and the second finds everything done.
READY := +@$(PYTHON) tools/one_at_a_time.py Makefile $(MAKE) --no-print-directory ready FOR=

ready: $(FOR)
	@:

# compileall: a no-op for files that did not change.
setup: ## make .venv with everything pinned (quick when nothing changed)
	$(READY)$(STAMP)
	@$(BIN)/python -m compileall -q src

# --python: without it an activated environment elsewhere would be changed instead of .venv.
$(STAMP): pyproject.toml requirements/dev.txt requirements/model.txt $(UV)
	$(UV) pip sync --quiet --python $(BIN)/python --require-hashes requirements/dev.txt
	$(UV) pip install --quiet --python $(BIN)/python --no-deps --editable .
	$(BIN)/python -m tools.get_redis
	$(BIN)/python -m tools.get_tesseract
	$(BIN)/python -m tools.get_chromium
	$(BIN)/python -m tools.get_model
	@touch $@

# Without pip, which takes longer to install than all that the demo needs; it has to do so where
# $(PYTHON) has none, or one that is too old to install elsewhere.
PIP_OPTIONS := --quiet --disable-pip-version-check
$(UV):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo 'Penstock needs Python 3.11 or newer: make setup PYTHON=/path/to/python3.11' >&2; exit 1; }
	$(PYTHON) -m venv --without-pip $(VENV)
	$(PYTHON) -m pip --python $(BIN)/python install $(PIP_OPTIONS) uv==$(UV_VERSION) 2>/dev/null \
		|| { $(BIN)/python -m ensurepip >/dev/null && $(BIN)/pip3 install $(PIP_OPTIONS) uv==$(UV_VERSION); }
	@touch $@

# What these need, and nothing for tests. Added to what is there, so that `make setup` may come first.
# No bytecode ahead: they load less than a tenth of it.
$(VENV)/.%-stamp: pyproject.toml requirements/%.txt $(UV)
	$(UV) pip install --quiet --python $(BIN)/python --require-hashes --requirements requirements/$*.txt
	$(UV) pip install --quiet --python $(BIN)/python --no-deps --editable .
	@touch $@

demo: ## watch it work
	$(READY)$(VENV)/.demo-stamp
	$(BIN)/python examples/demo.py

run: ## serve the quickstart example on localhost:8321
	$(READY)$(VENV)/.run-stamp
	$(BIN)/penstock serve examples.quickstart:app

# Most tests wait more than they compute: eight at a time (tests/support/parallel.py). Types take one
# core for a minute, beside the first of them. All parts are run, whatever comes of the others.
test: setup ## checks, and the tests
	@$(MAKE) --no-print-directory -j3 -k style types suite

suite:
	$(BIN)/python -m pytest --workers 8 --durations=60

# The core: what needs no quiet machine. A part of the tests, so that they hold the floor that
# pyproject.toml names by themselves.
CORE := tests/unit tests/conformance
coverage: setup ## the core of the tests, and how many branches of src they take
	rm -f .coverage .coverage.*
	failed=0; \
	COVERAGE_PROCESS_START=$(CURDIR)/pyproject.toml $(BIN)/python -m pytest $(CORE) -m 'not alone' --workers 4 || failed=1; \
	$(BIN)/python -m coverage combine --quiet && $(BIN)/python -m coverage report || failed=1; \
	exit $$failed

check: setup ## lint, format, types, layers
	@$(MAKE) --no-print-directory -j2 -k --output-sync=target types style

# Pyright has only to see what users write as mypy does: the folder of tests/types.
types:
	$(BIN)/mypy $(CODE)
	$(BIN)/pyright --pythonpath $(BIN)/python

style:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo

# RESUME=--resume leaves out what was measured of this commit already. COMPARE=COMMIT measures that
# commit instead of the peers.
bench: setup $(if $(COMPARE),,$(PEERS_STAMP)) ## run the benchmarks beside the peers
ifdef COMPARE
	$(BIN)/python -m benchmarks.compare $(COMPARE)
else
	failed=0; \
	$(BIN)/python -m benchmarks $(RESUME) || failed=1; \
	$(BIN)/python -m benchmarks.proof || failed=1; \
	exit $$failed
endif

# The peers have an environment of their own, so that `make test` does not wait for it. Copies, because
# nltk (of LlamaIndex) reads no file that is linked from elsewhere, as uv would have it.
$(PEERS_STAMP): requirements/bench.txt $(UV)
	$(PYTHON) -m venv --clear $(PEERS)
	$(UV) pip sync --quiet --python $(PEERS)/bin/python --require-hashes --compile-bytecode --link-mode copy \
		requirements/bench.txt
	@touch $@

# SEEDS=N tries the seeds 0 to N-1, SEEDS=FIRST:END those, SEEDS=N:N+1 one; QUEUE=file or server.
SEEDS ?= 2000
simulate: setup ## simulate the engine under faults from a seed
	$(BIN)/python -m tests.simulation $(SEEDS) $(if $(QUEUE),--queue $(QUEUE))

chaos: setup ## kill things for longer than `make test` does
	failed=0; \
	PENSTOCK_CHAOS=1 PENSTOCK_RESUME=$(RESUME) $(BIN)/python -m pytest tests/chaos --timeout=900 --durations=10 || failed=1; \
	PENSTOCK_CHAOS=1 $(BIN)/python -m pytest -m long || failed=1; \
	$(BIN)/python -m tests.simulation 100000 --keep --resume || failed=1; \
	$(BIN)/python -m benchmarks.proof || failed=1; \
	exit $$failed

# A missed target does not keep the rest from being measured; the page and the exit code tell it.
proof: ## everything docs/proof.md says, measured again; goes on where it was interrupted
	failed=0; \
	$(MAKE) bench RESUME=--resume || failed=1; \
	$(MAKE) chaos RESUME=--resume || failed=1; \
	exit $$failed

# That what the docs say is true is part of `make test`. Here only the site is built, strictly.
docs: setup ## build the docs' site into build/site, and check it
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	$(BIN)/python -m pytest tests/docs/test_site.py -q
	@echo 'to read it: $(BIN)/python -m http.server --directory build/site'

COMPILE := $(UV) pip compile --quiet --no-config --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --custom-compile-command 'make lock' $(if $(UPGRADE),--upgrade)

lock: $(UV) ## resolve requirements/*.txt again (UPGRADE=1 takes newer versions)
	$(COMPILE) --all-extras --output-file requirements/dev.txt pyproject.toml requirements/dev.in
	$(COMPILE) --constraints requirements/dev.txt --extra ingest --output-file requirements/demo.txt pyproject.toml
	$(COMPILE) --constraints requirements/dev.txt --extra ingest --extra server --extra mcp --extra research \
		--extra cron --output-file requirements/run.txt pyproject.toml
	$(COMPILE) --override requirements/bench-overrides.in --output-file requirements/bench.txt requirements/bench.in

proto: setup ## generate code from proto/ again
	$(BIN)/python -m tools.proto

clean: ## remove environments, caches and build output
	rm -rf $(VENV) $(PEERS) build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	rm -rf htmlcov .coverage .coverage.*
	find src tests examples benchmarks tools -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
