"""``program``: a Python function of a tracer becomes a Tensor Program."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import update_wrapper
from typing import TYPE_CHECKING, Any

from tpcalc.dsl.operands import line_of, misuse, noun, recording, user_line
from tpcalc.dsl.recorder import Recorder
from tpcalc.dsl.tracer import Tracer
from tpcalc.errors import TraceError, UnknownName, UsageError
from tpcalc.program.base import data_of
from tpcalc.program.program import Program
from tpcalc.program.types import ReadAs
from tpcalc.shown import Shown

# What a program offers; a traced function without parameters offers the same.
_OF_PROGRAM = frozenset(
    {*Program.__dataclass_fields__, *(name for name in vars(Program) if not name.startswith("_"))}
)


if TYPE_CHECKING:
    Offered = Program  # for a checker of types it is the program that it stands for
else:
    Offered = Shown


class Traced(Offered):
    """A function that was decorated with ``program``; it is run when its program is needed.

    Where it needs no parameters it stands for its program: it can be printed, and it has the
    attributes of a ``Program`` (``nodes``, ``outputs``, ``dims``, ...).

    Args:
        function: The function of a tracer.

    Example:
        >>> @program
        ... def start(t):
        ...     t.output("h", t.gaussian("h"))
        >>> [name for name, _ in start.outputs]
        ['h']
    """

    def __init__(self, function: Callable[..., object]) -> None:
        update_wrapper(self, function)
        self._function = function
        self._parameters = list(inspect.signature(function).parameters.values())[1:]
        self._built: Program | None = None

    def build(self, **parameters: Any) -> Program:
        """Run the function and return its program.

        Args:
            parameters: Values for its parameters after the tracer, by name.

        Raises:
            TraceError: The function misuses its vectors, or names no output.
            UnknownName: It has no such parameter.

        Example:
            >>> @program
            ... def iterated(t, depth):
            ...     W, h = t.matrix("W"), t.gaussian("h")
            ...     for _ in range(depth):
            ...         h = n**"-1/2" * (W @ h)
            ...     t.output("h", h)
            >>> from tpcalc.dsl.powers import n
            >>> len(iterated.build(depth=3).nodes)
            8
        """
        if parameters:
            return self._trace(parameters)
        if self._built is None:
            self._built = self._trace({})
        return self._built

    def _trace(self, parameters: dict[str, Any]) -> Program:
        self._check(parameters)
        return _record(Recorder(self.__name__), self._function, parameters)

    def _check(self, parameters: dict[str, Any]) -> None:
        known = {parameter.name: parameter for parameter in self._parameters}
        open_ended = any(p.kind is p.VAR_KEYWORD for p in self._parameters)
        for name in parameters:
            if name not in known and not open_ended:
                raise UnknownName("parameter", name, known, where=user_line())
        lacking = [name for name in self._needed() if name not in parameters]
        if lacking:
            raise misuse(
                f"the program {self.__name__!r} needs {', '.join(lacking)}.",
                f"Build it: {self.__name__}.build({', '.join(f'{name}=...' for name in lacking)}).",
            )

    def _needed(self) -> list[str]:
        return [
            parameter.name
            for parameter in self._parameters
            if parameter.default is parameter.empty
            and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        ]

    def __call__(self, t: Tracer, *values: Any, **parameters: Any) -> object:
        """Run the function inside another program, on that program's tracer.

        Args:
            t: The tracer of the program being written.
            values: Its parameters.
            parameters: Its parameters, by name.
        """
        if not isinstance(t, Tracer):
            raise misuse(
                f"the program {self.__name__!r} is called with {noun(t)}.",
                f"To get the program, write {self.__name__}.build(...); inside another program, "
                f"{self.__name__}(t, ...).",
            )
        return self._function(t, *values, **parameters)

    def __getattr__(self, name: str) -> Any:
        if name in _OF_PROGRAM:
            return getattr(self.build(), name)
        raise AttributeError(f"a traced program has no attribute {name!r}", name=name, obj=self)

    def __str__(self) -> str:
        return str(self.build()) if not self._needed() else repr(self)

    def __repr__(self) -> str:
        names = ", ".join(["t", *(parameter.name for parameter in self._parameters)])
        return f"<program {self.__name__}({names})>"


def _record(
    recorder: Recorder, function: Callable[..., object], parameters: dict[str, Any]
) -> Program:
    with recording():
        function(Tracer(recorder), **parameters)
        if not recorder.builder.outputs:
            raise TraceError(
                f"the program {recorder.title!r} has no output, so there is nothing to compute.",
                where=line_of(function),
                hint='Name a result in it: t.output("h", h).',
            )
        return recorder.finish()


def program(function: Callable[..., object]) -> Traced:
    """Make a program of a function of a tracer; a decorator.

    Args:
        function: A function of a tracer ``t``, and of further parameters if it has any. It makes
            inputs with ``t.gaussian`` and ``t.matrix``, computes with operators and functions such
            as ``tp.relu``, and names results with ``t.output``.

    Returns:
        The traced function; everything that takes a program takes it.

    Raises:
        TraceError: It is not a function of at least one argument.

    Example:
        >>> @program
        ... def layer(t):
        ...     h = t.matrix("W") @ t.gaussian("x")
        ...     t.output("h", n**"-1/2" * h)
        >>> from tpcalc.dsl.powers import n
        >>> [type(node).__name__ for node in layer.nodes]
        ['Input', 'Input', 'MatMul', 'Scale']
    """
    if isinstance(function, Traced):
        return function
    if not inspect.isfunction(function) and not inspect.ismethod(function):
        raise misuse(
            f"a program is made of a function, not {noun(function)}.",
            "Write @tp.program above `def name(t): ...`.",
        )
    parameters = list(inspect.signature(function).parameters.values())
    if not parameters or parameters[0].kind not in (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
    ):
        raise misuse(
            f"the function {function.__name__!r} takes no tracer.",
            f"Its first argument is the tracer: def {function.__name__}(t).",
        )
    return Traced(function)


def extend(source: object, function: Callable[[Tracer], object]) -> Program:
    """A program with more computed at its end.

    Args:
        source: The program.
        function: A function of a tracer ``t`` that continues it: ``t[name]`` is what the program
            outputs under that name.

    Returns:
        A program with the old outputs and the new ones.

    Raises:
        TraceError: The function misuses its vectors.
        UnknownName: It asks for an output that is not there.

    Example:
        >>> @program
        ... def start(t):
        ...     t.output("h", t.gaussian("h"))
        >>> longer = extend(start, lambda t: t.output("2h", 2 * t["h"]))
        >>> [name for name, _ in longer.outputs]
        ['h', '2h']
    """
    base = as_program(source)
    if not callable(function):
        raise misuse(
            f"a program is extended by a function, not {noun(function)}.",
            "Give a function of the tracer: lambda t: t.output('2h', 2 * t['h']).",
        )
    return _record(Recorder(getattr(source, "__name__", "program"), base), function, {})


def as_program(source: object, reading: ReadAs = "auto") -> Program:
    """A program from whatever a user hands over for one.

    Args:
        source: A ``Program``, a traced function that needs no parameters, or what has one as its
            ``program``, such as a training run.
        reading: Whether that of a training run keeps its samples as an axis.

    Returns:
        The program; of a training run that of its blocks, where it has them.

    Raises:
        TraceError: It is something else, or needs parameters.

    Example:
        >>> @program
        ... def start(t):
        ...     t.output("h", t.gaussian("h"))
        >>> len(as_program(start).nodes)
        1
    """
    if isinstance(source, Program):
        return source
    if isinstance(source, Traced):
        return source.build()
    read_as = getattr(source, "read_as", None)  # a run of many cells need not be split
    own = read_as(reading) if callable(read_as) else getattr(source, "program", None)
    if isinstance(own, Program):
        return own
    if hasattr(source, "forward") or is_forward_pass(source):
        name = getattr(source, "name", None) or getattr(source, "__name__", "net")
        raise misuse(
            f"a program is needed, and {name} is a network.",
            "tp.train(net, 'mup', data, steps=1) writes the program of its training; with steps=0 "
            "that of its start.",
        )
    if callable(source):
        name = getattr(source, "__name__", "f")
        hint = f"Write @tp.program above `def {name}(t): ...`."
    else:
        hint = "Give a traced function, or what tp.train or a Builder returns."
    raise misuse(f"a program is needed, not {noun(source)}.", hint)


def is_forward_pass(source: object) -> bool:
    """Whether something is a function of a tracer and an input."""
    if not inspect.isfunction(source):
        return False
    parameters = inspect.signature(source).parameters.values()
    return sum(one.default is one.empty for one in parameters) >= 2


def filled(source: object, reading: ReadAs = "auto") -> Program:
    """A program as ``as_program`` gives it, for a run or a limit: its data have values.

    Args:
        source: A ``Program``, or a traced function that needs no parameters.
        reading: Whether that of a training run keeps its samples as an axis.

    Returns:
        The program.

    Raises:
        TraceError: It is something else, or needs parameters.
        UsageError: Data without values, as a network has them.

    Example:
        >>> @program
        ... def start(t):
        ...     t.output("x", t.data("x", [1.0, 2.0], ("b",)))
        >>> filled(start) is as_program(start)
        True
    """
    found = as_program(source, reading)
    for ref, node in enumerate(found.nodes):
        data = data_of(node)
        if data is not None and not data.values:
            raise UsageError(
                f"the data {data.name!r} have no values.",
                where=found.place(ref),
                hint="They are a slot that training and kernels of a network fill; a program of "
                "its own has numbers there, t.data(name, values, axes).",
            )
    return found
