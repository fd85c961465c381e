"""Check that this environment holds exactly the oldest versions that the package allows."""

from __future__ import annotations

import sys
from importlib.metadata import requires, version

from packaging.requirements import Requirement
from packaging.version import Version

EXTRAS = ("cli", "dask", "excel", "plot")


def main() -> int:
    """Print every requirement with the version that is installed; return how many are newer than declared."""
    newer = 0
    for requirement in map(Requirement, requires("safespn") or ()):
        if requirement.name == "safespn":  # one extra that includes another
            continue
        if not any(requirement.marker is None or requirement.marker.evaluate({"extra": extra}) for extra in EXTRAS):
            continue
        oldest = next(part.version for part in requirement.specifier if part.operator == ">=")
        installed = version(requirement.name)
        same = Version(installed) == Version(oldest)
        newer += not same
        print(f"{requirement.name} {installed}" + ("" if same else f", but pyproject.toml says >={oldest}: raise it"))
    return newer


if __name__ == "__main__":
    sys.exit(main())
