"""The multilayer perceptron: L hidden layers of one width, fully connected."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from tpcalc.catalog.activations import lookup as activation
from tpcalc.dsl.elementwise import expression
from tpcalc.errors import StudyError
from tpcalc.functions import Expr, Fn, Par, Var, const
from tpcalc.orders import Ex, as_ex
from tpcalc.passes.contribution import Contribution
from tpcalc.passes.unroll import Model, Parameter, Watch
from tpcalc.program.nodes import (
    Group,
    InputMatrix,
    InputScalar,
    InputVector,
    LinComb,
    MatMul,
    Moment,
    Nonlin,
    Ref,
    ScalarFn,
    Scale,
)
from tpcalc.program.program import Builder
from tpcalc.results import checks
from tpcalc.sources import Source

__all__ = ["ENTRY", "MLP"]

ENTRY = Source("Hajjar, Chizat, Giraud, Training integrable parameterizations", "equation (2.1)")
BIASES = ("none", "first", "all")
SUM = Fn(Par(0) + Par(1), 0, 2)


@dataclass(frozen=True)
class MLP:
    """A fully connected network with ``depth`` hidden layers of width n.

    h^1 = W^1 x + b^1, x^l = act(h^l), h^{l+1} = W^{l+1} x^l + b^{l+1},
    f_k = (W^{L+1} x^L + b^{L+1})_k, with W^l = n^(-a_l) w^l and w^l, b^l N(0, 1) at the start;
    biases share the power of their layer, unless the parameterization gives them their own.

    Args:
        depth: Number of hidden layers L, at least 1.
        act: Activation, by catalogue name (``"relu"``, ``"leaky_relu:0.2"``) or as a function of
            an expression.
        bias: Which layers have a bias: ``"none"``, ``"first"`` or ``"all"``.

    Raises:
        StudyError: A depth below 1 or an unknown bias word.
        UnknownName: No such activation.
        TraceError: An activation that is not a function of an expression.

    Source: Hajjar, Chizat, Giraud, equation (2.1).

    Example:
        >>> MLP(2, "relu").words
        'a network of 2 hidden layers with relu, without biases'
    """

    depth: int
    act: str | Callable[[Expr], Expr] = "relu"
    bias: str = "none"
    _activation: Expr = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        depth = checks.whole(self.depth, "depth", least=1, hint="It counts the hidden layers.")
        object.__setattr__(self, "depth", depth)
        if self.bias not in BIASES:
            raise StudyError(
                f"bias is {self.bias!r}.", where="MLP", hint=f"It is one of {', '.join(BIASES)}."
            )
        found = activation(self.act) if isinstance(self.act, str) else self.act
        if not callable(found):
            raise StudyError(
                f"act is {found!r}.",
                where="MLP",
                hint="Name an activation ('relu') or give a function of expressions (tp.tanh).",
            )
        object.__setattr__(self, "_activation", expression(found, "an activation"))

    @property
    def words(self) -> str:
        """The architecture in a phrase."""
        name = self.act if isinstance(self.act, str) else getattr(self.act, "name", "a function")
        layers = f"{self.depth} hidden layer" + ("s" if self.depth > 1 else "")
        biases = {
            "none": "without biases",
            "first": "with a bias in the first layer",
            "all": "with biases in all layers",
        }
        return f"a network of {layers} with {name}, {biases[self.bias]}"

    def model(
        self,
        dimension: int,
        outputs: int,
        a: Sequence[Ex],
        bias_a: Sequence[Ex] | None = None,
        mean: Sequence[Fraction | float] = (),
    ) -> Model:
        """The forward program of one input.

        Args:
            dimension: Number of input features d (finite).
            outputs: Number of outputs K (finite).
            a: The exponents a_1..a_{L+1}.
            bias_a: Those of the biases; None: the same.
            mean: The means of the entries of w^l at the start, for l = 1..L+1 and 0 for l = 1;
                empty: all 0.

        Returns:
            A template for ``unroll``, with h, x and their gradients watched, and the contribution
            of each layer's last update: ``dW_x`` of its weights, ``dB`` of its bias.

        Raises:
            StudyError: Means for another depth, or one for the first layer.

        Source: Hajjar, Chizat, Giraud, equation (2.1); section 5.1 for the means.
        """
        means = tuple(mean) or (Fraction(0),) * (self.depth + 1)
        if len(means) != self.depth + 1 or means[0] != 0:
            raise StudyError(
                f"the means of the initial weights are {', '.join(map(str, means))}; a network of "
                f"depth {self.depth} has {self.depth + 1} layers, the first one centred.",
                where="MLP",
                hint="Give 0 for the first layer and one mean for each layer after it.",
            )
        return _Writer(self, dimension, outputs, a, bias_a or a, means).write()


class _Writer:
    """Writes the template layer by layer."""

    def __init__(
        self,
        net: MLP,
        dimension: int,
        outputs: int,
        a: Sequence[Ex],
        bias_a: Sequence[Ex],
        mean: Sequence[Fraction | float],
    ) -> None:
        self.net, self.dimension, self.outputs = net, dimension, outputs
        self.a, self.bias_a, self.mean = a, bias_a, mean
        self.builder = Builder()
        self.parameters: list[Parameter] = []
        self.watch: list[Watch] = []
        self.contributions: list[Contribution] = []

    def write(self) -> Model:
        builder, depth = self.builder, self.net.depth
        inputs = tuple(builder.add(InputScalar(f"input[{j}]")) for j in range(self.dimension))
        act = Fn(self.net._activation, 1)
        x = -1
        for layer in range(1, depth + 1):
            terms = self._first(inputs) if layer == 1 else self._hidden(layer, x)
            if self._has_bias(layer):
                terms.append(self._bias(layer))
            h = self._sum(layer, terms)
            x = builder.add(Nonlin(act, (h,)))
            self.watch.append(Watch(layer, h, "h", "dh"))
            self.watch.append(Watch(layer, x, "x", "dx"))
            self._contributes(layer, h, f"dW_x[{layer},{{t}},{{i}}]", f"dB[{layer},{{t}}]")
        outputs = tuple(self._output(k, x) for k in range(self.outputs))
        for k, output in enumerate(outputs):
            builder.output(f"f[{k}]", output)
        return Model(
            builder.finish(),
            inputs,
            outputs,
            tuple(self.parameters),
            tuple(self.watch),
            tuple(self.contributions),
        )

    def _contributes(self, layer: int, ref: Ref, weights: str, bias: str, first: int = 0) -> None:
        """Name what the updates of a layer's parameters, from the ``first`` on, add to a node."""
        own = [parameter for parameter in self.parameters[first:] if parameter.layer == layer]
        for label, biases in ((weights, False), (bias, True)):
            refs = tuple(parameter.ref for parameter in own if parameter.bias is biases)
            if refs:
                self.contributions.append(Contribution(label, ref, refs))

    def _has_bias(self, layer: int) -> bool:
        return self.net.bias == "all" or (self.net.bias == "first" and layer == 1)

    def _group(
        self,
        name: str,
        members: int,
        layer: int,
        *,
        mean: Fraction | float = Fraction(0),
        bias: bool = False,
    ) -> list[Ref]:
        self.builder.group(Group(name, "n", (mean,) * members))
        refs = [self.builder.add(InputVector(name, index)) for index in range(members)]
        self.parameters.extend(Parameter(ref, layer, bias) for ref in refs)
        return refs

    def _first(self, inputs: Sequence[Ref]) -> list[tuple[Ref | None, Ref, Ex]]:
        columns = self._group("W1", self.dimension, 1)
        return [(j, u, self.a[0]) for j, u in zip(inputs, columns, strict=True)]

    def _hidden(self, layer: int, x: Ref) -> list[tuple[Ref | None, Ref, Ex]]:
        matrix = self.builder.add(InputMatrix(f"W{layer}", "n", "n"))
        self.parameters.append(Parameter(matrix, layer))
        power = self.a[layer - 1]
        terms: list[tuple[Ref | None, Ref, Ex]] = [
            (None, self.builder.add(MatMul(matrix, x)), power)
        ]
        if self.mean[layer - 1] != 0:
            terms.append((None, self._mean_part(x, self.mean[layer - 1]), power - 1))
        return terms

    def _mean_part(self, x: Ref, mean: Fraction | float) -> Ref:
        """The matrix of entries ``mean`` times x, divided by n: a constant vector."""
        average = self.builder.add(Moment(Fn(Var(0), 1), (x,)))
        return self.builder.add(Nonlin(Fn(const(mean) * Par(0), 1, 1), (x,), (average,)))

    def _bias(self, layer: int) -> tuple[Ref | None, Ref, Ex]:
        (bias,) = self._group(f"b{layer}", 1, layer, bias=True)
        return (None, bias, self.bias_a[layer - 1])

    def _sum(self, layer: int, terms: list[tuple[Ref | None, Ref, Ex]]) -> Ref:
        """Terms of one power are summed first and scaled once."""
        scaled: list[Ref] = []
        for power in dict.fromkeys(power for _, _, power in terms):
            part = [(scalar, vector) for scalar, vector, own in terms if own == power]
            if len(part) == 1 and part[0][0] is None:
                total = part[0][1]
            else:
                total = self.builder.add(
                    LinComb(
                        (Fraction(1),) * len(part),
                        tuple(scalar for scalar, _ in part),
                        tuple(vector for _, vector in part),
                    )
                )
            if power != as_ex(0):
                total = self.builder.add(Scale(total, -power))
            scaled.append(total)
        if len(scaled) == 1:
            return scaled[0]
        ones = (Fraction(1),) * len(scaled)
        return self.builder.add(LinComb(ones, (None,) * len(scaled), tuple(scaled)))

    def _output(self, k: int, x: Ref) -> Ref:
        layer = self.net.depth + 1
        name = f"W{layer}" if self.outputs == 1 else f"W{layer}[{k}]"
        first = len(self.parameters)
        (u,) = self._group(name, 1, layer, mean=self.mean[-1])
        moment = self.builder.add(Moment(Fn(Var(0) * Var(1), 2), (u, x)))
        power = 1 - self.a[-1]
        f = moment if power == as_ex(0) else self.builder.add(Scale(moment, power))
        index = "" if self.outputs == 1 else f",{k}"
        labels = f"dW_x[{layer},{{t}},{{i}}{index}]", f"dB[{layer},{{t}}{index}]"
        if not self._has_bias(layer):
            self._contributes(layer, f, *labels, first)
            return f
        bias = self.builder.add(InputScalar(f"b{layer}[{k}]", Fraction(0), Fraction(1)))
        self.parameters.append(Parameter(bias, layer, bias=True))
        own = self.bias_a[-1]
        scaled = bias if own == as_ex(0) else self.builder.add(Scale(bias, -own))
        total = self.builder.add(ScalarFn(SUM, (f, scaled)))
        self._contributes(layer, total, *labels, first)
        return total
