"""Arithmetic inside the compiled kernels: exponentials that vectorise, sums along a row, the softmax."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from safespn.typing import FloatArray

SMALLEST_EXPONENT = -708.0


@intrinsic
def _bits_of(typing_context: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.int64(types.float64), generate


@intrinsic
def _float_of(typing_context: Any, bits: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), generate


@intrinsic
def larger(typing_context: Any, first: Any, second: Any) -> Any:
    """Larger of two numbers, without a branch."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.select(builder.fcmp_ordered(">", *arguments), *arguments)

    return types.float64(types.float64, types.float64), generate


EXP_CONSTANTS = np.array(
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
    ]
)
"""Handed to the kernel as an argument: constants that the compiler knows it would load anew for every few rows."""
ExpConstants: TypeAlias = tuple[float, ...]


@njit(nogil=True, error_model="numpy", forceinline=True)
def exp_constants(c: FloatArray) -> ExpConstants:
    """Bring ``EXP_CONSTANTS`` into registers."""
    return c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7], c[8], c[9], c[10], c[11], c[12], c[13], c[14], c[15], c[16]


@njit(nogil=True, error_model="numpy", forceinline=True, fastmath={"contract"})
def exp_of_negative(x: float, c: ExpConstants) -> float:
    """Exponential of ``x <= 0`` within 2 ulp, zero below -708; unlike a call to the C library it vectorises."""
    bounded = larger(x, c[0])
    shifted = bounded * c[1] + c[2]
    power = shifted - c[2]
    r = bounded - power * c[3] - power * c[4]
    # The terms are paired so that they do not wait for each other.
    r2 = r * r
    r4 = r2 * r2
    low = (c[5] + c[6] * r) + r2 * (c[7] + r * c[8])
    middle = (c[9] + r * c[10]) + r2 * (c[11] + r * c[12])
    high = (c[13] + r * c[14]) + r2 * (c[15] + r * c[16])
    p = low + r4 * (middle + r4 * high)
    value = p * _float_of((_bits_of(shifted) + 1023) << 52)
    return value if x >= c[0] else 0.0


@njit(nogil=True, error_model="numpy", forceinline=True, fastmath={"contract", "reassoc", "nsz"})
def total_of_row(values: FloatArray, row: int, n: int) -> float:
    """Add up the first ``n`` numbers of a row; the order of addition is left to the compiler."""
    total = 0.0
    for r in range(n):
        total += values[row, r]
    return total


@njit(nogil=True, error_model="numpy", forceinline=True, fastmath={"contract"})
def softmax(
    values: FloatArray, n: int, hard: bool, log_total: FloatArray, total: FloatArray, constants: ExpConstants
) -> None:
    """Replace each column of ``values`` (edges, rows) by its softmax, or mark its first largest entry if ``hard``."""
    for r in range(n):
        log_total[r] = -np.inf
        total[r] = 0.0
    for k in range(len(values)):
        for r in range(n):
            log_total[r] = larger(log_total[r], values[k, r])
    for k in range(len(values)):
        for r in range(n):
            reference = log_total[r] if log_total[r] > -np.inf else 0.0
            if hard:
                values[k, r] = 1.0 if values[k, r] == reference and total[r] == 0.0 else 0.0
            else:
                values[k, r] = exp_of_negative(values[k, r] - reference, constants)
            total[r] += values[k, r]
    for k in range(len(values)):
        for r in range(n):
            values[k, r] /= total[r] if total[r] > 0.0 else 1.0
    for r in range(n):
        log_total[r] += math.log(total[r]) if total[r] > 0.0 else 0.0
