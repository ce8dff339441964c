# Every target sets up all that it needs: a virtual environment in .venv, with the versions in constraints.txt.
PYTHON ?= python3
BIN := .venv/bin
# The package itself for `demo` and `docs`, the development tools on top for everything else.
USER := .venv/.installed
DEV := .venv/.installed-dev
# For some tests, which skip and say so where these cannot be installed: a browser and Chinese letters for pages, fonts of
# several makers for pictures, a voice for speech.
BROWSER := .venv/.browser
FONTS := .venv/.fonts
VOICE := .venv/.voice
EXTRAS := $(BROWSER) $(FONTS) $(VOICE)

.PHONY: demo test unit check format bench docs soak clean

demo: $(USER)            ## train on the built-in task and show what it learned
	$(BIN)/clearhead demo

test: check $(EXTRAS)    ## style, types and all tests: the quick ones side by side, then those that start processes
	OMP_NUM_THREADS=1 $(BIN)/pytest -n auto -m "not slow"
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist loadfile -m slow

unit: $(DEV)             ## the tests that take under a minute together
	OMP_NUM_THREADS=1 $(BIN)/pytest -n auto -m "not slow"

check: $(DEV)            ## formatting, lint and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(DEV)           ## apply the formatting and the safe lint fixes
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(DEV)            ## measure, side by side with the peers, in .bench/; QUICK=1: a quick look
	$(BIN)/python -m benchmarks $(if $(QUICK),--quick)

docs: $(USER)            ## write the generated pages of docs/ and the READMEs' table anew, and the site: build/site/index.html
	$(BIN)/python -m docs.generate
	$(BIN)/python -m benchmarks.table --write
	$(BIN)/python -m docs.build

soak: check $(EXTRAS)    ## the long way: full sweeps of the faults, five million pairs, all measurements
	CLEARHEAD_SOAK=1 OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist loadfile
	$(BIN)/python -m benchmarks.prepare_large 5000000
	$(BIN)/python -m benchmarks

clean:
	rm -rf .venv .bench

.venv/bin/python:
	$(PYTHON) -m venv .venv

$(USER): pyproject.toml constraints.txt | .venv/bin/python
	$(BIN)/pip install --quiet -c constraints.txt -e .
	touch $@

$(BROWSER): | .venv/bin/python
	command -v chromium >/dev/null || { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y \
		chromium fonts-wqy-microhei >/dev/null; } || echo "chromium cannot be installed: tests of pages will be skipped"
	touch $@

$(FONTS): | .venv/bin/python
	find /usr/share/fonts -name 'FreeSans*' 2>/dev/null | grep -q . || { apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
		apt-get install -qq -y fonts-dejavu-core fonts-liberation fonts-freefont-ttf fonts-lato >/dev/null; } || \
		echo "fonts cannot be installed: tests of pictures will be skipped"
	touch $@

$(VOICE): | .venv/bin/python
	command -v espeak-ng >/dev/null || { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y \
		espeak-ng >/dev/null; } || echo "espeak-ng cannot be installed: tests of spoken corpora will be skipped"
	touch $@

$(DEV): $(USER)
	$(BIN)/pip install --quiet -c constraints.txt -e '.[dev]'
	touch $@

