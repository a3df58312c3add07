"""``Training``: a network, its parameterization, data and the updates; ``train``: its program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from math import prod
from typing import Any, Self, TypedDict, Unpack

from tpcalc import checks
from tpcalc.doors.budget import spend_nodes
from tpcalc.doors.numbers import count
from tpcalc.errors import StudyError, UsageError
from tpcalc.exponents import Ex, as_ex
from tpcalc.functions.numbers import Number
from tpcalc.networks.network import INPUT, Architecture
from tpcalc.networks.own import as_network
from tpcalc.passes.as_blocks import MANY, SOME
from tpcalc.passes.course import Path
from tpcalc.passes.course import Rate as UpdateRate
from tpcalc.passes.template import BETWEEN, Template
from tpcalc.passes.unroll import Schedule, Unrolled, unroll
from tpcalc.program.family import Mark
from tpcalc.program.program import Program
from tpcalc.program.types import ReadAs
from tpcalc.registry.values import exponent
from tpcalc.results import Samples
from tpcalc.shown import Shown
from tpcalc.training.groups import Group, Groups, Own, own, read_groups
from tpcalc.training.loss import Loss, check_data, no_samples, slopes
from tpcalc.training.losses import lookup as find_loss
from tpcalc.training.optimizer import Optimizer
from tpcalc.training.optimizers import lookup as find_optimizer
from tpcalc.training.parameterizations import Exponents, Parameterization
from tpcalc.training.parameterizations import lookup as find_parameterization
from tpcalc.training.schedules import Factors, factors
from tpcalc.training.written import network_program

Rate = float | Fraction | Callable[[int, int], float | Fraction]
Exponent = Fraction | float | str | Ex
DepthRate = Exponent | Mapping[str, Exponent] | None
NAMES = ("h", "x", "dh", "dx")
NORMALISED = ("hhat", "dhhat")
WRITTEN = ("W_x",)
CONTRIBUTIONS = ("dW_x", "dB")


class Routine(TypedDict, total=False):
    """How a network is trained, as ``Training`` takes it."""

    steps: int
    optimizer: str | Optimizer
    lr: Rate | str
    schedule: Factors | None
    groups: Groups | Sequence[Group]
    loss: str | Loss
    batch: int
    lr_depth: DepthRate


class Settings(Routine, total=False):
    """The same, with what is looked at besides."""

    queries: Sequence[Sequence[float]]
    watch: Sequence[str]


@dataclass(frozen=True, init=False)
class Training(Shown):
    """A training run: what is trained, on what, and how. All questions about training take one.

    Step t trains on rows t*batch, t*batch + 1, ... of the data, starting again at the end; the
    gradient is that of the mean loss over the batch. The rate of a parameter at step t is
    lr * schedule[t] * (the lr of its groups) * n^(-c + the power of its groups), with c as the
    parameterization has it.

    Args:
        network: The network: ``MLP``, ``ResNet``, ``RNN``, or your own.
        parameterization: A catalogue name or a parameterization: the exponents a_l and c_l(t).
        data: Inputs and targets; for a network that is read off at every token of a sequence the
            targets of all tokens, token by token (the loss is the sum over the tokens). None:
            questions about exponents take generic data; there is no program then.
        steps: Number of updates T; outputs are reported at t = 0..T.
        optimizer: A catalogue name, with settings as in ``"adamw(decay=0.1)"``, a text or file of
            your own (``tpcalc.training.optimizers.lookup``), or an optimizer.
        lr: The factor eta of the learning rate eta n^(-c_l), not below 0: a number or its text, or
            a function of (layer, step) for rates per layer and step.
        schedule: Factors of the learning rate step by step: a text (``"warmup:2,cosine"``;
            ``"linear"`` and ``"constant"`` are there too), a number for each step, or a function
            of the step. A factor may be 0.
        groups: Settings of some parameters by pattern: a role (``"input"``, ``"hidden"``,
            ``"readout"``, ``"bias"``, ``"finite"``), the ``group`` that a parameter was declared
            with, a label, or a glob over labels (``"blocks.*.up"``). Settings are ``lr``, a
            factor of the rate, ``power``, the p of a factor n^p of it, ``optimizer``, and numbers
            of the optimizer by name.
        loss: Catalogue name.
        batch: Samples in a step.
        lr_depth: Of a network of L blocks the gamma of its updates, which are L^(-gamma), one for
            all parameters of a block or by label (of ``ResNet`` ``"{l+1}"``, with several layers
            ``"{l+1}.1"``, ``"{l+1}.2"``); None: that of the parameterization
            (``"depth-mup"``), or learning rates that do not depend on L.
        queries: Inputs evaluated at every step without training on them.
        watch: What becomes an output besides f: of ``h``, ``x``, ``dh``, ``dx``, of ``hhat`` and
            ``dhhat`` where preactivations are normalised, of ``W_x``, what each linear map writes
            with the powers of n behind it, of ``between``, what else stands between maps and what
            reads them (contributions are then those at queries, times this a step before), and of
            the contributions ``dW_x``, ``dB`` of updates (a plain text is one of them).

    Raises:
        StudyError: Numbers that make no sense, targets that do not fit the loss.
        UsageError: A schedule shorter than the run, groups that contradict each other, a pattern
            that fits no parameter.
        UnknownName: No such parameterization, loss, optimizer or schedule.

    Source: Hajjar, Chizat, Giraud, Definitions 2.1 and 2.2.

    Example:
        >>> from tpcalc.networks.architectures.mlp import MLP
        >>> data = Samples(((1.0, 2.0),), ((1.0,),))
        >>> groups = {"bias": {"lr": 0}, "1": {"power": "1/2"}}
        >>> run = Training(
        ...     MLP(2, bias="first"), "mup", data, steps=3, schedule="warmup:2", groups=groups
        ... )
        >>> [str(factor) for factor in run.factors], run.replace(steps=1).steps
        (['0', '1/2', '1'], 1)
    """

    network: Architecture
    parameterization: Parameterization
    data: Samples | None
    steps: int
    optimizer: Optimizer
    lr: Rate
    schedule: Factors | None
    groups: tuple[Group, ...]
    loss: Loss
    batch: int
    lr_depth: Ex | Mapping[str, Ex] | None
    queries: tuple[tuple[float, ...], ...]
    watch: tuple[str, ...]
    factors: tuple[Number, ...] = field(init=False, repr=False, compare=False)
    _given: Architecture = field(init=False, repr=False, compare=False)

    def __init__(
        self,
        network: Architecture,
        parameterization: Parameterization | str,
        data: Samples | None = None,
        *,
        steps: int = 1,
        optimizer: str | Optimizer = "sgd",
        lr: Rate | str = Fraction(1),
        schedule: Factors | None = None,
        groups: Groups | Sequence[Group] = (),
        loss: str | Loss = "mse",
        batch: int = 1,
        lr_depth: DepthRate = None,
        queries: Sequence[Sequence[float]] = (),
        watch: Sequence[str] = NAMES,
    ) -> None:
        put = self.__dict__.update  # frozen for everyone else
        put(optimizer=find_optimizer(optimizer))
        found = find_parameterization(parameterization).under(self.optimizer.degree)
        put(parameterization=found, loss=find_loss(loss))
        given = as_network(network)
        deep = found.deep
        if deep is not None:
            network = given.deepened(deep.alpha, deep.base, found.text)
        put(network=network if deep is not None else given, data=data, _given=given)
        if data is not None:
            check_data(self.network, data, self.loss)
        put(
            steps=checks.whole(steps, "steps", least=0, each=checks.PART, hint="It counts updates.")
        )
        hint = "It counts the samples of a step."
        put(batch=checks.whole(batch, "batch", least=1, each=checks.PART, hint=hint))
        put(lr=checked_rate(lr), queries=_queries(queries, data), watch=_watched(watch))
        put(factors=factors(schedule, self.steps), lr_depth=_depth_rate(lr_depth, self))
        words = schedule is None or isinstance(schedule, str) or callable(schedule)
        put(schedule=schedule if words else tuple(schedule))  # type: ignore[arg-type]
        put(groups=read_groups(groups, self.network.marks) if groups else ())
        for mark in self.network.marks if groups else ():
            self.own(mark)

    @property
    def gammas(self) -> Ex | Mapping[str, Ex] | None:
        """The gammas of updates L^(-gamma): its own, or those of its parameterization."""
        deep = self.parameterization.deep
        return deep.gamma if self.lr_depth is None and deep is not None else self.lr_depth

    @property
    def base(self) -> int:
        """The number of blocks that counts as one: powers of the depth are of L / base."""
        return 1 if self.parameterization.deep is None else self.parameterization.deep.base

    @property
    def plain(self) -> bool:
        """Whether it is SGD at the rates of its parameterization, the same for all in front."""
        sgd = self.optimizer == find_optimizer("sgd")
        return sgd and self.schedule is None and not self.groups

    @cached_property
    def tables(self) -> tuple[Exponents, ...]:
        """The exponents of its parameterization at the steps 0..T."""
        table = self.parameterization.exponents
        return tuple(table(self.network.hidden, step) for step in range(self.steps + 1))

    def own(self, mark: Mark) -> Own:
        """What a parameter has of its own, by its groups."""
        if mark not in self._owns:
            self._owns[mark] = own(self.groups, mark, self.optimizer)
        return self._owns[mark]

    @cached_property
    def _owns(self) -> dict[Mark, Own]:
        return {}

    def optimizer_of(self, mark: Mark) -> Optimizer:
        """The optimizer of a parameter, with the numbers of its groups."""
        return self.own(mark).optimizer

    def factor(self, layer: int, step: int) -> Number:
        """The number in front of the learning rate of a layer at a step, groups aside.

        Raises:
            UsageError: A function of layer and step that gives no number.
        """
        lr = self.lr
        if callable(lr):
            what = f"the learning rate of layer {layer} at step {step}"
            lr = checks.real(checks.answer(lr, layer, step, name="lr"), what, least=0)
        return lr * self.factors[step]

    def rate(self, mark: Mark, step: int) -> tuple[Number, Ex]:
        """The learning rate of a parameter at a step: a number, and the c of its n^(-c)."""
        group = self.own(mark)
        rule, table, degree = self.parameterization, self.tables[step], group.optimizer.degree
        if degree != rule.degree:
            rule = rule.under(degree)
            table = rule.exponents(self.network.hidden, step)
        factor = self.factor(mark.layer, step) * group.lr * self.in_depth(mark, degree)
        power = rule.rate(mark, table, step) - group.power
        own = group.optimizer.own_size(mark.role) if rule.by_updates else Fraction(0)
        return factor, power + own if own else power

    def in_depth(self, mark: Mark, degree: int) -> Number:
        """The factor (L / base)^p of the rate of a parameter in a block, L a number."""
        deep, blocks = self.parameterization.deep, self.network.blocks
        if deep is None or blocks is None or not 1 < mark.layer <= self.network.hidden:
            return Fraction(1)
        return deep.power(blocks, deep.raw(degree))

    def path(self, mark: Mark) -> Callable[[Sequence[UpdateRate]], Path] | None:
        """What the optimizer of a parameter makes of it (w of n^(-a) w); None: w - rate * g."""
        optimizer = self.optimizer_of(mark)
        return None if optimizer.is_plain else self.path_of(mark, optimizer)

    def path_of(self, mark: Mark, optimizer: Optimizer) -> Callable[[Sequence[UpdateRate]], Path]:
        """What an optimizer makes of a parameter, in the units of what is trained."""
        stored, degree = self.parameterization.stored(mark, self.tables[0]), optimizer.degree
        if stored == as_ex(0) or not optimizer.has_units:
            return optimizer.path

        def path(rates: Sequence[UpdateRate]) -> Path:
            own = [(number, c + (1 + degree) * stored) for number, c in rates]
            found = optimizer.path(own)
            moves = tuple((power + stored, psi) for power, psi in found.moves)
            return Path(found.start, moves, found.shift + stored)

        return path

    @property
    def beyond(self) -> str:
        """Why first steps alone are followed; empty: all are."""
        return next(filter(None, (self.optimizer_of(m).beyond for m in self.network.marks)), "")

    def kept(self, mark: Mark, step: int) -> Ex | None:
        """The power p of the n^(-p) in front of the start of a parameter; None: it is dropped."""
        powers = self.tables[step].kept
        return powers[mark.layer - 1] if powers else as_ex(0)

    def replace(self, **changes: Any) -> Self:
        """The same run with other arguments."""
        known = ("network", "parameterization", "data", *Settings.__annotations__)
        for name in changes:
            checks.one_of("argument of a training run", name, known)
        return replace(self, **{"network": self._given, **changes})

    @cached_property
    def program(self) -> Program:
        """The program of all its steps with an output for each cell; errors as of ``unrolled``."""
        return self.unrolled.cells

    @property
    def blocks(self) -> Program:
        """The same; one of many samples keeps them as an axis, and its outputs are ``f[t,:]``."""
        return self.read_as("auto")

    def read_as(self, reading: ReadAs) -> Program:
        """The same; samples stay an axis where that is asked for and possible."""
        run = self.unrolled
        return (run.blocks if run.stays_blocks(reading, MANY) else None) or self.program

    def named(self, reading: ReadAs) -> Program:
        """The same for exact sizes: where samples stay an axis, outputs are as in ``program``."""
        return self.unrolled.named if self.unrolled.stays_blocks(reading, SOME) else self.program

    @cached_property
    def unrolled(self) -> Unrolled:
        """All its steps written out.

        Raises:
            UsageError: It has no data, or its depth is the symbol L.
            StudyError: Targets that are no outputs, or vectors to watch that are not there.
        """
        return self.rewritten(lambda template: template)

    def rewritten(self, rule: Callable[[Template], Template]) -> Unrolled:
        """The same of another template."""
        data, network = self.data, self.network
        if data is None:
            raise no_samples(data)
        if network.smallest.repeats:
            raise UsageError(
                f"the depth of {network.words} is the symbol L, and a run has a number of blocks.",
                where=network.name,
                hint="Give a number, ResNet(8, ...); tp.check and tp.phases take the symbol.",
            )
        written = network_program(
            network,
            self.parameterization,
            data.dimension,
            data.outputs // network.positions,
            between=BETWEEN in self.watch,
        )
        spend_nodes(
            f"a run of {count(self.steps, 'step')} of {count(self.batch, 'sample')}",
            self._nodes(len(written.nodes), self.batch + len(self.queries)),
            hint="Take fewer steps or samples, or a smaller network.",
        )
        model = rule(Template(written, (INPUT,)))
        asked = sum(prod(size for _, size in model.program.types[r].axes) for r in model.outputs)
        if asked != data.outputs:
            raise StudyError(
                f"a sample has {data.outputs} targets, the network has {asked} outputs.",
                where=data.origin,
                hint="A readout of t.linear(t.outputs, t.n) has as many outputs as targets.",
            )
        if self.watch is not NAMES:  # what is reported by default need not be there
            _check_watched(set(self.watch), model)
        rows = [
            [(step * self.batch + i) % len(data) for i in range(self.batch)]
            for step in range(self.steps + 1)
        ]
        schedule = Schedule(
            batches=tuple(tuple(data.inputs[row] for row in step) for step in rows),
            targets=tuple(tuple(data.targets[row] for row in step) for step in rows),
            queries=self.queries,
            chi=slopes(self.loss, data.outputs, network.positions),
            rate=self.rate,
            kept=self.kept,
            path=self.path,
            data=data.inputs,
        )
        return unroll(model, schedule, keep=self.watch.__contains__)

    def _nodes(self, forward: int, inputs: int) -> float:
        """About how many nodes the run has: every step sums over all samples of those before."""
        maps = max(1, len(self.network.marks))
        uses = max(1.0, forward / (3 * maps))  # of each, as by the tokens of a sequence

        def count(several: int) -> float:
            steps = self.steps * several
            return 4 * forward * (steps + several) + 0.8 * maps * (uses * steps) ** 2

        cells = count(inputs)
        return cells if cells <= MANY else count(1) * (1 + inputs / 2)


def as_training(
    architecture: Architecture | Training,
    parameterization: Parameterization | str | None,
    data: Samples | None,
    settings: Routine,
    steps: int,
) -> Training:
    """The run that a question is about: a record as it is, or one of the question's arguments."""
    for name in settings:
        checks.one_of("argument of this question", name, Routine.__annotations__)
    if not isinstance(architecture, Training):
        if parameterization is None:
            raise UsageError("no parameterization is given.", hint="Name one: 'mup', 'ntk'.")
        given: Routine = {"steps": steps, **settings}
        return Training(architecture, parameterization, data, **given)
    beside = [*settings]
    beside += ["parameterization"] * (parameterization is not None) + ["data"] * (data is not None)
    if beside:
        raise UsageError(
            f"{', '.join(beside)} given beside a training run, which has its own.",
            hint=f"Write run.replace({beside[0]}=...).",
        )
    return architecture


def train(
    architecture: Architecture,
    parameterization: Parameterization | str,
    data: Samples,
    **settings: Unpack[Settings],
) -> Program:
    """The program of a training run: ``tp.Training(...).blocks``.

    Args:
        architecture: The network, as in ``tp.Training``.
        parameterization: A catalogue name or a parameterization.
        data: Inputs and targets.
        settings: The other arguments of ``tp.Training``: steps, optimizer, lr, schedule, groups,
            loss, batch, queries, watch.

    Returns:
        A program with outputs ``f[t,i]``, ``h[l,t,i]``, ...; powers of n as the parameterization
        writes them. For t >= 1, ``dW_x[l,t,i]`` is (W^l(t) - W^l(t-1)) x^{l-1} for input i at
        step t, times the power of n that a network of one's own has behind the map (a scalar for
        the last layer, ``dW_x[L+1,t,i,k]`` with several outputs), and ``dB[l,t]`` is
        B^l(t) - B^l(t-1). Of a recurrent network l is the token.

    Raises:
        StudyError: Numbers that make no sense, targets that do not fit the loss.
        UnknownName: No such parameterization, loss, optimizer or schedule.

    Source: Hajjar, Chizat, Giraud, Definitions 2.1 and 2.2.
    """
    for name in settings:
        checks.one_of("argument of tp.train", name, Settings.__annotations__)
    return Training(architecture, parameterization, data, **settings).blocks


def checked_rate(lr: Rate | str) -> Rate:
    """The factor of a learning rate: a number, or what takes a layer and a step."""
    if not callable(lr):
        return checks.real(lr, "lr", least=0)
    checks.called(lr, "lr", 1, 0, hint="It takes a layer and a step: lambda layer, step: 0.5.")
    return lr


def _depth_rate(given: DepthRate, run: Training) -> Ex | Mapping[str, Ex] | None:
    """The gamma of updates L^(-gamma) as an exponent."""
    if given is None:
        return None
    network, own = run.network, run.parameterization
    if own.deep is not None:
        raise UsageError(
            f"lr_depth is {given}, and {own.text} has gamma = {own.deep.gamma}.",
            hint="Leave lr_depth out, or take the parameterization 'depth:ALPHA;GAMMA'.",
        )
    if not network.smallest.repeats:
        raise UsageError(
            "lr_depth is a power of the depth L, and the depth of this network is a number.",
            hint="Take ResNet('L', ...), or give a factor: groups={'hidden': {'lr': 0.5}}.",
        )
    if isinstance(given, Mapping):
        return {label: exponent(power, what="lr_depth") for label, power in given.items()}
    return exponent(given, what="lr_depth")


def _queries(queries: Any, data: Samples | None) -> tuple[tuple[float, ...], ...]:
    found = checks.rows(queries, "query", "queries")
    if found and data is not None and len(found[0]) != data.dimension:
        raise StudyError(
            f"query row 0 has {len(found[0])} numbers, the data have {data.dimension} features.",
            where=data.origin,
            hint="A query is an input of the same network.",
        )
    return found


def _watched(watch: Any) -> tuple[str, ...]:
    found = checks.names(watch, "watch")
    known = (*NAMES, *CONTRIBUTIONS, *NORMALISED, *WRITTEN, BETWEEN)
    unknown = set(found) - set(known)
    if unknown:
        raise StudyError(
            f"watch names {', '.join(sorted(unknown))}.",
            hint=f"It takes {', '.join(known)}, as in watch=['h', 'dh'].",
        )
    return found


def _check_watched(watched: set[str], model: Template) -> None:
    """Contributions that do not exist are left out; vectors that do not exist are a mistake."""
    there = {name for item in model.watch for name in (item.own.what, f"d{item.own.what}")}
    missing = watched - there - {*CONTRIBUTIONS, BETWEEN}
    if missing:
        raise StudyError(
            f"watch names {', '.join(sorted(missing))}, and the network has no such vectors.",
            hint="hhat are normalised preactivations: those of norm='layer'.",
        )
