"""The command ``safespn``. It needs ``pip install 'safespn[cli]'``."""

from __future__ import annotations

import signal
import sys
from typing import Any

interrupts: list[int] = []
"""Interrupts that came. Compiled code can turn the exception of one into another."""


def main() -> None:
    """Run the command with the arguments of the process and leave with its status."""
    # Unwind the stack when asked to terminate, so that files written beside their destination are removed.
    signal.signal(signal.SIGTERM, _leave)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)
    try:
        from safespn.cli.app import run
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("safespn"):
            raise
        sys.stderr.write(f"safespn: {error.name} is not installed; pip install 'safespn[cli]' brings it along\n")
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
    sys.exit(run(sys.argv[1:]))


def _interrupt(number: int, frame: Any) -> None:
    interrupts.append(number)
    raise KeyboardInterrupt


def _leave(number: int, frame: Any) -> None:
    sys.exit(128 + number)
