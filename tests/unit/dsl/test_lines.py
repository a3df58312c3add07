"""Whose line an error names."""

from __future__ import annotations

import functools
import subprocess
import sys
import textwrap
from pathlib import Path

from tpcalc.dsl import operands
from tpcalc.dsl.operands import _author, line_of, misuse, user_line


def run(source: str, *arguments: str) -> str:
    """What a program of its own prints."""
    found = subprocess.run(
        [sys.executable, *arguments, textwrap.dedent(source)],
        capture_output=True,
        text=True,
        check=True,
    )
    return found.stdout.strip()


def test_this_line() -> None:
    first = test_this_line.__code__.co_firstlineno
    assert user_line() == f"test_lines.py:{first + 2}"
    assert misuse("wrong.").where == f"test_lines.py:{first + 3}"


def test_frames_of_libraries_are_passed_over() -> None:
    first = test_frames_of_libraries_are_passed_over.__code__.co_firstlineno

    class Lazy:
        @functools.cached_property
        def line(self) -> str | None:
            return user_line()

    assert Lazy().line == f"test_lines.py:{first + 6}"
    assert functools.lru_cache(user_line)() == f"test_lines.py:{first + 9}"


def test_authors() -> None:
    package = Path(operands.__file__).parents[1]
    assert _author(str(package / "training" / "training.py"))[0] == "package"
    assert _author(str(package / "cli" / "app.py"))[0] == "launcher"
    assert _author(str(Path(functools.__file__)))[0] == "library"
    assert _author("<frozen runpy>")[0] == "library"
    assert _author("/venv/lib/python3.11/site-packages/click/core.py")[0] == "library"
    assert _author("/somewhere/models/mlp.py") == ("user", "mlp.py")
    assert _author("<stdin>") == ("user", "<stdin>")


def test_lines_of_functions() -> None:
    def function() -> None:
        pass

    first = test_lines_of_functions.__code__.co_firstlineno
    assert line_of(function) == f"test_lines.py:{first + 1}"
    assert line_of(3) is None


def test_code_without_a_file() -> None:
    source = """
    from tpcalc.dsl import n
    from tpcalc.errors import TraceError
    try:
        n + 1
    except TraceError as error:
        print(error.where)
    """
    assert run(source, "-c") == "<string>:5"


def test_under_the_command_line_there_is_no_line() -> None:
    source = """
    from pathlib import Path
    from tpcalc.dsl import operands
    launcher = str(Path(operands.__file__).parents[1] / "cli" / "app.py")
    scope = {"line": operands.user_line}
    exec(compile("found = line()", launcher, "exec"), scope)
    print(scope["found"])
    """
    assert run(source, "-c") == "None"
