# `make demo` and `make test` set themselves up on a fresh clone. Everything CI runs is a target here.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
SHELL := /bin/bash

PYTHON ?= python3.11
VENV := .venv
JOBS ?= 2
PYTEST = OMP_NUM_THREADS=1 python -m pytest -n $(JOBS) --dist worksteal --durations 40 --durations-min 2
SUITE ?= demo
TESTS ?=
YES ?=

# The environment of every command below; flows/settings.py says the same to `dprec`, prefect.toml and .dvc/config to
# `prefect` and `dvc` when they are called by hand.
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
export PREFECT_HOME ?= $(CURDIR)/.prefect
export PREFECT_SERVER_ANALYTICS_ENABLED ?= false
export DO_NOT_TRACK ?= 1
export DVC_NO_ANALYTICS ?= 1
export DVC_SITE_CACHE_DIR ?= $(shell mkdir -p -m 700 .dvc/tmp/site && echo $(CURDIR)/.dvc/tmp/site)
export GX_ANALYTICS_ENABLED ?= false
export DGLBACKEND ?= pytorch
unexport PYTHONPATH PYTHONHOME VIRTUAL_ENV PYTHONDONTWRITEBYTECODE  # every command would compile the project anew

.PHONY: help
help:  ## show the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

.PHONY: env
env: $(VENV)/.project  ## the virtual environment in .venv, as requirements.lock pins it

# Built anew when the lock changes, so that nothing is left of older ones; a half-built one has no stamp.
$(VENV)/.packages: requirements.lock
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) is not installed: dprec needs Python 3.11 (DGL has no build for later ones). Install it, or name it: make $(or $(MAKECMDGOALS),env) PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' || { echo "$(PYTHON) is not Python 3.11, which dprec needs (DGL has no build for later ones); name one: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check torch==2.13.0
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	@touch $@

$(VENV)/.project: $(VENV)/.packages pyproject.toml
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps --editable .
	$(VENV)/bin/python -m pip check
	@touch $@

.PHONY: demo
demo: env  ## run the whole pipeline on the embedded synthetic data, end with the path of the report
	@dprec run demo

.PHONY: gerai
gerai: env  ## regenerate GERAI on MovieLens 100K (downloads it, or takes it from DPREC_MIRROR)
	@dprec run gerai

.PHONY: dipsgnn
dipsgnn: env  ## regenerate DIPSGNN on MovieLens 100K (downloads it, or takes it from DPREC_MIRROR)
	@dprec run dipsgnn

.PHONY: dpvae
dpvae: env  ## regenerate DP-VAE on MovieLens 100K (downloads it, or takes it from DPREC_MIRROR)
	@dprec run dpvae

.PHONY: privsr
privsr: env  ## regenerate PrivSR on Ciao and Epinions (which you place, or which DPREC_MIRROR has)
	@dprec run privsr
	@dprec run privsr-epinions

.PHONY: dpcrosue
dpcrosue: env  ## regenerate DP-CroSUE on Foursquare and on IONE's networks (which you place, or which DPREC_MIRROR has)
	@dprec run dpcrosue
	@dprec run dpcrosue-ione

.PHONY: dipsgnn-ml-1m
dipsgnn-ml-1m: env  ## regenerate DIPSGNN on half of MovieLens 1M (which you place, or which DPREC_MIRROR has)
	@dprec run dipsgnn-ml-1m

.PHONY: test
test: env  ## the test suite, but for test-slow; TESTS=tests/privacy for a part of it, slow ones too
	$(PYTEST) -m "$(if $(TESTS),,not slow)" $(TESTS)

.PHONY: test-slow
test-slow: env  ## runs of whole projects, kills, clusters, statistical audits
	$(PYTEST) -m slow

.PHONY: views
views: env  ## DVC's own views, as docs/running.md has them: a line per suite, plots, experiments of one suite, its stages
	@mkdir -p .dvc/tmp
	dvc metrics show | tee .dvc/tmp/view; test "$$(wc -l < .dvc/tmp/view)" -ge 15
	dvc plots show demo-utility demo-attacks demo-curves --out .dvc/tmp/plots; ! grep 'spec = {}' .dvc/tmp/plots/index.html
	dvc exp show --drop '^(?!Experiment$$|rev$$|.*demo/summary|.*demo-dp-popularity.config.epsilon)' --csv | tee .dvc/tmp/view
	head -1 .dvc/tmp/view | grep '^Experiment,rev,.*epsilon' | tr ',' '\n' | wc -l | awk '{ exit !($$1 >= 10 && $$1 <= 60) }'
	dvc dag --mermaid --collapse-foreach-matrix report@demo | tee .dvc/tmp/view; wc -l < .dvc/tmp/view | awk '{ exit !($$1 >= 20 && $$1 <= 100) }'

.PHONY: lint
lint: env  ## format and lint
	ruff format --check .
	ruff check .
	hadolint Dockerfile

.PHONY: types
types: env  ## static types
	mypy

.PHONY: architecture
architecture: env  ## imports point one way
	lint-imports

.PHONY: library
library:  ## the library and the audit alone, from a wheel, in an environment of their own: make library PYTHON=python3.13
	$(PYTHON) -m venv --clear $(VENV)-library
	$(VENV)-library/bin/python -m pip install --quiet .
	cd $(VENV)-library && bin/python -c "import json, dprec.attacks; cells = json.load(open('../docs/quickstart.ipynb'))['cells']; \
		exec(''.join(''.join([*cell['source'], chr(10)]) for cell in cells if cell['cell_type'] == 'code'))"
	cd $(VENV)-library && bin/dprec audit --help
	rm -rf $(VENV)-library

.PHONY: bench
bench: env  ## measure speed; nothing passes or fails by it
	@for file in tests/benchmarks/bench_*.py; do echo "== $$file"; python -m tests.benchmarks.$$(basename $$file .py) || exit 1; done

.PHONY: site
site: env  ## the pages of all suites and those over them, in site/, from the committed results
	@dprec site --out site

.PHONY: pictures
pictures: env  ## the pictures of the README, from the committed results, by Chromium
	@python -m tests.pictures

.PHONY: false-alarms
false-alarms: env  ## 220 systems that leak nothing: how often `dprec audit` says that they do
	@python -m tests.external.false_alarms

.PHONY: planted
planted: env  ## put mistakes into copies of the private code: tests and audits must notice each; writes docs/planted.csv
	@python -m tests.privacy.planted

.PHONY: fuzz
fuzz: env  ## spoil files of every format: each must load or be refused in one line; SECONDS=1200 (600 by default)
	@python -m tests.fuzz --seconds $(or $(SECONDS),600)

.PHONY: faults
faults: env  ## kill, damage and fill up the demo, cut small, again and again: the next run must recover; writes docs/faults.csv
	@python -m tests.faults --write

.PHONY: regenerate
regenerate: env  ## SUITE=gerai (or any other) from nothing, then compare with the committed numbers
	rm -rf data/runs/$(SUITE) data/checkpoints/$(SUITE)  # all others are shared with other suites: --force computes them again
	@dprec check $(SUITE)
	@dprec run $(SUITE) --force
	@dprec compare $(SUITE)

.PHONY: remote
remote:
	@[ -n "$(DVC_REMOTE)" ] || { echo "DVC_REMOTE names no remote: make nightly SUITE=$(SUITE) DVC_REMOTE=s3://BUCKET/dprec (or a folder)" >&2; exit 1; }

.PHONY: nightly
nightly: remote env  ## SUITE from what the DVC remote at DVC_REMOTE has: work out the rest, compare, and put there what is new
	@umask 077; dvc remote add --quiet --local --default --force nightly "$(DVC_REMOTE)"
	umask 077; dvc pull --quiet --allow-missing --with-deps report@$(SUITE)  # of an empty remote nothing
	@dprec run $(SUITE)
	@dprec compare $(SUITE) || [ $$? = 2 ]  # where all was pulled there is nothing to compare
	umask 077; dvc push --quiet --with-deps report@$(SUITE)

.PHONY: ci
ci:  ## what CI runs
	.ci/run

.PHONY: lock
lock:  ## pin anew what pyproject.toml asks for, everything below it included
	$(PYTHON) -m venv --clear $(VENV)-lock
	$(VENV)-lock/bin/python -m pip install --quiet torch==2.13.0
	$(VENV)-lock/bin/python -m pip install --quiet ".[pipeline,dev]"
	@{ sed '/^[^#]/,$$d' requirements.lock; $(VENV)-lock/bin/python -m pip freeze --all --exclude dprec --exclude pip | grep -v '^nvidia-\|^triton==' | sed 's/+[a-z0-9.]*$$//'; \
		echo 'async-timeout==5.0.1; python_full_version < "3.11.3"'; } > requirements.lock.partial  # redis asks for it there
	@mv requirements.lock.partial requirements.lock
	rm -rf $(VENV)-lock

# Cheap: what `dprec report` and DVC's cache give back at once, and what tools keep for themselves. Dear: hours of training,
# downloads, and what cannot be made again, such as the record of runs. Nothing ever removes data/placed or data/results.
CHEAP := site screenshots data/reports data/quality .planted .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis \
	build dist dprec.egg-info $(VENV)-lock $(VENV)-library requirements.lock.partial
DEAR := .axe .dvc/cache .dvc/tmp .prefect data/raw data/interim data/processed data/perturbed data/words data/embeddings \
	data/aligned data/targets data/runs data/checkpoints data/provenance

# Rules of accessibility for the tests in a browser, which say so where they lack it. Its digest stands with the tests.
.PHONY: axe
axe:  ## axe-core from npm, for tests of pages in a browser
	@command -v npm >/dev/null || { echo "npm is not installed: tests of accessibility are skipped" >&2; exit 1; }
	@[ -e .axe/node_modules/axe-core/axe.min.js ] || npm install --silent --fetch-retries 0 --fetch-timeout 30000 --no-save --ignore-scripts --no-audit --no-fund --prefix .axe axe-core@4.11.1

clean distclean: export DVC_SITE_CACHE_DIR =  # which makes a folder as it is read
.PHONY: clean
clean:  ## remove what is cheap to make again: reports, pages of checks, caches of tools
	rm -rf $(CHEAP)
	@find dprec flows tasks tests -name __pycache__ -type d -prune -exec rm -rf {} +

.PHONY: distclean
distclean:  ## remove everything that was computed or downloaded; says first what that costs, and asks unless YES=1
	@$(PYTHON) -m flows.cost $(CHEAP) $(DEAR)
	@[ "$(YES)" = 1 ] || { read -r -p "remove all of it? Type yes: " answer && [ "$$answer" = yes ]; } || { echo "nothing was removed" >&2; exit 1; }
	rm -rf $(CHEAP) $(DEAR) data/.lock*
	@find dprec flows tasks tests -name __pycache__ -type d -prune -exec rm -rf {} +
