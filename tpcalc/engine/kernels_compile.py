"""How functions are compiled: one thread each, the interpreter lock released, kept on disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit, types
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


def loose(function: Callable[..., Any]) -> Any:
    """Compile loops that form sums.

    Their order may be changed, which is what lets the compiler use vector registers; infinities
    and NaN keep their meaning.
    """
    return _compile(function, {"reassoc", "nsz", "contract"})


def exact(function: Callable[..., Any]) -> Any:
    """Compile formulas that are in the order that keeps their accuracy; 1/0 is infinite."""
    return _compile(function, {"nsz", "contract"})


def inlined(function: Callable[..., Any]) -> Any:
    """Like ``exact``, for the body of a loop: a call there would keep it from using vectors."""
    return _compile(function, {"nsz", "contract"}, inline="always")


def _compile(function: Callable[..., Any], fastmath: set[str], inline: str = "never") -> Any:
    options: dict[str, Any] = {
        "fastmath": fastmath,
        "nogil": True,
        "error_model": "numpy",
        "inline": inline,
    }
    try:
        return njit(cache=True, **options)(function)
    except RuntimeError:  # no place on this machine where compiled code could be kept
        return njit(**options)(function)
