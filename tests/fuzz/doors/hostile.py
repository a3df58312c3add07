"""Values that nothing should be asked to take: as texts, as TOML, as objects, as places."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

# ------------------------------------------------------------------------------------- as texts

NUMBERS = (
    "0", "-1", "1/2", "-1/2", "1/0", "0/0", "nan", "-nan", "inf", "-inf", "1e400", "-1e400",
    "1e-400", "1e308", "1e300", "1e-300", "1e999999999", "-1e999999999", "1e-999999999",
    "9" * 5000, "-" + "9" * 5000, "0." + "3" * 5000, "1/" + "7" * 5000, "1" + "0" * 9,
    "1" + "0" * 12, "1" + "0" * 18, "1" + "0" * 20, "1" + "0" * 30, "1" + "0" * 310, "1_000",
    "0x10", "0b1", "1e", "1.2.3", "--1", "+1", " 1", "1 ", "1,", "٣", "²", "½", "1\u2009000",
    "９", "Ⅷ", "1j", "True", "None", "1e1e1", "9223372036854775807", "9223372036854775808",
    "-9223372036854775809", "18446744073709551616", "4294967296", "0.1e-18", "1**9", "2^63",
)  # fmt: skip
POWERS = (
    "((9**999)**999)**999", "2**2**2**2**2**2", "9^9^9^9", "a**(10**12)", "n^(1/0)", "n^(n)",
    "n^(1e999999999)", "x**100000000000000", "(1+a)**1000000", "(a+c)*(a+c)*(a+c)*(a+c)",
    "ac:0,1/2,((9**999)**999)**999*a;c", "ac:0,1e999999999,1;0", "ac:;", "ac:" + "0," * 5000,
    "ac:a,b,c,d;e,f", "ac:0,1/0;1", "given(1,2)", "given(1,-2,9)", "given()", "rbf(1e-300)",
    "rbf(1e400)", "rbf(0)", "fgn(2)", "fgn(1e999999999)", "multiple(1e400,1)", "turn(nan)",
    "leaky_relu:1e999999999", "leaky_relu:nan", "relu^1e999999999", "relu^-1", "relu^1/0",
    "relu^" + "9" * 5000, "relu^1000000", "sawtooth:0", "hermite:1000000000", "adam(b1=2)",
    "adam(b1=nan)", "adamw(decay=-1)", "adam(lr=1e999999999)", "adam(", "adam()()", "sgd(x=1)",
    "adam(eps=0)", "adam(eps=n^(1/0))", "warmup:0", "warmup:1000000000000", "warmup:1e999999999",
    "cosine,cosine,cosine", "warmup:-1,linear", "linear:nan", "hidden: lr=nan", ": lr=5",
    "hidden: lr=1 lr=5", "hidden: lr", "hidden:", "*: power=1e999999999", "[: lr=1", "a=0:1",
    "a=1:0", "a=0:0", "a=nan:1", "a=0:1e999999999", "=0:1", "a=", "a=1/2", "f[0,0]=nan",
    "f[0,0]=1e400", "f[9,9]=1", "x:4x8", "x:0x8", "x:1000000000000x8", "x:4x8:vocab=0", "x:nxn",
    "x:4x8:vocab=1000000000000000", "tokens:8x16:vocab=50", "x:" + "1x" * 5000 + "1", "x:٣",
    "1e-3:10", "10:1e-3", "1:2:1000000000000", "1:2:0", "0:1:3", "a:b:c", "-1:1:3", "1e300:1e308",
    "2,oo", "oo", "oo,oo", "L", "L,2", "1,1,1", "1,2,", "depth=1,2", "depth=", "nosuch=1",
    "depth=" + "1," * 5000 + "1", "depth=1000000000", "steps=1e999999999", "model.depth=1|2",
)  # fmt: skip
WORDS = (
    "", " ", "-", "--", "---x", ",", ",,,", ":", "=", ";", "|", "*", "[", "(", "%s%n", "{}", "$(x)",
    "a\0b", "\0", "\udc80", "\ud800", "\x1b[31mred", "a\nb", "a\tb", "<b>&", "💥", "\u202eabc",
    "x" * 200_000, "[" * 5000, "(" * 5000 + ")" * 5000, "a," * 5000, "-" * 5000, "../../x", "~",
    "nosuch", "relu", "mlp", "mup", "resnet", "rnn", "identity", "None", "true", "n", "a", "c",
    "é" * 300, "f[0,0]", "f*", "-f*", "**", "[!", "f[2,16:]", "cuda", "cpu", "cuda:99", "mps",
    "tcp://127.0.0.1:1", "tcp://", "digits", "mixture", "mnist:folder", "cifar10:folder",
    "mnist:nosuch", "mixture:x", "@", "'", '"', "\\", "a.b.c", "__import__('os')", "lambda: 1",
)  # fmt: skip
TEXTS = (*NUMBERS, *NUMBERS, *POWERS, *WORDS)

# -------------------------------------------------------------------------------------- as TOML

LITERALS = (
    "nan", "inf", "-inf", "1e400", "1e308", "-1e308", "1e-320", "0", "-1", "1.5", "true", "false",
    "9" * 4000, "9" * 5000, "1" + "0" * 12, "1" + "0" * 18, "1" + "0" * 19, "1" + "0" * 30, "1000000000",
    "[]", "{}", "[[]]", "[[[]]]", "[1, 'a']", "[nan]", "[[1.0, nan]]", "[[1.0], [1.0, 2.0]]",
    "[" * 90 + "]" * 90, "[" * 5000 + "]" * 5000, "''", "' '", "'nosuch'", "'nan'", "'1/2'",
    "'1/0'", "'1e999999999'", "'1e400'", "'\\u0000'", '"\\u0000"', '"a\\u0000b"', "'" + "x" * 200_000 + "'",
    "{a = 1}", "{a = {a = {a = 1}}}", "{'' = 1}", "{'*' = {lr = nan}}", "{'[' = {lr = 1}}",
    "{hidden = {lr = -1}}", "{hidden = {nosuch = 1}}", "{hidden = 1}", "1979-05-27", "07:32:00",
    "1979-05-27T07:32:00Z", "[1979-05-27]", "0x10", "[1e308]", "[1000000000000]", "[-1]", "['oo']",
    "['L']", "'L'", "'oo'", "'2,oo'", "[1, 1]", "'net.py:net'", "'net.py:nosuch'", "'nosuch.py:net'",
    "'fifo'", "'zero.csv'", "'folder'", "'big.csv'", "'latin.csv'", "'fifo.opt'", "'zero.py:net'",
    "'" + "9" * 5000 + "'", "'((9**999)**999)**999'", "'ac:0,1/2,1;1/0'", "'relu^1e999999999'",
    "'given(1,2)'", "'rbf(1e-300)'", "'adam(b1=2)'", "'warmup:1000000000000'", "[1.0, 0.0, -1.0]",
    "['" + "', '".join("a" * 500) + "']", "[" + "1, " * 5000 + "1]", "'x" + "(" * 3000 + "'", "'٣'",
)  # fmt: skip

# ------------------------------------------------------------------------------------ as places

GARBAGE = bytes(range(256)) * 4
SPECIAL: dict[str, Callable[[Path], object]] = {
    "fifo": os.mkfifo,
    "zero": lambda path: path.symlink_to("/dev/zero"),
    "full": lambda path: path.symlink_to("/dev/full"),
    "random": lambda path: path.symlink_to("/dev/random"),
    "loop": lambda path: path.symlink_to(path.name),
    "dangling": lambda path: path.symlink_to("nowhere/x"),
    "folder": Path.mkdir,
    "empty": lambda path: path.write_bytes(b""),
    "blank": lambda path: path.write_bytes(b" \n\t\n"),
    "null": lambda path: path.write_bytes(b"a = 1\0\n"),
    "latin": lambda path: path.write_bytes(b"a,b,\xe9\n1,2,3\n"),
    "bom": lambda path: path.write_bytes(b"\xff\xfea\0=\0"),
    "garbage": lambda path: path.write_bytes(GARBAGE),
    "deep": lambda path: path.write_text("a = " + "[" * 50_000),
    "braces": lambda path: path.write_text('{"a":' * 50_000),
    "digits": lambda path: path.write_text('{"a": ' + "9" * 5000 + "}"),
    "dots": lambda path: path.write_text("a" + ".a" * 20_000 + " = 1"),
    "line": lambda path: path.write_text("x" * 2_000_000),
    "big": lambda path: os.truncate(_made(path), 2**33),
    "socket": lambda path: _bound(path),
}
DEVICES = ("/dev/zero", "/dev/full", "/dev/null", "/dev/random", "/proc/self/mem", "/proc", "/")


def _made(path: Path) -> Path:
    path.touch()
    return path


def _bound(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(path))


def places(text: str, folder: Path) -> None:
    """Make what a text names: ``fifo.csv`` is a pipe, ``big.toml`` a file of 8 GiB."""
    for name, make in SPECIAL.items():
        start = 0
        while (start := text.find(name, start)) >= 0:
            end = start + len(name)
            while end < len(text) and (text[end].isalnum() or text[end] == "."):
                end += 1
            path = folder / text[start:end].removesuffix(".")
            start = end
            if len(path.name) < 100 and not os.path.lexists(path):
                make(path)


# ----------------------------------------------------------------------------------- as objects


class Own(Exception):
    """What objects of a user raise."""


def _own(*_: object, **__: object) -> Any:
    raise Own("of the user")


class Unspeakable(Own):
    __str__ = __repr__ = _own


def _unspeakable(*_: object, **__: object) -> Any:
    raise Unspeakable


class BadRepr:
    __repr__ = __str__ = _own


class BadIndex:
    __index__ = __int__ = __float__ = _own


class BadIter:
    __iter__ = _own


class BadLen(list):  # type: ignore[type-arg]
    __len__ = _own


class BadHash:
    __hash__ = _own  # type: ignore[assignment]
    __eq__ = _own


class BadBool:
    __bool__ = _own


class BadAttributes:
    def __getattr__(self, name: str) -> Any:
        raise Own(name)


class BadArray:
    __array__ = _own
    to_numpy = _own


class BadPath(os.PathLike):  # type: ignore[type-arg]
    __fspath__ = _own


class Text(str):
    """A text of a type of its own."""


class Whole(int):
    """A number of a type of its own."""


def nested(depth: int) -> list[Any]:
    found: list[Any] = []
    for _ in range(depth):
        found = [found]
    return found


def _endless() -> Iterator[int]:
    yield 1
    raise Own("an iterator")


def _circle() -> list[Any]:
    found: list[Any] = []
    found.append(found)
    return found


OBJECTS: dict[str, Callable[[], Any]] = {
    **{repr(value): (lambda value=value: value) for value in (
        None, True, False, 0, -1, 1, 2, 3.5, 10**9, 10**12, 10**20, 10**30, 2**63, 2**64, -(2**63), 0.0, -0.0,
        1e-320, 1e300, 1e308, 1j, b"", b"a\0", (), [], {}, [[]], [1, "a"], [None], {"a": 1}, {1: 2},
        {"": 0}, [float("nan")], [[1.0], [1.0, 2.0]], "", " ", "nosuch", "nan", "1/2", "1/0", "1e400", "a\0b",
        "\ud800", "f[0,0]", "relu", "oo", "L", "cuda:99", "mup", "fifo", "zero.csv", "folder", "/dev/full",
        [10**12], [0], [-1], ["oo"], [1e308, 1e308], "../x", "٣", "x.html", "1e999999999",
    )},
    "nan": lambda: float("nan"),
    "inf": lambda: float("inf"),
    "-inf": lambda: float("-inf"),
    "10**400": lambda: 10**400,
    "10**5000": lambda: 10**5000,
    "Fraction(1, 10**400)": lambda: Fraction(1, 10**400),
    "Fraction(10**400)": lambda: Fraction(10**400),
    "Decimal('1e400')": lambda: Decimal("1e400"),
    "Decimal('1e999999')": lambda: Decimal("1e999999"),
    "Decimal('nan')": lambda: Decimal("nan"),
    "'x' * 200000": lambda: "x" * 200_000,
    "'9' * 5000": lambda: "9" * 5000,
    "'[' * 5000": lambda: "[" * 5000,
    "'((9**999)**999)**999'": lambda: "((9**999)**999)**999",
    "nested(3000)": lambda: nested(3000),
    "circle": _circle,
    "set": lambda: {1, 2},
    "object()": object,
    "object": lambda: object,
    "len": lambda: len,
    "lambda": lambda: lambda: 1,
    "raises": lambda: _own,
    "raises unspeakable": lambda: _unspeakable,
    "returns nan": lambda: lambda *_, **__: float("nan"),
    "returns None": lambda: lambda *_, **__: None,
    "exits": lambda: lambda *_, **__: [].nosuch,  # type: ignore[attr-defined]
    "itself": lambda: lambda *given, **__: given[0] if given else None,
    "range(10**12)": lambda: range(10**12),
    "iterator": _endless,
    "Path('a\\0')": lambda: Path("a\0"),
    "Path('fifo')": lambda: Path("fifo"),
    "module": lambda: os,
    "TPC": lambda: __import__("tpcalc"),
    "n": lambda: __import__("tpcalc").n,
    "tanh": lambda: __import__("tpcalc").tanh,
    "MLP(2)": lambda: __import__("tpcalc").MLP(2),
    "np.nan": lambda: np.float64("nan"),
    "np.int8(3)": lambda: np.int8(3),
    "np.float32(1e38)": lambda: np.float32(1e38),
    "np.array([])": lambda: np.array([]),
    "np.array(1.5)": lambda: np.array(1.5),
    "np complex": lambda: np.ones((3, 2), complex),
    "np masked": lambda: np.ma.masked_array(np.ones((3, 2)), True),
    "np half masked": lambda: np.ma.masked_array([1.0, 2.0], [True, False]),
    "np object": lambda: np.array([None, "a", 1], object),
    "np text": lambda: np.array(["a", "b"]),
    "np nan": lambda: np.array([[1.0, np.nan], [0.0, 1.0]]),
    "np 1e200": lambda: np.full((4, 3), 1e200),
    "np bool": lambda: np.array([True, False]),
    "np dates": lambda: np.array(["2020-01-01"], "datetime64[D]"),
    "np record": lambda: np.zeros(2, [("a", float)]),
    "np 4d": lambda: np.ones((2, 2, 2, 2)),
    "np wide": lambda: np.broadcast_to(0.5, (10**10, 3)),
    "np zeros": lambda: np.zeros((3, 3)),
    "BadRepr": BadRepr, "BadIndex": BadIndex, "BadIter": BadIter, "BadLen": BadLen,
    "BadHash": BadHash, "BadBool": BadBool, "BadAttributes": BadAttributes, "BadArray": BadArray,
    "BadPath": BadPath, "Text": lambda: Text("relu"), "Whole": lambda: Whole(3),
    "[BadRepr]": lambda: [BadRepr()], "[BadIndex]": lambda: [BadIndex()],
}  # fmt: skip
NAMES = tuple(OBJECTS)

# ----------------------------------------------------------------------------------- in files

PIECES = (
    b"\0", b"\xff", b"\xed\xa0\x80", b"\r", b"\n", b"\n\n", b"[", b"]", b"{", b"}", b'"', b"'", b",", b"=",
    b"#", b"9" * 5000, b"[" * 5000, b"{" * 5000, b"a." * 200, b"1e999999999", b"nan", b"-", b"\xef\xbb\xbf", b"%",
    b"\xd9\xa3", b"(" * 3000, b"^", b"**", b"/0", b" ", b"\\u0000", b"\\ud800", b"x" * 200_000, b":", b"null", b"1e400",
)  # fmt: skip
TOKENS = (
    "%0", "%9", "%-1", "%" + "9" * 5000, "%1000000000000", "n", "m", "0", "-1", "1/0", "nan", "1e400", "1e999999999", "map",
    "output", "dim", "gaussian", "matrix", "{", "}", "(", ")", '"a"', '""', '"\ud800"', '"\0"', '"' + "y" * 200_000 + '"', "x0**100000000000000",
    "{x0**100000000000000}", "{(1+x0)**1000000}", "{x0/0}", "{((x0**999)**999)**999}", "{" + "(" * 3000 + "x0" + ")" * 3000 + "}", "{x9}",
    "{1e999999999*x0}", "{nan}", "n^(1/0)", "n^(1e999999999)", "n**(-1/2)", "n^(9" + "9" * 400 + ")", "a", "T", "@", "tpcalc", "program", "2", "3",
    "{" + "x0+" * 20_000 + "x0}", "{" + "tanh(" * 500 + "x0" + ")" * 500 + "}", "{x0**x0}", "{relu^1000000(x0)}", "{sqrt(x0)}", "mean", "٣",
)  # fmt: skip


def odd_array(rng: Random) -> Any:
    return rng.choice([
        lambda: np.ones((6, 2, 2), complex), lambda: np.array(["a"]), lambda: np.zeros((0, 3)), lambda: np.array(1.0), lambda: np.full((5, 3), np.nan),
        lambda: np.full((5, 3), 1e200), lambda: np.full((5, 3), 1e308), lambda: np.zeros((5, 3)), lambda: np.ones((1, 1)), lambda: np.ones((3, 1, 1, 1, 1)),
        lambda: np.array([None, 1], object), lambda: np.ones(4, bool), lambda: np.ones((4, 2), np.float16), lambda: np.array([2**62] * 4),
        lambda: np.zeros(3, [("a", float)]), lambda: np.ones((40, 3), np.longdouble), lambda: np.array(["2020"], "M8[D]"), lambda: np.full((5, 3), 1e-320),
        lambda: np.ones((200_000, 1)), lambda: np.eye(30), lambda: np.ones((2, 3), ">f8"), lambda: np.asfortranarray(np.ones((4, 5))),
    ])()  # fmt: skip
