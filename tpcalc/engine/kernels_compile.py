"""How functions are compiled: one thread each, the interpreter lock released, kept on disk."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from contextlib import suppress
from hashlib import blake2b
from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.serialize import dumps
from numba.extending import intrinsic


@intrinsic
def pointer(typing_context: Any, address: Any) -> Any:
    """A float64 pointer from an integer."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], context.get_value_type(signature.return_type))

    return types.CPointer(types.float64)(types.int64), generate


@intrinsic
def bits(typing_context: Any, value: Any) -> Any:
    """The bits of a float64 as an integer."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], context.get_value_type(types.int64))

    return types.int64(types.float64), generate


@intrinsic
def number(typing_context: Any, value: Any) -> Any:
    """The float64 with these bits."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], context.get_value_type(types.float64))

    return types.float64(types.int64), generate


FLAGS = ("nsz", "contract")  # of formulas in their order


def loose(function: Callable[..., Any]) -> Any:
    """Compile loops that form sums.

    Their order may be changed, which is what lets the compiler use vector registers; infinities
    and NaN keep their meaning.
    """
    return _compile(function, {"reassoc", *FLAGS})


def exact(function: Callable[..., Any]) -> Any:
    """Compile formulas that are in the order that keeps their accuracy; 1/0 is infinite."""
    return _compile(function, {*FLAGS})


def inlined(function: Callable[..., Any]) -> Any:
    """Like ``exact``, for the body of a loop: a call there would keep it from using vectors."""
    return _compile(function, {*FLAGS}, inline="always")


def _compile(function: Callable[..., Any], fastmath: set[str], inline: str = "never") -> Any:
    options: dict[str, Any] = {
        "fastmath": fastmath,
        "nogil": True,
        "error_model": "numpy",
        "inline": inline,
        # A call would find the code of whoever was loaded first: compiled now, or kept, with other
        # last digits.
        "forceinline": True,
    }
    compiled = njit(**options)(function)
    with suppress(RuntimeError):  # no place on this machine where compiled code could be kept
        compiled._cache = _OnDisk(function)
    return compiled


class _Whole(CompileResultCacheImpl):  # type: ignore[misc]
    """Compiled code beside its digest: a changed byte would be run."""

    def reduce(self, code: Any) -> tuple[str, bytes]:
        written = dumps(super().reduce(code))
        return blake2b(written).hexdigest(), written

    def rebuild(self, target: Any, kept: tuple[str, bytes]) -> Any:
        digest, written = kept
        if blake2b(written).hexdigest() != digest:
            raise ValueError("compiled code that has changed on disk")
        return super().rebuild(target, pickle.loads(written))


class _OnDisk(FunctionCache):  # type: ignore[misc]
    """Compiled code on disk: what is damaged is compiled anew, what cannot be written is not."""

    _impl_class = _Whole

    def load_overload(self, signature: Any, target: Any) -> Any:
        try:
            return super().load_overload(signature, target)
        except Exception:  # whatever a reader makes of bytes that are none of its own
            with suppress(OSError):
                self.flush()
            return None

    def save_overload(self, signature: Any, code: Any) -> None:
        with suppress(Exception):  # a full disk, a damaged index that may not be written
            super().save_overload(signature, code)


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
