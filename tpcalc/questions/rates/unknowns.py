"""Training runs with unknown powers of n, solved so that every update contributes at order one.

Each unknown stands in the power of one learning rate (or of one multiplier), and one output of the
run decides it: what that update adds to its layer, or the layer itself at the start.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property

from tpcalc.errors import ScaleError, UsageError
from tpcalc.exponents import Ex
from tpcalc.exponents.chamber import Power
from tpcalc.limit.scales import Scales, Unsettled, Unsolved, scales, symbols
from tpcalc.limit.series import NeedsMore
from tpcalc.names import layered, what_of
from tpcalc.networks.activation import power_of
from tpcalc.networks.network import Architecture
from tpcalc.program.family import Mark
from tpcalc.program.program import Program
from tpcalc.questions.verdict.ledger import DEPTHS
from tpcalc.questions.verdict.probe import Probe, probe
from tpcalc.training.parameterization import Exponents
from tpcalc.training.parameterizations import Parameterization
from tpcalc.training.training import Training

# Inside the integrable range, a_1 > 0, a_l > 1/2, a_{L+1} > 1, and where no two powers tie.
FIRST, HIDDEN, LAST, DEGREE, OTHER = (
    Fraction(1, 10),
    Fraction(3, 4),
    Fraction(14, 13),
    Fraction(7, 3),
    Fraction(5, 7),
)
APART = Fraction(1, 97)
SYMBOLIC = "with symbols it is not checked whether outputs and features stay bounded"
ASSUMED = (
    "of contributions that are not 0 by their form it is assumed that their leading coefficients "
    "are different from 0"
)


@dataclass(frozen=True, slots=True)
class Unknown:
    """A power of n that one output decides.

    Example:
        >>> Unknown("c", "2", 0, "c_2_0", "dW_x[2,1,1]").words
        'layer 2 at step 0'
    """

    kind: str  # "c" of weights, "bias_c" of biases, "a" of a multiplier
    label: str  # of the parameter: the layer from 1, or a name
    step: int  # the step t of a learning rate; 0 for a multiplier
    symbol: str  # what stands for it
    output: str  # the output that is to be of order one

    @property
    def words(self) -> str:
        """The place in a message."""
        what = {"c": "", "bias_c": "the bias of ", "a": "the multiplier of "}
        when = "" if self.kind == "a" else f" at step {self.step}"
        layer = f"layer {self.label}" if self.label.isdigit() else self.label
        return f"{what[self.kind]}{layer}{when}"

    @property
    def letter(self) -> str:
        """The power in a message."""
        label = f"_{self.label}" if self.label.isdigit() else f"[{self.label}]"
        return f"a{label}" if self.kind == "a" else f"c{label}({self.step})"

    @property
    def subject(self) -> str:
        """What its output is, in a message."""
        return "the layer at the start" if self.kind == "a" else "the contribution of its update"


@dataclass(frozen=True)
class Run:
    """A training run whose powers are asked for.

    Args:
        training: The run; of its powers all a_l are taken, or that of the output alone.
        solved_for: ``"rates"``, or ``"multipliers"`` for the powers a_1..a_L as well.
    """

    training: Training
    solved_for: str = "rates"
    idle: set[str] = field(default_factory=set, compare=False)  # 0 whatever the power

    @property
    def network(self) -> Architecture:
        """The network."""
        return self.training.network

    @property
    def parameterization(self) -> Parameterization:
        """The powers that are given."""
        return self.training.parameterization

    @property
    def steps(self) -> int:
        """The number of updates T."""
        return self.training.steps

    @property
    def settings(self) -> dict[str, str]:
        """What it was asked with, for the record of the answer."""
        training = self.training
        batch = str(training.batch)
        return {"steps": str(self.steps), "loss": training.loss.name, "batch": batch}

    def of(self, network: Architecture) -> Run:
        """The same run of another network."""
        return replace(self, training=self.training.replace(network=network))

    @cached_property
    def written(self) -> Mapping[str, Mark]:
        """The labels of the linear maps, with the marks of their weights."""
        reported = {name for name, _ in self.network.smallest.outputs}
        marks = (mark for mark in self.network.marks if layered("W_x", mark.label) in reported)
        return {mark.label: mark for mark in marks if not mark.bias}

    @cached_property
    def maps(self) -> Mapping[str, Mark]:
        """Those of which the weights are trained."""
        return {label: mark for label, mark in self.written.items() if self._is_trained(mark)}

    @cached_property
    def biased(self) -> tuple[str, ...]:
        """The labels of the maps that have trained biases."""
        biases = (mark for mark in self.network.marks if mark.bias and self._is_trained(mark))
        return tuple(mark.label for mark in biases if mark.label in self.written)

    def _is_trained(self, mark: Mark) -> bool:
        return bool(mark.rate * self.training.own(mark).lr)

    @property
    def starts_at_zero(self) -> bool:
        """Whether a parameter starts at 0, before which others have no first gradient."""
        return any(mark.at_zero for mark in self.network.marks)

    @property
    def complete(self) -> bool:
        """Whether all weights are drawn at the start and trained."""
        return len(self.maps) == len(self.written) and not any(
            mark.at_zero for mark in self.written.values()
        )

    @property
    def shared(self) -> bool:
        """Whether biases have the powers of their weights, so that they take their rates too."""
        tables = (self._table(step) for step in range(self.steps))
        same = all(table.a == table.bias_a and table.c == table.bias_c for table in tables)
        return same and self.parameterization.own is None

    def _table(self, step: int) -> Exponents:
        return self.parameterization.exponents(self.network.hidden, step)

    @cached_property
    def _asked(self) -> tuple[Unknown, ...]:
        run, found = self.watched, []
        if self.solved_for == "multipliers":
            for label, mark in self.written.items():
                if mark.role != "readout" and not mark.at_zero:
                    symbol = self._symbol("m", label, 0)
                    written = run.at("W_x", 0, 0)[label]  # h may have other terms
                    found.append(Unknown("a", label, 0, symbol, written[0]))
        own = [label for label in self.biased if not self._follows(label)]
        for step in range(self.steps):
            for label in self.written:
                names = run.updates(label, step + 1)
                for kind, letter, what in (("c", "c", "dW_x"), ("bias_c", "e", "dB")):
                    if label not in (self.maps if kind == "c" else own):
                        continue
                    outputs = [name for name in names if what_of(name) == what]
                    if not outputs:
                        raise _without(label, step)
                    symbol = self._symbol(letter, label, step)
                    found.append(Unknown(kind, label, step, symbol, outputs[0]))
        return tuple(found)

    def _follows(self, label: str) -> bool:
        """Whether a bias takes the rate of its weights."""
        return self.shared and label in self.maps

    def unknowns(self) -> tuple[Unknown, ...]:
        """All unknowns, in the order in which they are solved."""
        return self._asked

    @property
    def readout(self) -> Unknown:
        """The power a_(L+1), which is decided after all others; of tied weights nothing has it."""
        every = list(self.written.values())
        readouts = [mark for mark in every if mark.role == "readout"] or every
        label = max(readouts, key=lambda mark: mark.layer).label
        return Unknown("a", label, 0, self._symbol("m", label, 0), self.watched.f(0)[0])

    @property
    def with_readout(self) -> bool:
        """Whether a_(L+1) is solved for: where multipliers are, and it holds no symbols."""
        drawn = any(m.role == "readout" and not m.at_zero for m in self.written.values())
        return drawn and self.solved_for == "multipliers" and not self._table(0).a[-1].symbols

    def _symbol(self, letter: str, label: str, step: int) -> str:
        """A name that no table uses: those of a user do not end so."""
        return f"{letter}_{1 + list(self.written).index(label)}_{step}__"

    def program(self) -> Program:
        """The training run with the unknowns as symbols."""
        return self.watched.program

    @cached_property
    def watched(self) -> Probe:
        """The training run with the unknowns as symbols, and the names in it.

        Raises:
            UsageError: Multipliers are asked for where biases have powers of their own.
        """
        shared, multipliers = self.shared, self.solved_for == "multipliers"
        if multipliers and self.biased and not shared:
            raise UsageError(
                f"multipliers of {self.parameterization.text} with biases, which have powers of "
                "their own: no a_l is decided by the size of its layer.",
                hint="Take no biases, or a table that gives them powers of weights, as standard.",
            )

        given = self.parameterization.own

        def own(kind: str, mark: Mark, step: int, degree: int) -> Ex | None:
            gauge = None if given is None else given(kind, mark, step, degree)
            weights = self.written.get(mark.label)
            if kind == "c" and mark.label in (self.biased if mark.bias else self.maps):
                letter = "e" if mark.bias and not self._follows(mark.label) else "c"
                symbol = Ex.symbol(self._symbol(letter, mark.label, step))
                return symbol + (gauge or Ex()) + mark.speed
            if kind == "c" or not multipliers or weights is None or weights.at_zero:
                return gauge
            fixed = weights.role == "readout" and not self.with_readout
            return gauge if fixed else Ex.symbol(self._symbol("m", mark.label, 0))

        unknown = self.training.replace(parameterization=replace(self.parameterization, own=own))
        return probe(
            unknown, watch=("h", "dW_x", "dB", "between", *(("W_x",) if multipliers else ()))
        )

    def derive(
        self,
        program: Program,
        point: Mapping[str, Fraction],
        values: Mapping[str, Ex] | None = None,
    ) -> Rates:
        """Solve for all unknowns, with as few terms as they need.

        Args:
            program: The training run (``program``).
            point: The sample point of the symbols that are given.
            values: Unknowns that are settled.

        Returns:
            The powers with the derivation they come from.

        Raises:
            ScaleError: No value of some unknown is known to make its output of order one.

        Source: Hajjar, Chizat, Giraud, Lemma F.4 and Theorem 3.2.
        """
        settled = dict(values or {})
        unknowns = self.unknowns()
        left = [unknown for unknown in unknowns if unknown.symbol not in settled]
        found = self.solved(program, left, point, settled)
        found.solved.update({**dict.fromkeys(self.idle, Ex()), **settled})
        first = (self.readout,) if self.readout.symbol in settled else ()
        place = sum(unknown.kind == "a" for unknown in unknowns)
        return Rates(self, (*unknowns[:place], *first, *unknowns[place:]), found)

    def solved(
        self,
        program: Program,
        unknowns: Sequence[Unknown],
        point: Mapping[str, Fraction],
        values: Mapping[str, Ex],
    ) -> Scales:
        """The derivation of a program in which some unknowns are solved for.

        Args:
            program: A part of the training run.
            unknowns: The unknowns, in the order of the program.
            point: The sample point of other symbols.
            values: What stands for the other unknowns.

        Raises:
            ScaleError: No value of some unknown is known to make its output of order one.
        """
        by_symbol = {unknown.symbol: unknown for unknown in unknowns}
        asked = {unknown.output: unknown.symbol for unknown in unknowns}
        stuck: Unsettled | None = None
        for depth in DEPTHS:
            try:
                return scales(program, at=point, values=values, depth=depth, unknowns=asked)
            except Unsettled as error:
                stuck = error
            except NeedsMore:
                stuck = None
            except Unsolved as error:
                unknown = by_symbol[error.symbol]
                if error.zero and self.starts_at_zero:
                    self.idle.add(error.symbol)
                    left = [other for other in unknowns if other != unknown]
                    return self.solved(program, left, point, {**values, error.symbol: Ex()})
                raise _unsolved(unknown, error.reason, error.hint) from None
            except ScaleError:  # the depth takes in more orders of a function than are followed
                if not depth:
                    raise
                break
        if stuck is None:
            raise ScaleError(
                "the training run holds a quantity of which only a bound is known.",
                hint="Ask for fewer steps.",
            )
        unknown = by_symbol[stuck.symbol]
        fewer = (
            f" Ask for steps={unknown.step}, whose rates are solved for." if unknown.step else ""
        )
        raise _unsolved(
            unknown,
            _bounded(stuck.bound),
            "It may not contribute at all: its leading terms cancel or are 0 by symmetry."
            f"{fewer} At rates that are given, tp.check says what is known.",
        )


@dataclass(frozen=True)
class Rates:
    """The powers of n at which every update contributes at order one."""

    run: Run  # what was asked
    unknowns: tuple[Unknown, ...]  # all unknowns
    found: Scales  # the derivation

    def value(self, unknown: Unknown) -> Ex | None:
        """The power found for an unknown; None where its update is 0 whatever it is."""
        return None if unknown.symbol in self.run.idle else self.found.solved[unknown.symbol]

    def _chosen(self, kind: str, step: int) -> dict[str, Ex | None]:
        return {u.label: self.value(u) for u in self.unknowns if (u.kind, u.step) == (kind, step)}

    def weights(self, step: int) -> Mapping[str, Ex | None]:
        """The powers c of the weights by their labels."""
        return self._chosen("c", step)

    def biases(self, step: int) -> Mapping[str, Ex | None]:
        """Those of the biases."""
        every = {**self.weights(step), **self._chosen("bias_c", step)}
        return {label: every[label] for label in self.run.biased}

    def stored(self) -> Iterator[tuple[Mark, Ex, tuple[Ex | None, ...]]]:
        """Marks with the powers b and c of W = n^(-a) w, which is n^(-b) with rates eta n^(-c).

        A step of w is one of W times n^(-a), and the gradient by w is n^(-a) times that by W, which
        an update holds as often as the degree of the optimizer says: b = a, and c of W is c of w
        plus (1 + degree) a.
        """
        run, training = self.run, self.run.training
        solved = {u.label: self.value(u) for u in self.unknowns if u.kind == "a"}
        rates = [{False: self.weights(step), True: self.biases(step)} for step in range(run.steps)]
        for mark in training.network.marks:
            if mark.label in (run.biased if mark.bias else run.maps):
                a = training.parameterization.power(mark, training.tables[0])
                if run.shared or not mark.bias:
                    own = solved.get(mark.label)
                    a = a if own is None else own
                raw = training.parameterization.own is not None  # its rates are those of W
                gauge = Ex() if raw else a * (1 + training.optimizer_of(mark).degree)
                powers = (row[mark.bias][mark.label] for row in rates)
                yield mark, a, tuple(None if c is None else c + gauge for c in powers)


def sample_point(run: Run, program: Program, given: Mapping[str, Fraction]) -> dict[str, Fraction]:
    """A point for all symbols of a training run; where none is given, one inside the usual range.

    Powers of multipliers get a_1 = 1/10, a_l = 3/4, a_{L+1} = 14/13, each a little apart; degrees
    of homogeneity 7/3; so no two powers are equal there that are not always.

    Example:
        >>> from tpcalc.networks.architectures.mlp import MLP
        >>> run = Run(Training(MLP(2, "relu^p"), "ac:0,a,1;0"))
        >>> {name: str(value) for name, value in sample_point(run, run.program(), {}).items()}
        {'a': '3/4', 'p': '7/3'}
    """
    unknowns = {unknown.symbol for unknown in (*run.unknowns(), run.readout)}
    table = run.parameterization.exponents(run.network.hidden, 0)
    usual: dict[str, Fraction] = {}
    for row in (table.bias_a, table.a):
        for layer, power in enumerate(row, 1):
            base = FIRST if layer == 1 else LAST if layer == len(row) else HIDDEN
            for name in power.symbols:
                usual[name] = base
    point = {}
    for place, name in enumerate(sorted(symbols(program) - unknowns)):
        if name in given:
            point[name] = given[name]
        elif name in usual:
            point[name] = usual[name] + place * APART
        else:
            point[name] = DEGREE if name not in program.symbols else OTHER + place * APART
    degree = power_of(run.network)
    if degree is not None and degree.symbols and degree.at(point) < 1:
        raise UsageError(
            f"at the sample point the activation is relu^({degree.at(point)}), which has no "
            "gradient at 0.",
            hint="Take a sample point with p >= 1.",
        )
    return point


def _without(label: str, step: int) -> UsageError:
    return UsageError(
        f"no learning rate of {label} makes its update contribute: its gradient at step {step} is "
        "identically 0.",
        hint="Leave the parameter out, or use it in a way that reaches the output.",
    )


def _bounded(bound: Power | None) -> str:
    """What is known of an output at the unknown 0, after all depths."""
    if bound is None:
        return "nothing is known of its size."
    return (
        f"it is at most n^({bound}), and with terms down to n^(-{DEPTHS[-1]}) below the leading "
        "ones, as far as they are followed, no more is known."
    )


def _unsolved(unknown: Unknown, reason: str, hint: str | None) -> ScaleError:
    return ScaleError(
        f"no power {unknown.letter} is known to make {unknown.subject} ({unknown.output}) of order "
        f"one: at {unknown.letter} = 0 {reason}",
        where=unknown.words,
        hint=hint,
    )
