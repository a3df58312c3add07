"""The writer that architectures make their forward programs with, layer by layer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from tpcalc.catalog.architecture import Number
from tpcalc.errors import StudyError
from tpcalc.functions import Expr, Fn, Par, Var, const
from tpcalc.orders import Ex, as_ex
from tpcalc.passes.contribution import Contribution
from tpcalc.passes.unroll import Model, Parameter, Watch
from tpcalc.program.nodes import (
    Data,
    Family,
    Input,
    LinComb,
    MatMul,
    Moment,
    Nonlin,
    Ref,
    Scale,
    members,
)
from tpcalc.program.program import Builder

__all__ = ["Term", "Writer"]

Term = tuple[Number, Ref | None, Ref, Ex]  # number * scalar * vector * n^(-power)

SUM = Fn(Par(0) + Par(1), 0, 2)
CENTRED = Fn(Var(0) - Par(0), 1, 1)
SQUARE = Fn(Var(0) ** 2, 1)
INVERSE_ROOT = Fn(Par(0) ** Fraction(-1, 2), 0, 1)


class Writer:
    """Writes a forward program: sums of terms, activations, normalisations and readouts.

    Args:
        where: The architecture, for messages.
        hidden: Number of hidden layers of the parameterization.
        a: The exponents of the layers 1 to ``hidden + 1``.
        bias_a: Those of the biases; None: the same.
        mean: The means of the weights at the start; empty: all 0.

    Raises:
        StudyError: Means for another number of layers, or one for the first layer.
    """

    def __init__(
        self,
        where: str,
        hidden: int,
        a: Sequence[Ex],
        bias_a: Sequence[Ex] | None,
        mean: Sequence[Number],
    ) -> None:
        self.means = tuple(mean) or (Fraction(0),) * (hidden + 1)
        if len(self.means) != hidden + 1 or self.means[0] != 0:
            raise StudyError(
                f"the means of the initial weights are {', '.join(map(str, self.means))}; a "
                f"network of depth {hidden} has {hidden + 1} layers, the first one centred.",
                where=where,
                hint="Give 0 for the first layer and one mean for each layer after it.",
            )
        self.a, self.bias_a = a, bias_a or a
        self.builder = Builder()
        self.data: tuple[Ref, ...] = ()
        self.outputs: list[Ref] = []
        self.parameters: list[Parameter] = []
        self._rated: dict[tuple[int, bool], Number] = {}
        self._zeros: set[str] = set()
        self.watched: list[Watch] = []
        self.contributions: list[Contribution] = []

    def model(self) -> Model:
        """The template that was written."""
        for k, output in enumerate(self.outputs):
            self.builder.output(f"f[{k}]", output)
        return Model(
            self.builder.finish(),
            self.data,
            tuple(self.outputs),
            tuple(self.parameters),
            tuple(self.watched),
            tuple(self.contributions),
            frozenset(self._zeros),
        )

    def datum(self, count: int) -> tuple[Ref, ...]:
        """Nodes for the numbers of the input.

        Args:
            count: How many.
        """
        self.data = tuple(self.builder.add(Data(f"input[{j}]")) for j in range(count))
        return self.data

    def group(
        self,
        name: str,
        size: int,
        layer: int,
        *,
        mean: Number = Fraction(0),
        bias: bool = False,
    ) -> list[Ref]:
        """Trained start vectors with iid coordinates: columns, a readout, a bias.

        Args:
            name: Of the group.
            size: How many vectors.
            layer: Whose exponents they have.
            mean: Of their coordinates.
            bias: Whether they are biases.
        """
        cells = members(Family.group(name, "n", (mean,) * size))
        refs = [self.builder.add(cell) for cell in cells]
        self.parameters.extend(self._parameter(ref, layer, bias) for ref in refs)
        return refs

    def rated(self, layer: int, weights: Number, biases: Number) -> None:
        """From here on, multiply the learning rates of a layer.

        Args:
            layer: The layer.
            weights: What multiplies those of its weights.
            biases: What multiplies those of its biases.
        """
        self._rated[layer, False], self._rated[layer, True] = weights, biases

    def at_zero(self, name: str) -> None:
        """Let weights start at 0.

        Args:
            name: Of a matrix, of a group of vectors, or of a scalar.
        """
        self._zeros.add(name)

    def _parameter(self, ref: Ref, layer: int, bias: bool) -> Parameter:
        return Parameter(ref, layer, bias, self._rated.get((layer, bias), Fraction(1)))

    def matrix(self, layer: int) -> Ref:
        """The weights of a hidden layer.

        Args:
            layer: Whose exponents they have.
        """
        ref = self.builder.add(Input(Family(f"W{layer}", ("n", "n"))))
        self.parameters.append(self._parameter(ref, layer, False))
        return ref

    def of_data(self, data: Sequence[Ref], columns: Sequence[Ref], factor: Number) -> list[Term]:
        """Factor * W^1 data, W^1 having these columns: the only thing that data may go into.

        Args:
            data: Numbers of the input.
            columns: As many start vectors.
            factor: In front.
        """
        return [(factor, x, u, self.a[0]) for x, u in zip(data, columns, strict=True)]

    def product(self, layer: int, matrix: Ref, x: Ref, factor: Number) -> list[Term]:
        """Factor * n^(-a_l) W^l x.

        Args:
            layer: The layer l.
            matrix: The entries of W^l less their mean.
            x: A vector.
            factor: In front.
        """
        power, mean = self.a[layer - 1], self.means[layer - 1]
        terms: list[Term] = [(factor, None, self.builder.add(MatMul(matrix, x)), power)]
        if mean != 0:
            # The matrix of entries `mean` times x, divided by n, is a constant vector.
            average = self.builder.add(Moment(Fn(Var(0), 1), (x,)))
            constant = Nonlin(Fn(const(mean) * Par(0), 1, 1), (x,), (average,))
            terms.append((factor, None, self.builder.add(constant), power - 1))
        return terms

    def bias(self, layer: int, factor: Number) -> Term:
        """Factor * n^(-a) b^l, b^l new.

        Args:
            layer: The layer l.
            factor: In front.
        """
        (ref,) = self.group(f"b{layer}", 1, layer, bias=True)
        return (factor, None, ref, self.bias_a[layer - 1])

    def plain(self, vector: Ref) -> Term:
        """A vector as a term.

        Args:
            vector: The vector.
        """
        return (Fraction(1), None, vector, as_ex(0))

    def total(self, terms: Iterable[Term]) -> Ref:
        """The sum; terms of one power are summed first and scaled once.

        Args:
            terms: One or more.
        """
        parts: dict[Ex, list[Term]] = {}
        for term in terms:
            parts.setdefault(term[3], []).append(term)
        scaled: list[Ref] = []
        for power, part in parts.items():
            number, scalar, total, _ = part[0]
            if len(part) > 1 or scalar is not None or number != 1:
                numbers, scalars, vectors, _ = zip(*part, strict=True)
                total = self.builder.add(LinComb(numbers, scalars, vectors))
            scaled.append(self.scaled(total, -power))
        if len(scaled) == 1:
            return scaled[0]
        ones = (Fraction(1),) * len(scaled)
        return self.builder.add(LinComb(ones, (None,) * len(scaled), tuple(scaled)))

    def scaled(self, ref: Ref, power: Ex) -> Ref:
        """A node times a power of n; itself for n^0.

        Args:
            ref: A vector or a scalar.
            power: Of n.
        """
        return ref if power == as_ex(0) else self.builder.add(Scale(ref, power))

    def normalised(self, h: Ref) -> Ref:
        """(h - E h) / sqrt(E (h - E h)^2), E the mean over coordinates.

        Args:
            h: A vector.

        Source: Ba, Kiros, Hinton, Layer normalization (2016), equation (3).
        """
        add = self.builder.add
        centred = add(Nonlin(CENTRED, (h,), (add(Moment(Fn(Var(0), 1), (h,))),)))
        scale = add(Nonlin(INVERSE_ROOT, (), (add(Moment(SQUARE, (centred,))),)))
        return add(LinComb((Fraction(1),), (scale,), (centred,)))

    def activated(self, layer: int, h: Ref, act: Expr, norm: str) -> Ref:
        """Act(h), or act of the normalised h; h, that and x are watched.

        Args:
            layer: For the names in the unrolled program.
            h: The preactivation.
            act: The activation.
            norm: ``"none"`` or ``"layer"``.
        """
        self.watch(layer, h, "h")
        if norm == "layer":
            h = self.normalised(h)
            self.watch(layer, h, "hhat")
        x = self.builder.add(Nonlin(Fn(act, 1), (h,)))
        self.watch(layer, x, "x")
        return x

    def watch(self, layer: int, ref: Ref, name: str) -> None:
        """Name a vector, and its gradient with a d in front.

        Args:
            layer: For the name.
            ref: The vector.
            name: Its name.
        """
        self.watched.append(Watch(layer, ref, name, f"d{name}"))

    def contributes(self, layer: int, ref: Ref, index: str = "", first: int = 0) -> None:
        """Name what the updates of a layer's parameters add to a node.

        Args:
            layer: The layer.
            ref: The node.
            index: More indices of the names.
            first: The parameter from which on those of the layer count.
        """
        own = [parameter for parameter in self.parameters[first:] if parameter.layer == layer]
        weights, biases = f"dW_x[{layer},{{t}},{{i}}{index}]", f"dB[{layer},{{t}}{index}]"
        for label, bias in ((weights, False), (biases, True)):
            refs = tuple(parameter.ref for parameter in own if parameter.bias is bias)
            if refs:
                self.contributions.append(Contribution(label, ref, refs))

    def readout(self, layer: int, k: int, outputs: int) -> Ref:
        """The weights of an output.

        Args:
            layer: The last layer.
            k: The number of the output.
            outputs: How many there are.
        """
        name = f"W{layer}" if outputs == 1 else f"W{layer}[{k}]"
        (ref,) = self.group(name, 1, layer, mean=self.means[-1])
        return ref

    def output(self, u: Ref, x: Ref) -> Ref:
        """n^(-a) u . x, of the exponent of the last layer.

        Args:
            u: Weights of an output.
            x: The last features.
        """
        moment = self.builder.add(Moment(Fn(Var(0) * Var(1), 2), (u, x)))
        return self.scaled(moment, 1 - self.a[-1])

    def shifted(self, f: Ref, layer: int, k: int) -> Ref:
        """An output with its bias, of the exponent of the last layer.

        Args:
            f: The output without it.
            layer: The last layer.
            k: The number of the output.
        """
        bias = self.builder.add(Input(Family.scalar(f"b{layer}[{k}]")))
        self.parameters.append(self._parameter(bias, layer, True))
        return self.builder.add(Nonlin(SUM, (), (f, self.scaled(bias, -self.bias_a[-1]))))
