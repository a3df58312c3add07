"""Result names in words: ``h[2,4,0]`` is h₂ at step 4 on input 0."""

from __future__ import annotations

from tpcalc.names import Name

_LOW = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
_SYMBOLS = {"chi": "χ", "dW_x": "ΔW x", "dB": "ΔB"}
_STATISTICS = {"value": "", "mean": "mean", "second_moment": "mean square"}


def symbol(key: Name) -> str:
    """The letter of a quantity with its layer.

    Example:
        >>> [symbol(Name.of(name)) for name in ("h[12,0,0]", "f[1,0]", "dW_x[3,1,0]")]
        ['h₁₂', 'f', 'ΔW₃ x']
    """
    letter = _SYMBOLS.get(key.word, key.word)
    if key.number is None or key.since:
        return letter
    low = str(key.number).translate(_LOW)
    return f"ΔW{low} x" if key.word == "dW_x" else letter + low


def quantity(key: Name, statistic: str) -> str:
    """What was measured, without step and input.

    Example:
        >>> quantity(Name.of("h[2,4,0]"), "second_moment"), quantity(Name.of("f[4,0]"), "value")
        ('mean square of h₂', 'f')
    """
    word = _STATISTICS.get(statistic, statistic)
    return f"{word} of {symbol(key)}" if word else symbol(key)


def place(key: Name, inputs: tuple[str, ...] = ()) -> str:
    """The input (and output) of a quantity, in words; empty if it has none.

    Example:
        >>> place(Name.of("f[4,0,2]")), place(Name.of("f[4,1]"), ("first", "a query"))
        ('input 0, output 2', 'a query')
    """
    if key.input is None:
        return ""
    word = inputs[key.input] if 0 <= key.input < len(inputs) else f"input {key.input}"
    return word if key.output is None else f"{word}, output {key.output}"


def index(key: Name, inputs: tuple[str, ...] = ()) -> str:
    """The same for a column that is headed "Input": a number alone where it has no name.

    Example:
        >>> index(Name.of("f[4,0,2]")), index(Name.of("f[4,1]"), ("first", "a query"))
        ('0, output 2', 'a query')
    """
    return place(key, inputs).removeprefix("input ") if key.input is not None else ""


def sentence(key: Name, statistic: str, inputs: tuple[str, ...] = ()) -> str:
    """A quantity in full.

    Example:
        >>> sentence(Name.of("h[2,4,0]"), "second_moment")
        'mean square of h₂ at step 4, input 0'
    """
    text = quantity(key, statistic)
    if key.step is not None:
        text += f" at step {key.step}"
    where = place(key, inputs)
    return f"{text}, {where}" if where else text
