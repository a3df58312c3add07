"""``NetworkTracer``: the ``t`` of a forward pass. It makes parameters, which carry their marks."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from tpcalc import checks
from tpcalc.doors.numbers import exact
from tpcalc.dsl.handles import Value, axes_of
from tpcalc.dsl.operands import misuse, number_or_none, user_line
from tpcalc.dsl.powers import Power
from tpcalc.dsl.recorder import Recorder
from tpcalc.dsl.vectors import Vector
from tpcalc.errors import ScaleError, StudyError
from tpcalc.exponents import Ex, parse_ex
from tpcalc.functions.numbers import Number
from tpcalc.names import SIGNS, layered
from tpcalc.networks.maps import ONE, Fused, Linear, MapTracer, Out, Parameter, Side
from tpcalc.program.family import NOISE, Family, Mark
from tpcalc.program.laws import LAWS
from tpcalc.program.nodes import Input, Ref

Scaled = Number | str | Power
_TEXT = re.compile(
    r"(?P<number>[0-9.]+(?:e[+-]?[0-9]+)?(?:\s*/\s*[0-9]+)?)?\s*\*?\s*"
    r"(?P<n>n(?:\s*(?:\^|\*\*)\s*(?:\((?P<inner>[^()]*)\)|(?P<bare>[+-]?[0-9.]+)))?)?"
)

LAST = 10**6  # the layer of readouts, until all layers are known
RESERVED = ("f", "W_x", "between")  # names that the outputs of every network have


class NetworkTracer(MapTracer):
    """Makes the parameters of a network and what it reports, besides all that a tracer makes.

    Args:
        recorder: Where the nodes go.
        outputs: The number of outputs that the data ask for.

    Attributes:
        n: The width.
        outputs: The number of outputs, the finite side of a readout.

    Example:
        >>> import tpcalc as tp
        >>> @tp.network
        ... def net(t: tp.NetworkTracer, x: tp.Scalar) -> tp.Scalar:
        ...     h = t.linear(t.n, "in", name="u")(x)
        ...     return t.linear(t.outputs, t.n, name="v")(tp.tanh(h))
        >>> [mark.label for mark in net.marks]
        ['u', 'v']
    """

    n = "n"

    def __init__(self, recorder: Recorder, outputs: int) -> None:
        super().__init__(recorder)
        self.outputs = outputs
        self.noises: list[Family] = []
        self.watched: dict[str, Ref] = {}
        self._hidden = 1

    def linear(
        self,
        out: Out,
        into: Side,
        bias: bool | Scaled = False,
        *,
        axes: Mapping[str, int] | None = None,
        over: str | Sequence[str] = (),
        name: str = "",
        bias_name: str = "",
        label: str = "",
        layer: int | None = None,
        factors: tuple[Number, Number] = (ONE, ONE),
        init: Scaled | None = None,
        rates: tuple[Scaled, Scaled] = (ONE, ONE),
        starts: tuple[Number, Number] = (ONE, ONE),
        law: str = "gaussian",
        along: str = "",
        group: str = "",
    ) -> Linear[Out]:
        """A linear map with trained weights; the parameterization scales them by what they are."""
        block = axes_of(axes, name or "a map")
        summed = (over,) if isinstance(over, str) else tuple(over)
        for axis in summed:
            if axis not in dict(block):
                raise misuse(f"a map is summed over {axis!r}, which its axes do not have.")
        role = self._role(out, into)
        rates, starts = _pair(rates, "rates"), _pair(starts, "starts")
        _check_law(law, role)
        layer = self._layer(role) if layer is None else layer
        if set(f"{name}{label}").intersection(SIGNS):
            raise misuse(
                f"a map is called {label or name!r}.", "Names are without brackets, commas and @."
            )
        mark = Mark(label or name, role, layer, start=starts[0], group=group)
        mark, factor = marked(mark, init, rates[0])
        weights, shift = self.declared(name, mark, law, along), None
        moved: Number = ONE
        if bias is not False:
            begins = None if bias is True else "0" if bias == "zero" else bias
            own = Mark(label or name, "bias", layer, start=starts[1], group=group)
            own, moved = marked(own, begins, rates[1], "bias")
            called = bias_name or (f"{name}.bias" if name else "")
            shift = self.declared(called, own, along=along)
        given = [checks.real(one, "a factor of a map") for one in _pair(factors, "factors")]
        factors = given[0] * factor, given[1] * moved
        self.maps.append(Linear(self, out, into, weights, shift, factors, block, summed))
        return self.maps[-1]

    def fused(
        self,
        parts: Mapping[str, tuple[Side, Side] | tuple[Side, Side, Mapping[str, int]]],
        bias: bool | Scaled = False,
        *,
        name: str = "",
        layer: int | None = None,
        factors: tuple[Number, Number] = (ONE, ONE),
        init: Scaled | None = None,
        rates: tuple[Scaled, Scaled] = (ONE, ONE),
        group: str = "",
    ) -> Fused:
        """One trained parameter whose parts have roles of their own: fused q, k and v, gates.

        Each part is a map with the role that its sides give it; all of them have the exponents of
        one layer, that of the whole, as they are one array with one init and one learning rate.

        Example:
            >>> import tpcalc as tp
            >>> @tp.network
            ... def net(t, x):
            ...     h = tp.tanh(t.linear(t.n, "in", name="u")(x))
            ...     up, gate = t.fused({"up": (t.n, t.n), "gate": (1, t.n)}, name="w")(h)
            ...     return t.linear(t.outputs, t.n, name="v")(tp.sigmoid(gate) * up)
            >>> [(mark.label, mark.role, mark.layer) for mark in net.marks if mark.whole]
            [('w.up', 'hidden', 2), ('w.gate', 'readout', 2)]
        """
        sides = [part[:2] for part in parts.values()]
        if len(sides) < 2 or all(len({side[k] for side in sides}) > 1 for k in (0, 1)):
            raise misuse(
                "a fused parameter is two or more maps with a common side.",
                "t.fused({'q': (t.n, t.n), 'k': (1, t.n)}): both read the same width.",
            )
        if layer is None:
            roles = [self._role(*side) for side in sides]
            layer = self._layer(min(roles, key=("hidden", "readout", "input", "finite").index))
        made = Fused({})
        for part, (out, into, *axes) in parts.items():
            own = f"{name}.{part}" if name else ""
            made.parts[part] = self.linear(
                out,
                into,
                bias,
                axes=dict(*axes),
                name=own,
                layer=layer,
                factors=factors,
                init=init,
                rates=rates,
                group=group,
            )
            made.parts[part].whole = made
        if name:
            made.named(name)
        return made

    def parameter(
        self, name: str = "", *, layer: int | None = None, start: Number = ONE, group: str = ""
    ) -> Parameter:
        """A trained vector for later, with the exponents of a bias: what uses it says where."""
        layer = self._hidden if layer is None else layer
        mark = Mark(name, "bias", layer, start=start, group=group)
        return self.declared(name, mark)

    def vector(
        self,
        name: str = "",
        *,
        layer: int | None = None,
        start: Number = ONE,
        init: Scaled | None = None,
        rate: Scaled = ONE,
        dim: str = "n",
        axes: Mapping[str, int] | None = None,
        group: str = "",
    ) -> Vector:
        """A trained vector, with the exponents of a bias."""
        label = name or f"b{len(self.parameters) + 1}"
        made = self.parameter(label, layer=layer, start=start, group=group)
        made.mark, factor = marked(made.mark, init, rate)
        vector = made.vector(dim, axes_of(axes, label))
        return vector if factor == 1 else factor * vector

    def noise(
        self, name: str = "", *, dim: str = "n", axes: Mapping[str, int] | None = None
    ) -> Vector:
        """A Gaussian vector that is not trained and is drawn anew for every input and step."""
        label = name or f"noise{len(self.noises) + 1}"
        self.recorder.claim("vector", label)
        width = (self.recorder.dim_name(dim),)
        family = Family(
            label,
            width,
            axes_of(axes, label),
            mark=Mark(label, NOISE, 1),
            along=self.recorder.along,
        )
        self.noises.append(family)
        vector: Vector = self.at(self.recorder.add(Input(family)))
        return vector

    def gain(self, name: str = "", *, layer: int | None = None, group: str = "") -> Vector:
        """A trained vector of factors that start at 1."""
        return 1 + self.vector(name, layer=layer, start=Fraction(0), group=group)

    def watch(self, what: str, label: str | int, value: Value) -> None:
        """Report a value of a run as ``what[label,t,i]``, and its gradient as ``dwhat``."""
        if not isinstance(what, str) or not what.isidentifier() or what in RESERVED:
            raise misuse(
                f"a value cannot be reported as {what!r}.",
                f"Use a word: h, x; {' and '.join(RESERVED)} are names that networks have.",
            )
        name = layered(what, label)
        self.recorder.claim("output", name)
        self.watched[name] = value.ref

    def declared(self, name: str, mark: Mark, law: str = "gaussian", along: str = "") -> Parameter:
        """A parameter with its mark, drawn where it is first used."""
        if name:
            self.recorder.claim("parameter", name)
        depth = self.recorder.law_along(along)
        self.parameters.append(Parameter(self, name, mark, user_line(), law, depth))
        return self.parameters[-1]

    def _role(self, out: Side, into: Side) -> str:
        """What a map is by its sides."""
        wide = self._is_side(out, "out"), self._is_side(into, "into")
        roles = {(True, False): "input", (True, True): "hidden", (False, True): "readout"}
        return roles.get(wide, "finite")

    def _layer(self, role: str) -> int:
        """The layer of the next map of a role in tables over layers."""
        self._hidden += role == "hidden"
        return {"hidden": self._hidden, "readout": LAST}.get(role, 1)

    def _is_side(self, side: object, what: str) -> bool:
        """Whether a side of a map is a width."""
        if isinstance(side, str) and (side in self.recorder.dims or what == "into"):
            return side in self.recorder.dims
        if isinstance(side, int) and not isinstance(side, bool) and side > 0 and what == "out":
            return False
        raise misuse(
            f"the side {what} of a map is {side!r}.",
            "t.linear(out, into): out is a width (t.n) or a number of outputs, into a width or "
            "the name of a finite axis ('in').",
        )


def _check_law(law: str, role: str) -> None:
    if law not in LAWS:
        raise misuse(f"the weights of a map are {law!r}.", f"Laws: {', '.join(LAWS)}.")
    if law != "gaussian" and role != "hidden":
        raise misuse(
            f"a map with a finite side has {law} weights.",
            "Its few columns stay what they are in wide networks, so that limits depend on their "
            "law; weights between two widths average over it.",
        )


def marked(
    mark: Mark, init: Scaled | None, rate: Scaled, what: str = "the init of a parameter"
) -> tuple[Mark, Number]:
    """A mark with an init and a rate, and the number that then stands in front.

    With W = s w a step of W by the gradient is one of w by 1/s^2 times its own.
    """
    number, speed = scaled(rate, "the rate of a parameter")
    mark = replace(mark, rate=number, speed=speed)
    if init is None:
        return mark, ONE
    deviation, power = scaled(init, what)
    if not deviation:
        return replace(mark, start=Fraction(0)), ONE
    return replace(mark, rate=number / deviation**2, start=deviation, init=power), deviation


def _pair(values: Any, name: str) -> tuple[Any, Any]:
    """What is said of weights and of their bias."""
    found = checks.sequence(values, name)
    if len(found) != 2:
        raise misuse(f"{name} has {len(found)} entries.", "Give one for weights, one for the bias.")
    return found[0], found[1]


def scaled(value: Scaled, what: str) -> tuple[Number, Ex]:
    """A number from 0 and a power of n.

    Example:
        >>> [(str(k), str(power)) for k, power in (scaled(t, "init") for t in ("n^(-1/2)", "3/2"))]
        [('1', '-1/2'), ('3/2', '0')]
    """
    found = _read(value)
    if found is None or not 0 <= found[0] < float("inf") or found[1].constant is None:
        raise misuse(
            f"{what} is {value!r}.",
            "It is a number from 0, a power of n, or both: 'n^(-1/2)', '0.02 n^(-1/2)'.",
        )
    return found


def _read(value: object) -> tuple[Number, Ex] | None:
    if isinstance(value, Power):
        return (value.factor, value.n_power) if value.depth_power == Ex() else None
    if not isinstance(value, str):
        number = number_or_none(value)
        return None if number is None else (number, Ex())
    found = _TEXT.fullmatch(value.strip())
    if found is None or not value.strip():
        return None
    try:
        exponent = found["inner"] or found["bare"] or ("1" if found["n"] else "0")
        return exact(found["number"] or "1", what="init"), parse_ex(exponent)
    except (ScaleError, StudyError):
        return None
