"""The nonlinearity coefficient of a function, with what it is a ratio of."""

from __future__ import annotations

from dataclasses import dataclass

from tpcalc.errors import EvaluationError
from tpcalc.integrals.bounded import Bounded
from tpcalc.results import Estimate, Method
from tpcalc.shown import Shown

SIGMAS = 5.0


@dataclass(frozen=True)
class Nonlinearity(Shown):
    """The nonlinearity coefficient of a function under a law of its inputs."""

    nlc: Estimate  # slope / spread; 1 for linear functions
    # sqrt(E Tr J Cov_x J^T): how far the output would vary if it were linear around each input
    slope: Estimate
    spread: Estimate  # sqrt(Tr Cov_f): how far it varies
    notes: tuple[str, ...] = ()  # what theorems say of it, and what to know about the numbers


def quotient(over: Bounded, under: Bounded) -> Bounded:
    """A number that is not negative over a positive one."""
    if not under.value - under.error > 0:
        raise EvaluationError(
            f"a variance is {under.value:.3g} with an error up to {under.error:.1g}: it may be 0.",
            hint="A constant function has no nonlinearity coefficient.",
        )
    return over / under


def gaussian_notes(nlc: Estimate, rank: int, dimension: int) -> list[str]:
    """What is known of a coefficient where the inputs are Gaussian."""
    notes = ["Gaussian inputs: NLC >= 1, and 1 for linear functions alone (Theorem 1)."]
    if rank < dimension:
        notes.append(
            f"The covariance of the inputs is singular (rank {rank} of {dimension}): the number is "
            "that of the function on the directions that vary."
        )
    slack = SIGMAS * nlc.stderr if nlc.method is Method.PARTICLES else nlc.stderr
    if nlc.value + slack < 1:
        notes.append(
            "This number is below 1 by more than its error: the samples missed where the function "
            "is steep, or the derivative is not that of the function."
        )
    return notes
