"""Every code block of the README and of the documentation runs, and prints what the page shows."""

from __future__ import annotations

import pytest

from tests.documentation import PAGES, ROOT, agrees, blocks, run_page

WITH_CODE = [page for page in PAGES if blocks(page.read_text(encoding="utf-8"))]

PAGE = """A page.

```python
number = 3
print("found", number)
```

```text
found 3
```

```console
$ echo one
one
$ echo two
```
"""


def test_outputs_are_found_where_they_stand(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shown = list(run_page(PAGE, "page"))
    assert [(part.shown, part.printed) for part in shown] == [("found 3\n", "found 3\n"), ("one\n", "one\n")]
    assert all(PAGE[part.start : part.end] == part.shown for part in shown)


@pytest.mark.parametrize(
    ("block", "mistake"),
    [
        ("python\nprint(1)\n```\n\n```text\n2", None),
        ("python\nraise KeyError('gap')", KeyError),
        ("console\n$ exit 3", AssertionError),
        ("text\nfrom nowhere", AssertionError),
        ("sh\nmake", AssertionError),
    ],
)
def test_pages_that_are_wrong(tmp_path, monkeypatch, block, mistake):
    monkeypatch.chdir(tmp_path)
    page = f"```{block}\n```\n"
    if mistake is None:
        assert not all(part.true for part in run_page(page, "page"))
    else:
        with pytest.raises(mistake):
            list(run_page(page, "page"))


@pytest.mark.parametrize(
    ("shown", "printed", "expected"),
    [
        ("gain +1689 nats\n", "gain   +1690 nats", True),
        ("gain +1689 nats\n", "gain +1789 nats", False),
        ("gain +1689 nats\n", "loss +1689 nats", False),
        ("first 1\n…\nlast 4\n", "first 1\nsecond 2\nthird 3\nlast 4\n", True),
        ("first 1\n…\nlast 4\n", "first 1\nsecond 2\nthird 3\nlast 5\n", False),
        ("first 1\n", "first 1\nsecond 2\n", False),
    ],
)
def test_words_agree_and_numbers_nearly(shown, printed, expected):
    assert agrees(shown, printed) == expected


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: str(page.relative_to(ROOT)))
def test_page(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # A reader has scikit-learn's data sets only.
    monkeypatch.delenv("SAFESPN_DATA", raising=False)
    for part in run_page(page.read_text(encoding="utf-8"), str(page)):
        assert part.true, f"the page shows\n{part.shown}\nbut its code prints\n{part.printed}"


def test_readme_has_code():
    assert ROOT / "README.md" in WITH_CODE
