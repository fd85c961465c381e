from __future__ import annotations

import pytest

pytest.importorskip("typer", reason="needs the extra [cli]")
