# Every target makes what it needs: a fresh clone, python3 and make are enough.

PYTHON ?=
VENV ?= .venv
BIN := $(VENV)/bin
IRCTEST ?=
NAME ?=
MINUTES ?=
DATA ?=
INTO ?=
ARGS ?=
# Much of a test is waiting: three workers more than there are cores, six at most. With two more, a fifth of the
# processors was idle.
WORKERS ?= $(shell cores=$$(nproc 2>/dev/null || echo 2); echo $$((cores < 3 ? cores + 3 : 6)))

# What `make quick` runs: pure code, and servers over real sockets, within a minute.
QUICK := tests/protocol tests/config tests/lib tests/test_architecture.py tests/house tests/transport tests/ledger_views \
  tests/server

# Real programs that the tests talk to.
DEBIAN_PACKAGES := weechat-headless weechat-plugins irssi ngircd tmux git openssl chromium postgresql zsh fish bubblewrap
# Agent programs that come from npm, each version pinned; those of the second list only for `make proof`.
AGENTS := $(VENV)/agents

UV := $(shell command -v uv 2>/dev/null)
ifdef UV
INSTALL := '$(UV)' pip install --quiet --python $(BIN)/python
else
INSTALL := $(BIN)/python tools/installing.py $(BIN)/python -m pip install --disable-pip-version-check --progress-bar off
endif
# Makes .venv with the first Python that is new enough, or repairs it.
ENVIRONMENT = PYTHON='$(PYTHON)' UV='$(UV)' tools/environment
EXTRAS := acp bridge codex copilot postgres semantic
# What was installed is gone with the Python that had it.
$(shell test -x $(BIN)/python || rm -f $(VENV)/.made-run $(VENV)/.made-dev $(VENV)/.made-irctest)

.DEFAULT_GOAL := help
.PHONY: help env up claude $(EXTRAS) agents moreagents test quick proof mutants bench lint format types requirements matrix packages docs pictures irctest constraints compiled collected debian clean

help: ## Show what there is to make
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/\1|\2/p' $(MAKEFILE_LIST) | while IFS='|' read -r target text; do \
	  printf '  make %-14s %s\n' "$$target" "$$text"; done
	@echo '  make EXTRA          Add an extra: $(EXTRAS)'

env: $(VENV)/.made-dev ## Make the environment for development (.venv)

up: $(VENV)/.made-run ## Run the server and an agent on loopback and say how to connect; options: make up ARGS="--port 7000"
	@exec $(BIN)/culture up $(ARGS)

claude: $(VENV)/.made-run ## Add what agents with Claude need
	@$(INSTALL) -c constraints.txt -e '.[claude]'

$(EXTRAS): $(VENV)/.made-run
	@$(INSTALL) -c constraints.txt -e '.[$@]'

test: compiled debian agents ## Run the tests, a file at a time on each worker: make test ARGS="tests/cli -k up"
	@env -u PYTHONDONTWRITEBYTECODE $(BIN)/pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder $(ARGS)

quick: env ## Run the tests that take a minute together and need no program of others
	@env -u PYTHONDONTWRITEBYTECODE $(BIN)/pytest -n $(WORKERS) --dist loadfile $(QUICK) $(ARGS)

proof: env debian agents moreagents ## Run the long proofs, or one: make proof NAME=idle MINUTES=60
	@IRCTEST="$(IRCTEST)" PROOF_MINUTES="$(MINUTES)" DATA="$(DATA)" $(BIN)/python -m tools.proof $(NAME)

mutants: env debian agents ## Change the code in 200 small ways and see whether a test fails (an hour)
	@PROOF_MINUTES="$(MINUTES)" $(BIN)/python -m tools.proof mutants

bench: env ## Measure the server beside others: make bench ARGS="--only fan100"
	@$(BIN)/python -m bench $(ARGS)

lint: env ## Check style
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

format: env ## Put the code in style
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

types: env ## Check types
	@$(BIN)/mypy

requirements: env ## Write docs/requirements.md from the markers of the tests
	@$(BIN)/python -m tools.requirements

matrix: env agents moreagents ## Write the table of docs/clients/backends.md from what the tests of the backends see
	@$(BIN)/python -m tools.matrix

packages: env ## Write packages/ from culture/, or copy them: make packages INTO=<repository>
	@$(BIN)/python -m tools.packages $(if $(INTO),--into "$(INTO)")

docs: env ## Build the documentation into site/, the reference of settings first
	@$(BIN)/python -m tools.site

pictures: env debian ## Take the pictures of the README from the running demonstration
	@$(BIN)/python -m tools.pictures

irctest: $(VENV)/.made-irctest ## Run the conformance suite: make irctest IRCTEST=<its checkout>
	@test -n "$(IRCTEST)" || { echo 'say where the suite is: make irctest IRCTEST=<path>' >&2; exit 2; }
	@PATH="$$PWD/$(BIN):$$PATH" tests/irctest/run "$(IRCTEST)"

constraints: ## Pin the newest versions that fit in constraints.txt
	@rm -rf build/constraints && mkdir -p build && PYTHON='$(PYTHON)' UV= tools/environment build/constraints
	@build/constraints/bin/python -m pip install --quiet --disable-pip-version-check -e '.[dev,irctest]'
	@{ echo '# Versions known to work together; written by `make constraints`.'; \
	   build/constraints/bin/python -m pip freeze --exclude-editable; } > constraints.txt
	@rm -rf build/constraints

clean: ## Remove what was made, the environment included
	@rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis

# The environment: made when missing, added to when its inputs change, never thrown away.
$(BIN)/python:
	@$(ENVIRONMENT) $(VENV)

$(VENV)/.made-run: pyproject.toml constraints.txt | $(BIN)/python
	@$(ENVIRONMENT) $(VENV)
	@$(INSTALL) -c constraints.txt -e .
	@touch $@

$(VENV)/.made-dev: pyproject.toml constraints.txt | $(BIN)/python
	@$(ENVIRONMENT) $(VENV)
	@$(INSTALL) -c constraints.txt -e '.[dev]'
	@touch $(VENV)/.made-run $@

$(VENV)/.made-irctest: $(VENV)/.made-dev
	@$(INSTALL) -c constraints.txt -e '.[dev,irctest]'
	@touch $@

# Hundreds of processes are started for the tests: none compiles.
compiled: env
	@$(BIN)/python -m compileall -q -j 0 culture tests tools

# Nor do the workers, each for itself, what pytest makes of the same files of tests.
collected: compiled
	@env -u PYTHONDONTWRITEBYTECODE $(BIN)/pytest --collect-only -qq >/dev/null || true  # what is wrong, the tests say

# Agent programs: without npm (or root to install it) the tests that want them skip and say so.
agents: $(AGENTS)/core/.made ## Install the agent programs that the tests drive
moreagents: $(AGENTS)/more/.made ## Install the further agent programs of the proofs

$(AGENTS)/%/.made: tests/agents/%/package.json | $(BIN)/python debian
	@command -v npm >/dev/null || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && apt-get update -qq && \
	  DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends nodejs npm >/dev/null; } || true
	@mkdir -p $(@D) && cp $< $(@D)/package.json
	@if command -v npm >/dev/null; then cd $(@D) && \
	  npm install --no-audit --no-fund --no-package-lock --loglevel=error && touch .made; \
	else echo 'npm is not installed, tests of agents that come from it skip' >&2; fi

# Without root or apt-get the tests that want these programs skip and say so. One apt-get at a time, also with -j.
debian: | $(BIN)/python
	@missing=; for package in $(DEBIAN_PACKAGES); do \
	  dpkg-query -W -f '$${Status}' $$package 2>/dev/null | grep -q 'install ok installed' || missing="$$missing $$package"; done; \
	test -z "$$missing" && exit 0; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  export DEBIAN_FRONTEND=noninteractive; \
	  apt-get install -qq -y --no-install-recommends $$missing >/dev/null 2>&1 || \
	    { apt-get update -qq && apt-get install -qq -y --no-install-recommends $$missing >/dev/null; } || \
	    echo "could not install:$$missing" >&2; \
	else echo "not installed, tests that want them skip:$$missing" >&2; fi
