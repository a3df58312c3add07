"""``Flow``: mean squares of the stream and of its adjoint at the start, where blocks change them.

A block makes q + G(q) of the mean square q of the stream, and p (1 + H(q)) of that of its adjoint.
The calculus says how G and H depend on q = L^(2 s): so many blocks move q over its powers of L, or
to where G changes its sign, or multiply it by the same factor each, and p goes along.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from math import exp, log
from typing import Any

from tpcalc.errors import LimitError, TpcalcError
from tpcalc.evaluate.numbers import numbers
from tpcalc.evaluate.particles.estimate import Budget
from tpcalc.exponents import Ex, as_ex
from tpcalc.exponents.chamber import Chamber
from tpcalc.functions import Fn, Var
from tpcalc.functions.fn import FIRST, SQUARE
from tpcalc.limit.context import Record
from tpcalc.limit.degrees import degree_of
from tpcalc.limit.derive import graph_of
from tpcalc.limit.graph import Target
from tpcalc.limit.scales import Scales, scales
from tpcalc.limit.series import Rest
from tpcalc.networks.network import is_sum
from tpcalc.passes.block import CARRY, SEED
from tpcalc.program.base import applied_of, input_of, matmul_of, moment_of, references, renumbered
from tpcalc.program.nodes import Family, Input, Kind, LinComb, Moment, Ref, Scale
from tpcalc.program.program import Builder, Program
from tpcalc.questions.depth.generic import Clear, Generic, R, in_width
from tpcalc.questions.depth.stream import in_depth
from tpcalc.results import Estimate, RealPower


@dataclass(frozen=True)
class Closed:
    """Whether the mean square of what enters a block tells that of what leaves it."""

    unknown: str  # why it does not; "" where it does
    gaussian: bool  # whether the stream stays Gaussian with mean 0


def closed(body: Program) -> Closed:
    """Where the stream is a sum of itself and products with fresh matrices, or read by them."""
    # Vectors that are jointly Gaussian, vectors that hold entries of the stream, matrices in use.
    gaussian, held, applied = set[Ref](), set[Ref](), set[Ref]()
    matrices, entrywise = "", list[str]()
    for ref, node in enumerate(body.nodes):
        if body.types[ref].kind is not Kind.VECTOR:
            if _reads_entries(node, held):
                entrywise.append(f"an average at {body.place(ref)} is no square")
            continue
        product, drawn, function = matmul_of(node), input_of(node), applied_of(node)
        parts = {one for one in references(node) if body.types[one].kind is Kind.VECTOR}
        if drawn is not None:
            gaussian.add(ref)
            if drawn.name == CARRY:
                held.add(ref)
        elif product is not None:
            gaussian.add(ref)
            if product.matrix in applied or product.transpose:
                matrices = "a block applies one matrix twice"
            applied.add(product.matrix)
        else:
            linear = function is None or is_sum(function.fn)
            if linear and parts <= gaussian:
                gaussian.add(ref)
            held.update({ref} if held & parts else ())
            if held & parts and not linear:
                words = "a block applies a function to the entries of the stream at"
                entrywise.append(f"{words} {body.place(ref)}")
    is_gaussian = body.ref("next") in gaussian
    return Closed(matrices or ("" if is_gaussian else "".join(entrywise[:1])), is_gaussian)


def _reads_entries(node: Any, held: Set[Ref]) -> bool:
    """Whether a node averages vectors otherwise than in products of two, or of one."""
    average = moment_of(node)
    if average is None or not held & {*average.vectors}:
        return False
    return not all(is_sum(average.fn.by(index)) for index in range(average.fn.vectors))


CHANGE = Fn(Var(0) ** 2 + 2 * Var(0) * Var(1), 2)  # of a square, by what is added and before
ONE, NEAR, BELOW = Fraction(1), Fraction(1, 64), Fraction(4)
DEPTH = 16  # powers of 1/L that are followed
LARGE = 1e4  # a mean square that tells what functions are far out, and its square
MOST = 100.0  # logarithm of a mean square
CLOSE = 0.02  # of a power that is read off numbers
SURE, TINY, ROUNDS = 5, 1e-10, 8
SHARES = (0.3, 0.9)  # of a mean in a root mean square, where it is not known
NEAR_ONE = 1e-8  # of a factor that numbers do not tell from 1
POWERS = "each block multiplies its mean square by a power of L"
FORMULA = "({}) H/G = ({}) {:.10g} / {:.10g}"


@dataclass(frozen=True)
class Regime:
    """What becomes of a mean square as there are more blocks."""

    # "order": it stays of order one; "power"; "grows" or "shrinks": its log is like a power of L;
    # "": not known
    form: str
    power: Ex = field(default_factory=Ex)  # of L: of its root, or of its log
    proved: bool = False  # whether every step of the argument is
    words: str = ""  # what blocks do to it
    # the power of its root where that is a number of the functions in a block
    real: RealPower | None = None
    logs: bool = False  # whether a logarithm of L stands beside the power


@dataclass(frozen=True)
class Move:
    """How a block changes a mean square q, relative to it: value * L^power * q^(slope / 2)."""

    power: Ex | None  # the power of L; None: there is no change
    value: Estimate | None = None  # its number; None: it is not known
    slope: Fraction = Fraction(0)  # how the power depends on s where q = L^(2 s)
    exact: bool = True  # whether the powers are by form
    rough: bool = False  # whether the number stands for others, of its sign
    numbers: bool = False  # whether the slope is read off numbers

    @property
    def sign(self) -> int:
        return 0 if self.value is None else 1 if self.value.value > 0 else -1

    def at(self, size: Ex) -> Ex:
        assert self.power is not None
        return self.power + self.slope * size


@dataclass
class Flow:
    """The mean squares of one input."""

    generic: Generic  # a generic block
    chamber: Chamber  # compares powers
    mixed: bool = False  # whether parts of what a block adds have different powers of L
    _moves: dict[tuple[Ex, float], tuple[Move, Move]] = field(default_factory=dict)

    @cached_property
    def unknown(self) -> str:
        """Why mean squares do not tell what blocks do; "" where they do."""
        block = self.generic.block
        if block.shared or block.correlated:
            return "blocks depend on each other at the start"
        return self.closed.unknown

    @cached_property
    def closed(self) -> Closed:
        """What mean squares tell of the block."""
        return closed(self.generic.block.body)

    @cached_property
    def regimes(self) -> tuple[Regime, Regime]:
        """What becomes of the stream, and of its adjoint."""
        try:
            return self._regimes()
        except TpcalcError as error:
            return (Regime("", words=error.message),) * 2

    def _regimes(self) -> tuple[Regime, Regime]:
        if self.unknown:
            raise LimitError(self.unknown)
        g, h = self.moves()
        still = g.power is None or self.chamber.sign(g.power + 1) <= 0
        if not still and not g.sign:
            raise LimitError("what blocks do to its mean square is not known")
        if (g.power is None or not still) and self.depends(g.sign):
            raise LimitError("where it ends depends on the mean square that enters")
        if still:
            proved = self.trapped or (g.power is not None or g.exact)
            words = "blocks keep its mean square" if g.power is None else ""
            return Regime("order", proved=proved, words=words), self.beside(h)
        return self.fixed(g.sign) or self.along(*self.law(g.sign))

    @property
    def accelerates(self) -> bool:
        """Whether blocks that move the stream by order 1 move a larger one by more."""
        try:
            g = self.moves(as_ex(NEAR))[0]
        except TpcalcError:  # a function that grows faster than any power
            return True
        return g.power is not None and self.chamber.sign(g.power + 1) > 0

    def depends(self, sign: int) -> bool:
        """Whether blocks move smaller mean squares down, or larger ones up, and this one not."""
        less, more = (self.moves(square=square)[0].sign for square in (1 / LARGE**0.5, LARGE**0.5))
        return (sign >= 0 and less < 0) or (sign <= 0 and more > 0)

    def moves(self, size: Ex = Ex(), square: float = 1.0) -> tuple[Move, Move]:
        """What a block does where the stream has the mean square ``square`` L^(2 size)."""
        if (size, square) not in self._moves:
            self._moves[size, square] = self._moved(size, square)
        return self._moves[size, square]

    def _moved(self, size: Ex, square: float) -> tuple[Move, Move]:
        """The same where the stream has the mean that blocks bring it to.

        Where they add to it block by block all that counts is alike for any share of it.
        """
        mean = 0.0
        for _ in range(ROUNDS):  # Steffensen's
            g, h, first, side = self._at(size, square, mean)
            if first is not None and abs(first - mean) <= TINY:
                g, h = (replace(one, exact=one.exact and not first) for one in (g, h))
                return g, h
            second = None if first is None else self._at(size, square, first)[2]
            if first is None or second is None:
                break
            bend = second - 2 * first + mean
            mean = second if abs(bend) <= TINY else mean - (first - mean) ** 2 / bend
            if abs(mean) >= 1 - TINY:
                break
        side = side or 1  # blocks bring it to that of what they add
        some, much = (self._at(size, square, side * share) for share in SHARES)
        if mean == 0 and some[2] is not None and some[2] * side < 0:  # what they add alternates
            g, h, *_ = self._at(size, square, mean)
            return replace(g, value=None, exact=False, rough=True), replace(h, exact=False)
        same = some[0].power == much[0].power and some[0].sign == much[0].sign
        g = replace(some[0], value=some[0].value if same else None, exact=False, rough=True)
        alike = (some[1].power is None and much[1].power is None) or _same(some[1], much[1])
        return g, replace(some[1], value=some[1].value if alike else None, exact=False, rough=True)

    def _at(self, size: Ex, square: float, mean: float) -> tuple[Move, Move, float | None, int]:
        """The same at a mean, as a part of the root of the mean square, with that after the block.

        None: it is of smaller order, and blocks add it up. Last comes its sign.
        """
        generic, at = self.generic, self.chamber.point
        network, adjoint, _ = generic.differentiated
        block, out = generic.block, Builder(generic.block.program.dims)
        group = Family.group(CARRY, block.dim, (0,), ((1,),))
        spread = (mean * square**0.5,), (((1 - mean**2) * square,),)
        start = Input(replace(group, mean=spread[0], cov=spread[1]), 0 if group.axes else None)
        made: dict[Ref, Ref] = {}
        x = made[block.template.program.inputs[CARRY]] = out.add(Scale(out.add(start), Ex(), size))
        d = out.add(Input(Family(SEED, (block.dim,))))
        made[block.template.program.inputs[SEED]] = out.add(Scale(d, as_ex(generic.power + 1)))
        for ref in range(len(network)):
            if ref not in made:
                made[ref] = out.add(renumbered(network.node(ref), made.__getitem__))
        leaves = out.add(Scale(made[adjoint], as_ex(-generic.power)))
        for name, after, before in (("G", made[block.body.ref("next")], x), ("H", leaves, d)):
            added = out.add(LinComb((ONE, -ONE), (None, None), (after, before)))
            out.output(name, out.add(Moment(CHANGE, (added, before))))
        after = made[block.body.ref("next")]
        for name, fn in (("mean", FIRST), ("square", SQUARE)):
            out.output(name, out.add(Moment(fn, (after,))))
        program = generic.at_start(in_width(out.finish(keep_unused=False)))
        found = scales(program, at=at, depth=DEPTH * R, record=Record(clear=Clear()))
        g, h = self.lead(found, "G"), self.lead(found, "H")
        if g.power is not None:
            value = None if g.value is None else _times(g.value, 1 / square)
            g = replace(g, power=g.power - 2 * size, value=value)
        return g, h, *self._tilt(found, mean)

    def _tilt(self, scales: Scales, before: float) -> tuple[float | None, int]:
        """The mean of what leaves a block, as a part of the root of its mean square; its sign."""
        if self.closed.gaussian:
            return 0.0, 0
        mean, square = self.lead(scales, "mean"), self.lead(scales, "square")
        if mean.power is None:
            return 0.0, 0
        if mean.value is None or square.value is None or 2 * mean.power != square.power:
            return None, mean.sign
        after = mean.value.value / square.value.value**0.5
        return (None if before and abs(after) > 1 - TINY else after), mean.sign

    def lead(self, scales: Scales, name: str) -> Move:
        """The largest term of an average whose number is not 0 within its error."""
        series, exact = scales.series(name), True
        bounds = [one for one in (series.rest, series.soft) if one is not None]
        bound = [_bound(one) for one in bounds]
        lost = [power for power in bound if power is not None]
        for power, node in series.terms:
            width, depth = in_depth(power)
            if width < 0 or any(self.chamber.sign(one - depth) >= 0 for one in lost):
                break
            graph = graph_of(scales.context, (("", Target(Fraction(0), node)),))
            value = numbers(graph, "auto", Budget(2**12, 8), 0).found[""][0]
            if abs(value.value) > SURE * value.stderr:
                return Move(depth, value, exact=exact)
            exact = False
        if lost:
            return Move(max(lost, key=lambda one: one.at(self.chamber.point)), exact=False)
        return Move(None, exact=exact)

    @cached_property
    def trapped(self) -> bool:
        """Whether blocks bring a stream of any size to order one, as a norm behind them does."""
        return all(
            own.exact and own.power is not None and own.sign == -side
            for side in (-1, 1)
            for own in self.moves(as_ex(side * NEAR))[:1]
        )

    def fixed(self, side: int) -> tuple[Regime, Regime] | None:
        """What becomes of them where what a block does to the stream changes its sign."""
        beyond = self.moves(as_ex(side * NEAR))[0]
        ends = [LARGE ** (side * k) for k in (1, 2)] if not beyond.sign else []
        signs = [self.moves(square=end)[0].sign for end in ends]
        if beyond.sign == side or signs[-1:] == [side]:
            return None
        if not beyond.sign and not all(signs):
            return None
        square, beside = self.balanced(Ex())
        words = f"blocks bring its mean square to {square:.6g}"
        return Regime("order", proved=self.trapped, words=words), beside

    def balanced(self, size: Ex) -> tuple[float, Regime]:
        """At which part of L^(2 size) blocks keep the mean square; what they do to the adjoint."""
        from scipy.optimize import brentq

        if self.moves(size)[0].rough:
            raise LimitError("where blocks bring it rests on its mean, which is not followed")

        def moved(point: float) -> float:
            value = self.moves(size, exp(point))[0].value
            return 0.0 if value is None else value.value

        ends = [0.0, 0.0]
        for place, side in enumerate((-1, 1)):  # blocks move less up, and more down
            while moved(ends[place]) * side > 0:
                ends[place] += side * log(4.0)
                if abs(ends[place]) > MOST:
                    raise LimitError("where blocks bring its mean square is not found")
        square = exp(brentq(moved, *ends, xtol=1e-13) if ends[0] != ends[1] else 0.0)
        return square, self.beside(replace(self.moves(size, square)[1], exact=False))

    def law(self, side: int) -> tuple[Move, Move]:
        """What blocks do to larger mean squares (or smaller ones), and to the adjoint there."""
        near, far = (self.moves(as_ex(side * k * NEAR)) for k in (1, 2))
        found = []
        for way, (a, b) in enumerate(zip(near, far, strict=True)):
            if a.power is None or b.power is None:
                found.append(Move(None))
            elif a.sign and a.sign == b.sign:
                slope = (b.power - a.power).constant
                assert slope is not None
                slope = slope / (side * NEAR)
                power = a.power - slope * side * NEAR
                found.append(Move(power, a.value, slope, a.exact and b.exact, a.rough))
            else:
                found.append(self._by_numbers(way, side))
        return found[0], found[1]

    def _by_numbers(self, way: int, side: int) -> Move:
        """The same of functions that are no powers far out, by the numbers of two mean squares."""
        a, b = (self.moves(square=LARGE ** (side * k))[way] for k in (1, 2))
        if a.value is None or b.value is None or a.power != b.power or a.sign != b.sign:
            return Move(a.power, exact=False)
        degree = log(b.value.value / a.value.value) / (side * log(LARGE))
        slope = Fraction(round(4 * degree), 2)
        if abs(2 * degree - slope) > CLOSE:
            return Move(a.power, exact=False)
        number = _times(a.value, LARGE ** (-side * slope / 2))
        return Move(a.power, number, slope, exact=False, numbers=True)

    def along(self, g: Move, h: Move) -> tuple[Regime, Regime]:
        """What becomes of them where blocks move the stream over powers of L, or by factors."""
        if g.power is None or not g.sign:
            raise LimitError("what blocks do to it far from order one is not known")
        here = self.moves()[0]
        pure = g.exact and here.exact and _same(here, g)
        rising = g.slope * g.sign
        size = as_ex(BELOW * g.sign) if g.slope == 0 else (-1 - g.power) / g.slope
        stays = None if rising > 0 else self.left(g, size)
        if stays is not None:
            return stays
        if g.slope == 0:
            own = self.multiplied(g, pure)
            return own, self.beside(h) if h.slope == 0 else self.passing(g, h)
        if rising > 0:
            words = "blocks multiply it by more and more"
            return Regime("grows", g.power + 1, words=words), Regime("", words=words)
        if g.numbers and self.mixed:
            raise LimitError("which of what blocks add is larger far from order one is not known")
        own = Regime("power", size, pure)
        if h.power is None or not h.sign:
            return own, self.beside(h)
        if self.chamber.sign(h.at(size) + 1) == 0 and self.chamber.sign(h.power - g.power) == 0:
            exact = h.exact and pure and _same(self.moves()[1], h)
            return own, self.real(size, g, h, exact)
        return own, self.passing(g, h, size)

    def passing(self, g: Move, h: Move, size: Ex | None = None) -> Regime:
        """The adjoint where what blocks do to it changes as they move the stream."""
        assert g.power is not None and h.power is not None
        powers = [h.power - g.power, *([] if size is None else [h.at(size) + 1])]
        most = max(powers, key=lambda one: one.at(self.chamber.point))
        if self.chamber.sign(most) <= 0:
            return Regime("order")
        return Regime("grows" if h.sign > 0 else "shrinks" if h.sign else "", most)

    def left(self, g: Move, far: Ex) -> tuple[Regime, Regime] | None:
        """Where blocks meet what they do to a stream of another size; None: nowhere before that."""
        there, beyond = (self.moves(far + g.sign * step)[0] for step in (0, NEAR))
        if there.sign != -g.sign or there.power is None or beyond.power is None:
            return None
        slope = ((beyond.power - there.power) / (g.sign * NEAR)).constant
        if slope is None or slope == g.slope or g.power is None:
            return None
        size = (there.power - slope * far - g.power) / (g.slope - slope)
        words = "what blocks add and what they take off are of one size there"
        beside = self.balanced(size)[1]
        if beside.form == "order":  # but for the first blocks, which a stream of order one enters
            beside = Regime("", words="what the first blocks do to it is not followed")
        return Regime("power", size, words=words), beside

    def beside(self, h: Move) -> Regime:
        """The adjoint where all blocks do the same to it."""
        if h.power is None:
            return Regime("order", proved=h.exact, words="blocks keep its mean square")
        if self.chamber.sign(h.power + 1) <= 0:
            return Regime("order", proved=h.exact)
        if not h.sign:
            return Regime("", h.power + 1, words="what blocks do to it is not known")
        return self.multiplied(h, h.exact)

    def multiplied(self, by: Move, proved: bool) -> Regime:
        """A mean square that each block multiplies by one factor."""
        assert by.power is not None and by.value is not None
        form = "grows" if by.sign > 0 else "shrinks"
        nothing = by.power == Ex() and abs(1 + by.value.value) <= SURE * by.value.stderr
        if by.power == Ex() and abs(by.value.value) < NEAR_ONE:
            return Regime("", words="whether blocks keep its mean square is not told by numbers")
        if nothing or self.chamber.sign(by.power) > 0:
            return Regime(form, as_ex(1), words=POWERS, logs=True)
        return Regime(form, by.power + 1, proved, _factor(by))

    def real(self, size: Ex, g: Move, h: Move, proved: bool) -> Regime:
        """The adjoint where blocks multiply it by a power of what they multiply the stream by."""
        assert g.value is not None and h.value is not None
        if g.rough or h.rough:
            return Regime(
                "", words="its power rests on the mean of the stream, which is not followed"
            )
        ratio = _times(h.value, 1 / g.value.value)
        off = abs(ratio.value) * g.value.stderr / abs(g.value.value)
        ratio = replace(ratio, stderr=ratio.stderr + off)
        found = _times(ratio, float(size.at(self.chamber.point)))
        words = FORMULA.format(size, size, h.value.value, g.value.value)
        own = RealPower(words, found, "proved" if proved else "derived")
        return Regime("power", real=own, proved=proved)


def _bound(rest: Rest) -> Ex | None:
    """The power of L of what was not followed, where it does not vanish with the width."""
    if rest.power is None:
        return as_ex(DEPTH)
    width, depth = in_depth(rest.power)
    return depth if width >= 0 else None


def _times(value: Estimate, number: float) -> Estimate:
    return replace(
        value, value=value.value * number, stderr=value.stderr * abs(number), formula=None
    )


def _same(a: Move, b: Move) -> bool:
    """Whether two moves have one power and one number, within their errors."""
    if a.value is None or b.value is None or a.power != b.power:
        return False
    return abs(a.value.value - b.value.value) <= SURE * (a.value.stderr + b.value.stderr)


def _factor(move: Move) -> str:
    """By how much each block multiplies a mean square."""
    if move.value is None or move.power != Ex() or move.rough:
        return ""
    return f"each block multiplies its mean square by {1 + move.value.value:.6g}"


def grows_faster(fn: Fn) -> bool:
    """Whether a function may grow faster than linearly, by its form."""
    degree = degree_of(fn.expr, (ONE,) * fn.vectors, (ONE - 1,) * fn.scalars)
    return degree is None or degree > 1
