"""Comparisons against numbers by hand, and where there is nothing to compare."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm
from scipy.stats import t as student

from tpcalc.errors import EvaluationError, ProgramError, UsageError
from tpcalc.questions.compare import compare
from tpcalc.results import (
    Estimate,
    Exponent,
    FiniteRow,
    FiniteTable,
    LimitTable,
    Method,
    Provenance,
    ScalarRow,
    VectorRow,
)


def about(digest: str = "d1", **settings: str) -> Provenance:
    return Provenance("0.1.0", digest, 7, tuple(settings.items()), (("numpy", "2"),), seconds=1.5)


def number(value: float, stderr: float = 0.0, std: float | None = None) -> Estimate:
    return Estimate(value, stderr, Method.PARTICLES, std=std)


def scalar(name: str, value: float, stderr: float = 0.0, **kwargs) -> ScalarRow:
    return ScalarRow(name, number(value, stderr, kwargs.pop("std", None)), **kwargs)


def limits(*rows: ScalarRow | VectorRow) -> LimitTable:
    scalars = tuple(row for row in rows if isinstance(row, ScalarRow))
    vectors = tuple(row for row in rows if isinstance(row, VectorRow))
    return LimitTable(scalars, vectors, about(samples="1024"))


def networks(values: dict[tuple[str, str, int], list[float]], **settings: str) -> FiniteTable:
    rows = tuple(FiniteRow(*key, tuple(found)) for key, found in values.items())
    widths = tuple(dict.fromkeys(width for _, _, width in values))
    seeds = len(next(iter(values.values())))
    return FiniteTable(rows, widths, seeds, "dense", about(**settings))


def score(gap: float, known: float, found: float, freedom: int) -> float:
    """The Gaussian score of a difference, one error known and one with so many degrees of freedom.

    Welch and Satterthwaite, and the tails of both laws from scipy.
    """
    whole = math.hypot(known, found)
    tail = student.sf(gap / whole, freedom * (whole / found) ** 4)
    return float(-norm.ppf(tail))


def test_scalar_by_hand() -> None:
    found = compare(
        limits(scalar("f[1,0]", 2.0, 0.3)), networks({("f[1,0]", "value", 64): [2.0, 3.0, 4.0]})
    )
    (row,) = found.rows
    # Mean 3, standard deviation 1, standard error 1/sqrt(3) with 2 degrees of freedom.
    assert (row.name, row.statistic, row.width, row.seeds) == ("f[1,0]", "value", 64, 3)
    assert (row.limit, row.limit_stderr, row.mean) == (2.0, 0.3, 3.0)
    assert row.stderr == pytest.approx(3**-0.5)
    assert row.z == pytest.approx(score(1, 0.3, 3**-0.5, 2), rel=1e-9)
    assert row.z < 1 / math.sqrt(0.09 + 1 / 3)
    assert row.limit_std is None and row.finite_std == pytest.approx(1.0)


def test_distance_has_no_sign() -> None:
    table = networks({("c", "value", 8): [0.0, 1.0]})
    above, below = (compare(limits(scalar("c", c)), table).rows[0] for c in (1.5, -0.5))
    assert above.z == below.z == pytest.approx(score(1, 0, 0.5, 1))


def test_vectors_by_both_moments_in_the_order_of_the_limit_and_the_widths() -> None:
    h = VectorRow("h[1,0,0]", number(0.0), number(1.0, 0.01))
    values = {
        ("h[1,0,0]", statistic, width): [0.9, 1.1]
        for statistic in ("second_moment", "mean")
        for width in (256, 64)
    }
    values["c", "value", 64] = [1.0, 2.0]
    found = compare(limits(h, scalar("c", 1.0)), networks(values))
    assert [(row.name, row.statistic, row.width) for row in found.rows] == [
        ("c", "value", 64),
        ("h[1,0,0]", "mean", 64),
        ("h[1,0,0]", "mean", 256),
        ("h[1,0,0]", "second_moment", 64),
        ("h[1,0,0]", "second_moment", 256),
    ]
    assert found.rows[1].z == pytest.approx(score(1, 0, 0.1, 1))
    assert found.rows[3].z == pytest.approx(0.0, abs=1e-12)


def test_random_scalars_compare_means_and_report_both_spreads() -> None:
    values = {("f", "value", width): [-1.0, 1.0, 3.0] for width in (64, 128, 256)}
    found = compare(limits(scalar("f", 0.0, 0.5, std=1.8)), networks(values))
    row = found.rows[0]
    assert row.z == pytest.approx(score(1, 0.5, 2 / math.sqrt(3), 2))
    assert (row.limit_std, row.finite_std) == (1.8, 2.0)
    (line,) = found.slopes
    assert line.slope is None and "random in the limit" in line.note


def test_powers_of_n_are_taken_out_of_finite_values() -> None:
    # The limit is that of n^(1/2) c and of n h: c is divided by n^(-1/2), h by n^(-1).
    c = scalar("c", 2.0, n_power=Exponent.of("-1/2"))
    h = VectorRow("h", number(1.0), number(4.0), n_power=Exponent.of("-1"))
    found = compare(
        limits(c, h),
        networks(
            {
                ("c", "value", 100): [0.1, 0.3],
                ("h", "mean", 100): [0.01, 0.03],
                ("h", "second_moment", 100): [4e-4, 6e-4],
            }
        ),
    )
    assert [row.mean for row in found.rows] == pytest.approx([2.0, 2.0, 5.0])
    assert [row.stderr for row in found.rows] == pytest.approx([1.0, 1.0, 1.0])
    one = score(1, 0, 1, 1)
    assert [row.z for row in found.rows] == pytest.approx([0.0, one, one], abs=1e-12)
    assert "compared after division by n^(-1/2): c." in found.notes


def test_slope_of_the_error() -> None:
    rng = np.random.default_rng(0)
    values = {("c", "value", n): list(1.0 + rng.normal(size=100) / n) for n in (256, 64, 1024)}
    (line,) = compare(limits(scalar("c", 1.0)), networks(values)).slopes
    assert line.low < -1 < line.high and line.high - line.low < 0.3 and line.note == ""
    (line,) = compare(limits(scalar("c", 1.0, stderr=0.01)), networks(values)).slopes
    assert line.slope is not None and "raise the samples" in line.note


def test_no_slope_through_two_widths() -> None:
    values = {("c", "value", n): [1.0, 2.0] for n in (64, 256)}
    (line,) = compare(limits(scalar("c", 1.0)), networks(values)).slopes
    assert line.slope is None and "at least 3" in line.note


def test_names_that_only_one_side_has_are_listed() -> None:
    found = compare(
        limits(scalar("a", 1.0), scalar("b", 1.0)),
        networks({("b", "value", 8): [1.0, 2.0], ("c", "value", 8): [1.0, 2.0]}),
    )
    assert {row.name for row in found.rows} == {"b"}
    assert "only the limit has a: not compared." in found.notes
    assert "only the finite networks have c: not compared." in found.notes


def test_long_lists_of_names_are_counted() -> None:
    rows = [scalar(f"a[{index}]", 1.0) for index in range(20)]
    found = compare(limits(*rows), networks({("c", "value", 8): [1.0, 2.0]}))
    assert found.notes[0].endswith("a[5] and 14 more: not compared.")


def test_what_limit_returns_is_taken_and_nothing_else() -> None:
    class Answer:
        table = limits(scalar("c", 1.0))

    table = networks({("c", "value", 8): [1.0, 2.0]})
    assert compare(Answer(), table) == compare(Answer.table, table)
    with pytest.raises(UsageError, match=r"compare is \{\}, not.* LimitTable.*tp.limit"):
        compare({}, table)
    with pytest.raises(UsageError, match=r"compare is \[\], not.* FiniteTable.*tp.simulate"):
        compare(Answer.table, [])


@pytest.mark.parametrize(
    ("dtype", "value", "z"),
    [
        ("float64", 0.1, 0.0),
        ("float64", 0.1 * (1 + 1e-15), 0.0),
        ("float64", 0.1 * (1 + 1e-7), math.inf),
        ("float32", 0.1 * (1 + 1e-7), 0.0),
        ("bf16", 0.1 * (1 + 1e-3), 0.0),
        ("bf16", 0.2, math.inf),
    ],
)
def test_two_numbers_without_error_agree_up_to_rounding(dtype: str, value: float, z: float) -> None:
    values = {("c", "value", n): [value] * 3 for n in (64, 128, 256)}
    found = compare(limits(scalar("c", 0.1)), networks(values, dtype=dtype))
    assert [row.z for row in found.rows] == [z] * 3
    (line,) = found.slopes
    assert line.slope is None
    assert ("up to rounding" if z == 0 else "does not vary") in line.note


def test_two_zeros_agree() -> None:
    found = compare(limits(scalar("c", 0.0)), networks({("c", "value", 8): [0.0, 0.0]}))
    assert found.rows[0].z == 0


def test_tiny_numbers_are_told_apart() -> None:
    table = networks({("c", "value", 8): [2e-20, 3e-20, 4e-20]})
    (row,) = compare(limits(scalar("c", 1e-20)), table).rows
    assert row.z == pytest.approx(score(2, 0, 3**-0.5, 2))


def test_two_seeds_are_no_certainty() -> None:
    """A standard error of two seeds is small by chance: 39 of them are one case in 61."""
    (row,) = compare(limits(scalar("c", 0.0)), networks({("c", "value", 8): [38.0, 40.0]})).rows
    assert 39 * row.stderr == row.mean and row.z == pytest.approx(2.40, abs=0.005)
    many = [38.0, 40.0] * 500
    (row,) = compare(limits(scalar("c", 0.0)), networks({("c", "value", 8): many})).rows
    assert row.z > 70


def test_scores_of_few_seeds_are_those_of_a_gaussian() -> None:
    """Of Gaussian seeds at any number, 1 in 20 is beyond 1.96 (4 standard errors of 4000 cases)."""
    for seeds in (2, 3, 8):
        draws = np.random.default_rng(seeds).normal(size=(4000, seeds))
        values = {(f"c{i}", "value", 8): row.tolist() for i, row in enumerate(draws)}
        found = compare(limits(*(scalar(f"c{i}", 0.0) for i in range(4000))), networks(values))
        beyond = sum(row.z > 1.96 for row in found.rows) / 4000
        assert abs(beyond - 0.05) < 4 * (0.05 * 0.95 / 4000) ** 0.5


def test_exploded_seeds_and_limits_are_left_out_with_a_note() -> None:
    values = {("c", "value", 8): [1.0, math.nan], ("c", "value", 16): [1.0, 2.0]}
    found = compare(limits(scalar("c", 1.0)), networks(values))
    assert [row.width for row in found.rows] == [16]
    assert any("c at width 8: 1 of 2 seeds have no finite value" in note for note in found.notes)
    found = compare(limits(scalar("c", math.nan)), networks(values))
    assert not found.rows and any("the limit has no finite value" in n for n in found.notes)


def test_a_power_that_is_a_formula_is_not_compared() -> None:
    found = compare(
        limits(scalar("c", 1.0, n_power=Exponent.of("1/2 - a"))),
        networks({("c", "value", 8): [1.0, 2.0]}),
    )
    assert not found.rows and any("n^(1/2 - a)" in note for note in found.notes)


def test_different_programs_are_refused() -> None:
    table = LimitTable((scalar("c", 1.0),), (), about("other"))
    with pytest.raises(ProgramError, match=r"other.*d1.*same program"):
        compare(table, networks({("c", "value", 8): [1.0, 2.0]}))


def test_one_seed_is_refused() -> None:
    with pytest.raises(EvaluationError, match=r"1 seed .*at least two"):
        compare(limits(scalar("c", 1.0)), networks({("c", "value", 8): [1.0]}))


def test_provenance_tells_both_sides() -> None:
    found = compare(
        limits(scalar("c", 1.0)), networks({("c", "value", 8): [1.0, 2.0]}, dtype="float32")
    ).provenance
    settings = dict(found.settings)
    assert settings["limit samples"] == "1024" and settings["finite dtype"] == "float32"
    assert (settings["limit seed"], settings["finite seed"]) == ("7", "7")
    assert (settings["widths"], settings["seeds"], settings["backend"]) == ("8", "2", "dense")
    assert (found.program_digest, found.seconds, found.libraries) == ("d1", 3.0, (("numpy", "2"),))
