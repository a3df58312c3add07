"""Laws along the depth: how what is drawn in a repeated block depends on its repetitions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from operator import mul

from tpcalc.arrays import Array
from tpcalc.errors import EvaluationError, ProgramError, ScaleError
from tpcalc.exponents import Ex, as_ex, parse_ex
from tpcalc.sources import Source

ROUNDING = 1e-10  # eigenvalues that are 0 up to rounding, beside the largest
FINEST = 2**17  # angles at least at which a spectral density is looked at


def check_autocovariance(
    row: Array, name: str, depth: int | None, *, endless: bool = False
) -> None:
    """Refuse numbers c_0, c_1, ... whose Toeplitz matrix has a negative eigenvalue.

    Source: Levinson, Durbin: errors of prediction; without end the spectral density.

    Example:
        >>> import numpy as np
        >>> check_autocovariance(np.array([1.0, 0.6]), "c", 2)
        >>> try:
        ...     check_autocovariance(np.array([1.0, 0.6]), "c", None, endless=True)
        ... except EvaluationError as error:
        ...     print(error.message)  # 1 + 1.2 cos(t) < 0
        no endless Gaussian sequence has the autocovariance c.
    """
    if not (_density(row) if endless else _predicts(row)):
        which = ("endless ", "") if depth is None else ("", f" of {depth} numbers")
        raise EvaluationError(
            f"no {which[0]}Gaussian sequence{which[1]} has the autocovariance {name}.",
            hint="An estimate that divides all sums by the same length is one of a sequence.",
        )


def _density(row: Array) -> bool:
    import numpy as np

    density = 2 * np.fft.rfft(row, max(FINEST, 64 * len(row))).real - row[0]
    return bool(density.min() >= -ROUNDING * density.max())


def _predicts(row: Array) -> bool:
    """Whether each number is predicted by those before it with an error that is none below 0."""
    import numpy as np

    error = float(row[0]) + ROUNDING * float(2 * np.abs(row).sum() - row[0])
    predictor = np.zeros(len(row))
    for m in range(1, len(row)):
        partial = float(row[m] - predictor[: m - 1] @ row[m - 1 : 0 : -1]) / error
        if not abs(partial) < 1:
            return False
        predictor[: m - 1] -= partial * predictor[: m - 1][::-1].copy()
        predictor[m - 1] = partial
        error *= 1 - partial**2
    return True


FRESH = "fresh"
IDENTITY = (1, 0, 0, 1)
FAR = 100.0  # in lengths of a smooth law: nothing is correlated beyond


@dataclass(frozen=True, slots=True)
class Row:
    """A kind of laws along the depth, of entries of mean 0 and variance 1."""

    name: str  # its name in programs
    arguments: tuple[str, ...]  # the names of its numbers in brackets; ("...",): any number of them
    text: str  # what it is, in one line
    # covariance(lags, depth, *numbers): the autocovariance, of lags in layers
    covariance: Callable[..., Array]
    # decay(*arguments): the mu of a correlation that falls like lag^(-mu); None: faster than any
    # power that a sum over the depth feels
    decay: Callable[..., Ex | None]
    within: Callable[..., bool]  # within(*numbers): whether the numbers are possible
    source: Source  # where it is used
    # of matrices that are not random those of pairs of coordinates, the first half with the second,
    # row by row, whose sum with numbers in front n^(-1/2) W is; the numbers of 1 stand first, those
    # of t, t^2, ..., t the share of the depth, behind them; else None
    path: tuple[tuple[int, ...], ...] | None = None
    asked: bool = False  # whether its numbers may be the autocovariance of nothing


@dataclass(frozen=True, slots=True)
class Along:
    """A law along the depth with its numbers."""

    row: Row  # its kind
    arguments: tuple[Ex, ...]  # its numbers, exact, or symbols

    def __str__(self) -> str:
        shown = ", ".join(map(str, self.arguments))
        return f"{self.row.name}({shown})" if shown else self.row.name

    @property
    def fresh(self) -> bool:
        """Whether repetitions are independent."""
        return self.row.name == FRESH

    @property
    def decay(self) -> Ex | None:
        """The mu of a correlation that falls like lag^(-mu); None: it may be summed."""
        return self.row.decay(*self.arguments)

    @property
    def numbers(self) -> tuple[float, ...]:
        """Its numbers."""
        found = [value.constant for value in self.arguments]
        if None in found:
            raise ProgramError(
                f"the law {self} along the depth holds a symbol.",
                hint="Numbers need a number there: fgn(3/4).",
            )
        return tuple(float(value) for value in found if value is not None)

    def autocovariance(self, depth: int) -> Array:
        """Its correlation at the lags 0, ..., depth - 1, in a network of so many blocks.

        Example:
            >>> along_of("fgn(4/5)").autocovariance(2).round(6).tolist()
            [1.0, 0.515717]
        """
        return self.at(depth, depth)

    def at(self, lags: int, depth: int) -> Array:
        """The same at the lags 0, ..., lags - 1."""
        import numpy as np

        if self.row.path is not None:
            raise ProgramError(
                f"matrices that are {self} along the depth are not random: they have no "
                "autocovariance.",
                hint="tp.limit(..., depths=) and tp.simulate(..., depth=) take such networks at a "
                "number of blocks.",
            )
        return self.row.covariance(np.arange(lags, dtype=np.float64), depth, *self.numbers)

    def check(self, depth: int | None = None) -> None:
        """Refuse numbers that are no autocovariance.

        Args:
            depth: L; None: in networks of any depth.

        Raises:
            EvaluationError: No Gaussian sequence has them.
        """
        if self.row.asked:
            _check(self, depth)

    @property
    def mixes(self) -> bool:
        """Whether matrices that are not random are no multiples of the identity."""
        return self.row.path not in (None, (IDENTITY,))

    @property
    def coefficients(self) -> tuple[tuple[Fraction, ...], ...]:
        """Of matrices that are not random those of 1, t, t^2, ... of pairs, row by row."""
        found, path = [one.constant or Fraction(0) for one in self.arguments], self.row.path or ()
        groups = (found[k : k + len(path)] for k in range(0, len(found), len(path)))
        columns = list(zip(*path, strict=True))
        return tuple(tuple(sum(map(mul, g, c), Fraction(0)) for c in columns) for g in groups)

    def path(self, depth: int) -> Array:
        """Of matrices that are not random those of pairs, in the blocks 1, ..., depth.

        Example:
            >>> along_of("multiple(1, 1)").path(4)[:, 0, 0].tolist()  # 1 + l / L
            [1.25, 1.5, 1.75, 2.0]
        """
        import numpy as np

        return self.path_at(np.arange(1, depth + 1) / depth)

    def path_at(self, t: Array) -> Array:
        """The same at shares of the depth, shape (shares, 2, 2)."""
        import numpy as np

        terms = (t[:, None] ** k * list(map(float, m)) for k, m in enumerate(self.coefficients))
        return sum(terms, np.zeros(4)).reshape(-1, 2, 2)


@cache
def _check(law: Along, depth: int | None) -> None:
    row = law.autocovariance(len(law.arguments) if depth is None else depth)
    check_autocovariance(row, str(law), depth, endless=depth is None)


def _fresh(lags: Array, depth: int) -> Array:
    import numpy as np

    return np.where(lags == 0, 1.0, 0.0)


def _noise(lags: Array, depth: int, hurst: float) -> Array:
    """Second differences of |n|^(2H) / 2, by their series where these cancel."""
    import numpy as np

    power, n = 2.0 * hurst, np.abs(lags)
    found: Array = 0.5 * (np.abs(n + 1) ** power - 2.0 * n**power + np.abs(n - 1) ** power)
    far = n > 100
    x = 1.0 / np.where(far, n, 1.0) ** 2
    c = power * (power - 1.0) / 2.0
    more = (power - 2.0) * (power - 3.0) / 12.0
    last = more * (power - 4.0) * (power - 5.0) / 30.0
    series = c * np.where(far, n, 1.0) ** (power - 2.0) * (1.0 + x * (more + x * last))
    return np.where(far, series, found)


def _squared(lags: Array, depth: int, scale: float) -> Array:
    """(t / ell)^2, up to where exp(-x / 2) is 0."""
    import numpy as np

    found: Array = (np.minimum(lags / depth, FAR * scale) / scale) ** 2
    return found


def _smooth(lags: Array, depth: int, scale: float) -> Array:
    import numpy as np

    found: Array = np.exp(-0.5 * _squared(lags, depth, scale))
    return found


def _increments(lags: Array, depth: int, scale: float) -> Array:
    x = _squared(lags, depth, scale)
    return (1.0 - x) * _smooth(lags, depth, scale)


def _given(lags: Array, depth: int, *values: float) -> Array:
    import numpy as np

    table = np.array([*values, 0.0])
    found: Array = table[np.minimum(lags.astype(int), len(values))]
    return found


def _paper(item: str) -> Source:
    return Source("Marion, Fermanian, Biau, Vert, Scaling ResNets", item, "2206.06929")


def _path(name: str, text: str, path: tuple[tuple[int, ...], ...]) -> Row:
    words, source = f"no random matrix: sqrt(n) times {text}, t = l/L", _paper("Section 3.2")
    whole: Callable[..., bool] = lambda *c: bool(c) and len(c) % len(path) == 0  # noqa: E731
    return Row(name, ("...",), words, _smooth, lambda *c: Ex(), whole, source, path)


ROWS = (
    Row(
        FRESH,
        (),
        "independent in every repetition",
        _fresh,
        lambda: None,
        lambda: True,
        _paper("Assumption A1"),
    ),
    Row(
        "fgn",
        ("H",),
        "fractional Gaussian noise of Hurst exponent H, of variance 1",
        _noise,
        lambda hurst: 2 - 2 * hurst,
        lambda hurst: 0 < hurst <= 1,
        _paper("Section 4.1"),
    ),
    Row(
        "rbf",
        ("ell",),
        "a smooth Gaussian process of l/L with the covariance exp(-t^2 / (2 ell^2))",
        _smooth,
        lambda scale: Ex(),
        lambda scale: scale > 0,
        _paper("Section 3.2"),
    ),
    Row(
        "rbf_increments",
        ("ell",),
        "increments of such a process, of variance 1: the covariance "
        "(1 - t^2 / ell^2) exp(-t^2 / (2 ell^2))",
        _increments,
        lambda scale: Ex(),
        lambda scale: scale > 0,
        _paper("Section 3.2"),
    ),
    Row(
        "given",
        ("...",),
        "a Gaussian sequence with the autocovariance 1, c_1, c_2, ..., 0 beyond the last",
        _given,
        # Sums of what is a difference stay of order one, as those of fgn(H) do for H -> 0.
        lambda one, *values: as_ex(2) if one + 2 * sum(values, Ex()) == Ex() else None,
        lambda *values: bool(values) and values[0] == 1,
        _paper("Section 4.1"),
        asked=True,
    ),
    _path("multiple", "(c_0 + c_1 t + ...) times the identity", (IDENTITY,)),
    _path(
        "turn",
        "(c_0 + c_1 t + ...) times the turn (x, y) -> (y, -x) of pairs, halves of the coordinates",
        ((0, 1, -1, 0),),
    ),
    _path(
        "pairs",
        "a matrix of pairs, halves of the coordinates: four entries, then those of t, t^2, ...",
        ((1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1)),
    ),
)
ALONG = {row.name: row for row in ROWS}


@cache
def along_of(text: str) -> Along:
    """The law that a text names: ``fresh``, ``fgn(3/4)``, ``rbf(1/10)``.

    Example:
        >>> print(along_of("fgn(0.75)"))
        fgn(3/4)
    """
    name, bracket, rest = text.strip().partition("(")
    if name not in ALONG:
        raise ProgramError(
            f"there is no law {text!r} along the depth.", hint=f"Laws: {', '.join(_forms())}."
        )
    row = ALONG[name]
    parts = rest.removesuffix(")").split(",") if bracket else []
    try:
        arguments = tuple(map(parse_ex, parts))
    except ScaleError as error:
        raise ProgramError(f"{text!r} is no law along the depth: {error.message}") from None
    constants = [value.constant for value in arguments]
    right = len(arguments) == len(row.arguments) or row.arguments == ("...",)
    right = right and bool(bracket) == rest.endswith(")")
    if right and (None in constants or row.within(*constants)):
        return Along(row, arguments)
    raise ProgramError(
        f"{text!r} is no law along the depth: {row.text}.",
        hint=f"Write {_form(row)}; 0 < H <= 1, ell > 0, an autocovariance begins with 1; a path "
        "has coefficients.",
    )


def _form(row: Row) -> str:
    return f"{row.name}({', '.join(row.arguments)})" if row.arguments else row.name


def _forms() -> list[str]:
    return [_form(row) for row in ROWS]
