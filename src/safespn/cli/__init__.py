"""The command ``safespn``. It needs ``pip install 'safespn[cli]'``."""

from __future__ import annotations

import signal
import sys
from typing import Any


def main() -> None:
    """Run the command with the arguments of the process and leave with its status."""
    # Unwind the stack when asked to terminate, so that files written beside their destination are removed.
    signal.signal(signal.SIGTERM, _leave)
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


def _leave(number: int, frame: Any) -> None:
    sys.exit(128 + number)
