"""Kernels of an architecture on a set of inputs: fused chains, tiles of pairs, or particles."""

from __future__ import annotations

from typing import Any

import numpy as np

from tpcalc.errors import EvaluationError
from tpcalc.evaluate.chain import chosen
from tpcalc.integrals.demand import Unknown
from tpcalc.integrals.numeric import METHODS, Numeric
from tpcalc.progress import Progress
from tpcalc.questions.kernel.chains import chain_of, run_chain
from tpcalc.questions.kernel.errors import check_entries
from tpcalc.questions.kernel.found import Found
from tpcalc.questions.kernel.network import Network
from tpcalc.questions.kernel.sampled import Place, sampled
from tpcalc.questions.kernel.tiles import Inputs, tiled
from tpcalc.results import Method

SAMPLED = 40  # inputs whose kernel particles may estimate: every pair is part of one program


def answer(
    task: Network,
    method: str,
    seed: int,
    threads: int | None,
    progress: Progress | None,
) -> Found:
    """The kernels of a network."""
    chain = None if method in ("quadrature", "particles") else chain_of(task)
    if chain is not None:
        return run_chain(chain, task.left, task.right, task.kinds, threads, progress)
    methods = chosen(method)
    why = ""
    if methods:
        try:
            return _tiled(task, methods, threads, progress)
        except Unknown as reason:
            why = f", because there is {reason}"
    if method not in ("auto", "particles"):
        raise EvaluationError(
            f"method={method!r} does not give this kernel{why}.",
            hint="Use method='auto'.",
        )
    return _sampled(task, methods, seed, progress, why)


def _tiled(
    task: Network,
    methods: tuple[Method, ...],
    threads: int | None,
    progress: Progress | None,
) -> Found:
    field = Numeric(methods, follow=False)
    tiles = tiled(
        task.pair, task.single, task.left, task.right, task.kinds, field, threads, progress
    )
    checked = check_entries(task, tiles.matrices, methods)
    return Found(
        tiles.matrices,
        max(tiles.methods, key=METHODS.index, default=Method.EXACT),
        checked.error,
        checked.coincident,
        checked.independent if "ntk" in task.kinds else None,
        checked.notes,
    )


def _sampled(
    task: Network,
    methods: tuple[Method, ...],
    seed: int,
    progress: Progress | None,
    why: str,
) -> Found:
    count = len(task.left.rows) + (0 if task.right is None else len(task.right.rows))
    if count > SAMPLED:
        raise EvaluationError(
            f"this kernel is one for particles{why}; they estimate all pairs of inputs in one "
            f"program, and {count} inputs are too many.",
            hint=f"Give at most {SAMPLED} inputs.",
        )
    inputs = task.left if task.right is None else _joined(task.left, task.right)
    entries = task.entries(count)
    squares = Inputs(inputs.rows.reshape(1, -1, inputs.rows.shape[2]), inputs.scale).squares[0]
    outputs = range(entries.tangent.outputs)
    places: list[Place] = [
        (kind, i, k, j, m)
        for kind in task.kinds
        for i in range(count)
        for j in range(i, count)
        for k in outputs
        for m in outputs
    ]
    field = Numeric(methods)
    found = sampled(entries, squares.tolist(), places, field, seed, progress)
    return _assembled(found, count, len(outputs), task, f"by particles{why}")


def _assembled(cells: dict[Place, Any], count: int, outputs: int, task: Network, why: str) -> Found:
    shape, kinds = (count, outputs, count, outputs), task.kinds
    matrices = {kind: np.empty(shape) for kind in kinds}
    errors = {kind: np.empty(shape) for kind in kinds}
    for (kind, i, k, j, m), answer in cells.items():
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
    method = max(answer.method for answer in cells.values())
    return Found(matrices, method, worst, notes=(why,) if method is Method.PARTICLES else ())


def _joined(left: Inputs, right: Inputs) -> Inputs:
    return Inputs(np.concatenate([left.rows, right.rows]), left.scale)
