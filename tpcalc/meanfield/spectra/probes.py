"""Moments of the squared singular values of a Jacobian by probe vectors, as a Tensor Program.

A probe v ~ N(0, 1) is carried through J^T, J, J^T, ... in turn. Averages over its coordinates
average over the spectrum: |J^T v|^2 / N -> m_1, |J J^T v|^2 / N -> m_2, and so on. Weights meet
vectors that depend on them, forward and transposed: what S-transforms say of free factors, the
limit rules say here of the vectors.
"""

from __future__ import annotations

from fractions import Fraction

from tpcalc import checks
from tpcalc.errors import StudyError
from tpcalc.evaluate.limit import limit
from tpcalc.functions import Expr, Var
from tpcalc.functions.fn import SQUARE, derivative
from tpcalc.integrals.activation_moments import average
from tpcalc.integrals.bounded import Bounded
from tpcalc.integrals.given import of_activation
from tpcalc.meanfield.notation.lines import Line, Lines
from tpcalc.meanfield.operations import (
    Activation,
    Bias,
    Dense,
    Input,
    Number,
    Operation,
    checked_family,
)
from tpcalc.meanfield.program import copied, entered
from tpcalc.names import cell_name
from tpcalc.networks.layers.low_rank import FAMILIES
from tpcalc.passes.backward import backward
from tpcalc.passes.change import changes, inner_products
from tpcalc.passes.tangent import DATA
from tpcalc.program.family import Family
from tpcalc.program.nodes import Input as Start
from tpcalc.program.nodes import Moment
from tpcalc.program.program import Builder, Program
from tpcalc.results import Estimate

ROUNDING = 1e-12  # of q: a bias variance that is 0 but for rounding


@of_activation
def probe_program(
    tau: Expr,
    family: str,
    rank: Fraction | float,
    depth: int,
    *,
    q: float = 1.0,
    variance: float | None = None,
    moments: int = 2,
) -> Program:
    """Equal layers h = W tau(h') + b at a fixed point of their lengths, with probes of J = D W ...

    Biases have the variance that keeps the second moment of h at q. The padded family is a square
    Haar matrix after a 0/1 mask: every coordinate is kept with probability ``rank``, which in the
    limit is a sharp share of them.

    Args:
        tau: The activation: a name, ``tp.tanh``, a formula or a function of expressions.
        family: ``"gaussian"``, ``"orthogonal"``, ``"gaussian-gaussian"`` or ``"padded"``.
        rank: Rank over width, gamma; 1: one full matrix (``"gaussian-gaussian"``: two).
        depth: Number of layers.
        q: The second moment of the preactivations.
        variance: sigma^2 of weights; None: the edge of chaos, gamma sigma^2 E tau'^2 = 1.
        moments: How many, at least 1.

    Returns:
        A program with outputs ``m[1]``, ``m[2]``, ...: averages of the k-th power of J J^T.

    Raises:
        StudyError: A rank, family or q that is none, or no bias variance keeps q.

    Source: On the initialisation of wide low-rank feedforward neural networks, equation 10.

    Example:
        >>> import tpcalc as tp
        >>> probes = probe_program(Var(0), "gaussian", 1, 1, variance=1.0, moments=3)
        >>> [tp.limit(probes)[f"m[{k}]"].value for k in (1, 2, 3)]
        [1.0, 2.0, 5.0]
    """
    depth = checks.whole(depth, "depth", least=1)
    moments = checks.whole(moments, "moments", least=1)
    sigma, drift = _fixed(tau, family, rank, q, variance)
    full = rank == 1 and family != "gaussian-gaussian"
    layer: list[Operation] = [Dense(sigma, family, None if full else rank), Activation(tau)]
    layer[1:1] = [Bias(drift)] if drift else []
    start = Input(average(tau**2, Bounded(q)).value)
    template, found = entered(Lines((Line(start, ()),)).chain([Dense(), *layer * depth]))
    out = Builder(template.program.dims)
    new = copied(found.builder.finish(), out, 0, {DATA}, ((start.square,),))
    (x,), end = (new[ref] for ref in found.data.values()), new[found.new[template.outputs[0]]]
    probe = out.add(Start(Family("v", out.type(x).width)))
    for k in range(1, moments + 1):
        if k % 2:
            terms = [(term, None) for term in inner_products(out, end, end, probe)]
            probe = backward(out, terms, [x], {probe}).adjoints[x]  # for the probe as it is
        else:
            probe = changes(out, {x: probe}, [end])[end]
        out.output(cell_name("m", (k,)), out.add(Moment(SQUARE, (probe,))))
    return out.finish(keep_unused=False)


@of_activation
def probe_moments(
    tau: Expr,
    family: str,
    rank: Fraction | float,
    depth: int,
    *,
    q: float = 1.0,
    variance: float | None = None,
    moments: int = 2,
    samples: int = 2**12,
    replicates: int = 16,
    seed: int = 0,
) -> tuple[Estimate, ...]:
    """Moments m_1, m_2, ... of J J^T from ``probe_program``, with their errors.

    Args:
        tau: The activation: a name, ``tp.tanh``, a formula or a function of expressions.
        family: Of the weights.
        rank: Rank over width.
        depth: Number of layers.
        q: The second moment of the preactivations.
        variance: sigma^2 of the weights; None: the edge of chaos.
        moments: How many.
        samples: Of one replicate, where particles are needed.
        replicates: Independent ones behind each error.
        seed: Of all draws.

    Returns:
        m_1 to as many as were asked for.

    Raises:
        StudyError: As ``probe_program``.

    Source: On the initialisation of wide low-rank feedforward neural networks, equations 10, 11.

    Example:
        >>> found = probe_moments(Var(0), "gaussian-gaussian", Fraction(1, 4), 1)
        >>> [round(m.value, 6) for m in found]
        [1.0, 6.0]
    """
    program = probe_program(tau, family, rank, depth, q=q, variance=variance, moments=moments)
    found = limit(program, samples=samples, replicates=replicates, seed=seed)
    return tuple(found[cell_name("m", (k,))] for k in range(1, moments + 1))


def _fixed(
    tau: Expr, family: str, rank: Fraction | float, q: float, variance: float | None
) -> tuple[Number, float]:
    """The variance of the weights, and the variance of the bias that keeps q."""
    checked_family(family, FAMILIES, "probe_program")
    checks.real(q, "q", above=0)
    checks.real(rank, "rank", above=0, most=1)
    if variance is None:
        slopes = average(derivative(tau, Var(0)) ** 2, Bounded(q)).value
        if not slopes > 0:
            raise StudyError(
                "the activation has the slope 0 everywhere.",
                where="probe_program",
                hint="Give a variance.",
            )
        variance = 1 / (float(rank) * slopes)
    drift = q - float(rank) * variance * average(tau**2, Bounded(q)).value
    if drift < -ROUNDING * q:
        raise StudyError(
            f"weights of the variance {variance:g} alone make second moments of {q - drift:g}, "
            f"more than q = {q:g}: no bias keeps it.",
            where="probe_program",
            hint="Take a smaller variance or another q.",
        )
    return variance, drift if drift > ROUNDING * q else 0.0
