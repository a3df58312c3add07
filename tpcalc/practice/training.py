"""Training: losses at a scale, biases of outputs, debiased descent, how far steps go."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from math import inf, isfinite, sqrt
from typing import Any

import numpy as np

from tpcalc import checks
from tpcalc.arrays import Array
from tpcalc.engine.device.devices import load_torch
from tpcalc.errors import EvaluationError, UsageError
from tpcalc.finite.training.curve import trained
from tpcalc.finite.training.steps import marks_of
from tpcalc.functions.numbers import Number
from tpcalc.meanfield.operations import Input
from tpcalc.meanfield.reading import layers
from tpcalc.meanfield.recursion import propagate
from tpcalc.nonlinearity.estimators import mean_of, root_of_ratio
from tpcalc.nonlinearity.tensors.gradients import parameter_growth, parameter_shift
from tpcalc.practice.debias import OUTPUTS, UNITS, debiased
from tpcalc.program.program import Program
from tpcalc.questions.first_order import first_order
from tpcalc.results import Estimate, Method
from tpcalc.results.exponent import Exponent
from tpcalc.results.scales import LossAtScale, LossScales, OutputBias, ShiftPower, Shifts
from tpcalc.shown import Rows
from tpcalc.training.groups import Group
from tpcalc.training.loss import Loss, loss_values, slope_values
from tpcalc.training.losses import lookup as find_loss
from tpcalc.training.training import Training

Tensor = Any
FAR = 2.0**60  # a scale beyond which a loss is its limit, but for what rounding keeps
UNIT = 2.0**-23  # rounding of 32-bit floats
HARM = 0.01  # a share of outputs that is lost, and harms
SCALES = (0.01, 0.1, 0.5, 1.0, 2.0, 10.0, 100.0)
WORDS = {-1: "vanishes", 0: "finite", 1: "diverges"}


def loss_scales(
    outputs: Any, targets: Any, scales: Sequence[float] = SCALES, loss: str | Loss = "xent"
) -> LossScales:
    """A loss of outputs c f between its limits: linear in f for small c, homogeneous for large c.

    Softmax and cross-entropy have mean f - f[y] and max f - f[y] there.

    Args:
        outputs: Rows of outputs f.
        targets: A row for each, or the number of a class.
        scales: The scales c.
        loss: A catalogue name or a loss.

    Returns:
        The limits, means over rows, and (loss(c f) - loss(0)) / c at each scale.

    Raises:
        UsageError: Targets or scales that do not fit.

    Source: Schoenherr, The nonlinearity coefficient, section 6.2; loss(0), log K of cross-entropy,
        is taken off, which the text leaves out.

    Example:
        >>> found = loss_scales([[1, -0.5, 0.3]], [1])
        >>> round(found.small.value, 6), found.large.value
        (0.766667, 1.5)
    """
    f = checks.inputs(outputs, "outputs")
    own, y = find_loss(loss), _targets(targets, f)
    value, slope = loss_values(own, f.shape[1]), slope_values(own, f.shape[1])
    at_zero = value(0 * f, y)

    def at(scale: float) -> float:
        return float(np.mean((value(scale * f, y) - at_zero) / scale))

    small = float(np.mean((slope(0 * f, y) * f).sum(axis=1)))
    error = float(np.finfo(float).eps * np.abs(f).max(initial=0.0)) * f.shape[1]
    large, beyond = at(FAR), at(2 * FAR)
    grows = not isfinite(beyond) or abs(beyond - large) > 8 * error
    ends = small, inf if grows else beyond
    rows = []
    for scale in scales:
        found = at(float(checks.real(scale, "a scale", above=0)))
        share = (found - small) / (ends[1] - small) if ends[1] != small else 0.0
        rows.append(LossAtScale(float(scale), found, share))
    first, last = (Estimate(end, error, Method.QUADRATURE) for end in ends)
    return LossScales(first, last, tuple(rows))


def _targets(targets: Any, f: Array) -> Array:
    """Rows of targets; numbers of classes become one-hot rows."""
    y = checks.reals(targets, "targets")
    if y.ndim == 1 and y.dtype.kind in "iu":
        for each in y.tolist():
            checks.whole(each, "a class", least=0, most=f.shape[1] - 1)
        y = np.eye(f.shape[1])[y]
    y = checks.inputs(y, "targets")
    if y.shape != f.shape:
        raise UsageError(f"targets have the shape {y.shape}, outputs {f.shape}.")
    return y


def output_bias(source: Any, inputs: Input | None = None, noise: float = UNIT) -> OutputBias:
    """What a loss subtracts from outputs (debiasing) and divides them by (the augmented loss).

    Args:
        source: A network, or rows of outputs over the training data at the start.
        inputs: Of a network second moments of inputs.
        noise: What outputs are rounded to, relative to their size; by default as 32-bit floats.

    Returns:
        The average, LSCALE with and without it, LBIAS.

    Raises:
        EvaluationError: Outputs without their average are less than rounding.
        UsageError: Rows that are none, or outputs that are all the same.

    Source: Schoenherr, The nonlinearity coefficient, Definition 33 and section 3.1.2.

    Example:
        >>> found = output_bias([[1.0, 3.0], [3.0, 1.0]])
        >>> found.average, found.scale.value**2, found.debiased.value
        ((2.0, 2.0), 5.000000000000001, 1.0)
    """
    noise = float(checks.real(noise, "noise", above=0, most=1))
    if isinstance(source, Sequence | np.ndarray) or hasattr(source, "detach"):
        f = _array(source, "outputs")
        average = f.mean(axis=0)
        terms, moved = ((x**2).mean(axis=1) for x in (f, f - average))
        if not moved.any():
            raise UsageError("all rows of outputs are the same.", hint="Nothing else is left.")
        one = mean_of(np.ones(len(f)))
        scale, debiased, bias = (
            root_of_ratio(mean_of(over), under, None)
            for over, under in ((terms, one), (moved, one), (terms, mean_of(moved)))
        )
        shown = tuple(average.tolist())
    else:
        state = propagate(layers(source, inputs))[-1]
        scale, debiased = state.square.root().estimate(), state.gap.root().estimate()
        bias, shown = state.shared.estimate(), (sqrt(max(0.0, state.comean.value)),)
    lost = noise * bias.value
    if lost >= 1:
        raise EvaluationError(
            f"outputs have LBIAS = {bias.value:.3g}: rounding to {noise:.2g} is more than all that "
            "tells inputs apart.",
            hint="Debias activations instead (tp.signal.practice), or compute in more digits.",
        )
    notes = []
    if lost > HARM:
        notes.append(f"Rounding is {lost:.2g} of debiased outputs, and more in layers before.")
    if bias.value > 1 / HARM:
        notes.append(
            "A network with such a bias trains with debiased descent or its first layer alone "
            "besides (debiased_run, first_layer_only): outputs without their average did not do."
        )
    return OutputBias(shown, scale, debiased, bias, lost, tuple(notes))


def debiased_run(
    run: Training,
    parts: Collection[str] = (UNITS,),
    scale: Number = 1,
) -> Program:
    """A run with debiased descent, debiased outputs, or outputs over their scale, as a program.

    Of a unit f W + b debiased descent changes f W + b by -rate (f - m) G for every input, with m
    the average of f over all data at the start and G the mean of (f - m) times the gradient by the
    unit over the batch: W moves by -rate G, b by rate m G.

    Args:
        run: The run; its optimizer takes G for the gradient of W.
        parts: ``"units"``: debiased descent; ``"outputs"``: outputs without their average over the
            data at the start, in the loss and where they are reported.
        scale: What outputs are divided by, as the augmented loss divides them by LSCALE.

    Returns:
        The program, with the outputs of ``tp.train``; contributions (``dB``) are 0, as b stands in
        W (x - m) + W(0) m + b.

    Raises:
        StudyError: Units: a parameter that is no map with a bias of its own, used once.
        UsageError: Other parts, or a run without data.

    Source: Schoenherr, The nonlinearity coefficient, Definitions 33 and 34.

    Example:
        >>> import tpcalc as tp
        >>> net, data = tp.MLP(1, "tanh", bias="all"), tp.Samples(((1,), (3,)), ((0,), (1,)))
        >>> run = tp.Training(net, "ntk", data, batch=2, lr="1/4", groups={"1": {"lr": 0}})
        >>> found = tp.limit(debiased_run(run))
        >>> round(found["f[1,0]"].value + found["f[1,1]"].value, 12)
        0.0
    """
    run = checks.of_type(run, Training, "run", hint="Give tp.Training(network, 'mup', data).")
    for part in checks.names(parts, "parts"):
        checks.one_of("part of a debiased run", part, (UNITS, OUTPUTS))
    scale = checks.real(scale, "scale", above=0)
    return run.rewritten(lambda template: debiased(template, parts, scale)).cells


def first_layer_only(run: Training) -> Training:
    """The run with all parameters but the weights of the first layer as they are at the start.

    Args:
        run: The run.

    Returns:
        The same run, with a learning rate of 0 for all others.

    Raises:
        UsageError: Groups of the run give these other rates.

    Source: Schoenherr, The nonlinearity coefficient, section 6.4.

    Example:
        >>> import tpcalc as tp
        >>> run = first_layer_only(tp.Training(tp.MLP(2, bias="all"), "mup"))
        >>> [(mark.label, mark.role) for mark in run.network.marks if run.own(mark).lr]
        [('1', 'input')]
    """
    marks = checks.of_type(run, Training, "run").network.marks
    still = [mark.label for mark in marks if mark.layer > 1]
    still += ["bias"] * any(mark.bias for mark in marks)
    frozen = (Group(name, (("lr", 0),)) for name in dict.fromkeys(still))
    return run.replace(groups=(*run.groups, *frozen))


def output_shift(now: Any, before: Any) -> Estimate:
    """OUTSHIFT: the quadratic mean of what a step changes of outputs, over that of outputs.

    It is sqrt(2) of outputs that have the same scale and nothing in common with those before.

    Args:
        now: Rows of outputs after the step.
        before: Those before.

    Returns:
        The quotient, with the error of so many inputs.

    Raises:
        UsageError: Rows that do not fit.
        EvaluationError: Outputs that were 0.

    Source: Schoenherr, The nonlinearity coefficient, section 6.6.

    Example:
        >>> output_shift([[-1.0], [2.0]], [[1.0], [-2.0]]).value
        2.0
    """
    then, moved = _array(before, "outputs before"), _array(now, "outputs now")
    if then.shape != moved.shape:
        raise UsageError(f"there were {then.shape} outputs, and now {moved.shape}.")
    change, size = (mean_of((x**2).sum(axis=1)) for x in (moved - then, then))
    return root_of_ratio(change, size, None)


def _array(rows: Any, what: str) -> Array:
    return checks.inputs(_plain(rows), what)


def _plain(entries: Any) -> Any:
    """What torch holds, as numpy takes it."""
    return entries.detach().cpu().double() if hasattr(entries, "detach") else entries


def shifts(run: Training, width: int, seed: int = 0) -> Shifts:
    """How far a run moves a network of finite width: PARMSHIFT, PARMGROWTH, OUTSHIFT.

    Args:
        run: The run, with data and at least one step.
        width: The width.
        seed: Of the weights.

    Returns:
        The lengths of changes over the lengths at the start: of the parameters, as they stand in
        the network, over the whole run; of outputs on the data, over its first step.

    Raises:
        UsageError: No data or no step.
        EvaluationError: The network is not finite.

    Source: Schoenherr, The nonlinearity coefficient, sections 5.3.3 and 6.6.

    Example::

        tp.signal.practice.shifts(tp.Training(net, "mup", data, steps=100), 256).parameters
    """
    run = checks.of_type(run, Training, "run", hint="Give tp.Training(network, 'mup', data).")
    if run.data is None or not run.steps:
        raise UsageError("a shift is of a run with data and steps.", where="shifts")
    losses, last = trained(run, width, seed)
    if len(losses) <= run.steps:
        raise EvaluationError(f"the network is no longer finite at step {len(losses)}.")
    one = run.replace(steps=1)
    ends = [trained(own, width, seed)[1] for own in (one.replace(lr=0), one)]
    names = list(marks_of(last.program))
    then, now = ([own.parameters[name] for name in names] for own in (ends[0], last))
    rows = np.array(run.data.inputs, float)
    x = load_torch().as_tensor(rows, dtype=last.dtype, device=last.device)
    before, after = (own(x).reshape(len(rows), -1) for own in ends)
    moved = parameter_shift(now, then), parameter_growth(now, then)
    return Shifts(*moved, output_shift(after, before))


def shift_powers(run: Training) -> tuple[ShiftPower, ...]:
    """The powers of n in OUTSHIFT and in PARMSHIFT, parameter by parameter, of a first step.

    A limit of OUTSHIFT is 0 (the run is trivial), a number, or none (it diverges).

    Args:
        run: The run; of its first step sizes are followed.

    Returns:
        A row for the outputs (``f``), and one for each parameter that has a gradient.

    Raises:
        StudyError, UsageError: As of ``tp.first_order``.

    Source: Schoenherr, The nonlinearity coefficient, section 6.6; Yang, Hu, Tensor Programs IV,
        for the powers.

    Example:
        >>> import tpcalc as tp
        >>> for row in shift_powers(tp.Training(tp.MLP(2, "tanh"), "ntk")):
        ...     print(row.name, row.power, row.word)
        f 0 finite
        W1 -1/2 vanishes
        W2 -1 vanishes
        W3 -1/2 vanishes
    """
    run = checks.of_type(run, Training, "run", hint="Give tp.Training(network, 'mup').")
    found = first_order(run)
    (f,) = (point for point in found.points if point.name.split(" ")[0] == "f")
    rows = [_power("f", f.change, f.size, f.status)]
    families = run.network.smallest.families
    for row in found.rows:
        mark = families[row.name].mark
        if mark is None or row.gradient.is_zero or mark.at_zero:
            continue
        start = run.parameterization.power(mark, run.tables[0])
        step = row.rate
        if run.optimizer_of(mark).degree and row.rate.exact is not None:
            step = _plus(row.rate, row.gradient)
        rows.append(_power(row.name, step, Exponent(-start), row.status))
    return Rows(rows)


def _plus(one: Exponent, other: Exponent) -> Exponent:
    if one.exact is None or other.exact is None:
        return one if other.exact is not None else other
    return Exponent(one.exact + other.exact)


def _power(name: str, change: Exponent, size: Exponent, status: str) -> ShiftPower:
    power = _plus(change, -size)
    sign = -1 if power.is_zero else power.constant
    word = "open" if sign is None else WORDS[(sign > 0) - (sign < 0)]
    return ShiftPower(name, power, word, status)


def rate_grid(
    weights: Sequence[Any],
    updates: Iterable[Sequence[Any]],
    *,
    count: int = 40,
    factor: float = 3.0,
    smallest: float = 1e-8,
) -> tuple[float, ...]:
    """Learning rates to try: a geometric series from one whose steps are of the size of rounding.

    Args:
        weights: The weight matrices at the start.
        updates: For each batch of an epoch the updates of them with the learning rate 1.
        count: How many rates.
        factor: The quotient of two neighbours.
        smallest: The relative length of a step with the first of them.

    Returns:
        smallest / sum over m of rms_t |dW_m(t)| / |W_m|, and its multiples by powers of the factor.

    Raises:
        UsageError: Weights or updates that are 0 or none.

    Source: Schoenherr, The nonlinearity coefficient, section 3.1.2.

    Example:
        >>> rate_grid([np.eye(2)], [[np.ones((2, 2))]], count=2, smallest=1)
        (0.7071067811865476, 2.121320343559643)
    """
    squares = [[_length(own) ** 2 for own in each] for each in updates]
    lengths = [_length(own) for own in weights]
    if not squares or {len(each) for each in squares} != {len(lengths)} or 0 in lengths:
        raise UsageError("updates are one for each of several weights that are not 0.")
    means = np.sqrt(np.mean(squares, axis=0)) / np.array(lengths)
    moved = float(means.sum())
    if not 0 < moved < inf:
        raise UsageError(f"updates have the relative length {moved:.3g}.")
    first = float(checks.real(smallest, "smallest", above=0)) / moved
    step = float(checks.real(factor, "factor", above=1))
    return tuple(first * step**k for k in range(checks.whole(count, "count", least=1)))


def _length(entries: Any) -> float:
    return float(np.linalg.norm(_plain(entries)))
