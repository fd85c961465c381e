"""The plotting library is optional: it is imported when somebody asks for a picture, not before."""

from __future__ import annotations

from importlib import import_module


def require_matplotlib() -> None:
    """Check that matplotlib can be imported.

    Raises
    ------
    ImportError
        If it cannot; the message says how to install it.
    """
    try:
        import_module("matplotlib")
    except ImportError as error:
        raise ImportError("plotting needs matplotlib: pip install 'safespn[plot]'") from error
