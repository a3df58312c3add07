"""What scales do: of weights to gradients, of outputs to a loss, of a step to a network."""

from __future__ import annotations

from dataclasses import dataclass

from tpcalc.results.estimate import Estimate
from tpcalc.results.exponent import Exponent
from tpcalc.results.tables import Provenance
from tpcalc.shown import Shown


@dataclass(frozen=True, slots=True)
class GradientScale(Shown):
    """A layer of weights: powers of the factor v of all their variances.

    Args:
        layer: Its number.
        scale: That of LSCALE, the root of q.
        gradient: That of the gradient by the layer.
        weights: That of the gradient by its weights.
        biases: That of the gradient by biases that are added to it and start at 0.
    """

    layer: int
    scale: Estimate
    gradient: Estimate
    weights: Estimate
    biases: Estimate


@dataclass(frozen=True, slots=True)
class GradientScales(Shown):
    """What becomes of gradients where the variances of all weights have a factor v.

    Args:
        nlc: The power of v in the nonlinearity coefficient.
        scale: That in LSCALE of the output.
        inputs: That in the gradient by the inputs.
        spread: The largest less the smallest power of gradients by weights and biases: with one
            learning rate their steps part by v to this power.
        exact: Whether they are powers of v for every v; otherwise slopes at v = 1.
        rows: The layers of weights.
    """

    nlc: Estimate
    scale: Estimate
    inputs: Estimate
    spread: Estimate
    exact: bool
    rows: tuple[GradientScale, ...]


@dataclass(frozen=True, slots=True)
class LossAtScale(Shown):
    """A loss at a scale c of outputs.

    Args:
        scale: c.
        value: (loss(c f) - loss(0)) / c, the mean over inputs.
        share: Where it stands between the limits of small c (0) and large c (1).
    """

    scale: float
    value: float
    share: float


@dataclass(frozen=True, slots=True)
class LossScales(Shown):
    """A loss of outputs c f between its limits, over c.

    Args:
        small: The limit of small c, linear in f.
        large: That of large c, homogeneous in f; infinite where the loss grows faster.
        rows: Between them.
    """

    small: Estimate
    large: Estimate
    rows: tuple[LossAtScale, ...]


@dataclass(frozen=True, slots=True)
class OutputBias(Shown):
    """What a loss subtracts from outputs and divides them by.

    Args:
        average: The average that is subtracted, one number for each output; of a network its
            quadratic mean, the root of c.
        scale: LSCALE, by which outputs are divided: the root of q.
        debiased: LSCALE of outputs without their average: the root of q - c.
        bias: LBIAS, their quotient.
        lost: The share of debiased outputs that rounding, or noise, is.
        notes: What a reader should know besides.
    """

    average: tuple[float, ...]
    scale: Estimate
    debiased: Estimate
    bias: Estimate
    lost: float
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Shifts(Shown):
    """How far training moved a network.

    Args:
        parameters: PARMSHIFT: the length of the change of all parameters over theirs then.
        growth: PARMGROWTH: their length over that at the start.
        outputs: OUTSHIFT: the quadratic mean of the first change of outputs, over theirs.
    """

    parameters: float
    growth: float
    outputs: Estimate


@dataclass(frozen=True, slots=True)
class ShiftPower(Shown):
    """How the first change of a parameter, or of outputs, compares with what was there.

    Args:
        name: The parameter; ``f`` for the outputs.
        power: The p of its relative length n^p.
        word: vanishes, finite or diverges, as the width grows.
        status: Of what it rests on: exact, measured, bound or open.
    """

    name: str
    power: Exponent
    word: str
    status: str


@dataclass(frozen=True, slots=True)
class PrintedRow(Shown):
    """A printed coefficient of a network before training beside that of the theory.

    Args:
        network: The network in words.
        printed: The coefficient as it was measured and printed.
        nlc: That of the theory.
        printed_bias: LBIAS as it was printed; nan where that was not, or is not asked.
        bias: That of the theory.
        word: agrees, or off, with what is known of why.
    """

    network: str
    printed: float
    nlc: Estimate
    printed_bias: float
    bias: Estimate
    word: str


@dataclass(frozen=True, slots=True)
class PrintedTable(Shown):
    """A published table, row by row beside the theory.

    Args:
        name: Its name.
        title: What it is about.
        agree: How many rows agree.
        rows: The rows that can be read.
        notes: Within which factors numbers agree, and what reasons for others mean.
    """

    name: str
    title: str
    agree: int
    rows: tuple[PrintedRow, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StudyPoint(Shown):
    """A random network of study A after training with the best of some learning rates.

    Args:
        seed: Of the design, the weights and the batches.
        network: The network in words.
        width: Its width.
        nlc: Its coefficient before training, of infinite width.
        bias: Its LBIAS.
        rate: The best rate; nan where none kept the network finite.
        train: The share of training images that it names wrongly.
        test: That of test images.
        shift: PARMSHIFT.
    """

    seed: int
    network: str
    width: int
    nlc: Estimate
    bias: Estimate
    rate: float
    train: float
    test: float
    shift: float


@dataclass(frozen=True, slots=True)
class Study(Shown):
    """Random networks of study A: test error against the coefficient before training.

    Args:
        name: Its name.
        title: What it is about.
        source: Where it was published.
        data: The images.
        points: The networks.
        provenance: What it was computed from and with.
        notes: What a reader should know besides.
    """

    name: str
    title: str
    source: str
    data: str
    points: tuple[StudyPoint, ...]
    provenance: Provenance
    notes: tuple[str, ...] = ()
