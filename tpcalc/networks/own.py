"""A user's own network: a function of a tracer and an input, or a class with ``forward``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, overload

from tpcalc.dsl.handles import Scalar, axes_of
from tpcalc.dsl.operands import line_of, misuse, noun, user_line
from tpcalc.dsl.trace import is_forward_pass
from tpcalc.errors import UnknownName, UsageError
from tpcalc.networks.maps import Fused, Linear, Parameter
from tpcalc.networks.network import Architecture, check_same, traced
from tpcalc.networks.tracer import NetworkTracer
from tpcalc.program.program import Program


class Network:
    """Base of a user's network: parameters are made at its start and used in ``forward``.

    Maps that it keeps are called by where it keeps them: ``u``, ``blocks.0.up``.

    Attributes:
        axes: The finite axes of one input besides its features: ``{"p": 4}`` for 4 tokens.
        infinite: Those of them that stand for infinitely many cells, ``("b",)`` for an infinite
            batch; only ``tp.signal`` takes such networks.

    Example:
        >>> import tpcalc as tp
        >>> class Net(tp.Network):
        ...     def __init__(self, t, depth=2):
        ...         self.u = t.linear(t.n, "in")
        ...         self.w = [t.linear(t.n, t.n) for _ in range(depth)]
        ...         self.v = t.linear(t.outputs, t.n)
        ...     def forward(self, x):
        ...         h = self.u(x)
        ...         for w in self.w:
        ...             h = h + w(tp.gelu(h))
        ...         return self.v(h)
        >>> [mark.label for mark in tp.network(Net, depth=1).marks]
        ['u', 'w.0', 'v']
    """

    axes: ClassVar[Mapping[str, int]] = {}
    infinite: ClassVar[tuple[str, ...]] = ()

    def __init__(self, t: NetworkTracer) -> None:
        """Parameters are made here.

        Args:
            t: Makes them.
        """

    def forward(self, x: Scalar) -> Scalar | Sequence[Scalar]:
        """The outputs for one input.

        Args:
            x: The input, a block of numbers with the axis ``in`` (and those of ``axes``).

        Raises:
            NotImplementedError: A network has to say it.
        """
        raise NotImplementedError


def _own(kind: type) -> bool:
    """Whether a class is a user's."""
    return kind.__module__.partition(".")[0] != "tpcalc"


class Layer:
    """Base of a layer that keeps maps: they are called by where it keeps them."""


class Own(Architecture):
    """A network that a user wrote."""

    def __init__(self, source: Any, axes: Mapping[str, int], parameters: Mapping[str, Any]) -> None:
        self._source: Any = source
        self._axes = dict(axes_of(axes, self.name))
        self._parameters = dict(parameters)

    @property
    def name(self) -> str:
        """What the user calls it."""
        return str(self._source.__name__)

    @property
    def line(self) -> str | None:
        """The user's line that begins its forward pass."""
        return line_of(getattr(self._source, "forward", self._source))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Own) and self._key == other._key

    def __hash__(self) -> int:
        return hash((self._source, tuple(self._axes)))

    @property
    def _key(self) -> tuple[object, ...]:
        return self._source, self._axes, self._parameters

    def __call__(self, *args: Any, **named: Any) -> Any:
        """What was decorated, called as it is."""
        return self._source(*args, **named)

    def with_(self, **parameters: Any) -> Own:
        """The same network with other parameters."""
        for name in parameters:
            if self.takes is not None and name not in self.takes:
                raise UnknownName(f"parameter of {self.name}", name, self.takes, where=user_line())
        return Own(self._source, self._axes, {**self._parameters, **parameters})

    @property
    def takes(self) -> tuple[str, ...] | None:
        """The names of its parameters; None: any."""
        called = self._source.__init__ if inspect.isclass(self._source) else self._source
        parameters = list(inspect.signature(called).parameters.values())[2:]  # after t
        if any(one.kind is one.VAR_KEYWORD for one in parameters):
            return None
        return tuple(one.name for one in parameters)

    @property
    def axes(self) -> Mapping[str, int]:
        """The finite axes of one input besides its features."""
        return self._axes

    @property
    def infinite(self) -> tuple[str, ...]:
        """Those axes whose cells stand for infinitely many."""
        found: tuple[str, ...] = getattr(self._source, "infinite", ())
        return found

    @property
    def words(self) -> str:
        """The network in a phrase."""
        given = ", ".join(f"{name}={value}" for name, value in self._parameters.items())
        count = len(self.marks)
        return (
            f"the network {self.name}{f'({given})' if given else ''} of {count} "
            f"parameter{'s' if count != 1 else ''}"
        )

    @cached_property
    def smallest(self) -> Program:
        first, again = (traced(self, self.tokens, 1) for _ in range(2))
        check_same(self, first.nodes, again.nodes)
        return first

    def forward(self, t: NetworkTracer, x: Scalar) -> Any:
        """The outputs for one input."""
        kept = inspect.isclass(self._source)
        if not kept:
            return self._source(t, x, **self._parameters)
        _check_forward(self._source, self.line)
        made = self._source(t, **self._parameters)
        for label, parameter in _parameters(made, ""):
            parameter.named(label)
        return made.forward(x)


def _check_forward(kind: type[Network], line: str | None) -> None:
    try:
        inspect.signature(kind.forward).bind(None, None)
    except TypeError as error:
        raise misuse(
            f"the forward pass of {kind.__name__} is not called with an input alone ({error}).",
            "Write def forward(self, x); what the network is made with besides is for __init__.",
            where=line,
        ) from None


def _parameters(
    holder: object, path: str, above: tuple[int, ...] = ()
) -> Iterator[tuple[str, Fused | Linear[Any] | Parameter]]:
    """The maps and vectors that an object keeps, by where it keeps them."""
    if id(holder) in above:  # it keeps what it is kept by
        return
    above = (*above, id(holder))
    if isinstance(holder, Fused | Linear | Parameter):
        yield path, holder
    elif isinstance(holder, list | tuple):
        for index, item in enumerate(holder):
            yield from _parameters(item, f"{path}.{index}", above)
    elif isinstance(holder, dict | Layer | Network) or _own(type(holder)):
        items = holder if isinstance(holder, dict) else getattr(holder, "__dict__", {})
        for name, item in items.items():
            yield from _parameters(item, f"{path}.{name}" if path else str(name), above)


Made = Callable[..., Any]
Axes = Mapping[str, int]


@overload
def network(source: Made, /, *, axes: Axes | None = None, **parameters: Any) -> Own: ...
@overload
def network(*, axes: Axes | None = None, **parameters: Any) -> Callable[[Made], Own]: ...
def network(
    source: Made | None = None, /, *, axes: Axes | None = None, **parameters: Any
) -> Own | Callable[[Made], Own]:
    """A network of one's own, for every question about networks; a decorator of functions.

    Args:
        source: A function ``f(t, x)`` of a tracer and an input, or a class with ``forward``
            (``tp.Network``). Both make parameters with ``t.linear`` and return what a readout
            gives.
        axes: The finite axes of one input besides its features, ``{"p": 4}`` for 4 tokens: a row
            of data holds them one after the other. Of a class: those that it says.
        parameters: What the function or the class takes besides.

    Returns:
        The network.

    Raises:
        TraceError: It is neither.

    Example:
        >>> import tpcalc as tp
        >>> @tp.network
        ... def net(t, x):
        ...     h = t.linear(t.n, "in", name="u")(x)
        ...     return t.linear(t.outputs, t.n, name="v")(tp.tanh(h))
        >>> net.hidden, net.words
        (1, 'the network net of 2 parameters')
    """
    if source is None:
        return lambda inner: network(inner, axes=axes, **parameters)
    if isinstance(source, Own):
        return source.with_(**parameters)
    if not _is_source(source):
        raise misuse(
            f"a network is made of a function f(t, x) or a class with forward, not {noun(source)}.",
            "Write @tp.network above `def net(t, x):`.",
        )
    own = getattr(source, "axes", {}) if axes is None else axes
    return Own(source, own, {}).with_(**parameters)


def _is_source(source: object) -> bool:
    if inspect.isclass(source):
        return issubclass(source, Network)
    return is_forward_pass(source)


def is_network(source: object) -> bool:
    """Whether something stands for a network."""
    return isinstance(source, Architecture) or _is_source(source)


def as_network(source: Any) -> Architecture:
    """A network from whatever a user hands over for one.

    Example:
        >>> import tpcalc as tp
        >>> as_network(tp.MLP(2)).hidden
        2
    """
    if isinstance(source, Architecture):
        return source
    if _is_source(source):
        return network(source)
    raise UsageError(
        f"the architecture is {source!r}.",
        where=user_line(),
        hint="Give a network: tp.MLP(2, 'relu'), a function net(t, x), or a class that inherits "
        "from tp.Network.",
    )
