"""Small tables in HTML, for notebooks; they take their looks from the page that shows them."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape


def html_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table whose first column names the lines."""
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    lines = [[f"<th style='text-align: left'>{escape(name)}</th>", *map(_cell, cells)] for name, *cells in rows]
    body = "".join(f"<tr>{''.join(line)}</tr>" for line in lines)
    return f"<table>{f'<thead><tr>{head}</tr></thead>' if head else ''}<tbody>{body}</tbody></table>"


def _cell(text: str) -> str:
    return f"<td>{escape(text)}</td>"
