"""Kernels of an architecture on a set of inputs: fused chains, tiles of pairs, or particles."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tpcalc.analyses.kernel_chains import chain_of, run_chain
from tpcalc.analyses.kernel_errors import check_entries
from tpcalc.analyses.kernel_found import Found
from tpcalc.catalog.parameterizations import Parameterization
from tpcalc.catalog.written import template_of
from tpcalc.errors import EvaluationError, UsageError
from tpcalc.evaluate.chain import chosen
from tpcalc.evaluate.closure.demand import Unknown
from tpcalc.evaluate.closure.numeric import METHODS, Numeric
from tpcalc.evaluate.entries import Entries
from tpcalc.evaluate.sampled import Place, sampled
from tpcalc.evaluate.tiles import Inputs, tiled
from tpcalc.networks.network import Architecture
from tpcalc.orders import Ex
from tpcalc.passes.start import started_at_zero
from tpcalc.passes.tangent import tangent_of_network
from tpcalc.passes.template import Template
from tpcalc.program.marks import Mark
from tpcalc.program.program import Program
from tpcalc.results import Method, checks

__all__ = ["Network", "network"]

Array = NDArray[np.float64]
Progress = Callable[[float, str], None]
LARGE = 1e75  # numbers whose fourth powers are still floats
SAMPLED = 40  # inputs whose kernel particles may estimate: every pair is part of one program


@dataclass(frozen=True)
class Network:
    """An architecture with inputs.

    Args:
        architecture: The network.
        exponents: Its parameterization.
        left: The inputs of the rows.
        right: Those of the columns; None: the same.
        layers: The layers that are trained; None: all.
        kinds: Of ``"nngp"``, ``"ntk"``.
    """

    architecture: Architecture
    exponents: Parameterization
    left: Inputs
    right: Inputs | None
    layers: frozenset[int] | None
    kinds: tuple[str, ...]

    @property
    def digest(self) -> str:
        """Of the forward program of one input."""
        if isinstance(self.architecture, Hashable):
            return _digest(self.architecture, self.exponents)
        return _started(self.architecture, self.exponents).digest

    @cached_property
    def pair(self) -> Entries:
        """The tangent program of two inputs."""
        return self._entries(2)

    @cached_property
    def single(self) -> Entries:
        """That of one input."""
        return self._entries(1)

    def _entries(self, copies: int) -> Entries:
        table = self.exponents.exponents(self.architecture.hidden, 0)

        def rate(mark: Mark) -> tuple[Fraction | float, Ex]:
            return mark.rate, self.exponents.rate(mark, table)

        def trained(mark: Mark) -> bool:
            return self.layers is None or mark.layer in self.layers

        template = _template(self.architecture, self.exponents)
        return Entries(tangent_of_network(template, copies, rate, trained, self.kinds))

    def answer(
        self,
        method: str,
        seed: int,
        threads: int | None,
        progress: Progress | None,
    ) -> Found:
        """The kernels.

        Args:
            method: As of ``tp.kernel``.
            seed: Of particles.
            threads: Parts computed at once.
            progress: Called with a fraction and a text.

        Raises:
            EvaluationError: The method does not give them.
        """
        chain = None if method in ("quadrature", "particles") else chain_of(self)
        if chain is not None:
            return run_chain(chain, self.left, self.right, self.kinds, threads, progress)
        methods = chosen(method)
        why = ""
        if methods:
            try:
                return self._tiled(methods, threads, progress)
            except Unknown as reason:
                why = f", because there is {reason}"
        if method not in ("auto", "particles"):
            raise EvaluationError(
                f"method={method!r} does not give this kernel{why}.",
                hint="Use method='auto'.",
            )
        return self._sampled(methods, seed, progress, why)

    def _tiled(
        self,
        methods: tuple[Method, ...],
        threads: int | None,
        progress: Progress | None,
    ) -> Found:
        field = Numeric(methods, follow=False)
        tiles = tiled(
            self.pair, self.single, self.left, self.right, self.kinds, field, threads, progress
        )
        checked = check_entries(self, tiles.matrices, methods)
        return Found(
            tiles.matrices,
            max(tiles.methods, key=METHODS.index, default=Method.EXACT),
            checked.error,
            checked.coincident,
            checked.independent if "ntk" in self.kinds else None,
            checked.notes,
        )

    def _sampled(
        self,
        methods: tuple[Method, ...],
        seed: int,
        progress: Progress | None,
        why: str,
    ) -> Found:
        count = len(self.left.rows) + (0 if self.right is None else len(self.right.rows))
        if count > SAMPLED:
            raise EvaluationError(
                f"this kernel is one for particles{why}; they estimate all pairs of inputs in one "
                f"program, and {count} inputs are too many.",
                hint=f"Give at most {SAMPLED} inputs.",
            )
        inputs = self.left if self.right is None else _joined(self.left, self.right)
        entries = self._entries(count)
        squares = Inputs(inputs.rows.reshape(1, -1, inputs.rows.shape[2]), inputs.scale).squares[0]
        outputs = range(entries.tangent.outputs)
        places: list[Place] = [
            (kind, i, k, j, m)
            for kind in self.kinds
            for i in range(count)
            for j in range(i, count)
            for k in outputs
            for m in outputs
        ]
        field = Numeric(methods)
        found = sampled(entries, squares.tolist(), places, field, seed, progress)
        return _assembled(found, count, len(outputs), self, f"by particles{why}")


def _template(architecture: Architecture, exponents: Parameterization) -> Template:
    """The network with one feature for each token."""
    return template_of(architecture, exponents, architecture.tokens, 1)


@lru_cache(maxsize=64)
def _digest(architecture: Architecture, exponents: Parameterization) -> str:
    """Of the forward program: printing it takes as long as a small kernel."""
    return _started(architecture, exponents).digest


def _started(architecture: Architecture, exponents: Parameterization) -> Program:
    template = _template(architecture, exponents)
    return started_at_zero(template.program, template.zeros)


def _assembled(found: dict[Place, Any], count: int, outputs: int, task: Network, why: str) -> Found:
    shape, kinds = (count, outputs, count, outputs), task.kinds
    matrices = {kind: np.empty(shape) for kind in kinds}
    errors = {kind: np.empty(shape) for kind in kinds}
    for (kind, i, k, j, m), answer in found.items():
        for own, value in ((matrices, answer.value), (errors, answer.error)):
            own[kind][i, k, j, m] = own[kind][j, m, i, k] = value
    worst = 0.0
    for kind in kinds:
        flat = matrices[kind].reshape(count * outputs, -1)
        sizes = np.sqrt(np.abs(np.diagonal(flat)))
        scale = np.outer(sizes, sizes)
        error = errors[kind].reshape(flat.shape)
        worst = max(worst, float(np.max(error[scale > 0] / scale[scale > 0], initial=0.0)))
    if task.right is not None:
        rows = len(task.left.rows)
        matrices = {kind: matrix[:rows, :, rows:] for kind, matrix in matrices.items()}
    method = max(answer.method for answer in found.values())
    return Found(matrices, method, worst, notes=(why,) if method is Method.PARTICLES else ())


def _joined(left: Inputs, right: Inputs) -> Inputs:
    return Inputs(np.concatenate([left.rows, right.rows]), left.scale)


def network(
    architecture: Architecture,
    X: Any,
    X2: Any,
    exponents: Parameterization,
    layers: Sequence[int] | None,
    scale: float | None,
    kinds: Sequence[str],
) -> Network:
    """Check the inputs of a network and split them into tokens.

    Args:
        architecture: The network.
        X: Inputs, of shape (N, d).
        X2: Inputs of the columns, or None.
        exponents: The parameterization.
        layers: The layers that are trained, or None.
        scale: The factor of inner products, or None.
        kinds: Of ``"nngp"``, ``"ntk"``.

    Raises:
        UsageError: They do not fit.
    """
    if X is None:
        raise UsageError(
            "an architecture has a kernel on inputs; X is not given.",
            hint="Give an array of shape (N, d), one row for each input.",
        )
    left = checks.inputs(X, "X")
    right = None if X2 is None else checks.inputs(X2, "X2", left.shape[1])
    tokens = architecture.tokens
    if left.shape[1] % tokens:
        raise UsageError(
            f"an input has {left.shape[1]} numbers, which {tokens} tokens cannot share.",
            where="X",
            hint=f"A row holds the tokens one after the other: {tokens} times d numbers.",
        )
    size = left.shape[1] // tokens
    factor = 1.0 / size if scale is None else float(checks.real(scale, "scale"))
    if factor <= 0:
        raise UsageError(f"scale is {factor:g}; it must be positive.")

    for name, rows in (("X", left), ("X2", right)):
        if rows is not None:
            _check_range(rows, factor, name)

    def split(rows: Array) -> Inputs:
        return Inputs(rows.reshape(len(rows), tokens, size), factor)

    return Network(
        architecture,
        exponents,
        split(left),
        None if right is None else split(right),
        None if layers is None else _layers(layers, architecture.hidden + 1),
        tuple(kinds),
    )


def _check_range(rows: Array, factor: float, name: str) -> None:
    """Inner products of inputs must be numbers whose squares are."""
    sizes = np.abs(rows).max(axis=1, initial=0.0)
    outside = (sizes > 0) & ((sizes > LARGE) | (sizes * factor**0.5 < 1 / LARGE))
    if np.any(outside):
        row = int(np.argmax(outside))
        raise EvaluationError(
            f"row {row} of {name} has numbers of size {sizes[row]:.1e}: its inner products leave "
            "the range of float64.",
            hint="Scale the inputs, or give scale=.",
        )


def _layers(layers: Any, last: int) -> frozenset[int]:
    found = [checks.whole(layer, "a layer", least=1) for layer in checks.sequence(layers, "layers")]
    for layer in found:
        if layer > last:
            raise UsageError(
                f"layers names layer {layer}; the network has layers 1 to {last}, the readout "
                "included."
            )
    return frozenset(found)
