"""Embeddings of tokens and of positions, and readouts that share their weights."""

from __future__ import annotations

from typing import Any

from tpcalc.dsl.handles import Scalar
from tpcalc.dsl.operands import misuse, noun
from tpcalc.dsl.vectors import Vector
from tpcalc.networks.layers.given import block, part, size_of, tracer
from tpcalc.networks.own import Layer
from tpcalc.networks.tracer import NetworkTracer


class Embedding(Layer):
    """A trained vector for each token of a vocabulary; tokens are one-hot data.

    Args:
        t: The tracer of the network.
        into: The axis of the vocabulary: that of the features of an input.
        dim: The dimension class of the vectors.
        name: Its name, where no class keeps it.

    Source: Bengio, Ducharme, Vincent, Jauvin, A neural probabilistic language model (2003),
        section 2; Press, Wolf, Using the output embedding to improve language models (2017),
        section 2, for tied readouts.

    Example:
        >>> import tpcalc as tp
        >>> class Net(tp.Network):
        ...     axes = {"p": 2}
        ...     def __init__(self, t):
        ...         self.embed = tp.layers.Embedding(t)
        ...     def forward(self, x):
        ...         return self.embed.readout(tp.layers.average_pool(self.embed(x)))
        >>> [mark.label for mark in tp.network(Net).marks]
        ['embed.table']
    """

    def __init__(
        self, t: NetworkTracer, into: str = "in", dim: str = "n", *, name: str = ""
    ) -> None:
        self.into = into
        self.table = tracer(t, "Embedding").linear(dim, into, name=part(name, "table"))

    def __call__(self, x: Scalar) -> Vector:
        """The vectors of tokens.

        Args:
            x: One-hot data with the axis of the vocabulary; other numbers give sums of vectors.

        Raises:
            TraceError: There is no such axis.
        """
        size_of(x, self.into, "Embedding")
        found: Vector = self.table(x)
        return found

    def readout(self, x: Vector) -> Scalar:
        """The averages over coordinates of a vector times each of the embedding: tied weights.

        A readout of its own would have 1/n in front in muP; this one has it in any
        parameterization, for the vectors are those of the embedding.

        Args:
            x: A vector.

        Returns:
            As many outputs as the vocabulary has tokens.

        Raises:
            TraceError: The embedding was not applied before.
        """
        if not isinstance(block(x, "Embedding.readout"), Vector):
            raise misuse(f"Embedding.readout is applied to {noun(x)}; it takes a vector.")
        return self.table.tied(x)


class Positions(Layer):
    """A trained vector for each place of an axis, added to what stands there.

    It is a map of the one-hot place, with the exponents of input weights.

    Args:
        t: The tracer of the network.
        axis: The axis.
        dim: The dimension class of the vectors.
        name: Its name, where no class keeps it.

    Source: Gehring, Auli, Grangier, Yarats, Dauphin, Convolutional sequence to sequence learning
        (2017), section 3.1.

    Example:
        >>> import tpcalc as tp
        >>> class Net(tp.Network):
        ...     axes = {"p": 2}
        ...     def __init__(self, t):
        ...         self.embed, self.place = tp.layers.Embedding(t), tp.layers.Positions(t)
        ...         self.read = t.linear(t.outputs, t.n)
        ...     def forward(self, x):
        ...         return self.read(tp.tanh(self.place(self.embed(x))))
        >>> tp.network(Net).positions
        2
    """

    def __init__(
        self, t: NetworkTracer, axis: str = "p", dim: str = "n", *, name: str = ""
    ) -> None:
        self.tracer, self.axis = tracer(t, "Positions"), axis
        self.table = t.linear(dim, f"{axis}'", name=part(name, "table"))

    def __call__(self, x: Vector) -> Vector:
        """The vectors with those of their places added.

        Args:
            x: A block of vectors with the axis.

        Raises:
            TraceError: There is no such axis.
        """
        size = size_of(x, self.axis, "Positions")
        places: Any = [[int(i == j) for j in range(size)] for i in range(size)]
        one_hot = self.tracer.constant(places, (self.axis, f"{self.axis}'"), "place")
        added: Vector = x + self.table(one_hot)
        return added
