"""Numbers as text: a value with its error, to the digits that the error allows."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from tpcalc.results import PLAIN, Estimate, Exponent, Method, Status

ERRORS = (
    "± is one standard error where the method is particles or finite, a bound on the error where "
    "it is quadrature."
)
"""What the number after ± is."""
SETTLED = "Numbers without an error are right to the digits shown."
"""What stands under tables of ``settled`` numbers."""

_SAMPLED = (Method.PARTICLES.value, Method.FINITE.value)
_SETTLED = 1e-7  # relative error that six digits do not show
_MOST = 9  # digits of a number whose error is too small to be seen in them
_CLOSED = 6  # digits of a closed form
# Below this a float64 average of terms of order one is rounding, not a result.
_ROUNDING = 1e-13
_DIGITS = str.maketrans("0123456789-/", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻ᐟ")
_SCIENTIFIC = re.compile(r"(?<=[\d)])e([+-]?)0*(\d+)")
_POWER = re.compile(r"\^\(?(-?\d+(?:[./]\d+)?|s\b)\)?")
_FORMULA = re.compile(r"\^\(([^()]*[A-Za-z][^()]*)\)")
_RAISED = re.compile(r"\*\*(\d+)")
_REMARK = re.compile(r" \(((?:standard )?error [^()]*)\)")
_MINUS = re.compile(r"(?<![\w.)])-(?=[\d.∞])")


@dataclass(frozen=True, slots=True)
class Measure:
    """A number to be printed."""

    value: float  # the number; the mean where the quantity is random
    # one standard error where it was sampled, a bound on the error by quadrature and on the
    # rounding of a closed form; NaN if unknown
    stderr: float
    method: str = ""  # how it was found, in a word; empty if unknown
    sd: float | None = None  # standard deviation of a quantity that is random in the limit
    missed: bool = False  # whether an error target was set and not met
    formula: str | None = None  # a closed form
    sd_error: float | None = None  # its error; None where it is not known

    @staticmethod
    def of(estimate: Estimate) -> Measure:
        """What a report prints of an estimate."""
        return Measure(
            estimate.value,
            estimate.stderr,
            estimate.method.value,
            estimate.std,
            estimate.status is Status.TOLERANCE_NOT_REACHED,
            estimate.formula,
            estimate.std_error,
        )

    @property
    def finite(self) -> bool:
        """Whether the value is a number that can be drawn."""
        return math.isfinite(self.value)


def counted(number: int, word: str) -> str:
    """How many things there are, in words.

    Example:
        >>> counted(1, "step"), counted(2000, "input")
        ('1 step', '2000 inputs')
    """
    return f"{count(number)} {word}{'' if number == 1 else 's'}"


def plain(value: float, digits: int = 6) -> str:
    """A number without error, to some significant digits.

    Example:
        >>> plain(0.25), plain(1 / 3, 3), plain(12345678.0, 3)
        ('0.25', '0.333', '1.23e7')
    """
    if math.isnan(value):
        return "not a number"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    text = f"{value:.{digits}g}"
    if "e" not in text:
        return "0" if text == "-0" else text
    mantissa, exponent = text.split("e")
    return f"{mantissa}e{int(exponent)}"


def measured(measure: Measure, symbol: str = "") -> str:
    """A number with its error; a sampled zero is never printed as a bare 0.

    Example:
        >>> measured(Measure(0.318412, 0.00124, "particles"))
        '0.3184 ± 0.0012'
        >>> measured(Measure(0.0, 1e-4, "particles"))
        '0 ± 1e-4'
        >>> measured(Measure(0.0, 0.0, "particles"), "f")
        '|f| < 1e-13'
        >>> measured(Measure(0.0, 0.0, "exact"))
        '0'
        >>> measured(Measure(0.287785755, 8.5e-15, "quadrature"))
        '0.287785755 (error < 1e-14)'
        >>> measured(Measure(0.0, 0.02, "particles", sd=1.4142))
        'random in the limit, sd = 1.414, mean 0 ± 0.02'
    """
    if measure.sd is None:
        text = _centre(measure, symbol)
    else:
        sd = spread(measure.sd, measure.sd_error)
        text = f"random in the limit, sd = {sd}, mean {mean_of(measure)}"
    return text + " †" if measure.missed else text


def shown(estimate: Estimate | None) -> str:
    """A number with its error; nothing where there is none."""
    return "" if estimate is None else measured(Measure.of(estimate))


def settled(estimate: Estimate) -> str:
    """A number in a table of many: six digits, with its error only where that shows in them.

    Example:
        >>> settled(Estimate(0.287785755, 8.5e-15, Method.QUADRATURE))
        '0.287786'
        >>> settled(Estimate(0.287785755, 1e-4, Method.QUADRATURE))
        '0.28779 ± 0.00010'
        >>> settled(Estimate(0.0, 0.0, Method.PARTICLES))  # samples alone prove no zero
        '0 ± 0 (sampled)'
    """
    if estimate.stderr == 0 and estimate.method.value in _SAMPLED and estimate.std is None:
        return f"{plain(estimate.value)} ± 0 (sampled)"
    if estimate.std is None and estimate.stderr <= _SETTLED * abs(estimate.value):
        return plain(estimate.value)
    return measured(Measure.of(estimate))


def mean_of(measure: Measure) -> str:
    """The mean of a quantity that is random, which has a size beside its mean.

    Example:
        >>> mean_of(Measure(0.0, 0.0, "quadrature", sd=0.4378))
        '0'
    """
    if measure.value == measure.stderr == 0:
        return "0"
    text = _centre(measure, "")
    return "0 ± 1e-13" if text.startswith("<") else text


def _centre(measure: Measure, symbol: str) -> str:
    value, stderr = measure.value, measure.stderr
    if not math.isfinite(value):
        return plain(value)
    if not math.isfinite(stderr):
        return f"{plain(value, 4)} ± ?"
    if measure.method == Method.EXACT.value and _unseen(value, stderr, _CLOSED):
        number = plain(value)
        return number if measure.formula in (None, number) else f"{measure.formula} = {number}"
    if stderr == 0 and not measure.method:
        return plain(value)
    if abs(value) + stderr <= _ROUNDING and abs(value) <= (5 * stderr or _ROUNDING):
        return f"|{symbol}| < 1e-13" if symbol else "< 1e-13"
    if stderr == 0:
        return plain(value)
    if value == 0:
        return f"0 ± {_alone(stderr)}"
    if _unseen(value, stderr, _MOST):
        if measure.method in _SAMPLED:
            return f"{plain(value, _MOST)} (standard error {_alone(stderr)})"
        return f"{plain(value, _MOST)} (error < 1e{math.floor(math.log10(stderr)) + 1})"
    return _with_error(value, stderr)


def _unseen(value: float, error: float, digits: int) -> bool:
    """Whether an error is below half a unit of the last of so many digits."""
    if error == 0 or value == 0:
        return error == 0
    return error < 0.5 * 10.0 ** (math.floor(math.log10(abs(value))) - digits + 1)


def _alone(stderr: float) -> str:
    if stderr >= 1e-3:
        return plain(stderr, 2)
    mantissa, exponent = f"{stderr:.1e}".split("e")
    return f"{mantissa.removesuffix('.0')}e{int(exponent)}"


def _with_error(value: float, stderr: float) -> str:
    error = f"{stderr:.1e}"  # two digits; rounding 0.0996 up moves the exponent too
    if not math.isfinite(float(error)):  # rounded beyond the floating-point range
        return f"{plain(value, 9)} ± {plain(stderr, 2)}"
    last = int(error.split("e")[1]) - 1
    first = math.floor(math.log10(max(abs(value), float(error))))
    if first - last > 9 or first < -290:
        return f"{plain(value, 9)} ± {plain(stderr, 2)}"
    if first < -4 or first >= 6:  # as one power of ten
        places = max(first - last, 0)
        scaled, spread = value / 10.0**first, float(error) / 10.0**first
        return f"({_fixed(scaled, places)} ± {spread:.{places}f})e{first}"
    places = max(-last, 0)
    if places > 7:
        return f"{_fixed(value, places)} ± {plain(stderr, 2)}"
    return f"{_fixed(round(value, -last), places)} ± {float(error):.{places}f}"


def _fixed(value: float, places: int) -> str:
    text = f"{value:.{places}f}"
    return text.lstrip("-") if float(text) == 0 else text


def spread(sd: float, error: float | None) -> str:
    """A standard deviation with its own error.

    Args:
        sd: The standard deviation.
        error: Its error; None: not known.

    Example:
        >>> spread(1.25, 0.15625), spread(1.25, None)
        ('1.25 ± 0.16', '1.25')
    """
    if not math.isfinite(sd) or (error is not None and math.isnan(error)):
        return "?"
    if error is None or error <= _SETTLED * sd:
        return plain(sd, 4)
    return measured(Measure(sd, error, Method.FINITE.value))


def over_seeds(sd: float, seeds: int) -> str:
    """A standard deviation over seeds, with its sampling error for Gaussian values.

    Example:
        >>> over_seeds(1.25, 33), over_seeds(0.0, 1)
        ('1.25 ± 0.16', '?')
    """
    return spread(sd, sd / math.sqrt(2 * (seeds - 1)) if seeds > 1 else math.nan)


def with_power(text: str, n_power: Exponent) -> str:
    """Put the power of n that was taken out in front of a number.

    Example:
        >>> [with_power("0.50 ± 0.01", Exponent.of(power)) for power in ("-1", "-1/2", "0")]
        ['n^-1 × (0.50 ± 0.01)', 'n^(-1/2) × (0.50 ± 0.01)', '0.50 ± 0.01']
        >>> with_power("0.693169511 (error < 1e-13)", Exponent.of("-1"))
        'n^-1 × (0.693169511, error < 1e-13)'
    """
    if n_power in (PLAIN, Exponent()):
        return text
    text = _REMARK.sub(r", \1", text)
    return f"{n_power.raised('n')} × " + (f"({text})" if " " in text else text)


def score(z: float) -> str:
    """A z-score: one decimal, fewer where it is large.

    Example:
        >>> score(1.26), score(-0.04), score(251.7), score(float("inf"))
        ('1.3', '0.0', '252', '∞')
    """
    if not math.isfinite(z):
        return plain(z)
    if abs(z) >= 1e5:
        return plain(z, 2)
    return _fixed(z, 0 if abs(z) >= 100 else 1)


def scores(seeds: int) -> str:
    """What z is, of means over so many seeds."""
    return (
        f"z: difference from the limit in combined standard errors over {count(seeds)} seeds, "
        "reduced to those of a Gaussian with the same tail (Student's t)."
    )


def count(number: int) -> str:
    r"""A whole number, grouped by thousands from five digits on.

    Example:
        >>> count(4096), count(1048576)
        ('4096', '1\u202f048\u202f576')
    """
    return str(number) if abs(number) < 10_000 else f"{number:,}".replace(",", "\u202f")


def duration(seconds: float) -> str:
    """A span of time in words.

    Example:
        >>> duration(0.0123), duration(12.34), duration(125)
        ('0.012 s', '12 s', '2 min 5 s')
    """
    if seconds < 60:
        return f"{plain(seconds, 2)} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min"


def superscript(text: str) -> str:
    """Digits and signs in raised letters, for axis labels.

    Example:
        >>> superscript("-12")
        '⁻¹²'
    """
    return text.translate(_DIGITS)


def typeset(text: str) -> str:
    """Set an already escaped number for a page: true minus signs, powers raised.

    Example:
        >>> typeset("n^-1 × (-2.0 ± 1.1)e-7")
        'n<sup>−1</sup> × (−2.0 ± 1.1)×10<sup>−7</sup>'
        >>> typeset("&lt;= n^(1/2 - 3*a**2)")
        '≤ n<sup>1/2 − 3·a²</sup>'
    """

    def formula(match: re.Match[str]) -> str:
        inner = _RAISED.sub(lambda power: superscript(power[1]), match[1])
        return f"<sup>{inner.replace('-', '−').replace('*', '·')}</sup>"

    def power_of_ten(match: re.Match[str]) -> str:
        sign = "−" if match[1] == "-" else ""
        return f"×10<sup>{sign}{match[2]}</sup>"

    text = _SCIENTIFIC.sub(power_of_ten, text.replace("&lt;=", "≤").replace("&gt;=", "≥"))
    text = _FORMULA.sub(formula, text)
    text = _POWER.sub(lambda match: f"<sup>{match[1].replace('-', '−')}</sup>", text)
    return _MINUS.sub("−", text)
