"""Definitions B.1 and B.2: feature learning and kernel evolution, layer by layer."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Unpack

from tpcalc import checks
from tpcalc.docstrings import like
from tpcalc.networks.network import Architecture
from tpcalc.results import Answer, Claim, Hypothesis, LayerFacts, Samples, Theorem
from tpcalc.sources import INTEGRABLE
from tpcalc.theorems.integrable.predicates.case import asked
from tpcalc.theorems.integrable.predicates.statement import asked_by, theorem
from tpcalc.training.parameterizations import Parameterization
from tpcalc.training.training import Routine, Training

ROUTINE = "of this training routine; the definition asks for one that moves the layer"


class Definition(NamedTuple):
    """What is defined, and where."""

    title: str
    item: str


@asked_by(Definition)
@like(theorem)
def definition(
    row: Definition,
    read: Callable[[LayerFacts], bool | None],
    architecture: Architecture | Training,
    parameterization: Parameterization | str | None = None,
    data: Samples | None = None,
    *,
    layer: int | None = None,
    **settings: Unpack[Routine],
) -> Theorem:
    """The answer to a definition, layer by layer; what stands below its row reads one of them.

    Args:
        layer: The layer; None: all hidden layers.

    Raises:
        UsageError: No such layer.
    """
    case = asked(architecture, parameterization, data, settings)
    if layer is not None:
        hint = "1 to L are hidden."
        layer = checks.whole(layer, "layer", least=1, most=case.depth, hint=hint)
    wanted = range(1, case.depth + 1) if layer is None else (layer,)
    facts = case.checked().layers
    found = {each.layer: each for each in facts if each.layer in wanted}
    known = {number: read(each) for number, each in found.items()}

    claims = []
    for number, each in found.items():
        moved = {None: "not known", True: "it moves", False: "it does not move"}[known[number]]
        when = f" from step {each.step} on" if known[number] and each.step else ""
        claims.append(Claim(f"layer {number}", "", f"{moved}{when}: {each.reason}"))
    decided = all(known.values()) or False in known.values()
    words = "so it is" if decided else "there are only bounds"
    hypothesis = Hypothesis("whether they move is known", decided, words)
    moving = all(known.values())
    answer: Answer = "holds" if moving else "does not hold" if decided else "outside"
    notes = (ROUTINE,) if answer == "does not hold" else ()
    return Theorem(
        read.__name__,
        row.title,
        INTEGRABLE.at(row.item),
        answer,
        (hypothesis,),
        tuple(claims),
        notes,
    )


@definition("the features x_t of a layer move by order one", "Definition B.1")
def feature_learning(layer: LayerFacts) -> bool | None:
    """Whether the features of a layer move: |x_t - x_0|^2 / n stays above a number at some step.

    It is a definition: the answer is what the program gives.

    Returns:
        ``"holds"`` where they move in every layer asked, ``"outside"`` where that is not known.

    Source: Hajjar, Chizat, Giraud, Definition B.1.

    Example:
        >>> from tpcalc.networks.architectures.mlp import MLP
        >>> feature_learning(MLP(2, "relu"), "mup", layer=2).answer
        'holds'
        >>> feature_learning(MLP(2, "relu"), "ntk").answer
        'does not hold'
    """
    return layer.features


@definition("the kernel x_t . x_t / n of a layer moves by order one", "Definition B.2")
def kernel_evolution(layer: LayerFacts) -> bool | None:
    """Whether the kernel of a layer moves: the change of x_t . x_t / n stays away from 0.

    It is a definition: the answer is what the program gives, at one input. The absolute value of
    the change is meant; the print leaves it out.

    Returns:
        ``"holds"`` where it moves in every layer asked, ``"outside"`` where that is not known.

    Source: Hajjar, Chizat, Giraud, Definition B.2.

    Example:
        >>> from tpcalc.networks.architectures.mlp import MLP
        >>> kernel_evolution(MLP(2, "relu"), "mup").answer
        'holds'
    """
    return layer.kernel
