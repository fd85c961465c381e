from __future__ import annotations

from importlib.util import find_spec

# They need the extra [cli]. A skip raised here would end the whole run where this folder is named on the command line.
collect_ignore_glob = [] if find_spec("typer") else ["*"]
