"""What the commands say: results on standard output, everything else on standard error."""

from __future__ import annotations

import json
import math
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from rich.console import Console
from rich.progress import Progress

ANNOUNCED_SHARE = 0.1
"""Away from a terminal, progress is told each time this share has been done."""


class Talk:
    """How a command talks to its user.

    Parameters
    ----------
    quiet : bool
        Say nothing but warnings.
    as_json : bool
        Results come as JSON, so no other text goes to standard output.
    """

    def __init__(self, *, quiet: bool = False, as_json: bool = False) -> None:
        self.quiet, self.as_json = quiet, as_json
        self._error = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
        self._output = Console(highlight=False, markup=False, soft_wrap=True)
        self.warnings: list[str] = []

    def note(self, text: str) -> None:
        """Tell how it goes."""
        if not self.quiet:
            self._error.print(text)

    def warning(self, text: str) -> None:
        """Tell what should be known."""
        self.warnings.append(text)
        self._error.print(f"warning: {text}", style="yellow" if self._error.is_terminal else None)

    def result(self, text: Any, data: dict[str, Any]) -> None:
        """Give the result: text or a table for people, data for scripts."""
        if self.as_json:
            sys.stdout.write(json.dumps(_plain({**data, "warnings": self.warnings}), indent=2) + "\n")
        elif not self.quiet:
            self._output.print(text)

    def stage(self, text: str, *, only_on_terminal: bool = False) -> AbstractContextManager[Any]:
        """Tell what is being done while it lasts."""
        if not self.quiet and self._error.is_terminal:
            return self._error.status(text)
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
                task = bar.add_task(text, total=1.0)
                yield lambda share: bar.update(task, completed=share)
        else:
            told = 0.0

            def tell(share: float) -> None:
                nonlocal told
                if share >= told + ANNOUNCED_SHARE or share >= 1 > told:
                    told = share
                    self.note(f"{text}: {100 * share:.0f} %")

            yield tell

    @contextmanager
    def gathering_warnings(self) -> Iterator[None]:
        """Tell the library's warnings as lines, each once."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("default")
            yield
        for text in dict.fromkeys(str(warning.message) for warning in caught):
            self.warning(" ".join(text.split()))


def _plain(value: Any) -> Any:
    """Replace what JSON has no words for: infinite numbers become null."""
    if isinstance(value, dict):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value
