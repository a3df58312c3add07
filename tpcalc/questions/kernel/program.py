"""Kernels between the scalar outputs of a program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from tpcalc import checks
from tpcalc.arrays import Array
from tpcalc.errors import EvaluationError, UnknownName, UsageError
from tpcalc.evaluate.chain import chosen
from tpcalc.evaluate.closure.chance import random_nodes
from tpcalc.integrals.demand import Unknown
from tpcalc.integrals.numeric import Numeric
from tpcalc.names import cell_name
from tpcalc.passes.tangent import tangent_of_program
from tpcalc.program.base import input_of
from tpcalc.program.nodes import Kind, Ref
from tpcalc.program.program import Program
from tpcalc.progress import Progress
from tpcalc.questions.kernel.entries import Entries, Found
from tpcalc.questions.kernel.errors import dependence_note
from tpcalc.questions.kernel.sampled import sampled
from tpcalc.results import Method

Trained = Sequence[str] | Mapping[str, Fraction | float]


def program_kernel(
    program: Program,
    kinds: Sequence[str],
    trained: Trained | None,
    method: str,
    seed: int,
    progress: Progress | None,
) -> Found:
    """The kernels between the scalar outputs of a program."""
    names = [name for name, ref in program.outputs if program.types[ref].kind is Kind.SCALAR]
    if not names:
        raise UsageError(
            "the program has no scalar outputs; a kernel is between scalars f_i.",
            hint="Name them with t.output.",
        )
    rates = _rates(program, trained) if "ntk" in kinds else {}
    entries = Entries(tangent_of_program(program, names, list(rates), kinds, rates))
    still = _deterministic(entries, names, kinds)
    numeric = Numeric(chosen(method))
    try:
        found, worst, least = sampled(entries, None, kinds, numeric, seed, progress)
    except Unknown as reason:
        raise EvaluationError(
            f"the kernel of this program has no value here: {reason}.",
            hint="Outputs must be sums of averages with Gaussian weights, such as "
            "tp.n**0.5 * t.inner(v, x), for an NNGP.",
        ) from None
    matrices = {kind: matrix[:, 0, :, 0] for kind, matrix in found.items()}
    if method in ("exact", "quadrature") and least is Method.PARTICLES:
        raise EvaluationError(
            f"method={method!r} does not give this kernel: some entries need particles.",
            hint="Use method='auto'.",
        )
    independent, notes = _independence(entries, matrices.get("ntk"), numeric)
    notes = (*program.notes, *still, *notes)
    return Found(matrices, least, worst, None, independent, notes, {"outputs": ", ".join(names)})


def _deterministic(entries: Entries, names: Sequence[str], kinds: Sequence[str]) -> tuple[str, ...]:
    """A note on outputs whose rows are 0 because they are averages: their limit is a number."""
    targets, random = dict(entries.graph.targets), random_nodes(entries.graph)

    def still(i: int) -> bool:
        output, step = (
            targets.get(cell_name(*one)) for one in (("f", (i, 0)), ("ntk", (i, 0, i, 0)))
        )
        moves = step is not None and step.power >= 0
        return not moves and (output is None or output.node not in random)

    found = [name for i, name in enumerate(names) if still(i)]
    if not found:
        return ()
    vanishing = {"nngp": "no variance at the start", "ntk": "no move in a step of training"}
    why = (
        f"{', '.join(found[:6])}{', ...' if len(found) > 6 else ''}: in the limit there is "
        f"{' and '.join(vanishing[kind] for kind in kinds)}, as of an average, whose limit is a "
        "number"
    )
    if len(found) == len(names):
        raise UsageError(
            f"no output of the program has a kernel. {why}.",
            hint="Outputs of a network are sums with weights of their own, such as tp.n**0.5 * "
            "t.inner(v, x); limits of averages are what tp.limit gives.",
        )
    return (f"rows of 0 are of {why}",)


def _rates(program: Program, trained: Trained | None) -> dict[Ref, Fraction | float]:
    """The trained inputs of a program, each with its rate; those that no output needs count 0."""
    own = program.inputs
    if trained is None:
        random = (ref for ref in own.values() if input_of(program.nodes[ref]) is not None)
        return dict.fromkeys(random, Fraction(1))
    if not isinstance(trained, Mapping):
        trained = dict.fromkeys(checks.names(trained, "trained"), Fraction(1))
    found: dict[Ref, Fraction | float] = {}
    for name, rate in trained.items():
        if name in own:
            found[own[name]] = checks.real(rate, f"the rate of {name}")
        elif name not in program.unused:
            known = (*own, *program.unused)
            raise UnknownName("matrix, start vector or random scalar", name, known)
    return found


def _independence(
    entries: Entries, matrix: Array | None, numeric: Numeric
) -> tuple[bool | None, tuple[str, ...]]:
    """Whether corrections make a difference; None where that cannot be told."""
    if matrix is None:
        return None, ()
    if not numeric.methods:
        numeric = Numeric()
    whole, naive = entries.at(None, numeric), entries.at(None, numeric, corrections=False)
    worst, note = 0.0, ""
    try:
        for i in range(len(matrix)):
            for j in range(i, len(matrix)):
                with_, without = whole.ntk(i, 0, j, 0), naive.ntk(i, 0, j, 0)
                gap = abs(with_.value - without.value)
                if gap > max(worst, 8 * with_.error + 1e-12 * abs(with_.value)):
                    worst = gap
                    note = dependence_note(
                        whole.closure.found, float(with_.value), float(without.value)
                    )
    except Unknown:
        return None, ("gradient independence could not be checked: entries need particles",)
    return not note, (note,) if note else ()
