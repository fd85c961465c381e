"""Every code block of the README and of the documentation runs, and prints what the page shows."""

from __future__ import annotations

import re

import numpy as np
import pytest

pytest.importorskip("typer", reason="needs the extra [cli]")

import typer
from matplotlib import image

import safespn
from safespn import baselines, plotting
from safespn.cli.app import app
from tests.documentation import PAGES, ROOT, agrees, blocks, pictures, renewed, run_page

GALLERY = [page for page in PAGES if page.parent.name == "gallery" and page.name != "index.md"]
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


@pytest.mark.parametrize(
    ("shown", "printed", "expected"),
    [
        ("first 1\n", "first 2\nsecond\n", "first 2\nsecond\n"),
        ("…\nlast 1\n", "first\nlast 2\nmore\n", "…\nlast 2\nmore\n"),
        ("…\nlast 1\n", "all is new\n", "all is new\n"),
    ],
)
def test_pages_are_renewed(shown, printed, expected):
    assert renewed(shown, printed) == expected
    assert agrees(expected, printed)


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[pytest.mark.xdist_group("demo")] if "$ safespn demo\n" in page.read_text() else [])
        for page in WITH_CODE
    ],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_page(page, tmp_path, monkeypatch, request):
    monkeypatch.chdir(tmp_path)
    # A reader has scikit-learn's data sets only.
    monkeypatch.delenv("SAFESPN_DATA", raising=False)
    text, printed_before = page.read_text(encoding="utf-8"), {}
    if "$ safespn demo\n" in text:
        done, _ = request.getfixturevalue("demo_run")
        printed_before["safespn demo"] = done.stderr + done.stdout
    for part in run_page(text, str(page), printed_before):
        assert part.true, f"the page shows\n{part.shown}\nbut its code prints\n{part.printed}"
    if page in GALLERY:
        (picture,) = pictures(page)
        assert np.shape(image.imread(tmp_path / picture.name)) == np.shape(image.imread(picture))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pictures_exist(page):
    assert [picture for picture in pictures(page) if not picture.exists()] == []


def test_every_example_of_the_gallery_is_listed():
    index = (ROOT / "docs" / "gallery" / "index.md").read_text(encoding="utf-8")
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for page in GALLERY:
        assert f"({page.name})" in index
        assert f"gallery/{page.name}" in navigation
        assert f"(images/{page.stem}.png)" in index


def test_examples_are_short_and_show_what_they_print():
    assert len(GALLERY) >= 8
    for page in GALLERY:
        python, text = blocks(page.read_text(encoding="utf-8"))
        assert (python.kind, text.kind) == ("python", "text"), page
        assert text.text.strip(), page
        assert len(python.text.splitlines()) <= 75, page


def test_pages_that_must_have_code():
    assert {"README.md", "index.md", "guarantees.md"} < {page.name for page in WITH_CODE}
    assert set((ROOT / "docs" / "tutorials").glob("*.md")) <= set(WITH_CODE)


def test_reference_has_every_public_name():
    text = "\n".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "api").glob("*.md"))
    names = {*safespn.__all__, *plotting.__all__, *baselines.__all__} - {"__version__"}
    assert [name for name in sorted(names) if not re.search(rf"\b{name}\b", text)] == []


def test_reference_has_every_option():
    text = (ROOT / "docs" / "api" / "command-line.md").read_text(encoding="utf-8")
    sections = {part.partition("\n")[0]: part for part in text.split("## safespn ")[1:]}
    commands = typer.main.get_command(app).commands
    assert set(sections) == set(commands)
    for name, command in commands.items():
        options = [option for parameter in command.params for option in parameter.opts if option.startswith("--")]
        assert [option for option in options if f"`{option}`" not in sections[name]] == []
