"""Files that appear complete or not at all."""

from __future__ import annotations

import pytest

from safespn.foundation.atomic_files import atomic_open, atomic_write, check_place


def test_names_as_long_as_they_can_be(tmp_path):
    path = tmp_path / ("a" * 255)
    check_place(path)
    assert not list(tmp_path.iterdir())
    atomic_write(path, b"whole")
    assert path.read_bytes() == b"whole"
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(OSError, match="too long"):
        check_place(tmp_path / ("a" * 256))


def test_nothing_is_left_after_an_error(tmp_path):
    def write():
        with atomic_open(tmp_path / "secret") as file:
            file.write(b"half")
            assert len(list(tmp_path.glob("*"))) == 1
            assert not list(tmp_path.glob("*secret*"))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write()
    assert not list(tmp_path.iterdir())
