"""NNGP and tangent kernels of chains of fully connected layers, fused over the layers.

A chain is a linear map of the input, then ``depth`` times an activation and a dense layer, the last
one the readout; in the NTK parameterization, biases trained. With the residual multiplier alpha
every layer adds alpha (W phi(h) + b) to h instead, and the readout is linear in the last h.

The answer does not depend on the number of threads.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tpcalc.engine.chains_tables import Table, biased_table, erf_table, plain_table
from tpcalc.engine.crew import watch
from tpcalc.engine.memory import available_cores, available_memory, memory_text
from tpcalc.errors import EvaluationError, OutOfMemory

__all__ = ["Chain", "ChainKernels", "Family", "Gram", "chain_kernels"]

Array = NDArray[np.float64]
Progress = Callable[[float, str], None]
Family = Literal["abrelu", "erf"]
KINDS = ("nngp", "ntk")
LARGEST, LEAST = 1e140, 1e-140  # norms of inputs whose squares are safely within float64
JOB = 2**20  # work of one job, entries times layers: some milliseconds
COORDINATES = 32  # of the inputs that cost as much as a layer
WORTH_THREADS = 2**17  # entries times layers


@dataclass(frozen=True, eq=False)
class Gram:
    """Inputs and the scale of their Gram matrix, G = factor * inputs @ others.T.

    Args:
        inputs: Shape (N, d), float64.
        others: Shape (M, d); None: the inputs themselves.
        factor: For example 1 / d.
    """

    inputs: Array
    others: Array | None = None
    factor: float = 1.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.factor) and self.factor > 0):
            raise EvaluationError(
                f"the factor of the Gram matrix is {self.factor!r}, not a positive number.",
                where="Gram",
                hint="Use for example 1 / (number of coordinates).",
            )
        object.__setattr__(self, "inputs", _checked(self.inputs, "inputs"))
        if self.others is None:
            return
        object.__setattr__(self, "others", _checked(self.others, "others"))
        lengths = self.inputs.shape[1], self.others.shape[1]
        if lengths[0] != lengths[1]:
            raise EvaluationError(
                f"inputs have {lengths[0]} coordinates and others {lengths[1]}; inner products "
                "need the same number.",
                where="Gram",
                hint="Give both sets the same coordinates.",
            )


@dataclass(frozen=True)
class Chain:
    """A chain of equal dense layers.

    Args:
        family: ``"abrelu"``: phi(z) = a |z| + b z; ``"erf"``: phi(z) = a erf(b z).
        a: See ``family``. ReLU has a = b = 1/2.
        b: See ``family``.
        depth: How many times the activation is applied.
        weight_variance: Variance of the weights of hidden layers, times their fan-in.
        bias_variance: Variance of the biases of hidden layers.
        residual: None: a plain chain with a readout of weight variance 1 without bias; a number:
            every layer adds that multiple of its output to its input, and the readout is linear.
        first_weight: Weight variance of the first layer, of G.
        first_bias: Bias variance of the first layer.
    """

    family: Family
    a: float
    b: float
    depth: int
    weight_variance: float
    bias_variance: float
    residual: float | None
    first_weight: float
    first_bias: float

    def __post_init__(self) -> None:
        if self.family not in ("abrelu", "erf"):
            raise self._refused(f"family is {self.family!r}", "Use 'abrelu' or 'erf'.")
        if isinstance(self.depth, bool) or not isinstance(self.depth, int) or self.depth < 1:
            raise self._refused(f"depth is {self.depth!r}", "Use a whole number from 1 on.")
        names = ["a", "b", "weight_variance", "bias_variance", "first_weight", "first_bias"]
        if self.residual is not None:
            names.append("residual")
        for name in names:
            value = getattr(self, name)
            if not math.isfinite(value):
                raise self._refused(f"{name} is {value!r}", "Use a finite number.")
            if name not in ("a", "b", "residual") and value < 0:
                raise self._refused(f"{name} is {value!r}", "A variance is not negative.")
        if (self.a == 0 and self.b == 0) or (self.family == "erf" and 0 in (self.a, self.b)):
            raise self._refused(
                f"the activation is 0 for a = {self.a!r}, b = {self.b!r}",
                "Use coefficients that are not 0.",
            )

    def _refused(self, what: str, hint: str) -> EvaluationError:
        return EvaluationError(f"{what}; a chain cannot have that.", where="Chain", hint=hint)


@dataclass(frozen=True, eq=False)
class ChainKernels:
    """Kernels of a chain, and how far they may be off.

    Args:
        nngp: Shape (N, M); None if not asked for.
        ntk: Shape (N, M); None if not asked for.
        relative_error: Error of entries in units of ``|entry| + (K(x, x) + K(y, y)) / 2``, K the
            NNGP kernel: on the diagonal, and for pairs of inputs with |correlation| below 0.99.
        near_error: The same for the other pairs: nearly parallel or antiparallel inputs.
    """

    nngp: Array | None
    ntk: Array | None
    relative_error: float
    near_error: float


def chain_kernels(
    gram: Gram,
    chain: Chain,
    *,
    kinds: Collection[str] = KINDS,
    threads: int | None = None,
    progress: Progress | None = None,
) -> ChainKernels:
    """NNGP and tangent kernels of a chain on a set of inputs.

    Args:
        gram: The inputs.
        chain: The network.
        kinds: Which of ``"nngp"`` and ``"ntk"`` to return; no memory is taken for the other.
        threads: How many; None: one for each core where that pays. The answer is the same.
        progress: Called with a fraction and a text from the calling thread.

    Returns:
        The kernels asked for, float64.

    Raises:
        EvaluationError: Numbers leave the floating-point range, or an argument does not fit.
        OutOfMemory: The kernels do not fit into the memory available.

    Source:
        Cho and Saul (2009), arcs of order 0 and 1; Williams (1997), erf; Jacot, Gabriel and Hongler
        (2018), Theorem 1, for the recursion of the tangent kernel.

    Example:
        >>> relu = Chain("abrelu", 0.5, 0.5, 1, 2.0, 0.0, None, 2.0, 0.0)
        >>> found = chain_kernels(Gram(np.eye(2)), relu)
        >>> found.ntk.round(12).tolist()
        [[2.0, 0.318309886184], [0.318309886184, 2.0]]
    """
    wanted = frozenset(kinds)
    if not wanted or not wanted <= set(KINDS):
        raise EvaluationError(
            f"kinds are {sorted(wanted)}, which is not a choice from {list(KINDS)}.",
            where="chain_kernels",
            hint="Use kinds=('nngp', 'ntk') or one of them.",
        )
    if threads is not None and threads < 1:
        raise EvaluationError(
            f"threads is {threads!r}; at least one is needed.",
            where="chain_kernels",
            hint="Use threads=None for one on each core.",
        )
    shape = len(gram.inputs), len(gram.inputs if gram.others is None else gram.others)
    _check_memory(gram, shape, len(wanted))
    table = _table(gram, chain)
    out = {kind: np.empty(shape if kind in wanted else (0, 0)) for kind in KINDS}
    if shape[0] and shape[1]:
        _run(table, chain.depth, shape, gram.others is None, out, threads, progress)
    return ChainKernels(
        nngp=out["nngp"] if "nngp" in wanted else None,
        ntk=out["ntk"] if "ntk" in wanted else None,
        relative_error=table.error,
        near_error=table.near_error,
    )


def _checked(values: Any, name: str) -> Array:
    """Inputs as a float64 array that the loops can read, or an error that says what is wrong."""
    try:
        array = np.ascontiguousarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise EvaluationError(f"{name} are not numbers: {error}.", where="Gram") from error
    if np.ndim(values) != 2:
        raise EvaluationError(
            f"{name} have shape {np.shape(values)}; a set of inputs has shape (N, d).",
            where="Gram",
            hint="Flatten every input into one row.",
        )
    if array.size == 0:
        return array
    if not np.isfinite(array).all():
        row = int(np.argmin(np.isfinite(array).all(axis=1)))
        raise EvaluationError(
            f"row {row} of {name} has an entry that is infinite or not a number.",
            where="Gram",
            hint="Remove such inputs.",
        )
    sizes = np.maximum(array.max(axis=1), -array.min(axis=1))
    bad = (sizes > LARGEST) | ((sizes < LEAST) & (sizes > 0))
    if bad.any():
        row = int(np.argmax(bad))
        raise EvaluationError(
            f"row {row} of {name} has entries up to {sizes[row]:.1e}, whose squares leave the "
            "range of float64.",
            where="Gram",
            hint="Rescale the inputs.",
        )
    return array


def _check_memory(gram: Gram, shape: tuple[int, int], kinds: int) -> None:
    other = gram.inputs if gram.others is None else gram.others
    needed = 8 * kinds * shape[0] * shape[1] + 2 * other.nbytes
    free = available_memory()
    if needed > free:
        raise OutOfMemory(
            f"kernels of shape {shape} need {memory_text(needed)} and {memory_text(free)} are "
            "available.",
            where="chain_kernels",
            hint="Use fewer inputs, or ask for one kind at a time.",
        )


def _table(gram: Gram, chain: Chain) -> Table:
    with np.errstate(all="ignore"):  # overflow is found, and said, at the end
        if chain.family == "erf":
            table = erf_table(gram, chain)
        elif chain.bias_variance or chain.first_bias:
            table = biased_table(gram, chain)
        else:
            table = plain_table(gram, chain)
    if not table.finite:
        raise EvaluationError(
            f"the kernels of {chain.depth} layers leave the range of float64.",
            where="chain_kernels",
            hint="Use a smaller weight variance or fewer layers.",
        )
    return table


def _tiles(shape: tuple[int, int], same: bool) -> NDArray[np.int64]:
    """First row and column of every tile that is computed, (tiles, 2)."""
    from tpcalc.engine.chains_tiles import COLUMNS, ROWS

    places = [
        (i, j)
        for i in range(0, shape[0], ROWS)
        for j in range(0, shape[1], COLUMNS)
        if not same or j + COLUMNS > i
    ]
    return np.array(places, dtype=np.int64)


def _run(
    table: Table,
    depth: int,
    shape: tuple[int, int],
    same: bool,
    out: dict[str, Array],
    threads: int | None,
    progress: Progress | None,
) -> None:
    """All tiles, in jobs that threads take one after another; stopped between two jobs."""
    from tpcalc.engine.chains_tiles import COLUMNS, ROWS

    tiles = _tiles(shape, same)
    if threads is None:
        threads = available_cores() if len(tiles) * ROWS * COLUMNS * depth > WORTH_THREADS else 1
    cost = depth + table.coordinates // COORDINATES
    size = max(1, JOB // (ROWS * COLUMNS * cost))
    size = min(size, -(-len(tiles) // (4 * threads)))
    jobs = [tiles[start : start + size] for start in range(0, len(tiles), size)]
    text = f"kernels of {shape[0]} x {shape[1]} inputs, {depth} layers"

    def work(job: NDArray[np.int64]) -> None:
        table.run(job, out["nngp"], out["ntk"])

    done = [0]

    def report() -> None:
        if progress is not None:
            progress(done[0] / len(jobs), text)

    if threads == 1:
        for job in jobs:
            work(job)
            done[0] += 1
            report()
        return
    _share(work, iter(jobs), min(threads, len(jobs)), done, report)


def _share(
    work: Callable[[NDArray[np.int64]], None],
    jobs: Iterator[NDArray[np.int64]],
    threads: int,
    done: list[int],
    report: Callable[[], None],
) -> None:
    lock, stop = threading.Lock(), threading.Event()

    def worker() -> None:
        while not stop.is_set():
            with lock:
                job = next(jobs, None)
            if job is None:
                return
            work(job)
            with lock:
                done[0] += 1

    with ThreadPoolExecutor(threads) as pool:
        workers = [pool.submit(worker) for _ in range(threads)]
        try:
            watch(workers, report)
        except BaseException:
            stop.set()  # workers end after the job they are at
            raise
