"""How functions are compiled: one thread each, the interpreter lock released, kept on disk."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from contextlib import suppress
from hashlib import blake2b
from typing import Any

from llvmlite import ir
from numba import carray, njit, types
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.lowering import Lower
from numba.core.serialize import dumps
from numba.core.typed_passes import NativeLowering
from numba.extending import intrinsic


def _pointers(kind: Any) -> Any:
    """Pointers of a kind, from integers."""

    @intrinsic
    def made(typing_context: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.inttoptr(args[0], context.get_value_type(signature.return_type))

        return types.CPointer(kind)(types.int64), generate

    return made


pointer, integers = _pointers(types.float64), _pointers(types.int64)


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


def inner(function: Callable[..., Any]) -> Any:
    """Like ``exact``, for what compiled functions alone call: the interpreter has no code of it."""

    def refuse(*given: Any, **named: Any) -> Any:
        raise TypeError(f"{function.__qualname__} is called by compiled functions alone")

    found = _compile(function, {*FLAGS}, no_cpython_wrapper=True, no_cfunc_wrapper=True)
    found._compile_for_args, found._insert = refuse, lambda *given, **named: None
    return found


def inlined(function: Callable[..., Any]) -> Any:
    """Like ``exact``, for the body of a loop: a call there would keep it from using vectors."""
    return _compile(function, {*FLAGS}, inline="always")


def _compile(function: Callable[..., Any], fastmath: set[str], **more: Any) -> Any:
    options: dict[str, Any] = {
        "fastmath": fastmath,
        "nogil": True,
        "error_model": "numpy",
        # A call would find the code of whoever was loaded first: compiled now, or kept, with other
        # last digits.
        "forceinline": True,
        "pipeline_class": _Compiler,
        **more,
    }
    compiled = njit(**options)(function)
    with suppress(RuntimeError):  # no place on this machine where compiled code could be kept
        compiled._cache = _OnDisk(function)
    return compiled


class _Function(Lower):  # type: ignore[misc]
    """A function that uses whole vector registers: half of them is what LLVM takes for some."""

    def setup_function(self, described: Any) -> None:
        super().setup_function(described)
        set.add(self.function.attributes, '"prefer-vector-width"="512"')  # none that llvmlite names


@register_pass(mutates_CFG=True, analysis_only=False)
class _Lowering(NativeLowering):  # type: ignore[misc]
    _name = "native_lowering_to_whole_registers"
    lowering_class = _Function


class _Compiler(CompilerBase):  # type: ignore[misc]
    def define_pipelines(self) -> list[PassManager]:
        found = PassManager("nopython")
        for one, words in DefaultPassBuilder.define_nopython_pipeline(self.state).passes:
            found.add_pass(_Lowering if one is NativeLowering else one, words)
        found.finalize()
        return [found]


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


@inner
def uncounted(whole: Any) -> Any:
    """An array of the caller whose parts are not counted, which would take as long as a row."""
    return carray(pointer(whole.ctypes.data), whole.shape)


@inner
def uncounted_index(whole: Any) -> Any:
    """One of integers."""
    return carray(integers(whole.ctypes.data), whole.shape)
