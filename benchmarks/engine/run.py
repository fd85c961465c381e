"""Print the engine's figures: what was promised, what is measured here and now, and whether it holds.

Usage: python benchmarks/engine/run.py [section ...]; without a section, all of them. It always exits 0: a figure that
does not hold is in the table.
"""

from __future__ import annotations

import argparse
import importlib
import os
import platform
from pathlib import Path

SECTIONS = {
    "peers": "against SPFlow and deeprob-kit",
    "reference": "against the same algorithm in C",
    "scaling": "cost in rows and edges",
    "cold_start": "a new process with nothing compiled",
    "mixture": "against scikit-learn's GaussianMixture",
    "overhead": "small calls, import, two threads",
    "memory": "a million rows",
}


def processor() -> str:
    """Name of the processor, and the widest vectors it has."""
    information = Path("/proc/cpuinfo")
    if not information.exists():
        return platform.processor()
    text = information.read_text()
    name = next((line.split(":")[1].strip() for line in text.splitlines() if line.startswith("model name")), "")
    vectors = "AVX-512" if " avx512f" in text else "AVX2" if " avx2" in text else "no AVX2"
    return f"{name}, {vectors}, {os.cpu_count()} cores"


def main() -> None:
    description = "\n".join(f"  {name:<11} {what}" for name, what in SECTIONS.items())
    parser = argparse.ArgumentParser(epilog=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", metavar="section", help="some of the sections below; default all")
    chosen = parser.parse_args().sections
    unknown = set(chosen) - set(SECTIONS)
    if unknown:
        parser.error(f"no such section: {', '.join(sorted(unknown))}")
    print(f"{processor()}; Python {platform.python_version()}; load {os.getloadavg()[0]:.1f}")
    for name in chosen or SECTIONS:
        importlib.import_module(name).main()


if __name__ == "__main__":
    main()
