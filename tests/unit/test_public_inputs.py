"""Arguments of the public functions: what is wrong is said at the door, what is meant is taken."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tpcalc as tp
from tpcalc.errors import (
    ProgramError,
    StudyError,
    TpcalcError,
    TraceError,
    UnknownName,
    UsageError,
)
from tpcalc.theorems.integrable import bias_step

SMALL: dict[str, Any] = {"samples": 2**4, "replicates": 2, "threads": 1}
DATA = tp.Samples(((1.0, 0.5),), ((1.0,),))
NET = tp.MLP(1, "tanh")


def start(t: tp.Tracer) -> None:
    v = t.gaussian("v")
    t.output("v", v)
    t.output("square", t.inner(v, v))


def powers(t: tp.Tracer) -> None:
    t.output("s", tp.n ** -tp.symbol("a") * tp.mean(tp.relu(t.gaussian("v"))))
    t.output("r", tp.mean(tp.relu(t.gaussian("w"))))


def drawn(t: tp.Tracer) -> None:
    t.output("f", t.random_scalar("b") + t.random_scalar("c"))


RANDOM = tp.program(drawn).build()
PROGRAM = tp.program(start).build()
SYMBOLIC = tp.program(powers).build()
FOUND = tp.limit(PROGRAM, **SMALL)
OTHER = tp.limit(PROGRAM, outputs="v", **SMALL)


def limit(**options: Any) -> Any:
    return tp.limit(PROGRAM, **{**SMALL, **options})


def simulate(widths: Any = (8,), **options: Any) -> Any:
    return tp.simulate(PROGRAM, widths, **{"seeds": 1, "threads": 1, **options})


def train(net: Any = NET, param: Any = "ntk", data: Any = DATA, **options: Any) -> Any:
    return tp.train(net, param, data, **options)


def refused(call: Callable[[], object], kind: type[TpcalcError], message: str) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert type(caught.value) is kind
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"samples": 2.5}, "samples is 2.5; it must be a whole number"),
        ({"replicates": 2.5}, "replicates is 2.5"),
        ({"rel_error": "a"}, "rel_error must be a number, not 'a'"),
        ({"seed": -1}, "seed is -1; it must be at least 0"),
        ({"threads": 0}, "threads is 0; it must be at least 1"),
        ({"max_samples": 0}, "max_samples is 0"),
        ({"memory_limit": "a"}, "memory_limit is 'a'"),
        ({"values": 3}, "values is 3; it must map symbols"),
        ({"outputs": [3]}, "outputs is [3]; it must be a list of names"),
        ({"outputs": 3}, "outputs is 3"),
        ({"formulas": [3]}, "formulas is [3]"),
        ({"progress": 3}, "progress is 3; it must be a function"),
        ({"replicate": 3}, "no argument called 'replicate'. Did you mean 'replicates'"),
        ({"progress": lambda: 1}, "progress is a function that takes other arguments"),
        ({"given": 3}, "given is 3"),
        ({"outputs": np.array(1.0)}, "outputs is array(1.)"),
    ],
)
def test_limit_refuses(option: dict[str, Any], message: str) -> None:
    refused(lambda: limit(**option), UsageError, message)


def test_one_output_may_be_a_plain_text() -> None:
    assert list(limit(outputs="square", seed=np.int64(2))) == ["square"]


@pytest.mark.parametrize(
    "ask",
    [
        lambda values: tp.limit(SYMBOLIC, values=values, **SMALL),
        lambda values: tp.simulate(SYMBOLIC, [8], seeds=1, values=values),
    ],
)
def test_values_are_for_symbols_of_the_program(ask: Callable[[Any], object]) -> None:
    refused(lambda: ask({"a": 0, "b": 1}), UnknownName, "called 'b'")
    refused(lambda: ask({"b": 1}), UnknownName, "Known: a.")
    refused(lambda: ask({3: 1}), UnknownName, "Known: a.")
    refused(lambda: ask({"a": "x"}), UsageError, "the value of 'a' must be a number, not 'x'")
    ask({"a": 0})


def test_values_of_outputs_left_out_do_no_harm() -> None:
    found = tp.limit(SYMBOLIC, outputs=["r"], values={"a": 0.5}, **SMALL)
    assert found.values == {}


WRITTEN: dict[str, tuple[Callable[[Any], Any], Any, Any]] = {
    "values": (lambda one: tp.limit(SYMBOLIC, values={"a": one}, **SMALL), "1/2", 0.5),
    "widths": (lambda one: tp.simulate(SYMBOLIC, [one], 2, values={"a": 0}), "8", 8),
    "orders": (lambda one: tp.orders(SYMBOLIC, at={"a": one}), "1/2", Fraction(1, 2)),
    "given": (lambda one: tp.limit(RANDOM, given={"f": one}), "1/4", 0.25),
    "tolerance": (lambda one: tp.limit(RANDOM, rel_error=one), "1/2", 0.5),
    "samples": (lambda one: tp.Samples([[one]], [one]), "1/2", 0.5),
    "covariances": (lambda one: tp.expect(lambda z: z**4, one), "1/2", Fraction(1, 2)),
    "variances": (lambda one: tp.MLP(2, "relu", weight_variance=one).words, "9/4", Fraction(9, 4)),
    "layers": (lambda one: tp.signal.survey("erf", one, "1/10", depth=3).chi, "3/2", 1.5),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_a_text_is_the_number_that_it_writes(name: str) -> None:
    ask, text, number = WRITTEN[name]
    assert str(ask(text)) == str(ask(number))


def test_a_missing_value_is_asked_for_in_words_for_files_too() -> None:
    with pytest.raises(TpcalcError, match=r"Give it one, values=\{'a': '1/2'\}"):
        tp.simulate(SYMBOLIC, [8], seeds=1)


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: FOUND[3], UnknownName, "there is no limit called 3"),
        (lambda: FOUND["v"].moment(3), TraceError, "a function to average is needed"),
        (lambda: FOUND["v"].moment(np.tanh), TraceError, "tanh does not take expressions"),
        (
            lambda: FOUND["v"].moment(lambda z: "a"),
            TraceError,
            "a function that gives the text 'a'",
        ),
        (lambda: FOUND["v"].cov(3), UsageError, "cov takes a vector of the same limit, not int"),
        (lambda: FOUND["v"].cov(FOUND["square"]), UsageError, "not Estimate"),
        (lambda: FOUND["v"].cov(OTHER["v"]), UsageError, "another program or selection"),
        (lambda: FOUND["v"].sample("a"), UsageError, "count is 'a'"),
        (lambda: FOUND["v"].sample(-1), UsageError, "count is -1; it must be at least 0"),
    ],
)
def test_a_limit_refuses(call: Callable[[], object], kind: type[TpcalcError], message: str) -> None:
    refused(call, kind, message)


def test_moments_of_functions_and_constants() -> None:
    vector = FOUND["v"]
    assert vector.moment(lambda z: 1).value == 1.0
    assert vector.moment(lambda z: z * z).value == pytest.approx(vector.second_moment.value)
    assert vector.moment(tp.abs).value > 0
    assert vector.sample(np.int64(3)).shape == (3,)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: simulate(64), "Write widths=[64]."),
        (lambda: simulate("ab"), "widths is 'ab'; it must be a list"),
        (lambda: simulate([]), "widths is empty"),
        (lambda: simulate([64, 64]), "the width 64 is given twice"),
        (lambda: simulate(seeds=0), "seeds is 0; it must be at least 1"),
        (lambda: simulate(seed=-1), "seed is -1"),
        (lambda: simulate(threads=0), "threads is 0"),
        (lambda: simulate(memory_limit="a"), "memory_limit is 'a'"),
        (lambda: simulate(values=3), "values is 3"),
        (lambda: simulate(device=3), "device is 3"),
        (lambda: simulate(dtype=3), "dtype is 3"),
        (lambda: tp.equivalent(PROGRAM, PROGRAM, seeds=0), "seeds is 0"),
        (lambda: tp.equivalent(PROGRAM, PROGRAM, widths=3), "widths is 3"),
        (lambda: tp.equivalent(PROGRAM, PROGRAM, outputs=3), "outputs is 3"),
        (lambda: tp.equivalent(PROGRAM, PROGRAM, at_width=3), "at_width is 3"),
    ],
)
def test_simulate_refuses(call: Callable[[], object], message: str) -> None:
    refused(call, UsageError, message)


DEEP = tp.Training(tp.ResNet("L", "relu"), "depth-mup", tp.Samples([[1.0]], [1.0]), steps=1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tp.limit(DEEP, depths=3), "depths is 3; it must be a list"),
        (lambda: tp.limit(DEEP, depths=["oo"], places=0.5), "places is 0.5; it must be a list"),
        (lambda: tp.transfer(DEEP, 3, rates=[0.1]), "depths is 3; it must be a list"),
        (lambda: tp.transfer(DEEP, rates=0.1), "rates is 0.1; it must be a list"),
        (lambda: tp.transfer(DEEP, rates=[0.1], widths=16), "widths is 16; it must be a list"),
        (lambda: tp.transfer(PROGRAM, rates=[0.1]), "not of type Training"),
        (lambda: tp.regularity(autocovariance=[1.0] * 16, alphas=1), "alphas is 1"),
        (lambda: tp.regularity(autocovariance=[1.0] * 16, network=3), "not of type ResNet"),
        (lambda: tp.limit(3, depths=["oo"]), "the architecture is 3"),
        (lambda: tp.simulate(3, 8, depth=4), "the architecture is 3"),
        (lambda: tp.simulate(DEEP.network, 8, depth=4, places=3), "places is 3"),
        (lambda: tp.simulate(DEEP.network, 8, depth=4, places=[2]), "no place along the depth"),
        (lambda: tp.simulate(DEEP.network, 8, depth=4, alphas=3), "alphas is 3"),
        (lambda: tp.simulate(DEEP.network, 8, depth=4, progress=3), "progress is 3"),
        (lambda: tp.at_depth(DEEP, "a"), "depth is 'a'"),
        (lambda: tp.ResNet("L", "relu", along="given(1, nan)"), "cannot be called 'nan'"),
    ],
)
def test_questions_of_depth_refuse(call: Callable[[], object], message: str) -> None:
    refused(call, StudyError if "nan" in message else UsageError, message)


def test_simulate_takes_arrays() -> None:
    table = simulate(np.array([8, 16]), seeds=np.int64(2))
    assert (table.widths, table.seeds) == ((8, 16), 2)
    refused(lambda: simulate(backend=3), UnknownName, "there is no backend called 3")


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: train(3), UsageError, "tp.MLP(2, 'relu')"),
        (lambda: train(param=3), StudyError, "a parameterization is named by a text"),
        (lambda: train(data=3), UsageError, "of type int, not Samples"),
        (lambda: train(data=[[1.0]]), UsageError, "of type list, not Samples"),
        (lambda: train(steps=1.5), UsageError, "steps is 1.5"),
        (lambda: train(steps=-1), UsageError, "steps is -1; it must be at least 0"),
        (lambda: train(batch=1.5), UsageError, "batch is 1.5"),
        (lambda: train(batch=0), UsageError, "batch is 0; it must be at least 1"),
        (lambda: train(lr="a"), UsageError, "lr must be a number, not 'a'"),
        (lambda: train(lr=None), UsageError, "lr is None"),
        (lambda: train(lr=1j), UsageError, "lr is 1j"),
        (lambda: train(lr=float("inf")), UsageError, "lr is inf; it must be finite"),
        (lambda: train(lr=10**400), UsageError, "in the range of a float"),
        (lambda: train(lr=lambda layer: 1), UsageError, "a layer and a step"),
        (lambda: train(lr=lambda layer, step: 1 / 0), UsageError, "raises ZeroDivisionError"),
        (lambda: train(schedule=lambda: 1), UsageError, "schedule is a function that takes other"),
        (lambda: train(schedule=lambda step: 1 / step), UsageError, "raises ZeroDivisionError"),
        (lambda: train(groups=3), UsageError, "groups is 3; it must be a list"),
        (lambda: train(groups={"hidden": {3: 3}}), UsageError, "the group 'hidden' is {3: 3}"),
        (lambda: DEEP.replace(nosuch=1), UnknownName, "no argument of a training run"),
        (lambda: train(lr=lambda layer, step: "a"), UsageError, "layer 1 at step 0 must be"),
        (lambda: train(queries=[1.0, 2.0]), StudyError, "query row 0 is 1.0, not a list"),
        (lambda: train(queries=3), StudyError, "the queries are 3"),
        (lambda: train(queries=[["a", "b"]]), StudyError, "column 0 is 'a', not a number"),
        (lambda: train(queries=[[1.0]]), StudyError, "the data have 2 features"),
        (lambda: train(watch=3), UsageError, "watch is 3"),
        (lambda: train(watch="dw"), StudyError, "watch names dw"),
        (lambda: tp.MLP(2, 3), StudyError, "the activation is 3"),  # type: ignore[arg-type]
        (lambda: tp.MLP(2, np.tanh), TraceError, "tp.tanh"),
        (lambda: tp.MLP(2, tp.relu_pow), TraceError, "with its parameters first"),
        (lambda: tp.MLP(True), UsageError, "depth is True"),
        (lambda: tp.MLP(0), UsageError, "depth is 0"),
    ],
)
def test_train_refuses(call: Callable[[], object], kind: type[TpcalcError], message: str) -> None:
    refused(call, kind, message)


@pytest.mark.parametrize(
    ("given", "plain"),
    [(np.float32(0.5), 0.5), (np.int64(1), Fraction(1)), (1, Fraction(1)), (Fraction(1, 3),) * 2],
)
def test_rates_are_numbers_of_any_kind(given: Any, plain: Any) -> None:
    assert train(lr=given) == train(lr=plain)
    assert train(lr=lambda layer, step: given) == train(lr=plain)


def test_one_watched_vector_may_be_a_plain_text() -> None:
    assert train(watch="dh") == train(watch=["dh"])
    assert train(steps=np.int64(2), batch=np.int64(1)) == train(steps=2)
    assert train(queries=np.ones((2, 2))) == train(queries=[[1, 1], [1, 1]])
    assert tp.MLP(np.int64(2)) == tp.MLP(2)  # type: ignore[arg-type]


def test_samples_of_lists_and_arrays() -> None:
    plain = tp.Samples(((1.0, 2.0), (3.0, 4.0)), ((1.0,), (-1.0,)))
    rows: Any = [[1, 2], [3, 4]]
    for goals in ([1, -1], [[1], [-1]]):
        assert tp.Samples(rows, goals) == plain  # type: ignore[arg-type]
        assert tp.Samples(np.array(rows), np.array(goals)) == plain  # type: ignore[arg-type]
    assert type(tp.Samples(rows, [1, -1]).inputs[0][0]) is float  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("inputs", "targets", "message"),
    [
        ([["a"]], [1], "input row 0, column 0 is 'a', not a number"),
        ([["1/2"], ["x"]], [1, 2], "row 1, column 0 is 'x', not a number"),
        ([[1j]], [1], "is 1j, not a number"),
        (np.ones((1, 2), np.complex64), [1], "(1+0j), not a number"),
        ([[1]], [[[1]]], "target row 0, column 0 is [1], not a number"),
        (3, 4, "the inputs are 3, not a list of rows"),
        ("ab", "cd", "the inputs are 'ab'"),
        ({1: 2}, [1], "not a list of rows"),
        ([1, 2], [1, 2], "input row 0 is 1, not a list of numbers"),
        ([[]], [1], "input row 0 is empty"),
        (np.ones((2, 2)), np.ones(1), "2 inputs and 1 targets"),
        ([[np.nan]], [1], "every number must be finite"),
        ([[1]], [np.inf], "target row 0, column 0 is inf"),
        ([[10**400]], [1], "not a number"),
        ([[1, 2]], [None], "target row 0, column 0 is None"),
        ([[1], [1, 2]], [1, 2], "input row 1 has 2 numbers, row 0 has 1"),
        ([], [], "0 inputs and 0 targets"),
    ],
)
def test_samples_refuse(inputs: Any, targets: Any, message: str) -> None:
    refused(lambda: tp.Samples(inputs, targets), StudyError, message)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tp.digits(seed=-1), "seed is -1"),
        (lambda: tp.digits(samples=2.5), "samples is 2.5"),  # type: ignore[arg-type]
        (lambda: tp.digits(classes=3), "Write classes=(0, 1)."),  # type: ignore[arg-type]
        (lambda: tp.csv(3), "path is 3; it must be the path of a file"),  # type: ignore[arg-type]
        (lambda: tp.load(3), "path is 3"),
        (lambda: tp.save(PROGRAM, 3), "path is 3"),
        (lambda: tp.parse(3), "text is 3"),
        (lambda: tp.report(FOUND, 3), "path is 3"),  # type: ignore[arg-type]
    ],
)
def test_data_and_files_refuse(call: Callable[[], object], message: str) -> None:
    refused(call, UsageError, message)


def test_programs_are_saved_and_loaded(tmp_path: Path) -> None:
    refused(lambda: tp.save(3, tmp_path / "x.json"), TraceError, "a program is needed")
    tp.save(tp.program(start), tmp_path / "x.json")
    assert tp.load(tmp_path / "x.json") == PROGRAM
    (tmp_path / "x.txt").write_text(str(PROGRAM), encoding="utf-8")
    refused(lambda: tp.load(tmp_path / "x.txt"), StudyError, "what tp.save wrote")
    text = (tmp_path / "x.json").read_text(encoding="utf-8")
    with pytest.raises(TpcalcError, match=r"tp\.save"):
        tp.parse(text)


@pytest.mark.parametrize("act", ["log", "sqrt"])
def test_a_function_outside_its_domain_is_no_explosion(act: str) -> None:
    program = tp.train(tp.MLP(1, act), "ntk", DATA, steps=0, watch="x")
    for ask in (
        lambda: tp.limit(program, outputs=["x[1,0,0]"], **SMALL),
        lambda: tp.simulate(program, [8], seeds=1),
    ):
        with pytest.raises(TpcalcError, match="outside its domain") as caught:
            ask()
        assert "explodes" not in str(caught.value)


LAYER = tp.signal.LayerMap("tanh", 1.5)
LINES = tp.signal.mlp(2, tp.signal.Design("tanh"))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tp.signal.nlc(), "missing a required argument: 'source'"),
        (lambda: bias_step(NET, k=(1, 0.5, 1), eta=1), "missing a required argument: 'depth'"),
        (lambda: tp.signal.Design("tanh", biases="x"), "variance of the biases must be a number"),
        (lambda: tp.signal.Input("x"), "q = x"),
        (lambda: tp.signal.mlp("x", 3), "depth is 'x'"),
        (lambda: tp.signal.mlp(2, 3), "not of type Design"),
        (lambda: tp.signal.MacroLayers("x", "tanh"), "count is 'x'"),
        (lambda: tp.signal.Sampling(3), "widths is 3"),
        (lambda: tp.signal.nlc(LINES, inputs=3), "not of type Input"),
        (lambda: tp.signal.nlc(LINES, start=[1]), "a layer is [1]"),
        (lambda: tp.signal.heaviest_paths(LINES, count=1.5), "count is 1.5"),
        (lambda: tp.signal.spread(LINES, seed=-1), "seed is -1"),
        (lambda: tp.signal.maps.lengths(3, [1.0], 2), "not of type LayerMap"),
        (lambda: tp.signal.maps.lengths(LAYER, 1.0, 2), "starts is 1.0; it must be a list"),
        (lambda: tp.signal.maps.length_curve(LAYER, points="x"), "points is 'x'"),
        (lambda: tp.signal.maps.low_rank_start("x", 0.1, 0.5), "weights must be a number, not 'x'"),
        (lambda: tp.signal.spectra.of_moments(3), "moments is 3; it must be a list"),
        (lambda: tp.signal.parse_graph(3), "text is 3"),
        (lambda: tp.signal.covariance(LINES, "x"), "gram holds"),
        (lambda: tp.signal.network_of(LINES, "x", 2), "width is 'x'"),
    ],
)
def test_signals_refuse(call: Callable[[], object], message: str) -> None:
    with pytest.raises(StudyError) as caught:
        call()
    assert message in str(caught.value)


def test_a_program_without_outputs_is_told() -> None:
    empty = tp.parse("tpcalc program 2\ndim n 1\n")
    for ask in (tp.orders, tp.limit, lambda program: tp.simulate(program, [8], seeds=1)):
        refused(lambda ask=ask: ask(empty), ProgramError, "has no outputs")  # type: ignore[misc]


def test_memory_is_told_in_fitting_words() -> None:
    with pytest.raises(TpcalcError, match="one network of width 8 needs") as caught:
        simulate(memory_limit=100)
    assert "sample" not in str(caught.value) and "smaller width" in str(caught.value)
    assert "KiB and 100 bytes are available" in str(caught.value)
    with pytest.raises(TpcalcError, match="one replicate of 1024 samples needs") as caught:
        limit(memory_limit=2000, samples=2**10, method="particles")
    assert "width" not in str(caught.value)
    assert "1.95 KiB are available" in str(caught.value)
