"""``card``: everything about one parameterization of a network."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from tpcalc.analyses.check import check
from tpcalc.analyses.orders import orders
from tpcalc.catalog.exponent_words import exponent_words
from tpcalc.catalog.parameterizations import Parameterization
from tpcalc.catalog.parameterizations import lookup as find_parameterization
from tpcalc.catalog.training import Rate, train
from tpcalc.evaluate.limit import limit
from tpcalc.networks.network import Architecture
from tpcalc.results import Card, LimitTable, Samples, Theorems
from tpcalc.theorems.integrable.predicates.registry import applicable

__all__ = ["card"]


def card(
    architecture: Architecture,
    parameterization: Parameterization | str,
    data: Samples,
    *,
    steps: int = 3,
    lr: Rate = Fraction(1),
    loss: str = "mse",
    batch: int = 1,
    queries: Sequence[Sequence[float]] = (),
    seed: int = 0,
    limits: LimitTable | None = None,
) -> Card:
    """Class, exponents over the steps, what moves, limits and theorems of a parameterization.

    Args:
        architecture: The network.
        parameterization: A catalogue name or a parameterization.
        data: Training data.
        steps: Number of updates that are followed.
        lr: The factor of the learning rate, as in ``train``.
        loss: Catalogue name.
        batch: Samples in a step.
        queries: Inputs evaluated at every step without training on them.
        seed: Of particles.
        limits: Limits of this training run that are known already; None: those of the outputs
            are computed.

    Raises:
        StudyError: Numbers that make no sense, targets that do not fit the loss.
        UnknownName: No such parameterization or loss.
        UsageError: A network that shares weights between layers.

    Source: Hajjar, Chizat, Giraud, Training integrable parameterizations, sections 2 to 5.

    Example:
        >>> from tpcalc.catalog.architectures.mlp import MLP
        >>> found = card(MLP(3, "tanh"), "naive-ip", Samples(((1.0, 0.5),), ((1.0,),)), steps=1)
        >>> found.check.verdict, found.exponents[0]
        ('trivial', ('Powers of the weights', 'a = (0, 1, 1, 1)'))
    """
    chosen = find_parameterization(parameterization)
    program = train(
        architecture,
        chosen,
        data,
        steps=steps,
        lr=lr,
        loss=loss,
        batch=batch,
        queries=queries,
    )
    verdict = check(
        architecture,
        chosen,
        data,
        steps=max(steps, 1),
        lr=lr,
        loss=loss,
        batch=batch,
        seed=seed,
    )
    theorems = applicable(
        architecture,
        chosen,
        data,
        lr=lr,
        loss=loss,
        steps=max(steps, 1),
        batch=batch,
        verdict=verdict,
    )
    outputs = [name for name, _ in program.outputs if name.startswith("f[")]
    words = exponent_words(chosen, architecture.hidden, max(steps, 1), architecture.biased)
    return Card(
        chosen.text,
        tuple(words.items()),
        verdict,
        orders(program, seed=seed).table,
        limits if limits is not None else limit(program, outputs=outputs, seed=seed).table,
        Theorems(theorems, verdict.provenance),
    )
