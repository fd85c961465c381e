PYTHON ?= python3
BIN := .venv/bin
UV := $(BIN)/uv
# CORE_PYTHON makes environments for which a newer Python may be too new; RUN may count lines: see `coverage`.
CORE_PYTHON ?= $(BIN)/python
RUN ?=
PYTEST := -m pytest -n auto --dist loadgroup
# What differs between versions of Python and of the libraries, without what takes long.
SMOKE := -m 'not slow' tests/test_import.py tests/test_classifier_files.py tests/contract/test_leaf_families.py \
	tests/engine/test_kernels.py tests/network tests/tables tests/plotting tests/rows/test_dask.py \
	tests/cli/test_fit_predict.py
export OMP_NUM_THREADS ?= 1
# The tests start many processes: without bytecode on disk each of them compiles every library anew, for seconds.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test coverage doctest test-minimum test-core test-python lint format bench docs pages dist clean

demo: .venv/installed
	$(BIN)/safespn demo

test: .venv/installed
	$(BIN)/python $(RUN) $(PYTEST)

# The share of the lines that `make test RUN='-m coverage run'` has run, which must not fall below the floor in
# pyproject.toml. From Python 3.12 on, with COVERAGE_CORE=sysmon, counting costs hardly any time.
coverage: .venv/installed
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --skip-covered --skip-empty --sort=cover

doctest: .venv/installed
	$(BIN)/python -m pytest --doctest-modules src

# The oldest versions that pyproject.toml allows, of Python too.
test-minimum: .venv-minimum/installed
	.venv-minimum/bin/python .ci/minimum_versions.py
	.venv-minimum/bin/python $(PYTEST) -W ignore::DeprecationWarning $(SMOKE) tests/contract/test_estimators.py

# The wheel without extras. All tests are collected, since a module that imports more than there is fails only then.
test-core: .venv-core/installed dist
	$(UV) pip install --quiet --python .venv-core --reinstall-package safespn dist/*.whl
	.venv-core/bin/python -m pytest --collect-only -q tests > .venv-core/collected \
		|| { cat .venv-core/collected; exit 1; }
	.venv-core/bin/python $(PYTEST) -rs $(SMOKE)

# make test-python VERSION=3.13
test-python: .venv-$(VERSION)/installed
	.venv-$(VERSION)/bin/python $(PYTEST) $(SMOKE)

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: .venv/installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: .venv/installed
	$(BIN)/python benchmarks/engine/run.py

docs: .venv/installed
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

pages: .venv/installed
	$(BIN)/python -m tests.documentation

dist: .venv/installed
	rm -rf dist
	$(BIN)/python -m hatchling build
	$(BIN)/twine check --strict dist/*

clean:
	rm -rf .venv .venv-* .peers dist site

.venv/installed: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(UV) pip install --quiet --python .venv --upgrade --editable '.[dev]' \
		|| $(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade --upgrade-strategy eager --editable '.[dev]'
	touch $@

.venv-minimum/installed: pyproject.toml | .venv/installed
	$(UV) venv --quiet --clear --python 3.10 .venv-minimum \
		|| { echo "Python 3.10 is not installed here: the oldest libraries are tested with $(CORE_PYTHON)"; \
		$(UV) venv --quiet --clear --python $(CORE_PYTHON) .venv-minimum; }
	$(UV) pip install --quiet --python .venv-minimum --resolution lowest-direct --editable '.[all,test]'
	touch $@

.venv-core/installed: pyproject.toml | .venv/installed
	$(UV) venv --quiet --clear --python $(CORE_PYTHON) .venv-core
	$(UV) pip install --quiet --python .venv-core '.[test]'
	touch $@

.venv-3.%/installed: pyproject.toml | .venv/installed
	$(UV) venv --quiet --clear --python 3.$* .venv-3.$*
	$(UV) pip install --quiet --python .venv-3.$* --editable '.[all,test]'
	touch $@
