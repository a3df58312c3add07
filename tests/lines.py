"""Lines of the package by room, and the gates that keep it small: ``python -m tests.lines``.

``--docs`` counts the docstring lines of what no face of the package shows, ``--touched`` the files
and functions that the second of two equal questions runs through, with caches emptied between.
"""

from __future__ import annotations

import argparse
import ast
import gc
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import _lru_cache_wrapper, cache
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "tpcalc"
BUDGET = ROOT / "tests" / "budget.toml"
FACES = (
    "__init__.py",
    "dsl/__init__.py",
    "signal/__init__.py",
    "signal/activations.py",
    "signal/functions.py",
    "signal/maps.py",
    "signal/practice.py",
    "signal/spectra.py",
    "networks/layers/__init__.py",
    "results/__init__.py",
    "theorems/depth/__init__.py",
    "theorems/integrable/__init__.py",
    "theorems/resnets/__init__.py",
)
Documented = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def files() -> list[Path]:
    """The modules of the package."""
    return sorted(PACKAGE.rglob("*.py"))


@cache
def count(path: Path) -> Counter[str]:
    """Lines of a module: raw, docstrings, and code (no docstring, import, comment or blank)."""
    text = path.read_text(encoding="utf-8")
    lines, docs, other, within = text.splitlines(), set[int](), set[int](), set[int]()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant | ast.JoinedStr):
            within.update(
                _span(node)[1:]
            )  # of a text no line is a comment, whatever it begins with
        if isinstance(node, ast.Module | Documented):
            # What stands below a field of a class documents it as well.
            body = node.body if isinstance(node, ast.Module | ast.ClassDef) else node.body[:1]
            for part in filter(_is_text, body):
                docs.update(_span(part))
        if isinstance(node, ast.Import | ast.ImportFrom) or _names(node) == "__all__":
            other.update(_span(node))
    starts = ((number, line.lstrip()[:1]) for number, line in enumerate(lines, 1))
    other |= docs | {number for number, first in starts if first == "#" and number not in within}
    code = sum(bool(line.strip()) for number, line in enumerate(lines, 1) if number not in other)
    return Counter(files=1, code=code, docs=len(docs), raw=len(lines))


def rooms() -> dict[str, Counter[str]]:
    """The lines of each room, the largest first; ``.`` has the modules of none."""
    found: dict[str, Counter[str]] = {}
    for path in files():
        below = path.relative_to(PACKAGE).parts
        found.setdefault(below[0] if len(below) > 1 else ".", Counter()).update(count(path))
    return dict(sorted(found.items(), key=lambda pair: -pair[1]["code"]))


def budget(part: str = "code") -> dict[str, int]:
    """The code lines that each room may have; or what gates allow, or walks."""
    found: dict[str, int] = tomllib.loads(BUDGET.read_text(encoding="utf-8"))[part]
    return found


def face_module(face: str) -> str:
    """The name of the module that a face is."""
    return ".".join(["tpcalc", *face.removesuffix(".py").split("/")]).removesuffix(".__init__")


def shown() -> set[str]:
    """The names that the faces of the package show."""
    found: set[str] = set()
    for face in FACES:
        for node in ast.walk(ast.parse((PACKAGE / face).read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                found |= {name.asname for name in node.names if name.asname == name.name}
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                texts = (getattr(part, "value", None) for part in ast.walk(node.value))
                found |= {word for text in texts if isinstance(text, str) for word in text.split()}
    return found


def hidden_docs() -> int:
    """Docstring lines of functions and classes that no face shows, nor a class that one shows."""
    public = shown()

    def lines(body: list[ast.stmt], known: bool) -> Iterator[int]:
        for node in body:
            if isinstance(node, Documented):
                seen = known or node.name in public
                if not seen and _is_text(node.body[0]):
                    yield len(_span(node.body[0]))
                yield from lines(node.body, seen and isinstance(node, ast.ClassDef))

    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in files())
    return sum(sum(lines(tree.body, False)) for tree in trees)


def matches(pattern: str, folder: Path = PACKAGE) -> dict[str, int]:
    """How often a pattern stands in each file that has it."""
    found = {
        path.relative_to(ROOT).as_posix(): len(
            re.findall(pattern, path.read_text(encoding="utf-8"), re.MULTILINE)
        )
        for path in sorted(folder.rglob("*.py"))
    }
    return {name: times for name, times in found.items() if times}


# ------------------------------------------------------------------------------------- touched


def questions() -> dict[str, Callable[[], object]]:
    """Three questions that a newcomer asks."""
    import tpcalc as tp

    @tp.program
    def there_and_back(t: Any) -> None:
        v, matrix = t.gaussian("v"), t.matrix("W")
        h = tp.n**-0.5 * (matrix @ tp.relu(v))
        t.output("overlap", tp.mean(v * (tp.n**-0.5 * (matrix.T @ tp.relu(h)))))

    return {
        "limit of a program": lambda: tp.limit(there_and_back, seed=0)["overlap"],
        "check of an MLP": lambda: tp.check(tp.MLP(2, "tanh"), "mup"),
        "check of L blocks": lambda: tp.check(tp.ResNet("L", "tanh", nonlin="post"), "depth-mup"),
    }


def touched(question: Callable[[], object]) -> tuple[int, int]:
    """The files and the functions of the package that the second of two calls runs through."""
    question()
    for one in gc.get_objects():
        if type(one) is _lru_cache_wrapper:  # proxies of what is gone have no class to ask for
            one.cache_clear()
    seen: set[tuple[str, str]] = set()

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            seen.add((frame.f_code.co_filename, frame.f_code.co_qualname))

    sys.setprofile(note)
    try:
        question()
    finally:
        sys.setprofile(None)
    own = {pair for pair in seen if pair[0].startswith(str(PACKAGE))}
    return len({file for file, _ in own}), len(own)


def walk(command: str, digits: str) -> set[str]:
    """The files of the package that hand a number on, found by its digits, from a command line."""
    from typer.testing import CliRunner

    from tpcalc.cli.app import app

    seen: set[str] = set()

    def note(frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(PACKAGE)):
            names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
            given = (frame.f_locals.get(name) for name in names)
            if any(
                type(one) in (str, float, int, Fraction) and digits in str(one) for one in given
            ):
                seen.add(code.co_filename)

    CliRunner().invoke(app, command.split())  # loads what it needs
    sys.setprofile(note)
    try:
        CliRunner().invoke(app, command.split())
    finally:
        sys.setprofile(None)
    return seen


# --------------------------------------------------------------------------------------- gates


def total(kind: str) -> int:
    """The files of the package, or the lines of a kind."""
    return sum(row[kind] for row in rooms().values())


def renderers() -> int:
    """Functions of a terminal or a notebook for one kind of result."""
    found = matches(r"^def \w+_(?:group|html)\(", PACKAGE / "views")
    kept = ("terminal.py", "notebook.py")
    return sum(times for name, times in found.items() if name.endswith(kept))


def long_functions() -> int:
    """Functions of 60 lines and more, with their signatures and docstrings."""
    trees = (ast.walk(ast.parse(path.read_text(encoding="utf-8"))) for path in files())
    found = (node for tree in trees for node in tree if isinstance(node, ast.FunctionDef))
    return sum((node.end_lineno or 0) - node.lineno >= 59 for node in found)


def carriers() -> int:
    """Classes with a number, or numbers, and an error beside it."""
    fields = {"value", "values", "mean"}, {"error", "errors", "stderr"}
    trees = (ast.walk(ast.parse(path.read_text(encoding="utf-8"))) for path in files())
    kinds = (node for tree in trees for node in tree if isinstance(node, ast.ClassDef))
    own = ({n.target.id for n in kind.body if isinstance(n, ast.AnnAssign)
            and isinstance(n.target, ast.Name)} for kind in kinds)  # fmt: skip
    return sum(all(names & part for part in fields) for names in own)


TAKES_APART = r'\.(?:r?partition|split|startswith)\("[a-zA-Z]*\["\)'
PATCHES = r'monkeypatch\.setattr\(\w+, "[A-Z_]+"'
# Numbers that are to fall; each is a count of what the plan of the house does away with.
GATES: dict[str, Callable[[], int]] = {
    "raw lines": lambda: total("raw"),
    "code lines": lambda: total("code"),
    "modules": lambda: total("files"),
    "functions of 60 lines and more": long_functions,
    "records of numbers with errors": carriers,
    "functions of a view for a kind of result": renderers,
    'files that write or read "-oo"': lambda: len(matches('"-oo"')),
    "files that take names of outputs apart": lambda: len(matches(TAKES_APART)),
    "files with __all__": lambda: len(matches("^__all__")),
    "private docstring lines": hidden_docs,
    "definitions of Progress": lambda: sum(matches("^Progress = ").values()),
    "definitions of Array": lambda: sum(matches("^Array = ").values()),
    "patched thresholds in tests": lambda: sum(matches(PATCHES, ROOT / "tests").values()),
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.lines", description=__doc__)
    parser.add_argument("--docs", action="store_true", help="private docstring lines alone")
    parser.add_argument("--touched", action="store_true", help="run three questions as well")
    chosen = parser.parse_args()
    if chosen.docs:
        print(hidden_docs())
        return 0
    allowed = budget()
    print(f"{'room':14}{'files':>8}{'code':>8}{'docs':>8}{'raw':>8}{'budget':>8}")
    for room, row in rooms().items():
        numbers = (row["files"], row["code"], row["docs"], row["raw"], allowed.get(room, 0))
        print(f"{room:14}" + "".join(f"{number:8}" for number in numbers))
    for name, gate in GATES.items():
        print(f"{gate():8}  {name}")
    if chosen.touched:
        for name, question in questions().items():
            print("{:8}  files, {} functions: {}".format(*touched(question), name))
    return int(any(row["code"] > allowed.get(room, 0) for room, row in rooms().items()))


def _is_text(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _names(node: ast.AST) -> str:
    return getattr(node.targets[0], "id", "") if isinstance(node, ast.Assign) else ""


def _span(node: Any) -> range:
    return range(node.lineno, node.end_lineno + 1)


if __name__ == "__main__":
    sys.exit(main())
