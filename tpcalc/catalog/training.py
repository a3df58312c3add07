"""``train``: architecture, parameterization, data, loss and rates -> a program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from inspect import signature
from math import prod
from typing import Any

from tpcalc.catalog.loss import Loss
from tpcalc.catalog.losses import lookup as find_loss
from tpcalc.catalog.optimizers import lookup as find_optimizer
from tpcalc.catalog.parameterizations import Parameterization
from tpcalc.catalog.parameterizations import lookup as find_parameterization
from tpcalc.errors import StudyError, UsageError
from tpcalc.functions import Expr, Par
from tpcalc.networks.network import INPUT, Architecture, slots, written
from tpcalc.networks.own import as_network
from tpcalc.orders import Ex, as_ex
from tpcalc.passes.parameterize import parameterized
from tpcalc.passes.split import split
from tpcalc.passes.template import Template
from tpcalc.passes.unroll import Schedule, unroll
from tpcalc.program.marks import Mark
from tpcalc.program.program import Program
from tpcalc.program.views import row_of
from tpcalc.results import Samples, checks

__all__ = ["network_program", "template_of", "train"]

Rate = float | Fraction | Callable[[int, int], float | Fraction]
NAMES = ("h", "x", "dh", "dx")
NORMALISED = ("hhat", "dhhat")
WRITTEN = ("W_x",)
CONTRIBUTIONS = ("dW_x", "dB")


def train(
    architecture: Architecture,
    parameterization: Parameterization | str,
    data: Samples,
    *,
    steps: int = 1,
    optimizer: str = "sgd",
    lr: Rate = Fraction(1),
    loss: str = "mse",
    batch: int = 1,
    queries: Sequence[Sequence[float]] = (),
    watch: Sequence[str] = NAMES,
) -> Program:
    """The program of ``steps`` training steps.

    Step t trains on rows t*batch, t*batch + 1, ... of the data, starting again at the end; the
    gradient is that of the mean loss over the batch.

    Args:
        architecture: The network: ``MLP``, ``ResNet``, ``RNN``, or your own that follows the
            protocol ``tpcalc.catalog.architecture.Architecture``.
        parameterization: A catalogue name or a parameterization: the exponents a_l and c_l(t).
        data: Inputs and targets; for a network that is read off at every token of a sequence the
            targets of all tokens, token by token (the loss is the sum over the tokens).
        steps: Number of updates T; outputs are reported at t = 0..T.
        optimizer: Catalogue name; ``"sgd"``.
        lr: The factor eta of the learning rate eta n^(-c_l): a number, or a function of (layer,
            step) for rates per layer and step.
        loss: Catalogue name.
        batch: Samples in a step.
        queries: Inputs evaluated at every step without training on them.
        watch: What becomes an output besides f: of ``h``, ``x``, ``dh``, ``dx``, of ``hhat`` and
            ``dhhat`` where preactivations are normalised, of ``W_x``, what each linear map writes,
            and of the contributions ``dW_x``, ``dB`` of updates (a plain text is one of them).

    Returns:
        A program with outputs ``f[t,i]``, ``h[l,t,i]``, ...; powers of n as the parameterization
        writes them. For t >= 1, ``dW_x[l,t,i]`` is (W^l(t) - W^l(t-1)) x^{l-1} for input i at
        step t (a scalar for the last layer, ``dW_x[L+1,t,i,k]`` with several outputs), and
        ``dB[l,t]`` is B^l(t) - B^l(t-1). Of a recurrent network l is the token.

    Raises:
        StudyError: Numbers that make no sense, targets that do not fit the loss.
        UnknownName: No such parameterization, loss or optimizer.

    Source: Hajjar, Chizat, Giraud, Definitions 2.1 and 2.2.
    """
    rule = find_optimizer(optimizer)
    found = find_parameterization(parameterization).under(rule.degree)
    chosen = find_loss(loss)
    architecture = as_network(architecture)
    _check_data(architecture, data, chosen)
    steps = checks.whole(steps, "steps", least=0, hint="It counts updates.")
    batch = checks.whole(batch, "batch", least=1, hint="It counts the samples of a step.")
    lr = checked_rate(lr)
    asked = _queries(queries, data)
    watched = _watched(watch)
    depth = architecture.hidden
    outputs = data.outputs // architecture.positions
    model = _training_template(architecture, found, data.dimension, outputs)
    count = sum(prod(size for _, size in model.program.types[ref].axes) for ref in model.outputs)
    if count != data.outputs:
        raise StudyError(
            f"a sample has {data.outputs} targets, and the network has {count} outputs.",
            where=data.origin,
            hint="A readout of t.linear(t.outputs, t.n) has as many outputs as there are targets.",
        )
    if watch is not NAMES:  # what is reported by default need not be there
        _check_watched(watched, model)
    rows = [[(t * batch + i) % len(data) for i in range(batch)] for t in range(steps + 1)]

    tables = [found.exponents(depth, step) for step in range(steps + 1)]

    def rate(mark: Mark, step: int) -> tuple[Fraction | float, Ex]:
        factor = rate_at(lr, mark.layer, step)
        if rule.degree == 0 and mark.start:  # steps of W, not of w: a factor of its start alone
            factor = factor * mark.start
        return factor, found.rate(mark, tables[step], step)

    def kept(mark: Mark, step: int) -> Ex | None:
        powers = tables[step].kept
        return powers[mark.layer - 1] if powers else as_ex(0)

    schedule = Schedule(
        batches=tuple(tuple(data.inputs[row] for row in step) for step in rows),
        targets=tuple(tuple(data.targets[row] for row in step) for step in rows),
        queries=asked,
        chi=_slopes(chosen, data.outputs, architecture.positions),
        rate=rate,
        kept=kept,
        path=lambda mark: None if rule.is_plain else rule.path,
    )
    return unroll(model, schedule, keep=watched.__contains__)


def template_of(
    architecture: Architecture,
    parameterization: Parameterization,
    dimension: int,
    outputs: int,
) -> Template:
    """A network with its parameterization written out, as a template of training and kernels."""
    program = network_program(architecture, parameterization, dimension, outputs)
    return Template(split(program), slots(architecture, dimension))


def _training_template(
    architecture: Architecture, parameterization: Parameterization, dimension: int, outputs: int
) -> Template:
    """The network as blocks; cell by cell where it has functions of rows, which have no adjoint."""
    program = network_program(architecture, parameterization, dimension, outputs)
    if any(row_of(node) is not None for node in program.nodes):
        return Template(split(program), slots(architecture, dimension))
    return Template(program, (INPUT,))


def network_program(
    architecture: Architecture,
    parameterization: Parameterization,
    dimension: int,
    outputs: int,
) -> Program:
    """A network with its parameterization written out.

    Args:
        architecture: The network.
        parameterization: Its exponents.
        dimension: The number of numbers of an input.
        outputs: The number of outputs of its readout.

    Raises:
        StudyError: Means for another number of layers, or one for the first layer; the axes of an
            input do not fit the numbers.
    """
    depth = architecture.hidden
    table = parameterization.exponents(depth, 0)
    if table.mean and (len(table.mean) != depth + 1 or table.mean[0] != 0):
        raise StudyError(
            f"the means of the initial weights are {', '.join(map(str, table.mean))}; a "
            f"network of depth {depth} has {depth + 1} layers, the first one centred.",
            where=architecture.name,
            hint="Give 0 for the first layer and one mean for each layer after it.",
        )

    def power(mark: Mark) -> Ex:
        return parameterization.power(mark, table)

    def mean(mark: Mark) -> Fraction | float:
        return table.mean[mark.layer - 1] if table.mean and not mark.bias else 0

    return parameterized(written(architecture, dimension, outputs), power, mean)


def checked_rate(lr: Rate) -> Rate:
    """The factor of a learning rate: a number, or what takes a layer and a step.

    Args:
        lr: The factor.

    Raises:
        UsageError: It is neither.
    """
    if not callable(lr):
        return checks.real(lr, "lr")
    try:
        signature(lr).bind(1, 0)
    except TypeError as error:
        raise UsageError(
            f"lr is a function that cannot be called with a layer and a step ({error}).",
            hint="Write it as lambda layer, step: 0.5.",
        ) from error
    except ValueError:
        pass  # some built-in functions do not say what they take
    return lr


def rate_at(lr: Rate, layer: int, step: int) -> Fraction | float:
    """The factor of the learning rate of a layer at a step.

    Args:
        lr: As ``checked_rate`` gives it.
        layer: The layer.
        step: The step t.

    Raises:
        UsageError: The function of layer and step gives no number.
    """
    if not callable(lr):
        return lr
    return checks.real(lr(layer, step), f"the learning rate of layer {layer} at step {step}")


def _check_data(architecture: Architecture, data: Any, loss: Loss) -> None:
    if not isinstance(data, Samples):
        raise UsageError(
            f"the data are of type {type(data).__name__}, not Samples.",
            hint="Give tp.Samples(inputs, targets), tp.digits(...) or tp.csv(path).",
        )
    positions = architecture.positions
    if data.outputs % positions:
        raise StudyError(
            f"a sample has {data.outputs} targets, and the network is read off at {positions} "
            "tokens.",
            where=data.origin,
            hint="Give the targets of every token, token by token.",
        )
    for part in _parts(data.outputs, positions):
        loss.check(replace(data, targets=tuple(row[part] for row in data.targets)))


def _parts(outputs: int, positions: int) -> list[slice]:
    """The outputs at each place of the readout."""
    size = outputs // positions
    return [slice(start, start + size) for start in range(0, outputs, size)]


def _slopes(loss: Loss, outputs: int, positions: int) -> tuple[Expr, ...]:
    """The derivatives of the loss, the sum over the places of the readout, by the outputs."""
    f = [Par(k) for k in range(outputs)]
    targets = [Par(outputs + k) for k in range(outputs)]
    slopes: list[Expr] = []
    for part in _parts(outputs, positions):
        slopes += loss.chi(f[part], targets[part])
    return tuple(slopes)


def _queries(queries: Any, data: Samples) -> tuple[tuple[float, ...], ...]:
    found = checks.rows(queries, "query", "queries")
    if found and len(found[0]) != data.dimension:
        raise StudyError(
            f"query row 0 has {len(found[0])} numbers, the data have {data.dimension} features.",
            where=data.origin,
            hint="A query is an input of the same network.",
        )
    return found


def _watched(watch: Any) -> frozenset[str]:
    found = frozenset(checks.names(watch, "watch"))
    known = (*NAMES, *CONTRIBUTIONS, *NORMALISED, *WRITTEN)
    unknown = found - set(known)
    if unknown:
        raise StudyError(
            f"watch names {', '.join(sorted(unknown))}.",
            hint=f"It takes {', '.join(known)}, as in watch=['h', 'dh'].",
        )
    return found


def _check_watched(watched: frozenset[str], model: Template) -> None:
    """Contributions that do not exist are left out; vectors that do not exist are a mistake."""
    there = {name for item in model.watch for name in (item.what, f"d{item.what}")}
    missing = watched - there - set(CONTRIBUTIONS)
    if missing:
        raise StudyError(
            f"watch names {', '.join(sorted(missing))}, and the network has no such vectors.",
            hint="hhat are normalised preactivations: those of norm='layer'.",
        )
