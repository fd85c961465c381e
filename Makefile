PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test lint format bench docs pages clean

demo: .venv/installed
	$(BIN)/safespn demo

test: .venv/installed
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist loadgroup

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
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.documentation

clean:
	rm -rf .venv .peers site

.venv/installed: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@
