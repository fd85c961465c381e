from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import safespn

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The names of the files in a wheel and in a source distribution, without the folder of the latter."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,), (source,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as archive, tarfile.open(source) as sources:
        return set(archive.namelist()), {name.partition("/")[2] for name in sources.getnames()}


def test_distributions_hold_every_file_of_the_package(built):
    wheel, source = built
    package = ROOT / "src"
    files = {path.relative_to(package).as_posix() for path in package.rglob("*") if path.is_file()}
    files = {name for name in files if "__pycache__" not in name}
    assert {"safespn/py.typed", "safespn/experiments/paper.json", "safespn/report/templates/style.css.j2"} <= files
    assert files <= wheel
    assert {f"src/{name}" for name in files} <= source
    assert {"README.md", "LICENSE", "CITATION.cff", "docs/images/moons.png", "tests/test_packaging.py"} <= source
    assert not [name for name in wheel if not name.startswith("safespn")]


def test_citation_and_package_have_one_version():
    cited = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    declared = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert cited[1] == declared[1] == safespn.__version__
