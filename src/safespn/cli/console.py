"""What the commands say: results on standard output, everything else on standard error."""

from __future__ import annotations

import json
import math
import os
import sys
import time
import unicodedata
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import IO, Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Column

from safespn.exceptions import LabelWarning, SentinelWarning
from safespn.safety.progress import PassRecord, listening

ANNOUNCED_SHARE = 0.1
"""Away from a terminal, progress is reported each time this share has been done."""
SECONDS_BETWEEN_LINES = 20.0
BAR_WIDTH = 12
"""Away from a terminal, passes are reported after so many seconds."""
_STEERING = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Unicode categories of control characters, marks of direction, halves of letters, and breaks of lines."""


class _PatientConsole(Console):
    """A console whose reader may leave before the work is done."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
        silence(self.file)


class Reporter:
    """What a command reports to its user.

    Parameters
    ----------
    quiet : bool
        Say nothing but warnings.
    as_json : bool
        Results come as JSON, so no other text goes to standard output.
    """

    def __init__(self, *, quiet: bool = False, as_json: bool = False) -> None:
        self.quiet, self.as_json = quiet, as_json
        self._error = _PatientConsole(stderr=True, highlight=False, markup=False, soft_wrap=True)
        self._output = _PatientConsole(highlight=False, markup=False, soft_wrap=True)
        self.warnings: list[str] = []

    def note(self, text: str) -> None:
        """Report progress."""
        if not self.quiet:
            self._tell(text)

    def warning(self, text: str) -> None:
        """Write a warning."""
        self.warnings.append(text)
        self._tell(f"warning: {text}", "yellow" if self._error.is_terminal else None)

    def _tell(self, text: str, style: str | None = None) -> None:
        try:
            self._error.print(printable(text), style=style)
        except OSError:
            # A file that takes no more is no reason to give up the work.
            self._error.on_broken_pipe()

    def result(self, text: Any, data: dict[str, Any]) -> None:
        """Give the result: text or a table for people, data for scripts."""
        if self.as_json:
            sys.stdout.write(json.dumps(_plain({**data, "warnings": self.warnings}), indent=2) + "\n")
        elif not self.quiet:
            self._output.print(printable(text) if isinstance(text, str) else text)

    def stage(self, text: str, *, only_on_terminal: bool = False) -> AbstractContextManager[Any]:
        """Show what is being done while it lasts."""
        if not self.quiet and self._error.is_terminal:
            return self._error.status(printable(text))
        if not only_on_terminal:
            self.note(f"{text} …")
        return nullcontext()

    @contextmanager
    def progress(self, text: str) -> Iterator[Callable[[float], None]]:
        """Give a function to call with the share that has been done: a bar on a terminal, sparse lines elsewhere."""
        if self.quiet:
            yield lambda share: None
        elif self._error.is_terminal:
            with Progress(console=self._error, transient=True) as bar:
                task = bar.add_task(printable(text), total=1.0)
                yield lambda share: bar.update(task, completed=share)
        else:
            shown = 0.0

            def show(share: float) -> None:
                nonlocal shown
                if share >= shown + ANNOUNCED_SHARE or share >= 1 > shown:
                    shown = share
                    self.note(f"{text}: {100 * share:.0f} %")

            yield show

    @contextmanager
    def passes(self, text: str) -> Iterator[None]:
        """Show the passes that fits make meanwhile: a bar on a terminal, sparse lines elsewhere."""
        if self.quiet:
            yield
        elif self._error.is_terminal:
            # Text that is longer than a narrow terminal goes on in the next line: speed and time left come last.
            description = TextColumn("{task.description}", table_column=Column(ratio=1))
            columns = (description, BarColumn(BAR_WIDTH), TimeElapsedColumn())
            with Progress(*columns, console=self._error, transient=True, expand=True) as bar:
                task = bar.add_task(printable(text), total=None)

                def show(record: PassRecord) -> None:
                    bar.update(task, completed=record.number, total=record.n_most, description=f"{text}: {record}")

                with listening(show):
                    yield
        else:
            self.note(f"{text} …")
            last = time.monotonic()

            def show_sometimes(record: PassRecord) -> None:
                nonlocal last
                if time.monotonic() - last >= SECONDS_BETWEEN_LINES:
                    last = time.monotonic()
                    self.note(str(record))

            with listening(show_sometimes):
                yield

    @contextmanager
    def gathering_warnings(self) -> Iterator[None]:
        """Write the library's warnings as lines, each once."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("default")
            for category in (LabelWarning, SentinelWarning):
                warnings.simplefilter("ignore", category)  # the table's own warnings say the same
            yield
        for text in dict.fromkeys(str(warning.message) for warning in caught):
            self.warning(" ".join(text.split()))


def printable(text: str) -> str:
    """Spell out what would steer a terminal, such as escapes in the name of a column, and letters it cannot show."""
    return "".join(
        repr(letter)[1:-1] if unicodedata.category(letter) in _STEERING and letter != "\n" else letter
        for letter in text
    )


def silence(file: IO[str]) -> None:
    """Send what a stream whose reader has left still holds, and all that follows, nowhere."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, file.fileno())
        os.close(nowhere)


def _plain(value: Any) -> Any:
    """Replace what JSON cannot express: infinite numbers become null."""
    if isinstance(value, dict):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value
