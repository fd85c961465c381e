"""What a person at a narrow terminal sees of a fit."""

from __future__ import annotations

import io
import re

from safespn.cli.console import Reporter, _PatientConsole
from safespn.safety.progress import PassMonitor


def test_a_narrow_terminal_shows_every_pass_whole():
    screen = io.StringIO()
    reporter = Reporter()
    reporter._error = _PatientConsole(file=screen, force_terminal=True, width=80, highlight=False, markup=False)
    with reporter.passes("fitting 600000 rows of 6 columns"):
        PassMonitor(600_000, 25).tell(2, [1234.5] * 9)
    # Without what steers the terminal, the bar and the time beside it.
    shown = " ".join(re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|[━╸╺]|\d:\d\d:\d\d", " ", screen.getvalue()).split())
    assert "…" not in shown
    assert re.search(r"pass 2 of at most 25, W (\+1234, ){8}\+1234 nats, .+ rows/s, at most .+ s left", shown)
