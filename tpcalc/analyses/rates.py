"""Training runs with unknown powers of n, solved so that every update contributes at order one.

Each unknown stands in the power of one learning rate (or of one multiplier), and one output of the
run decides it: what that update adds to its layer, or the layer itself at the start.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from tpcalc.analyses.probe import Probe, probe
from tpcalc.catalog.activations import lookup as activation
from tpcalc.catalog.architectures.mlp import MLP, biased_layers
from tpcalc.catalog.parameterization import Exponents, with_rates
from tpcalc.catalog.parameterizations import Parameterization
from tpcalc.dsl.elementwise import expression
from tpcalc.errors import ScaleError, UsageError
from tpcalc.functions import Call, Expr
from tpcalc.limit.scales import Scales, Unsettled, Unsolved, scales, symbols
from tpcalc.limit.series import NeedsMore
from tpcalc.orders import Ex, as_ex
from tpcalc.orders.chamber import Power
from tpcalc.program.program import Program
from tpcalc.results import Samples

__all__ = [
    "ASSUMED",
    "DEPTHS",
    "SYMBOLIC",
    "Rates",
    "Run",
    "Unknown",
    "function_of",
    "power_of",
    "sample_point",
]

DEPTHS = tuple(Fraction(k, 2) for k in range(5))
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

    Args:
        kind: ``"c"`` of weights, ``"bias_c"`` of biases, ``"a"`` of a multiplier.
        layer: The layer, from 1.
        step: The step t of a learning rate; 0 for a multiplier.
        symbol: What stands for it.
        output: The output that is to be of order one.

    Example:
        >>> Unknown("c", 2, 0, "c_2_0", "dW_x[2,1,1]").words
        'layer 2 at step 0'
    """

    kind: str
    layer: int
    step: int
    symbol: str
    output: str

    @property
    def words(self) -> str:
        """The place in a message."""
        what = {"c": "layer", "bias_c": "the bias of layer", "a": "the multiplier of layer"}
        when = "" if self.kind == "a" else f" at step {self.step}"
        return f"{what[self.kind]} {self.layer}{when}"

    @property
    def letter(self) -> str:
        """The power in a message."""
        return f"a_{self.layer}" if self.kind == "a" else f"c_{self.layer}({self.step})"

    @property
    def subject(self) -> str:
        """What its output is, in a message."""
        return "the layer at the start" if self.kind == "a" else "the contribution of its update"


@dataclass(frozen=True)
class Run:
    """A training run whose powers are asked for.

    Args:
        network: The network.
        parameterization: The powers that are given: all a_l, or that of the output alone.
        data: Training data; None: generic data.
        steps: Number of updates T.
        loss: Catalogue name.
        batch: Samples in a step.
        solved_for: ``"rates"``, or ``"multipliers"`` for the powers a_1..a_L as well.
    """

    network: MLP
    parameterization: Parameterization
    data: Samples | None
    steps: int
    loss: str = "mse"
    batch: int = 1
    solved_for: str = "rates"

    @property
    def biased(self) -> tuple[int, ...]:
        """The layers that have biases."""
        return tuple(biased_layers(self.network.bias, self.network.depth))

    @property
    def shared(self) -> bool:
        """Whether biases have the powers of their weights, so that they take their rates too."""
        tables = (self._table(step) for step in range(self.steps))
        return all(table.a == table.bias_a and table.c == table.bias_c for table in tables)

    def _table(self, step: int) -> Exponents:
        return self.parameterization.exponents(self.network.depth, step)

    def unknowns(self) -> tuple[Unknown, ...]:
        """All unknowns, in the order in which they are solved."""
        depth = self.network.depth
        found = []
        if self.solved_for == "multipliers":
            found += [
                Unknown("a", layer, 0, self._symbol("m", layer, 0), f"h[{layer},0,0]")
                for layer in range(1, depth + 1)
            ]
        own = () if self.shared else self.biased
        several = ",0" if self.data is not None and self.data.outputs > 1 else ""
        for step in range(self.steps):
            for layer in range(1, depth + 2):
                last = several if layer == depth + 1 else ""
                name = f"dW_x[{layer},{step + 1},{self.batch}{last}]"
                found.append(Unknown("c", layer, step, self._symbol("c", layer, step), name))
                if layer in own:
                    symbol = self._symbol("e", layer, step)
                    name = f"dB[{layer},{step + 1}{last}]"
                    found.append(Unknown("bias_c", layer, step, symbol, name))
        return tuple(found)

    @property
    def readout(self) -> Unknown:
        """The power a_(L+1), which is decided after all others."""
        layer = self.network.depth + 1
        several = ",0" if self.data is not None and self.data.outputs > 1 else ""
        name = f"f[0,{self.batch}{several}]"
        return Unknown("a", layer, 0, self._symbol("m", layer, 0), name)

    @property
    def with_readout(self) -> bool:
        """Whether a_(L+1) is solved for: where multipliers are, and it holds no symbols."""
        return self.solved_for == "multipliers" and not self._table(0).a[-1].symbols

    def _symbol(self, letter: str, layer: int, step: int) -> str:
        """A name that no table uses: those of a user do not end so."""
        return f"{letter}_{layer}_{step}__"

    def program(self) -> Program:
        """The training run with the unknowns as symbols."""
        return self.watched().program

    def watched(self) -> Probe:
        """The training run with the unknowns as symbols, and the names in it.

        Raises:
            UsageError: Multipliers are asked for where biases have powers of their own.
        """
        shared, multipliers = self.shared, self.solved_for == "multipliers"
        if multipliers and self.biased and not shared:
            raise UsageError(
                f"multipliers of {self.parameterization.text} with biases: their powers are their "
                "own, so that no a_l is decided by the size of its layer.",
                hint="Take a network without biases.",
            )

        def rate(layer: int, step: int) -> Ex:
            return Ex.symbol(self._symbol("c", layer, step))

        def bias_rate(layer: int, step: int) -> Ex:
            own = layer in self.biased and not shared
            return Ex.symbol(self._symbol("e" if own else "c", layer, step))

        def table(depth: int, step: int) -> Exponents:
            found = self.parameterization.rule(depth, step)
            if not multipliers:
                return found
            a = [Ex.symbol(self._symbol("m", layer, 0)) for layer in range(1, depth + 1)]
            free = (*a, Ex.symbol(self.readout.symbol) if self.with_readout else found.a[-1])
            return replace(found, a=free, bias_a=free)

        chosen = with_rates(replace(self.parameterization, rule=table), rate, bias_rate)
        return probe(
            self.network,
            chosen,
            self.data,
            steps=self.steps,
            loss=self.loss,
            batch=self.batch,
            watch=("h", "dW_x", "dB"),
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
        found.solved.update(settled)
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
        raise _unsolved(
            by_symbol[stuck.symbol],
            _bounded(stuck.bound),
            "It may not contribute at all: its leading terms cancel or are 0 by symmetry.",
        )


@dataclass(frozen=True)
class Rates:
    """The powers of n at which every update contributes at order one.

    Args:
        run: What was asked.
        unknowns: All unknowns.
        found: The derivation.
    """

    run: Run
    unknowns: tuple[Unknown, ...]
    found: Scales

    def value(self, unknown: Unknown) -> Ex:
        """The power found for an unknown.

        Args:
            unknown: One of ``unknowns``.
        """
        return self.found.solved[unknown.symbol]

    def _chosen(self, kind: str, step: int) -> Iterator[Ex]:
        return (self.value(u) for u in self.unknowns if (u.kind, u.step) == (kind, step))

    def weights(self, step: int) -> tuple[Ex, ...]:
        """The powers c_l of the weights of layers 1..L+1.

        Args:
            step: The step t.
        """
        return tuple(self._chosen("c", step))

    def biases(self, step: int) -> tuple[Ex, ...]:
        """Those of the layers that have biases.

        Args:
            step: The step t.
        """
        if self.run.shared:
            return self.weights(step)[: len(self.run.biased)]
        return tuple(self._chosen("bias_c", step))

    @property
    def multipliers(self) -> tuple[Ex, ...]:
        """The powers a_l, where they were asked for: of layers 1..L, and of the readout."""
        return tuple(self._chosen("a", 0))


def sample_point(run: Run, program: Program, given: Mapping[str, Fraction]) -> dict[str, Fraction]:
    """A point for all symbols of a training run; where none is given, one inside the usual range.

    Powers of multipliers get a_1 = 1/10, a_l = 3/4, a_{L+1} = 14/13, each a little apart; degrees
    of homogeneity 7/3; so no two powers are equal there that are not always.

    Args:
        run: The run.
        program: Its program.
        given: The values that are given.

    Raises:
        UsageError: A power of the activation below 1, where it has no gradient.

    Example:
        >>> from tpcalc.catalog.parameterizations import lookup
        >>> run = Run(MLP(2, "relu^p"), lookup("ac:0,a,1;0"), None, 1)
        >>> {name: str(value) for name, value in sample_point(run, run.program(), {}).items()}
        {'a': '3/4', 'p': '7/3'}
    """
    unknowns = {unknown.symbol for unknown in (*run.unknowns(), run.readout)}
    table = run.parameterization.exponents(run.network.depth, 0)
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


def function_of(network: MLP) -> Expr:
    """The activation of a network as an expression of one variable.

    Args:
        network: The network.

    Example:
        >>> function_of(MLP(2, "relu^2")).text
        'relu_pow[2](x0)'
    """
    found = activation(network.act) if isinstance(network.act, str) else network.act
    return expression(found, "an activation")


def power_of(network: MLP) -> Ex | None:
    """The p of an activation relu^p; None for any other.

    Args:
        network: The network.

    Example:
        >>> str(power_of(MLP(2, "relu"))), power_of(MLP(2, "tanh"))
        ('1', None)
    """
    found = function_of(network)
    if not isinstance(found, Call) or found.atom.name not in ("relu", "relu_pow"):
        return None
    degree = found.atom.facts.homogeneity
    return degree if isinstance(degree, Ex) else as_ex(Fraction(str(degree)))


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
