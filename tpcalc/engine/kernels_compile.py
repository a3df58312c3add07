"""How functions are compiled: one thread each, the interpreter lock released, kept on disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit, types
from numba.extending import intrinsic

__all__ = ["exact", "inlined", "loose", "pointer"]


@intrinsic
def pointer(typing_context: Any, address: Any) -> Any:
    """A float64 pointer from an integer."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], context.get_value_type(signature.return_type))

    return types.CPointer(types.float64)(types.int64), generate


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
