"""CONTRIBUTING's layers and its map are true: imports go one way, and every module has its place."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "safespn"
PAGE = (ROOT / "CONTRIBUTING.md").read_text()
LAYERS = [line.split() for line in re.search(r"```layers\n(.*?)```", PAGE, re.DOTALL)[1].splitlines()]
HEIGHT = {name: height for height, line in enumerate(LAYERS) for name in line}
FILES = sorted(path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py"))
MODULES = [path for path in FILES if path.name != "__init__.py"]
CONVENIENCES = {("spn", "plotting"), ("classifier", "report")}
"""Imports inside a method, for shortcuts that users expect: ``SPN.plot``, ``SafeSPNClassifier.report``."""


def part_of(module: str) -> str:
    """Folder, or module of the top level, that a dotted name lies in."""
    return module.split(".")[1]


def imports_of(path: Path) -> list[tuple[str, int, bool]]:
    """Modules of the package that a file imports, but not for type checkers only; in which line; if in a function."""
    tree = ast.parse((PACKAGE / path).read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            node.body = []
    functions = (node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))
    inside = {id(node) for function in functions for node in ast.walk(function)}
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "safespn":
            # The version is the package's own; everything else has a module that says where it is.
            found += [(f"safespn.{each.name}", node) for each in node.names if each.name != "__version__"]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("safespn."):
            found.append((node.module, node))
        elif isinstance(node, ast.Import):
            found += [(each.name, node) for each in node.names if each.name.startswith("safespn.")]
    return [(module, node.lineno, id(node) in inside) for module, node in found]


def test_every_part_has_a_layer():
    parts = {path.parts[0].removesuffix(".py") for path in MODULES}
    assert parts == set(HEIGHT), "name the new folder or module in the layers of CONTRIBUTING.md"


# The package itself, which names what is public, is above all layers.
@pytest.mark.parametrize("path", [path for path in FILES if path != Path("__init__.py")], ids=str)
def test_imports_go_to_lower_layers_only(path):
    own = path.parts[0].removesuffix(".py")
    for module, line, in_function in imports_of(path):
        part = part_of(module)
        if part != own and not (in_function and (own, part) in CONVENIENCES):
            assert HEIGHT[part] < HEIGHT[own], f"{path}, line {line}: {own} may not import {module}"


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_the_map_names_every_module(path):
    folder = f"`{path.parent.as_posix()}/`" if len(path.parts) > 1 else f"`{path.name}`"
    row = next((line for line in PAGE.splitlines() if line.startswith(f"| {folder}")), "")
    assert f"`{path.name}`" in row, f"name `{path.name}` in the row of {folder} of CONTRIBUTING.md"
