"""Runs the code blocks of the README and of the documentation, and compares what they print with what the pages show.

A page may hold three kinds of blocks: ``python``; ``console``, commands after ``$`` and what they print; and ``text``,
which shows what the Python block above it prints. Blocks of a page run in order, in one namespace and one folder.
A picture of a page is made by its own code if that writes a file of the same name.

``python -m tests.documentation`` writes into the pages what their blocks print now, where that has changed, and renews
the pictures that their blocks draw.
"""

from __future__ import annotations

import contextlib
import io
import math
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot as plt

from safespn.cli.app import run
from tests.cli.conftest import patients

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PICTURE = re.compile(r"!\[[^\]]*\]\((\S+\.png)\)")
NUMBER = re.compile(r"[-+]?\d[\d,]*\.?\d*(?:e[-+]?\d+)?")
LEFT_OUT = "…"
"""A line of its own that stands for any number of lines."""
TOLERANCE = 0.02
"""Relative, and absolute for small numbers: other processors round differently, and a row may change its class."""


@dataclass(frozen=True)
class Block:
    """A fenced block of a page; ``start`` and ``end`` say where its text lies."""

    kind: str
    text: str
    start: int
    end: int


@dataclass(frozen=True)
class Shown:
    """A stretch of a page that shows what code prints, and what it printed."""

    start: int
    end: int
    shown: str
    printed: str

    @property
    def true(self) -> bool:
        return agrees(self.shown, self.printed)


def blocks(text: str) -> list[Block]:
    """Return the fenced blocks of a page."""
    return [Block(found[1], found[2], found.start(2), found.end(2)) for found in FENCE.finditer(text)]


def pictures(page: Path) -> list[Path]:
    """Return the picture files that a page shows."""
    return [page.parent / found[1] for found in PICTURE.finditer(page.read_text(encoding="utf-8"))]


def run_page(text: str, name: str, printed_before: dict[str, str] | None = None) -> Iterator[Shown]:
    """Run the blocks of a page in the present folder; yields every output that the page shows.

    Commands in ``printed_before`` are not run again: it has what they have printed.
    """
    # Pages speak of a table of the reader's own.
    patients(150, 80).to_csv("patients.csv", index=False)
    patients(20, 0, seed=1).to_csv("new.csv", index=False)
    mpl.use("Agg")
    namespace: dict[str, Any] = {"__name__": "__main__"}
    printed = None
    for block in blocks(text):
        if block.kind == "console":
            yield from _run_commands(block, printed_before or {})
        elif block.kind == "python":
            # Moved down to its own lines, so that tracebacks name those of the page.
            code = "\n" * text.count("\n", 0, block.start) + block.text
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                exec(compile(code, name, "exec"), namespace)
            plt.close("all")
            printed = output.getvalue()
        elif block.kind == "text":
            assert printed is not None, f"{name}: a block of text shows no code's output: {block.text}"
            yield Shown(block.start, block.end, block.text, printed)
            printed = None
        else:
            raise AssertionError(f"{name}: a block is neither python, console nor text: {block.text}")


def _run_commands(block: Block, printed_before: dict[str, str]) -> Iterator[Shown]:
    for found in re.finditer(r"^\$ (.*\n)((?:(?!\$ ).*\n)*)", block.text, re.MULTILINE):
        command = found[1].strip()
        status, printed = (0, printed_before[command]) if command in printed_before else _run(command)
        assert status == 0, f"status {status} of {found[1]}{printed}"
        if found[2]:
            yield Shown(block.start + found.start(2), block.start + found.end(2), found[2], printed)


def _run(command: str) -> tuple[int, str]:
    """Run a command; returns its status and what it printed, errors included."""
    words = shlex.split(command)
    if words[0] == "safespn" and not re.search(r"[|&;<>$]", command):
        # In this process: importing all that the command needs takes longer than most commands.
        output = io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            return run(words[1:]), output.getvalue()
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        command,
        shell=True,
        env={**os.environ, "PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return done.returncode, done.stdout


def agrees(shown: str, printed: str) -> bool:
    """Whether a page shows what was printed: the same words, and nearly the same numbers."""
    parts = [_words(part) for part in re.split(rf"^{LEFT_OUT}\n", shown, flags=re.MULTILINE)]
    pattern = ".*".join(re.escape(_shape(part)) for part in parts)
    found = re.fullmatch(pattern, _shape(printed), re.DOTALL)
    return found is not None and _close(_numbers(" ".join(parts)), _numbers(printed))


def _shape(text: str) -> str:
    """A text without its numbers."""
    return NUMBER.sub("#", _words(text))


def _words(text: str) -> str:
    return re.sub(r" ?\n ?", "\n", re.sub(r"[ ─]+", " ", text)).strip()


def _numbers(text: str) -> list[float]:
    return [float(number.replace(",", "")) for number in NUMBER.findall(text)]


def _close(shown: list[float], printed: list[float]) -> bool:
    """Whether the numbers shown are among those printed, in their order."""
    rest = iter(printed)
    return all(any(math.isclose(a, b, rel_tol=TOLERANCE, abs_tol=TOLERANCE) for b in rest) for a in shown)


def renewed(shown: str, printed: str) -> str:
    """What a page shows in place of an output that has changed; lines left out at its beginning stay left out."""
    left_out, _, rest = shown.partition(f"{LEFT_OUT}\n")
    lines = printed.splitlines(keepends=True)
    begins = [_shape(line) for line in lines]
    first = _shape(rest.partition("\n")[0])
    if left_out or first not in begins:
        return printed
    return f"{LEFT_OUT}\n{''.join(lines[begins.index(first) :])}"


def update(page: Path) -> None:
    """Write into a page what its blocks print now."""
    text = page.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        changed = [shown for shown in run_page(text, str(page)) if not shown.true]
        os.chdir(ROOT)
        for picture in pictures(page):
            drawn = Path(folder) / picture.name
            if drawn.exists():
                picture.parent.mkdir(exist_ok=True)
                shutil.copyfile(drawn, picture)
    for shown in reversed(changed):
        text = text[: shown.start] + renewed(shown.shown, shown.printed) + text[shown.end :]
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    os.environ.pop("SAFESPN_DATA", None)
    for path in [Path(name).resolve() for name in sys.argv[1:]] or PAGES:
        update(path)
