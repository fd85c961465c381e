"""Vectors of rows inside the compiled kernels: the numbers of ``LENGTH`` consecutive rows, computed with at once.

Numba leaves it to the compiler to find loops that can be vectorised, which it does for short loops over few arrays
only. With a type of their own, vectors stay in registers while a kernel works through all terms of a node. LLVM cuts
them into pieces of the processor's own length.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from llvmlite import ir
from llvmlite.binding import get_host_cpu_features
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic, lower_builtin, models, register_model, type_callable

from safespn.typing import FloatArray

LENGTH = 32 if get_host_cpu_features().get("avx512f") else 16
"""Four registers of the processor, of which it has 32 with eight numbers each, or 16 with four or two: long enough that
work per node counts little, short enough that a few vectors stay in registers."""
LANES = 4
"""Sums over rows are kept in so many parts, to be added up at the very end."""

CACHE_LINE = 64
"""Bytes; a vector that crosses the border of two lines is loaded from both."""

Vector: TypeAlias = Any

_BITS_OF_ROOT_HALF = int(np.sqrt(0.5).view(np.int64))
_BITS_OF_SHIFT = int(np.float64(1.5 * 2**52).view(np.int64))

_DOUBLES = ir.VectorType(ir.DoubleType(), LENGTH)
_INTEGERS = ir.VectorType(ir.IntType(64), LENGTH)


class VectorType(types.Type):  # type: ignore[misc]
    """Numba's type of a vector."""

    def __init__(self) -> None:
        super().__init__(name=f"Vector({LENGTH})")


_VECTOR = VectorType()


@register_model(VectorType)
class _VectorModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, of_type: Any) -> None:
        super().__init__(manager, of_type, _DOUBLES)


def _pointer(context: Any, builder: Any, array_type: Any, array: Any, *indices: Any) -> Any:
    """Point to an entry of an array; unlike Python's, an index may not count from the end, which costs less."""
    struct = context.make_array(array_type)(context, builder, array)
    return cgutils.get_item_pointer(context, builder, array_type, struct, list(indices), wraparound=False)


@njit(nogil=True, error_model="numpy")
def empty_aligned(n_rows: int, length: int) -> FloatArray:
    """Make an array of shape (n_rows, length) whose rows begin where cache lines do, if the length is of whole ones.

    Numba aligns arrays to half a line, so that otherwise chance decides how fast a kernel runs.
    """
    per_line = CACHE_LINE // 8
    memory = np.empty(n_rows * length + per_line)
    start = -(memory.ctypes.data // 8) % per_line
    return memory[start : start + n_rows * length].reshape((n_rows, length))


@intrinsic
def item(typing_context: Any, array: Any, index: Any) -> Any:
    """``array[index]`` for an index that is not negative."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load(_pointer(context, builder, signature.args[0], *arguments))

    return array.dtype(array, types.intp), generate


@intrinsic
def load(typing_context: Any, array: Any, row: Any, start: Any) -> Any:
    """Make a vector of ``array[row, start : start + LENGTH]``."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _pointer(context, builder, signature.args[0], *arguments)
        return builder.load(builder.bitcast(pointer, _DOUBLES.as_pointer()), align=8)

    return _VECTOR(array, types.intp, types.intp), generate


@intrinsic
def store(typing_context: Any, array: Any, row: Any, start: Any, vector: Any) -> Any:
    """Write a vector to ``array[row, start : start + LENGTH]``."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _pointer(context, builder, signature.args[0], *arguments[:3])
        builder.store(arguments[3], builder.bitcast(pointer, _DOUBLES.as_pointer()), align=8)
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp, _VECTOR), generate


@intrinsic
def copy_four_by_four(
    typing_context: Any, target: Any, target_row: Any, source: Any, source_row: Any, start: Any
) -> Any:
    """Copy four rows and columns, transposed, from ``source[source_row, start]`` to ``target[start, target_row]``."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        target, target_row, source, source_row, start = arguments
        four = ir.VectorType(ir.DoubleType(), 4)

        def place(array: int, value: Any, row: Any, column: Any) -> Any:
            pointer = _pointer(context, builder, signature.args[array], value, row, column)
            return builder.bitcast(pointer, four.as_pointer())

        def after(index: Any, steps: int) -> Any:
            return builder.add(index, index.type(steps))

        def pick(first: Any, second: Any, places: list[int]) -> Any:
            return builder.shuffle_vector(first, second, ir.Constant(ir.VectorType(ir.IntType(32), 4), places))

        a, b, c, d = (builder.load(place(2, source, after(source_row, i), start), align=8) for i in range(4))
        even, odd = (0, 4, 2, 6), (1, 5, 3, 7)
        pairs = [(pick(a, b, list(which)), pick(c, d, list(which))) for which in (even, odd)]
        columns = [pick(*pair, half) for half in ([0, 1, 4, 5], [2, 3, 6, 7]) for pair in pairs]
        for i, column in enumerate(columns):
            builder.store(column, place(0, target, after(start, i), target_row), align=8)
        return context.get_dummy_value()

    return types.void(target, types.intp, source, types.intp, types.intp), generate


@intrinsic
def fill(typing_context: Any, number: Any) -> Any:
    """Make a vector of one number, again and again."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _repeat(builder, *arguments)

    return _VECTOR(types.float64), generate


def _repeat(builder: Any, number: Any) -> Any:
    first = builder.insert_element(ir.Constant(_DOUBLES, ir.Undefined), number, ir.IntType(32)(0))
    return _shuffle(builder, first, [0] * LENGTH)


def _integers(number: int) -> Any:
    return ir.Constant(_INTEGERS, [number] * LENGTH)


def _shuffle(builder: Any, vector: Any, places: list[int]) -> Any:
    mask = ir.Constant(ir.VectorType(ir.IntType(32), len(places)), places)
    return builder.shuffle_vector(vector, ir.Constant(vector.type, ir.Undefined), mask)


@intrinsic
def add_up(typing_context: Any, array: Any, row: Any, start: Any, vector: Any) -> Any:
    """Add a vector to ``array[row, start : start + LANES]``; each entry gets an equal share of the rows.

    To add all rows to one number would take many more instructions, each of which waits for the one before.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _pointer(context, builder, signature.args[0], *arguments[:3])
        lanes = _halve(builder, arguments[3], LANES)
        pointer = builder.bitcast(pointer, lanes.type.as_pointer())
        builder.store(builder.fadd(builder.load(pointer, align=8), lanes), pointer, align=8)
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp, _VECTOR), generate


def _halve(builder: Any, vector: Any, length: int) -> Any:
    """Add one half of a vector to the other, again and again down to a length."""
    while vector.type.count > length:
        half = vector.type.count // 2
        halves = _shuffle(builder, vector, list(range(half))), _shuffle(builder, vector, list(range(half, 2 * half)))
        vector = builder.fadd(*halves)
    return vector


@intrinsic
def total(typing_context: Any, vector: Any) -> Any:
    """Add up a vector, by halves."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.extract_element(_halve(builder, arguments[0], 1), ir.IntType(32)(0))

    return types.float64(_VECTOR), generate


@intrinsic
def larger(typing_context: Any, first: Any, second: Any) -> Any:
    """Larger number of each pair; the second where one is NaN."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.select(builder.fcmp_ordered(">", *arguments), *arguments)

    return _VECTOR(_VECTOR, _VECTOR), generate


@intrinsic
def where_at_least(typing_context: Any, value: Any, bound: Any, chosen: Any, otherwise: Any) -> Any:
    """``chosen`` where ``value >= bound``, else (and where either is NaN) ``otherwise``."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.select(builder.fcmp_ordered(">=", *arguments[:2]), *arguments[2:])

    return _VECTOR(_VECTOR, _VECTOR, _VECTOR, _VECTOR), generate


@intrinsic
def negative_magnitude(typing_context: Any, vector: Any) -> Any:
    """Absolute values, times minus one."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        signed = builder.or_(builder.bitcast(arguments[0], _INTEGERS), _integers(-(2**63)))
        return builder.bitcast(signed, _DOUBLES)

    return _VECTOR(_VECTOR), generate


@intrinsic
def power_of_two(typing_context: Any, shifted: Any) -> Any:
    """``2 ** k`` of vectors that hold ``k + 1.5 * 2**52``: the last bits of such a number are those of k."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        biased = builder.add(builder.bitcast(arguments[0], _INTEGERS), _integers(1023))
        return builder.bitcast(builder.shl(biased, _integers(52)), _DOUBLES)

    return _VECTOR(_VECTOR), generate


def _power_bits(builder: Any, vector: Any) -> tuple[Any, Any]:
    """Return a vector's bits, and the biased exponents of the powers of two next to its (positive) numbers."""
    bits = builder.bitcast(vector, _INTEGERS)
    # Numbers above the root of one half belong to the power of two above them.
    shifted = builder.add(bits, _integers((1023 << 52) - _BITS_OF_ROOT_HALF))
    return bits, builder.lshr(shifted, _integers(52))


@intrinsic
def nearest_power(typing_context: Any, vector: Any) -> Any:
    """Integers ``k`` for which positive normal numbers divided by ``2 ** k`` lie between the roots of 1/2 and of 2."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _, biased = _power_bits(builder, arguments[0])
        # The last bits of 1.5 * 2**52 + k are those of k.
        shifted = builder.bitcast(builder.add(biased, _integers(_BITS_OF_SHIFT)), _DOUBLES)
        return builder.fsub(shifted, _repeat(builder, ir.DoubleType()(1.5 * 2**52 + 1023)))

    return _VECTOR(_VECTOR), generate


@intrinsic
def over_nearest_power(typing_context: Any, vector: Any) -> Any:
    """Positive normal numbers divided by two to their :func:`nearest_power`."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        bits, biased = _power_bits(builder, arguments[0])
        power = builder.sub(builder.shl(biased, _integers(52)), _integers(1023 << 52))
        return builder.bitcast(builder.sub(bits, power), _DOUBLES)

    return _VECTOR(_VECTOR), generate


def _define(symbol: Callable[..., Any], instruction: str) -> None:
    """Give vectors an arithmetic operator; a number on one of its sides counts for every row."""

    @type_callable(symbol)
    def type_of_result(context: Any) -> Any:
        def typer(*operands: Any) -> Any:
            known = all(operand in (_VECTOR, types.float64) for operand in operands)
            return _VECTOR if known and _VECTOR in operands else None

        return typer

    @lower_builtin(symbol, _VECTOR, _VECTOR)
    @lower_builtin(symbol, _VECTOR, types.float64)
    @lower_builtin(symbol, types.float64, _VECTOR)
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pairs = zip(signature.args, arguments, strict=True)
        vectors = [value if of_type is _VECTOR else _repeat(builder, value) for of_type, value in pairs]
        # Multiplications and additions may be contracted into one instruction.
        return getattr(builder, instruction)(*vectors, flags=("contract",))


for _symbol, _instruction in (
    (operator.add, "fadd"),
    (operator.sub, "fsub"),
    (operator.mul, "fmul"),
    (operator.truediv, "fdiv"),
):
    _define(_symbol, _instruction)
