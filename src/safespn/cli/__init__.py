"""The command ``safespn``. It needs ``pip install 'safespn[cli]'``."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command with the arguments of the process and leave with its status."""
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
