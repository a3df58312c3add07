"""``card``: everything about one parameterization of a network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from tpcalc.evaluate.limit import limit
from tpcalc.names import what_of
from tpcalc.networks.network import Architecture
from tpcalc.questions.check import width_check
from tpcalc.questions.orders import width_orders
from tpcalc.results import Card, LimitTable, Samples, Theorems
from tpcalc.theorems.integrable.predicates.registry import applicable
from tpcalc.torch.training import QuestionSettings, as_run
from tpcalc.training.exponent_words import exponent_words
from tpcalc.training.parameterizations import Parameterization
from tpcalc.training.training import Training


def card(
    architecture: Architecture | Training,
    parameterization: Parameterization | str | None = None,
    data: Samples | None = None,
    *,
    seed: int = 0,
    limits: LimitTable | None = None,
    queries: Sequence[Sequence[float]] = (),
    **settings: Unpack[QuestionSettings],
) -> Card:
    """Class, exponents over the steps, what moves, limits and theorems of a parameterization.

    Args:
        architecture: The network; or a training run, ``tp.Training``, and nothing of it besides.
        parameterization: A catalogue name or a parameterization.
        data: Training data.
        seed: Of particles.
        limits: Limits of this training run that are known already; None: those of the outputs
            are computed.
        queries: Inputs evaluated at every step without training on them.
        settings: As ``tp.Training`` takes them: steps (3), lr, schedule, groups, loss, batch,
            optimizer.

    Returns:
        Verdict, exponents, limits and theorems.

    Raises:
        StudyError: Numbers that make no sense, targets that do not fit the loss.
        UnknownName: No such parameterization or loss.
        UsageError: A network that shares weights between layers.

    Source: Hajjar, Chizat, Giraud, Training integrable parameterizations, sections 2 to 5.

    Example:
        >>> from tpcalc.networks.architectures.mlp import MLP
        >>> found = card(MLP(3, "tanh"), "naive-ip", Samples(((1.0, 0.5),), ((1.0,),)), steps=1)
        >>> found.check.verdict, found.exponents[0]
        ('trivial', ('Powers of the weights', 'a = (0, 1, 1, 1)'))
    """
    run = as_run(architecture, parameterization, data, settings, steps=3)
    if queries:
        run = run.replace(queries=queries)
    program, chosen = run.program, run.parameterization
    trained = run if run.steps else run.replace(steps=1)
    verdict = width_check(trained, seed=seed)
    theorems = applicable(trained, verdict=verdict)
    outputs = [name for name, _ in program.outputs if what_of(name) == "f"]
    words = exponent_words(chosen, run.network.hidden, trained.steps, run.network.biased)
    return Card(
        chosen.text,
        tuple(words.items()),
        verdict,
        width_orders(program, seed=seed).table,
        limits if limits is not None else limit(program, outputs=outputs, seed=seed).table,
        Theorems(theorems, verdict.provenance),
    )
