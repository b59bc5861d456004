# `make demo` and `make test` work on a fresh machine: each makes the virtual environment that it needs.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
# Workers take from each other what is left, so that none waits; a file's tests stay together as long as that goes.
PYTEST = $(BIN)/python -m pytest -n auto --maxprocesses 4 --dist worksteal

.PHONY: demo audit-demo test test-rest test-all test-browser check docs snapshots pictures attack clean

demo: $(VENV)/installed
	$(BIN)/convlint check --fail-on never sample_configs/resnet50.yaml

# 500 specs and ONNX files, audited by two processes and by a Ray cluster of three nodes on this machine. About two minutes.
audit-demo: $(VENV)/audited
	$(BIN)/python benchmarks/audit_demo.py build/audit-demo

# Under 8 minutes on two cores: the quick tests, and of the slow ones those that hold a contract.
test: $(VENV)/tested
	$(PYTEST) -m "not slow or contract"

# What `make test` leaves out.
test-rest: $(VENV)/tested
	$(PYTEST) -m "slow and not contract"

# Everything: nightly, before a release, and before a change of what all depends on.
test-all: test test-rest docs test-browser

# The report page in Chromium. Pictures come to build/browser/.
test-browser: $(VENV)/browser
	tests/browser/install_chromium.sh
	# A page that never answers ends the run, with the place where the test waits.
	$(BIN)/python -m pytest -o faulthandler_timeout=300 -o faulthandler_exit_on_timeout=true -m browser tests/browser

check: $(VENV)/tested
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The site: pages from their sources, MkDocs in strict mode, then every link of it. It comes to build/docs/site/.
docs: $(VENV)/documented
	PYTHONPATH=docs $(BIN)/python -m handbook build/docs
	# Not quietly: what is not printed is no warning in strict mode.
	$(BIN)/mkdocs build --strict --config-file build/docs/mkdocs.yml
	PYTHONPATH=docs $(BIN)/python -m handbook.checks build/docs/site

# Written anew: the reporters' texts, the predicted times, the console blocks of README and site. The diff shows what changed.
snapshots: $(VENV)/tested
	$(BIN)/python -m pytest --refresh tests/reporters tests/estimate/test_passes.py -m 'not slow'
	$(BIN)/python tests/helpers/readme_examples.py

# README's pictures of a terminal and, in Chromium, of the report page, and the site's of a sweep; look before you commit.
pictures: $(VENV)/browser
	$(BIN)/python tests/helpers/drawn_pictures.py
	tests/browser/install_chromium.sh
	$(BIN)/python tests/helpers/page_picture.py

# Hours: every attack of tests/attack, and millions of mutated inputs. ARGS="--count 10000" runs fewer.
attack: $(VENV)/tested
	PYTHONPATH=.:tests $(BIN)/python -m attack $(ARGS)

$(VENV)/installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

# PyTorch is pinned: a looser requirement may fetch gigabytes of CUDA libraries that no test needs.
$(VENV)/tested: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check torch==2.13.0
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	# Networks that reading source is held to. Of what they ask for, none needs torchvision, which would bring another torch.
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps pytorchcv==0.0.74
	touch $@

$(VENV)/audited: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[parquet,onnx,ray]'
	touch $@

$(VENV)/documented: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	touch $@

$(VENV)/browser: $(VENV)/tested
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[browser]'
	touch $@

clean:
	rm -rf $(VENV) build dist *.egg-info
