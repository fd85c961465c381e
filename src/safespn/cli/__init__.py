"""The command ``safespn``. It needs ``pip install 'safespn[cli]'``."""

from __future__ import annotations

import io
import signal
import sys
from typing import Any

interrupts: list[int] = []
"""Interrupts that came. Compiled code can turn the exception of one into another."""


def main() -> None:
    """Run the command with the arguments of the process and exit with its status."""
    # A name that the terminal has no letters for, such as that of a file, is no reason to fail.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    # Unwind the stack when asked to terminate, so that files written beside their destination are removed.
    signal.signal(signal.SIGTERM, _leave)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)
    try:
        from safespn.cli.app import run
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("safespn"):
            raise
        sys.stderr.write(f"safespn: {error.name} is not installed; pip install 'safespn[cli]' installs it\n")
        sys.exit(2)
    except BaseException:
        if not interrupts:
            raise
        sys.stderr.write("safespn: interrupted; nothing was written\n")
        sys.exit(130)
    status = run(sys.argv[1:])
    # All is done, or undone: an interrupt could only spoil the status.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(status)


def _interrupt(number: int, frame: Any) -> None:
    interrupts.append(number)
    raise KeyboardInterrupt


def _leave(number: int, frame: Any) -> None:
    sys.exit(128 + number)
