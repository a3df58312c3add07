"""Every answer shows itself: printed, in a notebook, as data and as a file."""

from __future__ import annotations

import inspect
import json
import sys
import types
import typing
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tpcalc as tp
from tpcalc.errors import MissingBackend, StudyError, UsageError
from tpcalc.results.codec import load
from tpcalc.shown import Shown

# What public functions return that is no answer: what programs are written with, and pairs.
WRITTEN = {
    "Elementwise",
    "Scalar",
    "Vector",
    "Ex",
    "Expr",
    "Bounded",
    "Variances",
    "FiniteMoments",
    "Use",
    "Operation",
}
DATA = tp.Samples(((1.0, 0.5), (0.5, 1.0)), ((1.0,), (-1.0,)))
LINES, COLUMNS = 60, 100


@tp.program
def there_and_back(t: tp.Tracer) -> None:
    v, matrix = t.gaussian("v"), t.matrix("W")
    h = tp.n**-0.5 * (matrix @ tp.relu(v))
    t.output("overlap", tp.mean(v * (tp.n**-0.5 * (matrix.T @ tp.relu(h)))))
    t.output("h", h)


NET = tp.MLP(2, "tanh")
DEEP = tp.ResNet("L", "tanh", nonlin="post")
THIN = tp.signal.Design("tanh", 1)
ANSWERS: dict[str, Callable[[], Any]] = {
    "limit": lambda: tp.limit(there_and_back, seed=0),
    "a number": lambda: tp.limit(there_and_back, seed=0)["overlap"],
    "a vector": lambda: tp.limit(there_and_back, seed=0)["h"],
    "orders": lambda: tp.orders(there_and_back),
    "orders of L blocks": lambda: tp.orders(tp.Training(DEEP, "depth-mup", steps=1)),
    "check": lambda: tp.check(NET, "mup"),
    "first steps": lambda: tp.first_order(NET, "mup", measure=(16, 32), seeds=4),
    "check of L blocks": lambda: tp.check(DEEP, "depth-mup"),
    "solve": lambda: tp.solve(NET, "naive-ip"),
    "phases": lambda: tp.phases(
        tp.MLP(1, "relu"), "ac:0,a;c", {"a": (0, 1), "c": (-1, 1)}, steps=1, verify=False
    ),
    "simulate": lambda: tp.simulate(there_and_back, widths=[64, 128, 256], seeds=4),
    "compare": lambda: tp.compare(ANSWERS["limit"](), ANSWERS["simulate"]()),
    "measure": lambda: tp.measure(tp.orders(there_and_back), widths=[64, 128, 256], seeds=4),
    "kernel": lambda: tp.kernel(NET, np.eye(3) + 0.1),
    "empirical kernel": lambda: tp.empirical_kernel(NET, np.eye(2), 64, seeds=4),
    "prediction": lambda: ANSWERS["kernel"]().predict([1, 2, 3], ANSWERS["kernel"]()),
    "equivalent": lambda: tp.equivalent(there_and_back, there_and_back, widths=[16], seeds=1),
    "dependencies": lambda: tp.dependencies(there_and_back),
    "corrections": lambda: tp.corrections(there_and_back),
    "expect": lambda: tp.expect(lambda u: tp.tanh(u) ** 2, [[1.0]]),
    "recipe": lambda: tp.recipe("depth-mup:8", depth=512),
    "card": lambda: tp.card(NET, "mup", DATA, steps=1),
    "depth_limit": lambda: tp.limit(DEEP, depths=[4, 16]),
    "regularity": lambda: tp.regularity(np.random.default_rng(0).normal(size=(64, 4, 4))),
    "survey": lambda: tp.signal.survey("erf", 1.5, 0.1, depth=3),
    "sheet": lambda: tp.signal.sheet("gelu"),
    "nonlinearity": lambda: tp.signal.nonlinearity(tp.signal.mlp(40, tp.signal.Design("relu", 2))),
    "advice": lambda: tp.signal.advise(tp.signal.mlp(20, tp.signal.Design("relu", 2))),
    "plain": lambda: tp.signal.plain("tanh", depth=100),
    "nlnorm": lambda: tp.signal.nlnorm("tanh", 1.5, network=tp.signal.resnet(30, THIN)),
    "study b": lambda: tp.signal.practice.study_b(methods=["SELU", "square"]),
    "split": lambda: tp.signal.split("tanh"),
    "spectrum": lambda: tp.signal.spectra.weight_spectrum("gaussian", 0.5),
    "theorem": lambda: tp.integrable.trivial_naive_ip(tp.MLP(3, "relu^2"), "naive-ip"),
    "closed form": lambda: tp.integrable.half_square(0.5),
    "program": lambda: there_and_back.build(),
    "network": lambda: NET,
    "training": lambda: tp.Training(NET, "mup", DATA, steps=1),
    "data": lambda: DATA,
}
asked = cache(lambda name: ANSWERS[name]())
# A program is its text, which reads back as the program, however long it is.
CUT = [name for name in ANSWERS if name not in ("program", "network")]


def returned(hint: Any) -> Iterator[type]:
    """The classes of tpcalc that a function returns, one by one or in a tuple."""
    if isinstance(hint, type) and hint.__module__.startswith("tpcalc"):
        yield hint
    for part in typing.get_args(hint):
        yield from returned(part)


SIGNAL = (
    tp.signal,
    tp.signal.activations,
    tp.signal.functions,
    tp.signal.maps,
    tp.signal.practice,
    tp.signal.spectra,
)


def test_what_questions_return_shows_itself() -> None:
    known = {"Limit": tp.Limit, "DrawnNetwork": object}
    kinds = {
        kind
        for room in (tp, *SIGNAL, tp.integrable, tp.resnets, tp.depth)
        for name in dir(room)
        if not name.startswith("_") and inspect.isfunction(ask := getattr(room, name))
        for kind in returned(typing.get_type_hints(ask, localns=known).get("return"))
    }
    assert len(kinds) > 60
    assert {kind.__name__ for kind in kinds if not issubclass(kind, Shown)} <= WRITTEN


@pytest.mark.parametrize("name", CUT)
def test_an_answer_fits_a_screen(name: str) -> None:
    text = str(asked(name))
    lines = text.splitlines()
    assert 0 < len(lines) <= LINES and max(map(len, lines)) <= COLUMNS
    assert not text.startswith(f"{type(asked(name)).__name__}(")


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_is_html_and_json(name: str) -> None:
    answer = asked(name)
    text = answer._repr_html_()
    assert text.startswith("<") and "<script" not in text
    assert json.loads(json.dumps(answer.to_dict(), allow_nan=False)) == answer.to_dict()


SAVED = ("limit", "check", "phases", "equivalent", "corrections", "recipe", "card", "theorem")
LISTED = ("advice", "dependencies", "regularity", "nonlinearity", "kernel", "split", "plain")


@pytest.mark.parametrize("name", [*SAVED, *LISTED])
@pytest.mark.parametrize("ending", [".json", ".csv", ".html", ".md"])
def test_an_answer_is_written(name: str, ending: str, tmp_path: Path) -> None:
    path = asked(name).save(tmp_path / f"answer{ending}")
    assert path.stat().st_size > 100
    if ending == ".json" and name in SAVED:
        assert load(path) == getattr(asked(name), "table", asked(name))


def test_a_place_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=r"written as \.json, \.csv.*not as '\.pdf'"):
        asked("check").save(tmp_path / "answer.pdf")
    with pytest.raises(StudyError, match="there is no folder"):
        asked("check").save(tmp_path / "nowhere" / "answer.json")


def test_pictures_are_figures_of_matplotlib() -> None:
    from matplotlib.figure import Figure

    for name in ("phases", "kernel", "survey", "sheet"):
        assert isinstance(asked(name).plot(), Figure)
    assert isinstance(asked("survey").plot("signal-spectrum"), Figure)
    with pytest.raises(UsageError, match=r"no picture 'nothing'.*There are signal"):
        asked("survey").plot("nothing")
    with pytest.raises(UsageError, match="a Recipe has no picture"):
        asked("recipe").plot()


def test_rows_are_a_data_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    frames = types.SimpleNamespace(DataFrame=lambda rows: rows)
    monkeypatch.setitem(sys.modules, "pandas", frames)
    rows = asked("limit").to_dataframe("scalars")
    assert rows[0] == {
        **rows[0],
        "name": "overlap",
        "estimate": 0.25,
        "estimate_error": pytest.approx(0, abs=1e-14),
        "estimate_method": "exact",
    }
    plain = asked("plain").to_dataframe()
    assert len(plain) == 100 and isinstance(plain[0]["square"], float) and plain[0]["square_error"]
    with pytest.raises(UsageError, match="no table 'nothing'"):
        asked("limit").to_dataframe("nothing")
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingBackend, match="pandas is not installed"):
        asked("limit").to_dataframe()


def test_numbers_are_numbers() -> None:
    assert float(asked("a number")) == 0.25
    assert float(asked("closed form")) == pytest.approx(0.40224944526)


def test_names_with_markup_stay_text() -> None:
    @tp.program
    def hostile(t: tp.Tracer) -> None:
        v = t.gaussian("v")
        t.output("<script>alert(1)</script>", t.inner(v, v))

    text = tp.limit(hostile)._repr_html_()
    assert "<script" not in text and "&lt;script&gt;" in text


NEW = '''
from dataclasses import dataclass

from tpcalc.shown import Shown


@dataclass(frozen=True)
class Verdicts(Shown):
    """A new kind of answer."""

    words: tuple[str, ...]
'''
VIEW = """
from new_record import Verdicts
from tpcalc.views.panels import Figure, Panel, Series
from tpcalc.views.tables import Table, texts
from tpcalc.views.view import Judgement, Part, View, view


@view.register
def _(found: Verdicts) -> View:
    table = Table.of("Words", texts("Word"), ((word,) for word in found.words))
    series = Series((1.0, 2.0), (1.0, 2.0), (0.0, 0.0), "0", "line", "a line")
    figure = Figure("A line", "", (Panel("A line", "It rises.", "x", (series,), numbers=True),))
    said = Judgement("good", "All is well")
    return View("Words", said, "A summary.", (Part("words", "Words", "", (table,), figure),))
"""


def test_a_new_answer_is_a_record_and_a_view(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from matplotlib.figure import Figure

    (tmp_path / "new_record.py").write_text(NEW)
    (tmp_path / "new_view.py").write_text(VIEW)
    monkeypatch.syspath_prepend(tmp_path)
    record, _ = __import__("new_record"), __import__("new_view")
    answer = record.Verdicts(("one", "two"))
    assert str(answer).splitlines()[:2] == ["All is well", "A summary."] and "two" in str(answer)
    assert "All is well" in answer._repr_html_() and "data:image/svg" in answer._repr_html_()
    page = answer.save(tmp_path / "page.html").read_text()
    assert page.index("All is well") < page.index("<figure") < page.index("two")
    assert "| two |" in answer.save(tmp_path / "page.md").read_text()
    assert isinstance(answer.plot(), Figure) and answer.to_dict() == {"words": ["one", "two"]}
