"""Dense runs that cannot be: overflow, memory, bad arguments, missing libraries."""

from __future__ import annotations

import sys
from fractions import Fraction

import numpy as np
import pytest
from unit.finite.dense_programs import EXP, RECIPROCAL_OF_ZERO, every_node, plain, round_trip

from tpcalc.engine.device.devices import resolve_device, resolve_dtype
from tpcalc.engine.device.space import TorchSpace
from tpcalc.errors import (
    Exploded,
    MissingBackend,
    OutOfMemory,
    ProgramError,
    ScaleError,
    TaskFailed,
    UnknownName,
    UsageError,
)
from tpcalc.exponents import Ex
from tpcalc.finite import dense
from tpcalc.finite.dense import run_dense
from tpcalc.finite.dense_plan import plan_dense
from tpcalc.functions import Atom, Call, Fn, Par, Var, const
from tpcalc.functions.tape import NumpySpace, evaluate, lower, run
from tpcalc.program.nodes import Data, Dim, Family, Input, Nonlin, Scale
from tpcalc.program.program import Builder, Program

pytestmark = pytest.mark.torch


def exploding(*, std: float = 0.0) -> Program:
    """exp(x * s) twice, with s = 1000 + std * noise; the first one overflows."""
    builder = Builder()
    x = builder.add(Input(Family.group("x", "n", (1.0,), ((0.0,),))))
    given, noise = Data("s", (Fraction(1000),)), Input(Family.scalar("s", Fraction(0), std))
    factor = builder.add(noise if std else given)
    first = builder.add(Nonlin(Fn(EXP(Var(0) * Par(0)), 1, 1), (x,), (factor,)), where="model.py:7")
    builder.output("first", first)
    builder.output("bent", builder.add(Nonlin(Fn(Call(NEGATIVE_PART, Var(0)), 1), (first,))))
    return builder.finish()


# min(z, 0) of +inf is 0: what comes out is finite again; the overflow must be found all the same.
NEGATIVE_PART = Atom("negative_part", lambda xp, z: xp.minimum(z, 0.0), None)


def test_explosion_names_the_first_node_the_seed_and_the_width() -> None:
    with pytest.raises(Exploded) as caught:
        run_dense(exploding(), 20, [4, 5])
    text = str(caught.value)
    for part in ("%2 (first) at model.py:7", "width 20", "seed 4", "float64", "learning rate"):
        assert part in text


def test_explosion_can_give_nan_for_its_seed_alone() -> None:
    notes: list[str] = []
    program = exploding(std=1000.0)
    found = run_dense(program, 8, range(12), on_explode="nan", notes=notes)
    broken = np.isnan(found["bent", "mean"])
    assert 0 < broken.sum() < 12
    assert np.array_equal(broken, np.isnan(found["first", "mean"]))
    assert len(notes) == broken.sum() and "%2 (first)" in notes[0]
    alive = int(np.argmin(broken))
    alone = run_dense(program, 8, [alive])
    assert alone["first", "mean"][0] == found["first", "mean"][alive]


def test_float32_explodes_where_float64_does_not() -> None:
    builder = Builder()
    one = builder.add(Data("one", (Fraction(1),)))
    x = builder.add(Input(Family.group("x", "n", (1.0,))))
    builder.output("x", builder.add(Scale(x, plain(20))))
    builder.output("one", one)
    run_dense(builder.finish(), 100, [0])
    with pytest.raises(Exploded, match="float32"):
        run_dense(builder.finish(), 100, [0], dtype="float32")


def test_powers_and_constants_that_overflow() -> None:
    for node in (
        lambda b, one: Scale(one, plain(400)),
        lambda b, one: Nonlin(RECIPROCAL_OF_ZERO, (), (one,)),
    ):
        builder = Builder()
        one = builder.add(Data("one", (Fraction(1),)))
        builder.output("y", builder.add(node(builder, one)))
        with pytest.raises(Exploded, match=r"%1 \(y\)"):
            run_dense(builder.finish(), 10, [0])


def test_one_seed_that_does_not_fit() -> None:
    with pytest.raises(OutOfMemory) as caught:
        run_dense(round_trip(None), 10**6, [0], memory_limit=10**9)
    text = str(caught.value)
    for part in (
        "1000000 x 1000000",
        "'W'",
        "7.28 TiB",
        "953.67 MiB",
        "smaller width",
        "backend='lazy'",
    ):
        assert part in text


def test_free_memory_is_the_default_limit() -> None:
    with pytest.raises(OutOfMemory):
        run_dense(round_trip(None), 2**24, [0])


def test_seeds_run_in_chunks_that_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    program = round_trip(None)
    need = plan_dense(program, {"n": 64}, 8).seed_bytes
    assert need >= 64 * 64 * 8
    counts: list[int] = []
    inner = dense._run_chunk

    def counted(job, seeds, *rest):
        counts.append(len(seeds))
        return inner(job, seeds, *rest)

    monkeypatch.setattr(dense, "_run_chunk", counted)
    run_dense(program, 64, range(7), memory_limit=3 * need + 1)
    assert counts == [3, 3, 1]


def test_an_allocation_that_fails_halves_the_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    program = round_trip(None)
    expected = run_dense(program, 10, range(5))
    inner = dense._run_chunk
    counts: list[int] = []

    def failing(job, seeds, *rest):
        counts.append(len(seeds))
        if len(seeds) > most:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory")
        return inner(job, seeds, *rest)

    monkeypatch.setattr(dense, "_run_chunk", failing)
    most = 2
    found = run_dense(program, 10, range(5))
    assert counts == [5, 2, 3, 1, 2]
    np.testing.assert_array_equal(found["zh", "value"], expected["zh", "value"])
    most = 0
    with pytest.raises(OutOfMemory, match="cpu refused it"):
        run_dense(program, 10, range(2))


def test_other_errors_of_the_library_are_not_taken_for_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def failing(*_):
        raise RuntimeError("something else")

    monkeypatch.setattr(dense, "_run_chunk", failing)
    with pytest.raises(TaskFailed, match="something else"):
        run_dense(round_trip(None), 10, range(2))


@pytest.mark.parametrize(
    ("width", "hint"), [(0, "at least 1"), (-3, "at least 1"), (2.5, "2.5"), ("x", "x")]
)
def test_widths_that_are_none(width: object, hint: str) -> None:
    with pytest.raises(UsageError, match=hint):
        run_dense(round_trip(None), width, [0])


def test_a_width_that_a_ratio_does_not_divide() -> None:
    program = round_trip(None, (Dim("n"), Dim("m", Fraction(2, 3))))
    with pytest.raises(UsageError, match=r"'m' .* multiples of 3: take 99"):
        run_dense(program, 100, [0])
    assert run_dense(program, 99, [0])["zh", "value"].shape == (1,)


def test_a_dimension_that_is_not_used_does_not_matter() -> None:
    builder = Builder((Dim("n"), Dim("m", Fraction(1, 7))))
    builder.output("x", builder.add(Input(Family.group("x", "n", (0.0,)))))
    assert run_dense(builder.finish(), 10, [0])["x", "mean"].shape == (1,)


@pytest.mark.parametrize(
    ("seeds", "hint"), [([], "no seeds"), ([-1], "-1"), ([0.5], "0.5"), ([1, 2, 1], "seed 1")]
)
def test_seeds_that_are_none(seeds: list, hint: str) -> None:
    with pytest.raises(UsageError, match=hint):
        run_dense(round_trip(None), 8, seeds)


def test_a_symbol_without_a_value() -> None:
    builder = Builder()
    one = builder.add(Data("one", (Fraction(1),)))
    builder.output("y", builder.add(Scale(one, Ex.symbol("a")), where="model.py:3"))
    with pytest.raises(ScaleError, match=r"model.py:3.*'a'.*values="):
        run_dense(builder.finish(), 10, [0])
    builder = Builder()
    one = builder.add(Data("one", (Fraction(1),)))
    builder.output("y", builder.add(Scale(one, Ex(), Ex.number(-1))))
    with pytest.raises(ScaleError, match="depth L"):
        run_dense(builder.finish(), 10, [0])


def test_a_program_without_outputs() -> None:
    with pytest.raises(ProgramError, match="no output"):
        run_dense(Builder().finish(), 10, [0])


def test_unknown_words() -> None:
    program = round_trip(None)
    for arguments in ({"dtype": "float63"}, {"device": "cdua"}, {"on_explode": "ignore"}):
        with pytest.raises(UnknownName, match=str(next(iter(arguments.values())))):
            run_dense(program, 8, [0], **arguments)


def test_interrupts_pass_through() -> None:
    def stop(fraction: float, text: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_dense(every_node(), 8, [0], progress=stop)


# ----------------------------------------------------------------------------------- devices, torch


def test_without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingBackend, match=r"pip install 'tpcalc\[torch\]'"):
        run_dense(round_trip(None), 8, [0])


def test_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    assert resolve_device("cpu").type == "cpu"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert resolve_device("auto").type == "cpu"
    with pytest.raises(MissingBackend, match=r"'cuda'.*device='cpu'"):
        resolve_device("cuda")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert str(resolve_device("cuda:1")) == "cuda:1"
    assert resolve_device("auto").type == "cuda"
    with pytest.raises(MissingBackend, match=r"cuda:0 to cuda:1"):
        resolve_device("cuda:2")
    assert resolve_dtype("bf16") is torch.bfloat16


def test_namespace_has_all_that_numpy_has() -> None:
    import torch

    numpy_names = {name for name in dir(NumpySpace()) if not name.startswith("_")}
    torch_names = {name for name in dir(TorchSpace(torch, torch.float64)) if name[0] != "_"}
    assert torch_names == numpy_names


@pytest.mark.parametrize(
    "name", ["exp", "log", "log1p", "sqrt", "tanh", "sin", "cos", "erf", "abs", "sign"]
)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_functions_of_one_variable(name: str, dtype: str) -> None:
    import torch

    atom = Atom(name, lambda xp, z: getattr(xp, name)(z), None)
    points = np.array([-2.5, -0.5, 0.0, 0.3, 4.0], dtype=dtype)
    space = TorchSpace(torch, getattr(torch, dtype))
    with np.errstate(all="ignore"):
        expected = evaluate(Fn(atom(Var(0)), 1), [points])
    found = run(lower(Fn(atom(Var(0)), 1)), space, [torch.from_numpy(points)])
    assert found.numpy().dtype == np.dtype(dtype)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6 if dtype == "float32" else 1e-13)
    assert getattr(space, name)(0.5) == pytest.approx(getattr(NumpySpace(), name)(0.5), rel=1e-14)


def test_functions_of_two_variables_take_floats_on_any_side() -> None:
    import torch

    space = TorchSpace(torch, torch.float32)
    z = torch.tensor([-1.0, 2.0, float("nan")], dtype=torch.float32)
    for found, expected in (
        (space.maximum(z, 0.0), [0, 2, np.nan]),
        (space.maximum(0.0, z), [0, 2, np.nan]),
        (space.minimum(z, 1), [-1, 1, np.nan]),
        (space.where(z > 0, 1.0, -1.0), [-1, 1, -1]),
        (space.where(z > 0, z, 0.0), [0, 2, 0]),
        (space.sign(z), [-1, 1, np.nan]),
    ):
        assert found.dtype == torch.float32
        np.testing.assert_array_equal(found.numpy(), expected)
    assert (space.maximum(1.0, 2), space.minimum(1.0, 2), space.where(True, 3.0, 4.0)) == (2, 1, 3)
    assert space.where(np.bool_(False), 3.0, 4.0) == 4


def test_a_constant_or_scalar_function_fills_its_vector() -> None:
    builder = Builder()
    x = builder.add(Input(Family.group("x", "n", (0.0,))))
    rate = builder.add(Data("rate", (Fraction(3),)))
    builder.output("seven", builder.add(Nonlin(Fn(const(7), 1), (x,))))
    builder.output("rate", builder.add(Nonlin(Fn(Par(0) ** 2, 1, 1), (x,), (rate,))))
    found = run_dense(builder.finish(), 5, range(2), dtype="float32")
    assert found["seven", "second_moment"].tolist() == [49, 49]
    assert found["rate", "mean"].tolist() == [9, 9]
