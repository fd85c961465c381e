"""The command ``safespn``. It needs ``pip install 'safespn[cli]'``."""

from __future__ import annotations

import io
import os
import signal
import sys
from typing import Any

interrupts: list[int] = []
"""Interrupts that came. Compiled code can turn the exception of one into another."""


def main() -> None:
    """Run the command with the arguments of the process and exit with its status."""
    _open_closed_streams()
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
    _let_go_of_full_streams()
    # All is done, or undone: an interrupt could only spoil the status.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(status)


def _open_closed_streams() -> None:
    """Let what goes to streams that the caller has closed go nowhere; ``sys.__stdout__`` still tells that it is closed.

    Otherwise the next file that is opened would get the number of such a stream, and what compiled code writes there.
    """
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            number = os.open(os.devnull, os.O_RDWR)  # the lowest that is free: that of the stream
            os.set_inheritable(number, True)
            setattr(sys, name, os.fdopen(number, "r" if name == "stdin" else "w", encoding="utf-8"))


def _let_go_of_full_streams() -> None:
    """Forget what a stream could not take: Python would try to write it again at exit, and change the status."""
    from safespn.cli.console import silence

    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            silence(stream)


def _interrupt(number: int, frame: Any) -> None:
    interrupts.append(number)
    raise KeyboardInterrupt


def _leave(number: int, frame: Any) -> None:
    sys.exit(128 + number)
