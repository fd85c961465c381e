"""Arithmetic inside the compiled kernels: exponential, logarithm and softmax of vectors of rows."""

from __future__ import annotations

import numpy as np
from numba import njit

from safespn.engine.kernel_vectors import (
    LENGTH,
    Vector,
    fill,
    item,
    larger,
    load,
    nearest_power,
    over_nearest_power,
    power_of_two,
    store,
    where_at_least,
)
from safespn.typing import FloatArray

SMALLEST_EXPONENT = -708.0
SMALLEST_PART = 1e-307
"""Slightly more than the exponential of the smallest exponent."""
LOWEST = float(np.finfo(np.float64).min)
"""Smallest number that is not minus infinity."""
CONSTANTS = np.array(
    [
        SMALLEST_EXPONENT,
        1.4426950408889634,  # 1 / log 2
        6755399441055744.0,  # 1.5 * 2**52: adding it rounds to an integer
        6.93147180369123816490e-01,  # log 2, its leading bits
        1.90821492927058770002e-10,  # and the rest
        1.0,
        1.0,
        0.50000000000000184,  # from here on a minimax polynomial of degree 11
        0.166666666666666808,
        0.0416666666664879525,
        0.00833333333331958962,
        0.00138888889523528629,
        0.000198412698900764028,
        0.000024801485441561313,
        2.75572408872298686e-6,
        2.76326547225277919e-7,
        2.51100492048186598e-8,
        0.5,  # of the logarithm, from here on: its series in odd powers of (x - 1) / (x + 1)
        0.6666666666666735130,
        0.3999999999940941908,
        0.2857142874366239149,
        0.2222219843214978396,
        0.1818357216161805012,
        0.1531383769920937332,
        0.1479819860511658591,
    ]
)
"""Handed to the kernel as an argument: constants that the compiler knows cost it two instructions each."""


@njit(nogil=True, error_model="numpy", forceinline=True)
def exp_of_negative(x: Vector, c: FloatArray) -> Vector:
    """Exponential of ``x <= 0`` within 2 ulp, and of -708 for anything smaller or NaN.

    A call to the C library would take each row alone.
    """
    bounded = larger(x, fill(item(c, 0)))
    shifted = bounded * item(c, 1) + item(c, 2)
    power = shifted - item(c, 2)
    r = bounded - power * item(c, 3) - power * item(c, 4)
    # Even and odd powers apart, so that they do not wait for each other.
    r2 = r * r
    odd, even = r2 * item(c, 16) + item(c, 14), r2 * item(c, 15) + item(c, 13)
    odd, even = r2 * odd + item(c, 12), r2 * even + item(c, 11)
    odd, even = r2 * odd + item(c, 10), r2 * even + item(c, 9)
    odd, even = r2 * odd + item(c, 8), r2 * even + item(c, 7)
    odd, even = r2 * odd + item(c, 6), r2 * even + item(c, 5)
    return (r * odd + even) * power_of_two(shifted)


@njit(nogil=True, error_model="numpy", forceinline=True)
def log_of_positive(x: Vector, c: FloatArray) -> Vector:
    """Logarithm of positive normal numbers within 1 ulp; finite for zero, and nothing to rely on elsewhere."""
    power, f = nearest_power(x), over_nearest_power(x) - item(c, 5)
    s = f / (f + 2.0)
    s2 = s * s
    s4 = s2 * s2
    odd = s2 * (s4 * (s4 * (s4 * item(c, 24) + item(c, 22)) + item(c, 20)) + item(c, 18))
    even = s4 * (s4 * (s4 * item(c, 23) + item(c, 21)) + item(c, 19))
    half_square = f * f * item(c, 17)
    return power * item(c, 3) - (half_square - (s * (half_square + odd + even) + power * item(c, 4)) - f)


@njit(nogil=True, error_model="numpy", forceinline=True)
def softmax(values: FloatArray, n: int, hard: bool, log_total: FloatArray, constants: FloatArray) -> None:
    """Replace each column of ``values`` (edges, rows) by its softmax, or mark its first largest entry if ``hard``.

    The first row of ``log_total`` gets the log of the sum of exponentials; ``n`` is a multiple of ``LENGTH``.
    """
    for r in range(0, n, LENGTH):
        largest = fill(-np.inf)
        for k in range(len(values)):
            largest = larger(load(values, k, r), largest)
        reference = where_at_least(largest, fill(LOWEST), largest, fill(0.0))
        total = fill(0.0)
        for k in range(len(values)):
            value = load(values, k, r)
            if hard:
                part = where_at_least(value, reference, 1.0 - total, fill(0.0))
            else:
                part = exp_of_negative(value - reference, constants)
                part = where_at_least(part, fill(SMALLEST_PART), part, fill(0.0))
            store(values, k, r, part)
            total = total + part
        total = larger(total, fill(1.0))  # It is zero where no entry is possible, and at least one elsewhere.
        share = 1.0 / total
        for k in range(len(values)):
            store(values, k, r, load(values, k, r) * share)
        store(log_total, 0, r, largest + log_of_positive(total, constants))
