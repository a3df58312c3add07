"""Layers that differ: lengths and covariances through them, gradients back through them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from tpcalc import checks
from tpcalc.arrays import Array
from tpcalc.errors import StudyError, TpcalcError
from tpcalc.integrals.bounded import Bounded, bounded
from tpcalc.meanfield.maps.gram import applied, checked_gram
from tpcalc.meanfield.maps.layer_map import LayerMap


class Gradients(NamedTuple):
    """Mean squared gradients by layer, as shares of delta of the last layer.

    Args:
        delta: E (dE/dh_i)^2 of one preactivation, for the layers 1, 2, ...
        weights: E |dE/dA|^2 of the whole Gaussian factor A of the weights, for the same layers.
    """

    delta: tuple[Bounded, ...]
    weights: tuple[Bounded, ...]


@dataclass(frozen=True)
class LayerSequence:
    """Layers 1, 2, ...: the first one reads the input itself, the others an activation of it.

    Args:
        layers: Their maps, each with its own activation of the layer before, variances and rank.
        widths: N_0, N_1, ...: the dimension of the input and the widths of the layers, or what
            they are multiples of; all alike by default.

    Raises:
        StudyError: No layers, or widths that are not one more than there are layers.

    Source: On the initialisation of wide low-rank feedforward neural networks, equations 1 to 7
        and appendix A.8.

    Example:
        >>> from tpcalc.activations.entries import lookup
        >>> tanh = lookup("tanh").fn.expr
        >>> layers = LayerSequence([LayerMap(tanh, 8, 0.4, rank=g) for g in (0.25, 0.25, 0.5)])
        >>> [round(q.value, 4) for q in layers.lengths(1.0)]
        [2.1, 1.1572, 1.8837]
    """

    layers: Sequence[LayerMap]
    widths: Sequence[float] = ()

    def __post_init__(self) -> None:
        if not self.layers:
            raise StudyError("there are no layers.", where="LayerSequence")
        if not self.widths:
            return
        if len(self.widths) != len(self.layers) + 1:
            raise StudyError(
                f"{len(self.widths)} widths are given for {len(self.layers)} layers and the input.",
                where="LayerSequence",
            )
        for index, width in enumerate(self.widths):
            checks.real(width, f"the width of layer {index}", above=0)

    @cached_property
    def _sizes(self) -> tuple[float, ...]:
        return tuple(map(float, self.widths)) or (1.0,) * (len(self.layers) + 1)

    def lengths(self, start: float) -> tuple[Bounded, ...]:
        """The lengths q of all layers; layer l has its own rank and acts on layer l - 1.

        Args:
            start: |x|^2 / N_0 of the input.

        Raises:
            StudyError: No length of an input.
            EvaluationError: Lengths leave the floating-point range; the layer is told.
        """
        w, b = self.layers[0].effective
        found = [w * bounded(float(checks.real(start, "start", least=0))) + b]
        for index, layer in enumerate(self.layers[1:], 2):
            try:
                found.append(layer.length(found[-1]))
            except TpcalcError as error:
                error.where = error.where or f"layer {index}"
                raise
        return tuple(found)

    def gram(self, start: Array) -> tuple[Bounded, ...]:
        """The matrix of second moments of any number of inputs, layer by layer.

        Args:
            start: x . x' / N_0 for each two inputs.

        Returns:
            For each layer the matrix with a bound on the error of each entry.

        Raises:
            StudyError: It is no matrix of inner products.

        Example:
            >>> from tpcalc.activations.entries import lookup
            >>> relu = LayerMap(lookup("relu").fn.expr, 2.0)
            >>> second = LayerSequence([relu, relu]).gram([[0.5, 0.25], [0.25, 0.5]])[1]
            >>> second.value.round(6).tolist()
            [[1.0, 0.608998], [0.608998, 1.0]]
        """
        matrix = checked_gram(start, "gram")
        w, b = self.layers[0].effective
        found = [w * matrix + b]
        for layer in self.layers[1:]:
            w, b = layer.effective
            found.append(w * applied(layer.tau, found[-1]) + b)
        return tuple(found)

    def growths(self, start: float) -> tuple[Bounded, ...]:
        """The chi of layer l + 1, from the length of layer l: the growth of squared gradients.

        Args:
            start: |x|^2 / N_0 of the input.

        Returns:
            One for each layer but the first.
        """
        lengths = self.lengths(start)
        return tuple(
            layer.effective[0] * layer.kernels.slope(q)
            for layer, q in zip(self.layers[1:], lengths[:-1], strict=True)
        )

    def gradients(self, start: float) -> Gradients:
        """Mean squared gradients of every layer, for a backward pass with weights of its own.

        Args:
            start: |x|^2 / N_0 of the input.

        Raises:
            EvaluationError: They leave the floating-point range.

        Source: On the initialisation of wide low-rank feedforward neural networks, appendix A.8,
            with the factor N_(l+1) / N_l and the count r_l N_(l-1) of entries of A.
        """
        lengths, growths, sizes = self.lengths(start), self.growths(start), self._sizes
        delta = [Bounded(1.0)]
        for index in range(len(growths) - 1, -1, -1):
            ratio = bounded(sizes[index + 2] / sizes[index + 1])
            delta.append(delta[-1] * ratio * growths[index])
        delta.reverse()
        read = [bounded(float(start))]
        read += [
            layer.kernels.second(q) for layer, q in zip(self.layers[1:], lengths[:-1], strict=True)
        ]
        weights = []
        for index, (layer, own, square) in enumerate(zip(self.layers, delta, read, strict=True)):
            count = float(layer.rank) * sizes[index + 1] * sizes[index]
            weights.append(own * square * count)
        return Gradients(tuple(delta), tuple(weights))
