"""``kernel``: the NNGP and the NTK of a network or a program, through its limit."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from tpcalc import checks
from tpcalc.arrays import Array
from tpcalc.dsl import filled
from tpcalc.engine.chains_series import NotSettled
from tpcalc.errors import EvaluationError, NotDifferentiable, ScaleError, TpcalcError, UsageError
from tpcalc.evaluate.chain import chosen
from tpcalc.integrals.demand import Unknown
from tpcalc.integrals.numeric import Numeric
from tpcalc.networks.network import Architecture
from tpcalc.networks.own import as_network, is_network
from tpcalc.networks.stage_values import NoStages
from tpcalc.passes.split import split
from tpcalc.program.program import Program
from tpcalc.progress import Progress
from tpcalc.questions.kernel.entries import Found, Inputs
from tpcalc.questions.kernel.errors import checked
from tpcalc.questions.kernel.network import Network, chain_of, network, run_chain
from tpcalc.questions.kernel.planes import is_tabled, run_stages, stages
from tpcalc.questions.kernel.program import Trained, program_kernel, sampled
from tpcalc.questions.kernel.tiles import tiled
from tpcalc.results import Kernel, Method
from tpcalc.results.kernel import KINDS
from tpcalc.results.tables import provenance
from tpcalc.training.parameterizations import Parameterization
from tpcalc.training.parameterizations import lookup as find_parameterization

LOST, SLIGHT = 1e-9, 1e-6  # errors of chains, of planes, from which on other ways are tried
JUMPS = "Its NNGP is there, kinds='nngp'; a tangent kernel needs a slope, as that of tanh(10 z)."
SAMPLED = 40  # inputs whose kernel particles may estimate: every pair is part of one program

SLOW = "pairs of inputs went through the whole program, as loops over layers do not know {}"
STANDARD = (
    "In the standard parameterization with one learning rate for all widths every hidden layer "
    "adds its width to the tangent kernel. That of networks with d inputs and finite widths n_1, "
    "..., n_L is tp.kernel(tp.MLP(..., variances='initial', weight_rate=(d, n_1, ..., n_L)), X); "
    "with rates that fall like 1/n it is parameterization='standard:1'."
)


def kernel(
    model: Architecture | Program | Callable[..., Any],
    X: Any = None,
    X2: Any = None,
    kinds: Sequence[str] | str = KINDS,
    *,
    parameterization: Parameterization | str = "ntk",
    layers: Sequence[int] | None = None,
    trained: Trained | None = None,
    scale: float | None = None,
    method: str = "auto",
    seed: int = 0,
    threads: int | None = None,
    labels: Sequence[object] = (),
    progress: Progress | None = None,
    out: Mapping[str, Array] | None = None,
) -> Kernel:
    """The NNGP and the NTK of a network, or of the scalar outputs of a program.

    They come out of the program: NNGP_ij is the covariance of the outputs f(x_i) and f(x_j) in the
    limit, NTK_ij the limit of the sum over trained weights of eta n^(-c) df(x_i)/dw df(x_j)/dw.
    Products with a transposed matrix carry their correction, so the answer is right also where a
    recursion that draws new weights for the backward pass (gradient independence) is wrong; the
    result says whether that makes a difference.

    Args:
        model: An architecture (``tp.MLP(3, "relu")``), or a program whose scalar outputs are the
            f_i, its inputs written out.
        X: Inputs, of shape (N, d); for an architecture alone.
        X2: Inputs of the columns, of shape (M, d); None: the same as the rows.
        kinds: ``"nngp"``, ``"ntk"``, or both.
        parameterization: Exponents a_l of the weights and c_l of the learning rates.
        layers: The layers that are trained (1 to L + 1); None: all.
        trained: Of a program the names of the trained matrices, start vectors and scalars, or
            these with a factor of the learning rate for each (``{"W": 64, "v": 1}``); None: all
            that are random.
        scale: The factor of inner products of inputs at the first layer; None: 1/d (of a token of
            d features), as NNGP and NTK are usually given. Training programs have 1.
        method: As of ``tp.limit``; ``"particles"`` and what falls back on them are for small sets.
        seed: Of particles.
        threads: Parts of the kernel computed at once (default: one for each core).
        labels: The class of each row, for pictures.
        progress: Called with a fraction and a text.
        out: Arrays that the kernels are written into, ``{"ntk": np.empty((N, M))}``; the answer
            holds them, and changes with them. Arrays of float32 hold kernels that were computed in
            float64 and rounded, which their error says.

    Returns:
        The kernels with their method and error; matrices of shape (N, M), or (N, K, M, K) for a
        network that is read off K times.

    Raises:
        UsageError: Arguments that do not fit each other.
        NotDifferentiable: The NTK of a function that jumps.
        ScaleError: An output or a kernel entry that grows with n as the program is written.
        EvaluationError: The method does not give the kernel.

    Source: Yang, Tensor Programs II: Neural Tangent Kernel for Any Architecture (2006.14548);
        Jacot, Gabriel, Hongler, Neural Tangent Kernel (1806.07572).

    Example:
        >>> import tpcalc as tp
        >>> found = tp.kernel(tp.MLP(1, "relu", weight_variance=2), [[1.0, 1.0], [1.0, -1.0]])
        >>> found.nngp.round(12).tolist()[0]
        [1.0, 0.318309886184]
    """
    started = time.perf_counter()
    if isinstance(X, str):
        raise UsageError(
            f"X is {X!r}; the inputs stand in front of all else.",
            hint=f"Write tp.kernel(net, data.inputs, parameterization={X!r}).",
        )
    wanted = _kinds(kinds)
    chosen(method)
    checks.called(progress, "progress", 0.0, "")
    seed = checks.seed(seed)
    if threads is not None:
        threads = checks.whole(threads, "threads", least=1)
    if isinstance(labels, str) or not isinstance(labels, Iterable):
        raise UsageError(f"labels is {labels!r}.", hint="Give one label for each row of X.")
    classes = tuple(map(str, labels))
    if is_network(model):
        model = as_network(model)
        if trained is not None:
            raise UsageError("trained names inputs of a program; of a network give layers.")
        exponents = find_parameterization(parameterization)
        task = network(model, X, X2, exponents, layers, scale, wanted)
        if out is not None:
            task = replace(task, rooms=_rooms(out, task))
        try:
            with np.errstate(all="ignore"):  # what is not finite is refused by the record
                found = answer(task, method, seed, threads, progress)
        except (NotDifferentiable, ScaleError) as error:
            raise _advised(error, exponents) from None
        factor = f"inner products of inputs times {task.left.scale:.6g}"
        words = f"{model.words}; {exponents.text}; {factor}"
        digest = task.digest
    else:
        program = _program(model)
        own = None if parameterization == "ntk" else parameterization
        _for_networks(X=X, X2=X2, layers=layers, scale=scale, parameterization=own, out=out)
        found = program_kernel(program, wanted, trained, method, seed, progress)
        words, digest = "a program", program.digest
    settings = {"method": method, **found.settings}
    record = provenance(digest, seed, settings, time.perf_counter() - started)
    matrices = {kind: _squeezed(matrix) for kind, matrix in found.matrices.items()}
    rounding = max((_written(matrices, *room) for room in (out or {}).items()), default=0.0)
    return Kernel(
        matrices.get("nngp"),
        matrices.get("ntk"),
        found.method,
        found.error + rounding,
        None if found.coincident is None else found.coincident + rounding,
        found.independent,
        found.notes,
        X2 is None,
        words,
        record,
        classes,
    )


def _for_networks(**given: Any) -> None:
    for name, value in given.items():
        if value is not None:
            raise UsageError(
                f"{name} is for architectures; a program has its inputs written in it, and its "
                "layers and powers of n.",
                hint="Give tp.kernel(program), or tp.kernel(tp.MLP(...), X).",
            )


def _program(model: Any) -> Program:
    if isinstance(model, type) or not (isinstance(model, Program) or callable(model)):
        raise UsageError(
            f"the model is {model!r}, neither an architecture nor a program.",
            hint="Give a network (tp.MLP(3, 'relu'), tp.network) with inputs X, or a program.",
        )
    return split(filled(model))


def _kinds(kinds: Any) -> tuple[str, ...]:
    asked = checks.names(kinds, "kinds")
    for kind in asked:
        checks.one_of("kind of kernel", kind, KINDS)
    if not asked:
        raise UsageError("kinds is empty.", hint="Give 'nngp', 'ntk', or both.")
    return tuple(kind for kind in KINDS if kind in asked)


def _squeezed(matrix: Array) -> Array:
    """(N, K, M, K) as (N, M) where there is one output."""
    return matrix[:, 0, :, 0] if matrix.ndim == 4 and matrix.shape[1] == 1 else matrix


def _advised(error: TpcalcError, exponents: Parameterization) -> TpcalcError:
    """The same with what to do about a kernel."""
    hint = STANDARD if exponents.name == "standard" else error.hint
    hint = JUMPS if isinstance(error, NotDifferentiable) else hint
    return type(error)(error.message, where=error.where, hint=hint)


def _rooms(out: Any, task: Network) -> dict[str, Array]:
    """The arrays that loops can write into, once all of them fit."""
    shape = len(task.left.rows), len((task.right or task.left).rows)
    for kind, room in checks.of_type(out, dict, "out").items():
        checks.one_of("kernel to be written", kind, task.kinds)
        known = isinstance(room, np.ndarray) and room.dtype in (np.float64, np.float32)
        if not known or room.shape[:1] + room.shape[room.ndim // 2 :][:1] != shape:
            raise UsageError(
                f"out[{kind!r}] is no array of float64 or float32 of {shape[0]} x {shape[1]} "
                "inputs.",
                hint=f"Give np.empty({shape}).",
            )
        if not (room.flags.writeable and room.flags.c_contiguous):
            raise UsageError(f"out[{kind!r}] is read-only or a part of another array.")
    return {kind: room for kind, room in out.items() if room.ndim == 2 and room.dtype == np.float64}


def _written(matrices: dict[str, Array], kind: str, room: Array) -> float:
    """Put a kernel where it is wanted; what that changes, in units of its own size."""
    found = matrices[kind]
    if room.shape != found.shape:
        raise UsageError(f"out[{kind!r}] has shape {room.shape}; the kernel has {found.shape}.")
    matrices[kind] = room
    if room.dtype == np.float64:
        if room is not found:
            room[:] = found
        return 0.0
    if np.any((found != 0) & (abs(found) < np.finfo(np.float32).tiny)):
        raise EvaluationError(
            f"the {kind.upper()} has entries that are too small for float32.",
            hint="Give arrays of float64, or scale the inputs.",
        )
    with np.errstate(over="ignore"):  # what is not finite is refused by the record
        room[:] = found
    return 2.0**-24


def _by_loops(
    task: Network, method: str, threads: int | None, progress: Progress | None
) -> tuple[Found | None, float, str]:
    """What loops over layers find, the error up to which that is it, and what they do not know."""
    if method in ("quadrature", "particles"):
        return None, 0.0, ""
    chain = chain_of(task)
    if chain is not None and (chain.method is Method.EXACT or method == "auto"):
        with suppress(NotSettled):
            # of an angle no other way knows more than that of jumps
            most = math.inf if chain.chain.family == "jump" else LOST
            return run_chain(chain, task, threads, progress), most, ""
    try:
        read = stages(task)
        if method == "auto" or not any(map(is_tabled, read)):
            # pair by pair, positions take what nobody waits for
            most = SLIGHT if task.architecture.tokens == 1 else math.inf
            return run_stages(read, task, threads, progress), most, ""
    except NoStages as reason:
        return None, 0.0, str(reason)
    return None, 0.0, ""


def answer(
    task: Network,
    method: str,
    seed: int,
    threads: int | None,
    progress: Progress | None,
) -> Found:
    """The kernels of a network."""
    fused, most, unknown = _by_loops(task, method, threads, progress)
    slow = (SLOW.format(unknown),) if unknown else ()
    if fused is not None and fused.worst <= most:
        return fused
    methods = chosen(method)
    why = ""
    if methods:
        try:
            found = tiled(task, Numeric(methods, follow=False), threads, progress)
            found = checked(task, found, methods)
            if fused is not None and (fused.worst <= found.worst or not found.followed):
                return fused
            return replace(found, notes=(*found.notes, *slow))
        except Unknown as reason:
            if fused is not None:
                return fused
            why = f", because there is {reason}"
        except EvaluationError as error:
            if fused is not None:
                return fused
            told = error.message + (f" Loops do not know {unknown}." if unknown else "")
            raise EvaluationError(told, where=error.where, hint=error.hint) from None
    if method not in ("auto", "particles"):
        raise EvaluationError(
            f"method={method!r} does not give this kernel{why}.",
            hint="Use method='auto'.",
        )
    found = _sampled(task, methods, seed, progress, why)
    return replace(found, notes=(*found.notes, *slow))


def _sampled(
    task: Network,
    methods: tuple[Method, ...],
    seed: int,
    progress: Progress | None,
    why: str,
) -> Found:
    count = len(task.left.rows) + (0 if task.right is None else len(task.right.rows))
    hint = f"This kernel is one for particles{why}, of all pairs of inputs in one program."
    checks.whole(count, "the number of inputs", most=SAMPLED, hint=hint)
    inputs = task.left if task.right is None else _joined(task.left, task.right)
    entries = task.entries(count)
    squares = Inputs(inputs.rows.reshape(1, -1, inputs.rows.shape[2]), inputs.scale).squares[0]
    field = Numeric(methods)
    found, worst, method = sampled(entries, squares.tolist(), task.kinds, field, seed, progress)
    if task.right is not None:
        rows = len(task.left.rows)
        found = {kind: matrix[:rows, :, rows:] for kind, matrix in found.items()}
    notes = (f"by particles{why}",) if method is Method.PARTICLES else ()
    return Found(found, method, worst, notes=notes)


def _joined(left: Inputs, right: Inputs) -> Inputs:
    return Inputs(np.concatenate([left.rows, right.rows]), left.scale)
