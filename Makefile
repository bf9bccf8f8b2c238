# What a person does with the project. Every target does its own set-up; `make help` lists them.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
PYTHON := .venv/bin/python

# Start-up figures and a quick second run need bytecode; some machines forbid writing it.
unexport PYTHONDONTWRITEBYTECODE
# A venv or a path of the caller's shell must not reach ours.
unexport VIRTUAL_ENV PYTHONPATH PYTHONHOME

.PHONY: help setup demo test bench docs lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## make .venv with all that the tests use; quick when up to date
	@scripts/setup.sh

demo: ## run real evaluations offline, and show what they left
	@scripts/system-packages.sh bwrap=bubblewrap setpriv=util-linux
	@scripts/setup.sh
	@scripts/demo.sh

test: ## run every linter, type check, architecture check and test; PYTEST_ARGS adds to pytest's
	@scripts/system-packages.sh bwrap=bubblewrap setpriv=util-linux unshare=util-linux git=git tmux=tmux \
		podman=podman runc=runc busybox=busybox-static debootstrap=debootstrap
	@scripts/setup.sh
	@scripts/test.sh $(PYTEST_ARGS)

bench: ## measure ourselves against the bounds in docs/performance.md; BENCH_ARGS picks measures
	@scripts/system-packages.sh bwrap=bubblewrap setpriv=util-linux
	@scripts/setup.sh
	@$(PYTHON) -m benchmarks.run $(BENCH_ARGS)

docs: ## build the documentation site into build/site; needs no network
	@scripts/setup.sh
	@NO_MKDOCS_2_WARNING=1 $(PYTHON) -m mkdocs build --strict

lock: ## write requirements.lock anew from pyproject.toml (needs uv)
	@scripts/lock.sh

clean: ## remove what the other targets made, results excepted
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis build dist
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
