"""Passes are told as they are made: how many, the worst case, the speed and the time left."""

from __future__ import annotations

import re

import pytest

from safespn import SafeSPNClassifier
from safespn.safety import progress
from safespn.safety.progress import PassMonitor, PassRecord, listening
from tests.rows.tables import blobs


def test_a_record_says_it_in_one_line():
    record = PassRecord(3, 25, (12.345, -0.5), 2_340_000.0, 75.4)
    assert str(record) == "pass 3 of at most 25, W +12.35, -0.5 nats, 2.34 million rows/s, at most 1 min 15 s left"
    assert record.share == 0.12


def test_speed_and_time_left_are_those_of_the_last_passes(monkeypatch):
    now = iter([0.0, 100.0, 102.0, 104.0, 106.0, 108.0, 110.0])
    monkeypatch.setattr(progress.time, "perf_counter", lambda: next(now))
    told = []
    with listening(told.append):
        monitor = PassMonitor(1000, 10)
        monitor.tell(1, [1.0])
        monitor.tell(1, [1.0])  # known already
        for number in range(2, 7):
            monitor.tell(number, [1.0])
    assert [record.number for record in told] == [1, 2, 3, 4, 5, 6]
    # The first pass took 100 s, the five after it two seconds each.
    assert (told[0].rows_per_second, told[0].seconds_left) == (10.0, 900.0)
    assert (told[-1].rows_per_second, told[-1].seconds_left) == (500.0, 8.0)


@pytest.mark.parametrize("options", [{}, {"safety": "mcp"}, {"objective": "discriminative"}], ids=str)
def test_every_pass_of_a_fit_is_told(options):
    X, _, partly = blobs(150)
    told, outer = [], []
    with listening(outer.append), listening(told.append):
        fitted = SafeSPNClassifier(network="blocks", random_state=0, **options).fit(X, partly)
    assert len(told) == len(fitted.history_)
    assert told == outer
    assert told[-1].number <= told[-1].n_most == fitted.max_iter
    if not options:
        best = max(entry["worst_case"] for entry in fitted.history_)
        assert told[-1].worst_cases == (best,)
        assert [record.worst_cases for record in told] == sorted(record.worst_cases for record in told)


def test_members_are_told_together(capsys):
    X, _, partly = blobs(200)
    fitted = SafeSPNClassifier(network=["blocks", "components"], random_state=0, verbose=1).fit(X, partly)
    lines = re.findall(r"^\[SafeSPNClassifier\] pass (\d+) of at most 25, W (.*) nats,", capsys.readouterr().err, re.M)
    members = {entry["member"] for entry in fitted.history_}
    lengths = [sum(entry["member"] == member for entry in fitted.history_) for member in members]
    assert [int(number) for number, _ in lines] == list(range(1, max(lengths) + 1))
    assert all(len(values.split(", ")) == len(members) for _, values in lines)
