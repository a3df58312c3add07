"""Families of modules: what make may be, what it may return, and what all widths share."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import nn

from tpcalc.errors import StudyError, TpcalcError, UnknownName, UsageError
from tpcalc.torch.family import family

pytestmark = pytest.mark.torch


class Net(nn.Module):
    """Two maps whose words are tied, and a norm."""

    def __init__(self, d_model: int, n_head: int = 1) -> None:
        super().__init__()
        assert d_model % n_head == 0, f"{n_head} heads do not divide {d_model}"
        self.words = nn.Embedding(7, d_model)
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, 7, bias=False)
        self.head.weight = self.words.weight
        self.scale = nn.Parameter(torch.ones(()), requires_grad=False)


def test_a_function_of_the_width() -> None:
    made = family(lambda n: Net(n))
    assert made.widths == (64, 128, 192, 320)
    assert {n: one.words.weight.shape for n, one in made.modules.items()} == {
        n: (7, n) for n in made.widths
    }
    assert isinstance(made.make(48), Net)
    assert [one.name for one in made.parameters] == [
        "scale",
        "words.weight",
        "norm.weight",
        "norm.bias",
    ]
    assert [one.trained for one in made.parameters] == [False, True, True, True]
    assert made.parameters[1].shapes[128] == (7, 128)
    assert all(one.training for one in made.modules.values())


def test_a_class_and_its_options() -> None:
    made = family(Net, width="d_model", options={"n_head": 4})
    assert made.name == "Net"
    assert made.widths[0] == 64
    assert family(Net).widths == made.widths  # one argument needs a value


def test_ties_and_lines() -> None:
    made = family(Net)
    words = made.parameters[1]
    assert words.names == ("words.weight", "head.weight")
    start = Net.__init__.__code__.co_firstlineno
    assert words.line == f"test_family.py:{start + 3}"
    assert made.parameters[0].line == f"test_family.py:{start + 7}"
    (note,) = made.notes
    assert note.startswith(f"head.weight (test_family.py:{start + 6}) is words.weight")


def test_a_layer_of_the_library_has_no_line_of_the_user() -> None:
    assert family(partial(nn.Linear, 3)).parameters[0].line == ""


def test_a_declaration_holds_for_all_names_of_a_tie() -> None:
    made = family(Net, init={"head.weight": "n^(-1)"})
    assert made.parameters[1].init.text == "normal, std 1 n^(-1)"
    with pytest.raises(UnknownName, match=r"no parameter called 'heads\.weight'"):
        family(Net, init={"heads.weight": "n^(-1)"})


def test_widths_that_the_constructor_refuses_are_passed_over() -> None:
    made = family(Net, width="d_model", options={"n_head": 12})
    assert made.widths == (96, 192, 288, 480)
    assert "Net(64) raised AssertionError: 12 heads do not divide 64" in made.notes[0]
    assert "(96, 192, 288, 480)" in made.notes[0]
    chosen = family(Net, (240, 60, 120), width="d_model", options={"n_head": 12})
    assert chosen.widths == (60, 120, 240)


def test_the_generator_is_put_back_and_draws_repeat() -> None:
    torch.manual_seed(3)
    expected = torch.rand(3)
    torch.manual_seed(3)
    first, second = family(Net), family(Net)
    assert torch.rand(3).equal(expected)
    for n in first.widths:
        assert first.modules[n].words.weight.equal(second.modules[n].words.weight)


def breaks(n: int) -> nn.Module:
    return nn.Linear(n, n // (n - n))


def test_nothing_is_left_behind() -> None:
    plain = nn.init._no_grad_trunc_normal_
    family(Net)
    with pytest.raises(StudyError, match=r"test_family.py:\d+: breaks\(64\) raised ZeroDivision"):
        family(breaks)
    assert nn.init._no_grad_trunc_normal_ is plain
    assert not nn.modules.module._global_parameter_registration_hooks
    assert torch.utils._python_dispatch._get_current_dispatch_mode() is None


def in_parts(n: int) -> nn.Module:
    """Two parameters cut out of one storage."""
    both = torch.empty(3 * n)
    net = nn.ParameterList([both[:n], both[n:]])
    nn.init.normal_(net[0], std=n**-0.5)
    nn.init.ones_(net[1])
    return net


def test_parameters_cut_out_of_one_storage_are_apart() -> None:
    assert [one.init.text for one in family(in_parts).parameters] == [
        "normal, std 1 n^(-1/2)",
        "constant 1",
    ]


def test_half_precision_is_read_in_single() -> None:
    made = family(lambda n: nn.Linear(n, n).bfloat16())
    assert made.notes == ("Parameters are torch.bfloat16: they are read as torch.float32.",)
    assert made.modules[64].weight.dtype is torch.float32
    assert made.parameters[0].init.how == "read"


def in_place(n: int) -> nn.Module:
    net = nn.Linear(n, n)
    net.compile()
    return net


WRAPPED: dict[str, tuple[Callable[[int], Any], tuple[str, ...]]] = {
    "parallel": (
        lambda n: nn.DataParallel(nn.Linear(n, n)),
        ("The module inside of DataParallel is read.",),
    ),
    "compiled": (
        lambda n: torch.compile(nn.Linear(n, n)),
        ("The module inside of torch.compile is read.",),
    ),
    "compiled in place": (in_place, ()),
}


@pytest.mark.parametrize(("make", "notes"), WRAPPED.values(), ids=list(WRAPPED))
def test_wrappers_are_taken_off(make: Callable[[int], Any], notes: tuple[str, ...]) -> None:
    made = family(make)
    assert made.notes == notes
    assert [one.name for one in made.parameters] == ["weight", "bias"]
    assert all(type(one) is nn.Linear for one in made.modules.values())
    assert made.modules[64]._compiled_call_impl is None


def test_wrappers_inside_of_a_module_are_taken_off() -> None:
    made = family(lambda n: nn.Sequential(nn.DataParallel(nn.Linear(n, n)), nn.ReLU()))
    assert [one.name for one in made.parameters] == ["0.weight", "0.bias"]


def test_buffers_with_numbers_are_named() -> None:
    def make(n: int) -> nn.Module:
        net = nn.BatchNorm1d(n)
        net.register_buffer("features", torch.randn(n))
        net.register_buffer("turns", torch.ones(n, dtype=torch.cfloat))
        return net

    assert family(make).notes == (
        "Buffers are read as constants, as nothing trains them: features.",
    )


SHARED = nn.Linear(3, 3)


def viewed(n: int) -> nn.Module:
    net = nn.ParameterList([torch.randn(7, n)])
    net.append(nn.Parameter(net[0].detach().t()))
    return net


def by_chance(n: int) -> nn.Module:
    return nn.Linear(n, random.randrange(10**9, 10**9 + 10**6) // 10**6 + next(CALLS))


def started_by_chance(n: int) -> nn.Module:
    return nn.ParameterList([torch.randn(n) * next(CALLS)])


CALLS = iter(range(1, 1000))
WRONG: dict[str, tuple[Any, type[TpcalcError], str]] = {
    "no function": (3, UsageError, "of the type int; it must be a function of the width"),
    "a module": (SHARED, UsageError, r"One module says nothing .* def make\(n\)"),
    "no argument": (lambda: Net(3), UsageError, r"cannot be called with a width: too many"),
    "no module": (lambda n: {"n": n}, StudyError, "of the type dict. make returns a torch.nn.Mod"),
    "nothing": (lambda n: None, StudyError, "of the type NoneType"),
    "no width named": (nn.Linear, UsageError, r"in_features.*which of its arguments .* width='d_m"),
    "the same twice": (lambda n: SHARED, StudyError, "return the same weight. Build the whole"),
    "nothing grows": (lambda n: nn.Linear(3, 3), StudyError, "No parameter of .* grows with n"),
    "chance": (by_chance, StudyError, r"called twice, makes modules that differ: one has weight"),
    "chance in inits": (
        started_by_chance,
        StudyError,
        r"twice, .* differ: one has 0 .*normal, mean 0, std",
    ),
    "depth grows": (
        lambda n: nn.Sequential(*[nn.Linear(n, n) for _ in range(n // 64)]),
        StudyError,
        r"\(64\) and <lambda>\(128\) differ beyond sizes: one has no more, .* 1.weight of 2 axes",
    ),
    "axes grow": (
        lambda n: nn.ParameterList([torch.ones(n, *[1] * (n > 64))]),
        StudyError,
        "one has 0 of 1 axes, the other 0 of 2 axes",
    ),
    "meta": (
        lambda n: nn.Linear(n, n, device="meta"),
        StudyError,
        r"test_family.py:\d+: weight lies on the device meta. Build it on the cpu",
    ),
    "lazy": (nn.LazyLinear, StudyError, "weight has no shape yet. Call the module on an example"),
    "not trained": (lambda n: Net(n).requires_grad_(False), StudyError, "no parameter that is tr"),
    "two views": (viewed, StudyError, "0 and 1 are two views of one storage. Register one"),
    "complex": (
        lambda n: nn.ParameterList([torch.ones(n, dtype=torch.cfloat)]),
        StudyError,
        r"0 is torch.complex64 of shape \(64,\): it cannot be read. Register real numbers",
    ),
    "empty": (lambda n: nn.ParameterList([torch.ones(0)]), StudyError, r"shape \(0,\): it cannot"),
    "scripted": (
        lambda n: torch.jit.trace(nn.Linear(n, n), torch.ones(1, n)),
        StudyError,
        "TopLevelTracedModule cannot be read. Return the plain module",
    ),
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:Lazy")
@pytest.mark.parametrize(("make", "kind", "words"), WRONG.values(), ids=list(WRONG))
def test_what_is_no_family(make: Any, kind: type[TpcalcError], words: str) -> None:
    with pytest.raises(kind, match=words):
        family(make)


@pytest.mark.parametrize(
    ("how", "kind", "words"),
    [
        ({"width": "d_modl"}, UsageError, "d_model"),
        ({"width": "d_model", "options": {"heads": 3}}, UsageError, "unexpected keyword .*'heads'"),
        ({"widths": (64, 128)}, UsageError, r"widths are \[64, 128\]; there must be three"),
        ({"widths": (64, 128, 0)}, UsageError, "a width is 0"),
        ({"widths": (60, 120, 250), "options": {"n_head": 12}}, StudyError, "250.*do not divide"),
    ],
)
def test_arguments_that_do_not_fit(how: dict[str, Any], kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        family(Net, **how)
