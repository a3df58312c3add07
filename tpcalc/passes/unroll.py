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
from tpcalc.passes.contribution import Contribution, Contributions
from tpcalc.passes.forms import Form
from tpcalc.passes.instance import Instance
from tpcalc.passes.start import started_at_zero
from tpcalc.passes.weights import Weights
from tpcalc.program.nodes import Data, Nonlin, Ref
from tpcalc.program.program import Builder, Program

__all__ = ["Model", "Parameter", "Watch", "unroll"]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A trained input of the template: a matrix, a start vector or a scalar of one layer.

    Args:
        ref: The input.
        layer: Whose exponents it has.
        bias: Whether it is a bias.
        rate: A factor of its learning rate.
    """

    ref: Ref
    layer: int
    bias: bool = False
    rate: Fraction | float = Fraction(1)


@dataclass(frozen=True, slots=True)
class Watch:
    """An intermediate vector to name: ``name[layer,t,i]``, and ``gradient`` for its adjoint."""

    layer: int
    ref: Ref
    name: str
    gradient: str | None = None


@dataclass(frozen=True)
class Model:
    """A forward program of one input.

    Args:
        program: The template.
        inputs: Its data nodes.
        outputs: Its scalar outputs f_1..f_K.
        parameters: What is trained.
        watch: Intermediate vectors that get names in the unrolled program.
        contributions: What the last update of some parameters adds to a node, with names as well.
        zeros: Names of the matrices, groups and scalars among the parameters that start at 0.
    """

    program: Program
    inputs: tuple[Ref, ...]
    outputs: tuple[Ref, ...]
    parameters: tuple[Parameter, ...]
    watch: tuple[Watch, ...] = ()
    contributions: tuple[Contribution, ...] = ()
    zeros: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Schedule:
    """Data and rates of a training run.

    Args:
        batches: For each step t = 0..T the inputs of the step.
        targets: For each step the targets, one tuple for each input.
        queries: Inputs evaluated at every step without training on them.
        chi: The loss derivatives d loss / d f_k as expressions of ``s0..`` (the K outputs, then
            the K targets).
        rate: ``rate(parameter, step)``: (learning-rate factor, exponent c): the update is
            -factor * n**(-c) times the gradient of the mean loss of the batch.
        kept: ``kept(parameter, step)``: the power p of the n^(-p) in front of the initial part of
            a matrix at this step, None where that part is dropped.
    """

    batches: tuple[tuple[tuple[float, ...], ...], ...]
    targets: tuple[tuple[tuple[float, ...], ...], ...]
    queries: tuple[tuple[float, ...], ...]
    chi: tuple[Expr, ...]
    rate: Callable[[Parameter, int], tuple[Fraction | float, Ex]]
    kept: Callable[[Parameter, int], Ex | None] = lambda parameter, step: as_ex(0)


@dataclass(frozen=True)
class _Template:
    """The forward program with its backward pass appended."""

    builder: Builder
    forward: int
    gradients: Gradients
    seeds: tuple[Ref, ...]


def _differentiated(model: Model) -> _Template:
    builder = Builder.copy(model.program)
    forward = len(builder)
    seeds: tuple[Ref, ...] = ()
    if len(model.outputs) > 1:
        seeds = tuple(builder.add(Data(f"chi[{k}]")) for k in range(len(model.outputs)))
    pairs = [(output, seeds[k] if seeds else None) for k, output in enumerate(model.outputs)]
    gradients = backward(builder, pairs, [parameter.ref for parameter in model.parameters])
    return _Template(builder, forward, gradients, seeds)


def unroll(
    model: Model, schedule: Schedule, *, keep: Callable[[str], bool] = lambda name: True
) -> Program:
    """Write out T training steps of a forward program.

    Args:
        model: The forward template.
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
    template = _differentiated(model)
    builder = Builder(model.program.dims)
    weights = Weights(builder, template.builder, [p.ref for p in model.parameters])
    weights.find_materialised(template.builder)
    added = Contributions(
        template.builder, template.forward, [c for c in model.contributions if keep(c.kind)]
    )
    steps = len(schedule.batches) - 1
    for step in range(steps + 1):
        batch = schedule.batches[step]
        weights.keep({p.ref: schedule.kept(p, step) for p in model.parameters})
        copies = [
            Instance(
                builder, template.builder, weights, dict(zip(model.inputs, sample, strict=True))
            )
            for sample in (*batch, *schedule.queries)
        ]
        for start, stop in added.pieces:
            for index, copy in enumerate(copies):
                for name, part in added.before(start, copy, step, index):
                    builder.output(name, part)
            for copy in copies:
                copy.run(start, stop)
        for index, copy in enumerate(copies):
            _name_forward(builder, model, copy, step, index, keep)
        if step == steps and not any(w.gradient and keep(w.gradient) for w in model.watch):
            break
        _backward_step(builder, model, template, schedule, copies[: len(batch)], step, keep)
    return started_at_zero(builder.finish(keep_unused=False), model.zeros)


def _name_forward(
    builder: Builder,
    model: Model,
    copy: Instance,
    step: int,
    index: int,
    keep: Callable[[str], bool],
) -> None:
    several = len(model.outputs) > 1
    for k, output in enumerate(model.outputs):
        name = f"f[{step},{index},{k}]" if several else f"f[{step},{index}]"
        builder.output(name, copy.ref(output))
    for watch in model.watch:
        if keep(watch.name):
            builder.output(f"{watch.name}[{watch.layer},{step},{index}]", copy.ref(watch.ref))


def _backward_step(
    builder: Builder,
    model: Model,
    template: _Template,
    schedule: Schedule,
    copies: Sequence[Instance],
    step: int,
    keep: Callable[[str], bool],
) -> None:
    """Backward passes of a batch, then the update of every parameter."""
    chis: list[tuple[Ref | None, Fraction | float]] = []
    for index, copy in enumerate(copies):
        outputs = tuple(copy.ref(output) for output in model.outputs)
        chi = [_chi(builder, expr, outputs, schedule.targets[step][index]) for expr in schedule.chi]
        if template.seeds:
            for seed, (ref, number) in zip(template.seeds, chi, strict=True):
                copy.values[seed] = ref if ref is not None else float(number)
            chis.append((None, Fraction(1)))
        else:
            chis.append(chi[0])
        start = template.forward
        pending = [r for r in range(start, len(template.builder)) if r not in template.seeds]
        for ref in pending:
            copy.run(ref, ref + 1)
        for watch in model.watch:
            adjoint = template.gradients.adjoints.get(watch.ref)
            if watch.gradient and keep(watch.gradient) and adjoint is not None:
                name = f"{watch.gradient}[{watch.layer},{step},{index}]"
                builder.output(name, copy.ref(adjoint))
    if step == len(schedule.batches) - 1:
        return
    _update(model, template, schedule, copies, chis, step)


def _update(
    model: Model,
    template: _Template,
    schedule: Schedule,
    copies: Sequence[Instance],
    chis: Sequence[tuple[Ref | None, Fraction | float]],
    step: int,
) -> None:
    """Subtract rate * n^(-c) * gradient of the mean loss from every parameter."""
    share = Fraction(1, len(copies))
    weights = copies[0].weights
    weights.begin_step()
    for parameter in model.parameters:
        factor, exponent = schedule.rate(parameter, step)
        factor = factor * parameter.rate
        changes = []
        for copy, (chi, number) in zip(copies, chis, strict=True):
            changes.append((copy, chi, -factor * share * number))
        if parameter.ref in template.gradients.matrices:
            for copy, chi_ref, rate in changes:
                for row, col in template.gradients.matrices[parameter.ref]:
                    weights.update_matrix(
                        parameter.ref, copy.ref(row), copy.ref(col), rate, chi_ref, exponent
                    )
        elif parameter.ref in template.gradients.adjoints:
            adjoint = template.gradients.adjoints[parameter.ref]
            weights.update_input(
                parameter.ref,
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
