from __future__ import annotations

import numpy as np

from safespn.foundation.scoring import standard_error


def test_a_single_value_has_no_standard_error():
    assert standard_error(np.array([1.0])) == np.inf
    assert standard_error(np.array([1.0, 3.0])) == 1.0
