"""``empirical_kernel``: the NNGP and the NTK of networks of a finite width beside their limit."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tpcalc import checks
from tpcalc.arrays import Array
from tpcalc.errors import UsageError
from tpcalc.finite.simulate import simulate
from tpcalc.names import cell_name
from tpcalc.networks.network import Architecture
from tpcalc.networks.own import as_network, is_network
from tpcalc.passes.tangent import TangentProgram
from tpcalc.program.base import input_of
from tpcalc.program.nodes import Node
from tpcalc.program.program import Program
from tpcalc.progress import Progress
from tpcalc.questions.kernel.entries import Inputs
from tpcalc.questions.kernel.kernel import SAMPLED, kernel
from tpcalc.questions.kernel.network import Network, network
from tpcalc.results.empirical import EmpiricalKernel
from tpcalc.results.kernel import KINDS
from tpcalc.results.tables import provenance
from tpcalc.training.parameterizations import Parameterization
from tpcalc.training.parameterizations import lookup as find_parameterization

Values = Mapping[str, Array]


def empirical_kernel(
    model: Architecture,
    X: Any,
    width: int,
    kinds: Sequence[str] | str = KINDS,
    *,
    seeds: int = 64,
    backend: str = "lazy",
    parameterization: Parameterization | str = "ntk",
    layers: Sequence[int] | None = None,
    scale: float | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> EmpiricalKernel:
    """The NNGP and the NTK of networks of a finite width, drawn at random, beside their limit.

    Networks are those of ``tp.simulate``: the forward and the backward pass of every input are one
    program, whose first layer is drawn as the Gaussian vectors that it is for these inputs.

    Args:
        model: An architecture, own networks and modules of torch (``tp.torch.network``) among them.
        X: Inputs, of shape (N, d); at most 40.
        width: The value of n.
        kinds: ``"nngp"``, ``"ntk"``, or both.
        seeds: How many networks.
        backend: ``"lazy"`` or ``"dense"``, as of ``tp.simulate``.
        parameterization: As of ``tp.kernel``, and so are layers and scale.
        layers: The layers that are trained; None: all.
        scale: The factor of inner products of inputs.
        seed: First seed.
        progress: Called with a fraction and a text.

    Returns:
        Both kernels, of each network and in the limit, with their distance in standard errors.

    Raises:
        UsageError: Arguments that do not fit each other, or a model that is no network.
        TpcalcError: As ``tp.kernel`` and ``tp.simulate``.

    Source: Jacot, Gabriel, Hongler, Neural Tangent Kernel (1806.07572); Yang, Tensor Programs II
        (2006.14548), for kernels as programs.

    Example:
        >>> import tpcalc as tp
        >>> x = [[1.0, 1.0], [1.0, -1.0]]
        >>> empirical_kernel(tp.MLP(1, "relu"), x, 1024, "ntk", seeds=8).agrees
        True
    """
    started = time.perf_counter()
    net, exponents = _checked(model, X, seeds), find_parameterization(parameterization)
    asked: dict[str, Any] = {"parameterization": exponents, "layers": layers, "scale": scale}
    limit = kernel(net, X, None, kinds, seed=seed, **asked)
    task = network(net, X, None, exponents, layers, scale, limit.kinds)
    draws, made = _drawn(task, width, seeds, backend=backend, seed=seed, progress=progress)
    settings = {"backend": backend, "seeds": str(seeds), "width": str(width)}
    record = provenance(made.digest, seed, settings, time.perf_counter() - started)
    return EmpiricalKernel.beside(limit, **draws, width=int(width), provenance=record)


def _checked(model: Any, X: Any, seeds: Any) -> Architecture:
    """A network, once there are two or more, and not too many inputs."""
    if not is_network(model):
        raise UsageError(
            "the model is no network.",
            hint="Of a program, or of modules of torch as they are, give kernels of your own to "
            "tp.results.EmpiricalKernel.beside.",
        )
    checks.whole(seeds, "seeds", least=2)
    hint = "All pairs of inputs are one program: take fewer, or some of them at a time."
    checks.whole(len(checks.inputs(X, "X")), "the number of inputs", most=SAMPLED, hint=hint)
    return as_network(model)


def _drawn(
    task: Network, width: int, seeds: int, **options: Any
) -> tuple[dict[str, Array], Program]:
    """The kernels of each network, and the program that networks are of."""
    rows = task.left.rows
    tangent = task.entries(len(rows)).tangent
    gram = Inputs(rows.reshape(1, -1, rows.shape[2]), task.left.scale).squares[0]
    program = _with_inputs(tangent, gram)
    table = simulate(program, [width], seeds, **options)
    values = {row.name: np.array(row.values) for row in table.rows}
    return {kind: _DRAWN[kind](tangent, values, gram) for kind in task.kinds}, program


def _with_inputs(tangent: TangentProgram, gram: Array) -> Program:
    """The program with the covariances of its inputs in it."""
    cov = tuple(tuple(map(float, row)) for row in gram)

    def placed(node: Node) -> Node:
        own = input_of(node)
        if own is None or own.family.name not in tangent.groups:
            return node
        return replace(own, family=replace(own.family, cov=cov))

    return replace(tangent.program, nodes=tuple(map(placed, tangent.program.nodes)))


def _outputs(tangent: TangentProgram) -> list[tuple[int, int]]:
    """Each output of each copy, those of a copy behind each other."""
    return [(i, k) for i in range(tangent.copies) for k in range(tangent.outputs)]


def _nngp(tangent: TangentProgram, values: Values, gram: Array) -> Array:
    """Products of the outputs of each network."""
    f = np.stack([values[cell_name("f", place)] for place in _outputs(tangent)], axis=1)
    return f[:, :, None] * f[:, None, :]


def _ntk(tangent: TangentProgram, values: Values, gram: Array) -> Array:
    """Its tangent kernel: what is there without the inputs, and factors of their products."""
    places, tokens = _outputs(tangent), range(tangent.tokens)
    count = len(next(iter(values.values())))
    found = np.zeros((count, len(places), len(places)))
    for row, (i, k) in enumerate(places):
        for column, (j, m) in enumerate(places):
            place = (i, k, j, m) if i <= j else (j, m, i, k)
            own = values.get(cell_name("ntk", place), 0.0)
            for p in tokens:
                for q in tokens:
                    factor = values.get(cell_name("data", (p, q, *place)), 0.0)
                    left, right = place[0] * len(tokens) + p, place[2] * len(tokens) + q
                    own = own + factor * gram[left, right]
            found[:, row, column] = own
    return found


_DRAWN = {"nngp": _nngp, "ntk": _ntk}
