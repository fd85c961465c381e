"""Docstrings name things in Sphinx's manner, which the reference shows as plain code."""

from __future__ import annotations

import re
from typing import Any

import griffe

ROLE = re.compile(r":\w+:`~?([^`]+)`")


class PlainRoles(griffe.Extension):
    """Turn the roles of docstrings into code."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring of an object that has been read."""
        if obj.docstring is not None:
            obj.docstring.value = ROLE.sub(r"`\1`", obj.docstring.value)
