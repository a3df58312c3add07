"""Unrolling of training: a forward program of one input becomes the program of T steps.

The forward program is a template: its data are ``Data`` nodes, its trained weights ordinary
inputs. The backward pass of the template is derived once; every step and sample is a copy of both
with the data filled in and the *current* weights substituted. Trained matrices are never formed:

    W_t x = W_0 x + sum_s (n * moment(c_s x)) r'_s,     gradient of step s = r_s c_s^T,

with r'_s = -eta n^(-c) chi_s r_s made once for each step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from tpcalc.functions import Const, Expr, Fn, Par
from tpcalc.functions.expr import const, substitute
from tpcalc.orders import Ex, as_ex
from tpcalc.passes.backward import Gradients, backward
from tpcalc.passes.contribution import Contributions
from tpcalc.passes.forms import Form
from tpcalc.passes.instance import Instance
from tpcalc.passes.start import started_at_zero
from tpcalc.passes.template import WRITTEN, Template
from tpcalc.passes.weights import Weights
from tpcalc.program.marks import Mark
from tpcalc.program.nodes import Data, Nonlin, Ref
from tpcalc.program.program import Builder, Program

__all__ = ["Schedule", "unroll"]


@dataclass(frozen=True, slots=True)
class Schedule:
    """Data and rates of a training run.

    Args:
        batches: For each step t = 0..T the inputs of the step.
        targets: For each step the targets, one tuple for each input.
        queries: Inputs evaluated at every step without training on them.
        chi: The loss derivatives d loss / d f_k as expressions of ``s0..`` (the K outputs, then
            the K targets).
        rate: ``rate(mark, step)``: of a parameter (learning-rate factor, exponent c): the update is
            -factor * n**(-c) times the gradient of the mean loss of the batch, times its own rate.
        kept: ``kept(mark, step)``: the power p of the n^(-p) in front of the initial part of a
            matrix at this step, None where that part is dropped.
    """

    batches: tuple[tuple[tuple[float, ...], ...], ...]
    targets: tuple[tuple[tuple[float, ...], ...], ...]
    queries: tuple[tuple[float, ...], ...]
    chi: tuple[Expr, ...]
    rate: Callable[[Mark, int], tuple[Fraction | float, Ex]]
    kept: Callable[[Mark, int], Ex | None] = lambda mark, step: as_ex(0)


@dataclass(frozen=True)
class _Differentiated:
    """A template with its backward pass appended."""

    template: Template
    builder: Builder
    forward: int
    gradients: Gradients
    seeds: tuple[Ref, ...]


def _differentiated(template: Template) -> _Differentiated:
    builder = Builder.copy(template.bare)
    forward, outputs = len(builder), template.outputs
    seeds: tuple[Ref, ...] = ()
    if len(outputs) > 1:
        seeds = tuple(builder.add(Data(f"chi[{k}]")) for k in range(len(outputs)))
    pairs = [(output, seeds[k] if seeds else None) for k, output in enumerate(outputs)]
    gradients = backward(builder, pairs, list(template.parameters))
    return _Differentiated(template, builder, forward, gradients, seeds)


def unroll(
    template: Template, schedule: Schedule, *, keep: Callable[[str], bool] = lambda name: True
) -> Program:
    """Write out T training steps of a network.

    Args:
        template: The network.
        schedule: Data, loss derivative and learning rates; T is the number of batches minus one.
        keep: Which names of watched vectors and contributions (``"h"``, ``"dh"``, ``"dW_x"``, ...)
            become outputs besides f.

    Returns:
        A program whose outputs are ``f[t,i]`` (``f[t,i,k]`` with several outputs) and the watched
        vectors ``h[l,t,i]`` and so on; i runs over the batch, then over the queries. With one
        output, gradients ``dh`` are those of the output; with several, of the loss. Contributions
        of updates are there from t = 1 on; their nodes come before the nodes that they are part
        of, and a parameter whose gradient is identically 0 has none.

    Source: Hajjar, Chizat, Giraud, equations (2.4)-(2.6) with history.
    """
    whole = _differentiated(template)
    builder = Builder(template.program.dims)
    weights = Weights(builder, whole.builder, list(template.parameters))
    weights.find_materialised(whole.builder)
    added = Contributions(
        whole.builder, whole.forward, [c for c in template.contributions if keep(c.kind)]
    )
    gradients = [w for w in template.watch if w.what != WRITTEN and keep(f"d{w.what}")]
    steps = len(schedule.batches) - 1
    for step in range(steps + 1):
        batch = schedule.batches[step]
        weights.keep({ref: schedule.kept(own, step) for ref, own in template.parameters.items()})
        copies = [
            Instance(
                builder,
                whole.builder,
                weights,
                {ref: sample[place] for place, ref in template.inputs.items()},
                template.noise,
                f"{step},{index}",
            )
            for index, sample in enumerate((*batch, *schedule.queries))
        ]
        for start, stop in added.pieces:
            for index, copy in enumerate(copies):
                for name, part in added.before(start, copy, step, index):
                    builder.output(name, part)
            for copy in copies:
                copy.run(start, stop)
        for index, copy in enumerate(copies):
            _name_forward(builder, template, copy, step, index, keep)
        if step == steps and not gradients:
            break
        trained = copies[: len(batch)]
        chis = _backward_step(builder, whole, schedule, trained, step)
        for index, copy in enumerate(trained):
            for watch in gradients:
                adjoint = whole.gradients.adjoints.get(watch.ref)
                if adjoint is not None:
                    builder.output(watch.name(step, index, "d"), copy.ref(adjoint))
        if step < steps:
            _update(whole, schedule, trained, chis, step)
    return started_at_zero(builder.finish(keep_unused=False), template.zeros)


def _name_forward(
    builder: Builder,
    template: Template,
    copy: Instance,
    step: int,
    index: int,
    keep: Callable[[str], bool],
) -> None:
    several = len(template.outputs) > 1
    for k, output in enumerate(template.outputs):
        name = f"f[{step},{index},{k}]" if several else f"f[{step},{index}]"
        builder.output(name, copy.ref(output))
    for watch in template.watch:
        if keep(watch.what):
            builder.output(watch.name(step, index), copy.ref(watch.ref))


def _backward_step(
    builder: Builder,
    whole: _Differentiated,
    schedule: Schedule,
    copies: Sequence[Instance],
    step: int,
) -> list[tuple[Ref | None, Fraction | float]]:
    """Backward passes of a batch; the loss derivatives that updates are multiplied by."""
    chis: list[tuple[Ref | None, Fraction | float]] = []
    for index, copy in enumerate(copies):
        outputs = tuple(copy.ref(output) for output in whole.template.outputs)
        chi = [_chi(builder, expr, outputs, schedule.targets[step][index]) for expr in schedule.chi]
        if whole.seeds:
            for seed, (ref, number) in zip(whole.seeds, chi, strict=True):
                copy.values[seed] = ref if ref is not None else float(number)
            chis.append((None, Fraction(1)))
        else:
            chis.append(chi[0])
        for ref in range(whole.forward, len(whole.builder)):
            if ref not in whole.seeds:
                copy.run(ref, ref + 1)
    return chis


def _update(
    whole: _Differentiated,
    schedule: Schedule,
    copies: Sequence[Instance],
    chis: Sequence[tuple[Ref | None, Fraction | float]],
    step: int,
) -> None:
    """Subtract rate * n^(-c) * gradient of the mean loss from every parameter."""
    share = Fraction(1, len(copies))
    weights, gradients = copies[0].weights, whole.gradients
    weights.begin_step()
    for parameter, mark in whole.template.parameters.items():
        factor, exponent = schedule.rate(mark, step)
        factor = factor * mark.rate
        changes = []
        for copy, (chi, number) in zip(copies, chis, strict=True):
            changes.append((copy, chi, -factor * share * number))
        if parameter in gradients.matrices:
            for copy, chi_ref, rate in changes:
                for row, col in gradients.matrices[parameter]:
                    weights.update_matrix(
                        parameter, copy.ref(row), copy.ref(col), rate, chi_ref, exponent
                    )
        elif parameter in gradients.adjoints:
            adjoint = gradients.adjoints[parameter]
            weights.update_input(
                parameter,
                [(_as_form(copy, adjoint), chi_ref, rate) for copy, chi_ref, rate in changes],
                exponent,
            )


def _as_form(copy: Instance, ref: Ref) -> Form:
    value = copy.values[ref]
    if isinstance(value, Form):
        return value
    form = Form()
    form.add_term(None, copy.ref(ref), Fraction(1))
    return form


def _chi(
    builder: Builder, expr: Expr, outputs: tuple[Ref, ...], target: Sequence[float]
) -> tuple[Ref | None, Fraction | float]:
    """The loss derivative at a sample: a node, or a number where it does not depend on f."""
    count = len(outputs)
    filled = substitute(
        expr, {Par(count + k): const(_exact(value)) for k, value in enumerate(target)}
    )
    if isinstance(filled, Const):
        return None, filled.value
    return builder.add(Nonlin(Fn(filled, 0, count), (), outputs)), Fraction(1)


def _exact(value: float) -> Fraction | float:
    return Fraction(int(value)) if float(value).is_integer() else value
