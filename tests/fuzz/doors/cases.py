"""Cases of the doors by family and seed: a small question, and one to three things wrong with it."""

from __future__ import annotations

import copy
import io
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

import numpy as np
import typer
from pydantic import BaseModel

import tpcalc as tp
from tests.fuzz.doors import bases
from tests.fuzz.doors.hostile import DEVICES, LITERALS, PIECES, SPECIAL, TEXTS, TOKENS, odd_array
from tpcalc.cli.app import app
from tpcalc.experiments.plans import DepthFile
from tpcalc.experiments.settings import ExperimentFile
from tpcalc.study.schema import Study

LIMITS = {"--most-seconds": "2", "--memory": "700MiB"}
EXTENSIONS = ("", ".toml", ".json", ".csv", ".npy", ".txt", ".opt", ".py:net", ".html", ".npz")


@dataclass
class Case:
    """One case.

    Args:
        family: What it is a mutation of.
        seed: Its number.
        words: What is typed after ``tpcalc``; of Python nothing.
        files: What lies in its folder.
        code: Lines of Python, of those of Python.
        real: Whether it is a process of its own.
    """

    family: str
    seed: int
    words: list[str] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    code: str = ""
    real: bool = False

    @property
    def name(self) -> str:
        return f"{self.family}:{self.seed}"

    def __str__(self) -> str:
        told = " ".join(_short(repr(word)) if _odd(word) else word for word in self.words)
        lines = [
            f"{self.name}: {'python' if self.code else 'tpcalc'} {told}{_short(self.code, 400)}"
        ]
        lines += [
            f"    {name}: {_short(repr(text), 600)}"
            for name, text in self.files.items()
            if any(name in word for word in self.words) or self.family != "commands"
        ]
        return "\n".join(lines)


def _odd(word: str) -> bool:
    return not word.isascii() or not word.isprintable() or " " in word or not word or len(word) > 80


def _short(text: str, most: int = 80) -> str:
    return text if len(text) <= most else f"{text[: most - 30]}...({len(text)})"


# ------------------------------------------------------------------------------------- commands


@cache
def commands() -> dict[str, Any]:
    """The commands as typer reads them, by name."""
    return dict(typer.main.get_command(app).commands)  # type: ignore[attr-defined]


@cache
def options(command: str) -> dict[str, Any]:
    """The flags of a command by name."""
    return {
        name: item
        for item in commands()[command].params
        if item.param_type_name == "option"
        for name in item.opts[:1]
    }


@cache
def good() -> dict[str, list[str]]:
    """By flag the values that stand in the questions."""
    found: dict[str, list[str]] = {}
    for words in (*bases.COMMANDS, *bases.QUESTIONS):
        for flag, value in pairwise(words):
            if flag.startswith("--") and not value.startswith("--"):
                found.setdefault(flag, []).append(value)
    return found


def fine(flag: str, item: Any, rng: random.Random) -> str:
    """A value that the flag may well take."""
    if flag in good():
        return rng.choice(good()[flag])
    metavar = item.metavar or ""
    return rng.choice(metavar.split("|") if "|" in metavar else ["1", "2", "1/2", "0.5"])


def bad(rng: random.Random) -> str:
    kind = rng.random()
    if kind < 0.06:
        return rng.choice(DEVICES)
    if kind < 0.22:
        return rng.choice(tuple(SPECIAL)) + rng.choice(EXTENSIONS)
    if kind < 0.25:
        return rng.choice(
            ("/proc/x", "folder/x", "nosuch/x", "old.html/x", "locked/x")
        ) + rng.choice(EXTENSIONS)
    return rng.choice(TEXTS)


def mutated(words: list[str], rng: random.Random) -> list[str]:
    """A command with one to three things changed."""
    command, words = words[0], list(words)
    known = options(command)
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3))):
        kind = rng.random()
        flag = rng.choice(tuple(known))
        flags = [place for place, word in enumerate(words) if word in known]
        if kind < 0.4 or not flags:
            words += [flag] if known[flag].is_flag else [flag, bad(rng)]
        elif kind < 0.7:
            place = rng.choice(flags)
            if not known[words[place]].is_flag and place + 1 < len(words):
                words[place + 1] = bad(rng)
        elif kind < 0.85 and len(words) > 1:
            words[1] = bad(rng)
        elif kind < 0.95:
            words += [flag] if known[flag].is_flag else [flag, fine(flag, known[flag], rng)]
        elif len(words) > 1:
            del words[rng.randrange(1, len(words))]
    return words


def limited(words: list[str], rng: random.Random) -> list[str]:
    """With limits, where the command has them, and some in JSON."""
    known = options(words[0])
    for flag, value in LIMITS.items():
        if flag in known and flag not in words:
            words = [words[0], flag, value, *words[1:]]
    return [*words, "--json"] if rng.random() < 0.3 and "--json" in known else words


def command_case(rng: random.Random, case: Case) -> None:
    known = [words for words in bases.COMMANDS if words[0] in commands()]
    new = [[name, "mlp"] for name in commands() if name not in {words[0] for words in known}]
    words = mutated(rng.choice([*known, *(word for word in new if word[0] != "warm")]), rng)
    case.words = limited(words, rng)
    case.files = standard(" ".join(word for word in words if len(word) < 200))


def standard(text: str) -> dict[str, bytes]:
    """The files that a text names, as they should be."""
    files = {name: table.encode() for name, table in bases.TABLES.items()}
    files |= {
        "p.json": programs()[0],
        "s.toml": toml(bases.STUDY),
        "e.toml": toml(bases.EXPERIMENT),
        "k.toml": toml(bases.DEPTHS[1]),
        "net.py": bases.OWN_NETWORK.format(**bases.NETWORK_PARTS).encode(),
        "w.npy": array(np.ones((6, 3, 3)) + np.eye(3)),
    }
    return {name: content for name, content in files.items() if name in text}


def array(values: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, values)
    return file.getvalue()


@cache
def programs() -> tuple[bytes, ...]:
    """Small programs as JSON."""
    found = []
    for text in bases.TEXT_PROGRAMS:
        names: dict[str, Any] = {"tp": tp}
        exec(text, names)
        path = Path("made.json")
        tp.save(names["made"], path)
        found.append(path.read_bytes())
        path.unlink()
    return tuple(found)


# ----------------------------------------------------------------------------- files: their text


class Raw(str):
    """A literal of TOML."""


def literal(value: Any) -> str:
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, list):
        return f"[{', '.join(map(literal, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{json.dumps(k)} = {literal(v)}' for k, v in value.items())}}}"
    return json.dumps(value)


def toml(sections: Any) -> bytes:
    """A file in TOML."""
    if isinstance(sections, Raw):
        return sections.encode(errors="surrogatepass")
    top, rest = [], []
    for key, value in sections.items():
        if isinstance(value, dict) and not isinstance(value, Raw):
            lines = [f"{json.dumps(name)} = {literal(own)}" for name, own in value.items()]
            rest += [f"[{json.dumps(key)}]", *lines]
        else:
            top.append(f"{json.dumps(key)} = {literal(value)}")
    return "\n".join([*top, *rest, ""]).encode(errors="surrogatepass")


def keys(model: Any, before: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The keys of a schema, those of its sections too."""
    for name, one in model.model_fields.items():
        place = (*before, one.alias or name)
        yield place
        for kind in (one.annotation, *get_args(one.annotation)):
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                yield from keys(kind, place)


def spoilt(sections: dict[str, Any], schema: Any, rng: random.Random) -> bytes:
    """A file in TOML with one to three things changed."""
    sections = copy.deepcopy(sections)
    places = list(keys(schema))
    there = [(part, key) for part, own in sections.items() if isinstance(own, dict) for key in own]
    for _ in range(rng.choice((1, 1, 2, 3))):
        place = rng.choice(there) if rng.random() < 0.4 and there else rng.choice(places)
        value: Any = Raw(rng.choice(LITERALS))
        inner: Any = sections
        for key in place[:-1]:
            inner = inner.setdefault(key, {})
            inner = inner[0] if isinstance(inner, list) and inner else inner
            if not isinstance(inner, dict):
                break
        else:
            if rng.random() < 0.06:
                inner.pop(place[-1], None)
            else:
                inner[place[-1] if rng.random() < 0.97 else rng.choice(TEXTS)[:500]] = value
    found = toml(sections)
    return garbled(found, rng) if rng.random() < 0.15 else found


def garbled(content: bytes, rng: random.Random) -> bytes:
    """A file that was cut, or has bytes in it that do not belong there."""
    for _ in range(rng.choice((1, 1, 2, 3))):
        place = rng.randrange(len(content) + 1)
        end = min(len(content), place + rng.choice((0, 0, 0, 1, 2, 10)))
        kind = rng.random()
        if kind < 0.15:
            content = content[:place]
        elif kind < 0.25:
            content = content[:place] + content
        elif kind < 0.35:
            content = content[:place] + bytes([rng.randrange(256)]) + content[end:]
        else:
            content = content[:place] + rng.choice(PIECES) + content[end:]
    return content


def study_case(rng: random.Random, case: Case) -> None:
    content = spoilt(rng.choice(bases.STUDIES), Study, rng)
    words = rng.choice(bases.QUESTIONS)
    case.words = limited(mutated(words, rng) if rng.random() < 0.1 else list(words), rng)
    case.files = {**standard(content.decode(errors="replace")), "s.toml": content}


def experiment_case(rng: random.Random, case: Case) -> None:
    base = rng.choice([bases.EXPERIMENT, *bases.DEPTHS])
    schema = ExperimentFile if base is bases.EXPERIMENT else DepthFile
    if "model" in base and rng.random() < 0.2:
        schema = Study
    words = ["experiment", "s.toml", *rng.choice(([], ["--work", "w"], ["--out", "old.html"]))]
    case.words = limited(mutated(words, rng) if rng.random() < 0.1 else words, rng)
    case.files = {"s.toml": spoilt(base, schema, rng)}


def program_case(rng: random.Random, case: Case) -> None:
    whole = json.loads(rng.choice(programs()))
    for _ in range(rng.choice((1, 1, 2, 3))):
        kind = rng.random()
        if kind < 0.75 and isinstance(whole.get("text"), list) and whole["text"]:
            lines = whole["text"]
            place = rng.randrange(len(lines))
            parts = str(lines[place]).split(" ")
            what = rng.random()
            if what < 0.7:
                parts[rng.randrange(len(parts))] = rng.choice(TOKENS)
                lines[place] = " ".join(parts)
            elif what < 0.8:
                lines.insert(rng.randrange(len(lines) + 1), lines[place])
            elif what < 0.9:
                del lines[place]
            else:
                lines[place] = rng.choice((None, 1, [], {}, "", "x" * 100_000, "\0"))
        else:
            key = rng.choice([*whole, "nosuch"])
            whole[key] = rng.choice(
                (None, 1, -1, [], {}, "", "x" * 100_000, [1], [[]], [""], 10**4000, 1e308)
            )
    content = json.dumps(whole).encode()
    if rng.random() < 0.15:
        content = garbled(content, rng)
    words = rng.choice(
        [
            "orders p.json",
            "limit p.json",
            "simulate p.json --widths 4 --seeds 2",
            "show p.json",
            "show p.json --dependencies",
            "kernel p.json",
            "report p.json --out old.md --widths 4 --seeds 2",
            "compare p.json --widths 4,8 --seeds 2",
        ]
    ).split()
    case.words, case.files = limited(words, rng), {"p.json": content}


CELLS = (*(text for text in TEXTS if len(text) < 10_000), "1,2,3", "\n", '"a\nb"', "=1+1", "1;2")


def table_case(rng: random.Random, case: Case) -> None:
    name = rng.choice(tuple(bases.TABLES))
    text = bases.TABLES[name]
    for _ in range(rng.choice((1, 1, 2, 3))):
        parts = [mark for mark in (",", " ", "(", "=", "\n") if mark in text]
        mark = rng.choice(parts) if parts else "\n"
        cells = text.split(mark)
        cells[rng.randrange(len(cells))] = rng.choice(CELLS)
        text = mark.join(cells)
    content = text.encode(errors="surrogatepass")
    if rng.random() < 0.2:
        content = garbled(content, rng)
    case.words = limited(bases.OF_TABLES[name].split(), rng)
    case.files = {name: content}
    if name == "own.opt" and rng.random() < 0.3:  # the text itself
        case.words[case.words.index("own.opt")] = text.partition("\n")[2]


def array_case(rng: random.Random, case: Case) -> None:
    content = array(odd_array(rng)) if rng.random() < 0.6 else array(np.ones((6, 3)))
    if rng.random() < 0.5:
        shapes = (
            b"(10000000000, 3)",
            b"(-1, 3)",
            b"(6, 1e9)",
            b"(" + b"(" * 200,
            b"(6, 3, " + b"1, " * 3000 + b")",
            b"()",
            b"(True,)",
        )
        content = rng.choice((
            garbled(content, rng), content[: rng.randrange(len(content))], content.replace(b"(6, 3)", rng.choice(shapes), 1),
            content.replace(b"<f8", rng.choice((b"|O8", b"<f9", b"<U9", b"<f1", b">c16", b"|V8")), 1), content.replace(b"\x01\x00", b"\x09\x00", 1),
        ))  # fmt: skip
    if rng.random() < 0.6:
        words = rng.choice(
            (
                "regularity w.npy",
                "regularity w.npy --autocovariance",
                "regularity w.npy --sequences 2",
            )
        )
        case.words, case.files = limited(words.split(), rng), {"w.npy": content}
        return
    file = io.BytesIO()
    kind = rng.random()
    names = [
        rng.choice(("nngp", "ntk", "facts", "x" * 5000, "../x", ""))
        for _ in range(rng.choice((0, 1, 2, 3)))
    ]
    if kind < 0.5:
        np.savez(file, **dict.fromkeys([name for name in names if name], odd_array(rng)))
    else:
        import zipfile

        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in dict.fromkeys(names):
                archive.writestr(
                    f"{name}.npy", content if rng.random() < 0.8 else b"\0" * 50_000_000
                )
    whole = file.getvalue()
    case.files = {"k.npz": garbled(whole, rng) if rng.random() < 0.3 else whole}
    case.code = 'tp.Kernel.load("k.npz")'


# --------------------------------------------------------------------------- files: their Python


def _filled(text: str, parts: dict[str, str], rng: random.Random) -> bytes:
    parts = dict(parts)
    for _ in range(rng.choice((1, 1, 1, 2))):
        name = rng.choice(tuple(parts))
        statement = parts[name] in ("", "pass") and name != "init"
        if statement:
            indent = next(line for line in text.split("\n") if f"{{{name}}}" in line)
            indent = indent[: len(indent) - len(indent.lstrip())]
            parts[name] = rng.choice(bases.STATEMENTS).replace("\\n{indent}", f"\n{indent}")
            if "def recursive" in parts[name]:
                parts[name] = f"def recursive(): recursive()\n{indent}recursive()"
        else:
            value = rng.choice(bases.EXPRESSIONS)
            parts[name] = f", init={value}" if name == "init" else f"({value})"
    return text.format(**parts).encode(errors="surrogatepass")


def own_case(rng: random.Random, case: Case) -> None:
    parts = rng.choice(
        [(bases.OWN_NETWORK, bases.NETWORK_PARTS), (bases.OWN_PROGRAM, bases.PROGRAM_PARTS)]
    )
    content = _filled(*parts, rng)
    if rng.random() < 0.05:
        content = garbled(content, rng)
    words = rng.choice(bases.PYTHON_QUESTIONS)
    if parts[0] is bases.OWN_PROGRAM:
        words = (
            words.replace("check", "orders")
            .replace(" --first", "")
            .replace("--steps 0 --samples 1", "")
            .replace("--samples 2", "")
        )
    case.words, case.files = limited(words.split(), rng), {"net.py": content}


def module_case(rng: random.Random, case: Case) -> None:
    case.files = {"net.py": _filled(bases.OWN_MODULE, bases.MODULE_PARTS, rng)}
    words = rng.choice(bases.MODULE_QUESTIONS).split()
    case.words = limited(mutated(words, rng) if rng.random() < 0.3 else words, rng)


def python_case(rng: random.Random, case: Case) -> None:
    from tests.fuzz.doors.calls import changed

    case.code = changed(rng)


FAMILIES: dict[str, tuple[int, Callable[[random.Random, Case], None]]] = {
    "commands": (30, command_case),
    "studies": (17, study_case),
    "experiments": (5, experiment_case),
    "programs": (9, program_case),
    "tables": (8, table_case),
    "arrays": (5, array_case),
    "own": (5, own_case),
    "modules": (1, module_case),
    "python": (20, python_case),
}
REAL = 25  # one case in so many is a process of its own


def made(family: str, seed: int) -> Case:
    """A case, the same in every run."""
    rng = random.Random(f"{family}:{seed}")
    case = Case(family, seed)
    FAMILIES[family][1](rng, case)
    typed = case.words and not any("\0" in word or len(word) > 100_000 for word in case.words)
    case.real = bool(typed and rng.random() * REAL < 1.4)
    return case


def chosen(count: int, first: int = 0) -> Iterator[tuple[str, int]]:
    """Names of cases: those of each family in turn, by their shares."""
    order = [name for name, (share, _) in FAMILIES.items() for _ in range(share)]
    random.Random(0).shuffle(order)
    for place in range(first, first + count):
        yield order[place % len(order)], place
