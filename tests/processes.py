"""The installed command as a process of its own, for tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

COMMAND = Path(sys.executable).parent / "safespn"


def call(*arguments: object, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the command in a folder, with a terminal of 80 columns."""
    return subprocess.run(
        [COMMAND, *map(str, arguments)], cwd=folder, capture_output=True, text=True, env={**os.environ, "COLUMNS": "80"}
    )
