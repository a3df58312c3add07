"""Polynomials as compiled code: tables of coefficients, and no loop that keeps vectors out."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

FLAGS = ("nsz", "contract")  # those of ``kernels_compile.exact``


def polynomial(*coefficients: float) -> Any:
    """A polynomial of a float64 by Horner's rule; the highest coefficient comes first."""

    @intrinsic
    def value(typing_context: Any, argument: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            highest, *others = (ir.Constant(ir.DoubleType(), one) for one in coefficients)
            total = highest
            for one in others:
                total = builder.fadd(builder.fmul(total, args[0], flags=FLAGS), one, flags=FLAGS)
            return total

        return types.float64(types.float64), generate

    return value
