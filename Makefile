# Every target makes what it needs: a fresh clone, python3 and make are enough.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
IRCTEST ?=
NAME ?=
INTO ?=
ARGS ?=

# Real programs that the tests talk to.
DEBIAN_PACKAGES := weechat-headless weechat-plugins irssi tmux git openssl chromium postgresql

UV := $(shell command -v uv 2>/dev/null)
ifdef UV
INSTALL := $(UV) pip install --quiet --python $(BIN)/python
else
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check
endif

.DEFAULT_GOAL := help
.PHONY: help env up test proof bench lint format types requirements packages irctest constraints debian clean

help: ## Show what there is to make
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/\1|\2/p' $(MAKEFILE_LIST) | while IFS='|' read -r target text; do \
	  printf '  make %-14s %s\n' "$$target" "$$text"; done

env: $(VENV)/.made-dev ## Make the environment for development (.venv)

up: $(VENV)/.made-run ## Run the server on loopback and say how to connect; options: make up ARGS="--port 7000"
	@exec $(BIN)/culture up $(ARGS)

test: env debian ## Run the tests
	@$(BIN)/pytest

proof: env debian ## Run the long proofs, or one: make proof NAME=fuzz
	@IRCTEST="$(IRCTEST)" $(BIN)/python -m tools.proof $(NAME)

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

packages: env ## Write packages/ from culture/, or copy them: make packages INTO=<repository>
	@$(BIN)/python -m tools.packages $(if $(INTO),--into "$(INTO)")

irctest: $(VENV)/.made-irctest ## Run the conformance suite: make irctest IRCTEST=<its checkout>
	@test -n "$(IRCTEST)" || { echo 'say where the suite is: make irctest IRCTEST=<path>' >&2; exit 2; }
	@PATH="$(abspath $(BIN)):$$PATH" tests/irctest/run "$(IRCTEST)"

constraints: ## Pin the newest versions that fit in constraints.txt
	@rm -rf build/constraints && $(PYTHON) -m venv build/constraints
	@build/constraints/bin/python -m pip install --quiet --disable-pip-version-check -e '.[dev,irctest]'
	@{ echo '# Versions known to work together; written by `make constraints`.'; \
	   build/constraints/bin/python -m pip freeze --exclude-editable; } > constraints.txt
	@rm -rf build/constraints

clean: ## Remove what was made, the environment included
	@rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis

# The environment: made when missing, added to when its inputs change, never thrown away.
$(BIN)/python:
	@echo 'Making the environment in $(VENV); this happens once.'
ifdef UV
	@$(UV) venv --quiet --python $(PYTHON) $(VENV)
else
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); test "$$(id -u)" = 0 && apt-get update -qq && \
	  apt-get install -qq -y python3-venv && $(PYTHON) -m venv $(VENV); }
endif

$(VENV)/.made-run: pyproject.toml constraints.txt | $(BIN)/python
	@$(INSTALL) -c constraints.txt -e .
	@touch $@

$(VENV)/.made-dev: pyproject.toml constraints.txt | $(BIN)/python
	@$(INSTALL) -c constraints.txt -e '.[dev]'
	@touch $(VENV)/.made-run $@

$(VENV)/.made-irctest: $(VENV)/.made-dev
	@$(INSTALL) -c constraints.txt -e '.[dev,irctest]'
	@touch $@

# Without root or apt-get the tests that want these programs skip and say so.
debian:
	@missing=; for package in $(DEBIAN_PACKAGES); do \
	  dpkg-query -W -f '$${Status}' $$package 2>/dev/null | grep -q 'install ok installed' || missing="$$missing $$package"; done; \
	test -z "$$missing" && exit 0; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  export DEBIAN_FRONTEND=noninteractive; \
	  apt-get install -qq -y --no-install-recommends $$missing >/dev/null 2>&1 || \
	    { apt-get update -qq && apt-get install -qq -y --no-install-recommends $$missing >/dev/null; } || \
	    echo "could not install:$$missing" >&2; \
	else echo "not installed, tests that want them skip:$$missing" >&2; fi
