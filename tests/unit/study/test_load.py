"""Study files and flags: what is read, and that every problem is told at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tpcalc.errors import StudyError, UsageError
from tpcalc.study import Flag, Study, load, study_of
from tpcalc.training.optimizers import lookup

FULL = """
[model]
architecture = "mlp"
depth = 4
act = "relu^2"
param = "ip-llr"
p = 2
bias = "first"

[training]
optimizer = "sgd"
lr = 1
loss = "mse"
steps = 2
data = "digits"
samples = 6
batch = 2
query = "more.csv"
watch = ["h"]
classes = [3, 8]
seed = 5

[limit]
samples = 1024
replicates = 4
rel_error = 0.01
max_samples = 4096
storage = "float32"
threads = 2
seed = 7

[simulate]
widths = [64, 128]
seeds = 3
backend = "dense"
device = "cuda:1"
dtype = "float32"
threads = 1
seed = 8
values = {a = "1/2"}
outputs = ["f*", "-f[1,0]"]
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "study.toml"
    path.write_text(text, encoding="utf-8")
    return path


def problems(sections: dict[str, object], *flags: Flag) -> str:
    with pytest.raises(StudyError) as caught:
        study_of(sections, flags)  # type: ignore[arg-type]
    return f"{caught.value.where}: {caught.value.told}"


def test_every_key_is_read(tmp_path: Path) -> None:
    study = load(written(tmp_path, FULL))
    assert study.model.model_dump(exclude_unset=True) == {
        "architecture": "mlp",
        "depth": 4,
        "act": "relu^2",
        "param": "ip-llr",
        "p": 2.0,
        "bias": "first",
    }
    assert study.training.classes == (3, 8)
    assert (study.training.lr, study.training.batch, study.training.watch) == (1.0, 2, ("h",))
    assert study.limit.rel_error == 0.01
    assert study.simulate.widths == (64, 128)
    assert set(study.simulate.model_fields_set) == set(type(study.simulate).model_fields)


def test_an_empty_file_is_the_default_study(tmp_path: Path) -> None:
    assert load(written(tmp_path, "")) == Study() == study_of({})


def test_data_files_lie_beside_the_study(tmp_path: Path) -> None:
    study = load(written(tmp_path, '[training]\ndata = "a.csv"\nquery = "b.csv"\n'))
    assert study.training.data == str(tmp_path / "a.csv")
    assert study.training.query == str(tmp_path / "b.csv")
    assert load(written(tmp_path, '[training]\ndata = "digits"\n')).training.data == "digits"


def test_optimizers_lie_beside_the_study(tmp_path: Path) -> None:
    (tmp_path / "slow.opt").write_text("optimizer slow(b=1/2)\nm = b m + g\nw = w - lr sign(m)")
    path = tmp_path / "study.toml"
    path.write_text(
        '[training]\noptimizer = "slow.opt"\n[training.groups.hidden]\noptimizer = "slow.opt"'
    )
    training = load(path).training
    assert training.optimizer == training.groups["hidden"]["optimizer"]
    assert lookup(training.optimizer).name == "slow"


def test_flags_come_before_the_file_and_paths_of_flags_are_as_typed(tmp_path: Path) -> None:
    path = written(tmp_path, '[model]\ndepth = 2\nact = "tanh"\n[training]\ndata = "a.csv"\n')
    flags = [Flag("--depth", "model.depth", 5), Flag("--data", "training.data", "b.csv")]
    study = load(path, flags)
    assert (study.model.depth, study.model.act, study.training.data) == (5, "tanh", "b.csv")


def test_a_data_flag_replaces_inline_numbers() -> None:
    sections = {"training": {"inputs": [[1.0]], "targets": [1.0]}}
    study = study_of(sections, [Flag("--data", "training.data", "digits")])
    assert study.training.inputs is None
    assert sections["training"]["inputs"] == [[1.0]]


def test_inline_targets_may_be_rows() -> None:
    study = study_of({"training": {"inputs": [[1, 2]], "targets": [3]}})
    assert study.training.targets == [[3.0]]
    study = study_of({"training": {"inputs": [[1, 2]], "targets": [[3, 4]]}})
    assert study.training.targets == [[3.0, 4.0]]


def test_all_problems_at_once_with_their_keys() -> None:
    told = problems(
        {
            "model": {"depth": 0, "act": "rleu", "param": "mupp", "bias": "some"},
            "training": {"lr": float("nan"), "steps": "3", "loss": "mce", "classes": [1, 22]},
            "limit": {"samples": 1000, "rel_error": 2.0},
            "simulate": {"widths": [], "backend": "fast"},
        }
    )
    for line in (
        "11 more: ",
        "model.depth: it should be greater than or equal to 1; it is 0.",
        "model.act: there is no activation called 'rleu'. Did you mean 'relu'",
        "model.param: there is no parameterization called 'mupp'. Did you mean 'mup'",
        "model.bias: it should be 'none', 'first', 'hidden' or 'all'; it is 'some'.",
        "training.lr: it should be a finite number; it is nan.",
        "training.steps: it should be a valid integer; it is '3'.",
        "training.loss: there is no loss called 'mce'. Did you mean 'mse'",
        "training.classes.1: it should be less than or equal to 9; it is 22.",
        "limit.samples: it should be a power of two, such as 512 or 1024; it is 1000.",
        "limit.rel_error: it should be less than 1; it is 2.0.",
        "simulate.widths: it should have 1 or more entries; it is [].",
        "simulate.backend: it should be 'lazy' or 'dense'; it is 'fast'.",
    ):
        assert line in told


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"modell": {}}, "modell: there is no such section. Did you mean model, module?"),
        ({"xyz": {}}, "xyz: there is no such section. Known sections: model, module, training, "),
        ({"model": {"dept": 3}}, "model.dept: there is no such key. Did you mean depth?"),
        ({"limit": {"seeds": 3}}, "limit.seeds: there is no such key. Did you mean seed"),
        ({"model": 3}, "model: a section with keys is needed, not 3."),
        ({"model": {"depth": 2.5}}, "model.depth: it should be a valid integer; it is 2.5."),
        ({"model": {"depth": True}}, "model.depth: it should be a valid integer; it is True."),
        ({"model": {"p": 2}}, "model.p: there is no parameter of mup called 'p'."),
        ({"model": {"architecture": "mpl"}}, "there is no architecture called 'mpl'"),
        ({"model": {"act": "leaky_relu:a"}}, "model.act: slope of leaky_relu must be a number"),
        ({"training": {"optimizer": "sdg"}}, "there is no optimizer called 'sdg'"),
        ({"training": {"inputs": [[1]]}}, "training.targets: inputs and targets belong together"),
        (
            {"training": {"data": "digits", "inputs": [[1]], "targets": [1]}},
            "training.data: data and inputs exclude each other",
        ),
        ({"training": {"inputs": [["a"]], "targets": [1]}}, "training.inputs.0.0: it should be"),
        ({"training": {"targets": 4, "inputs": [[1]]}}, "training.targets: it should be a valid"),
        ({"simulate": {"widths": [0]}}, "simulate.widths.0: it should be greater than or equal"),
    ],
)
def test_single_problems(sections: dict[str, object], message: str) -> None:
    told = problems(sections)
    assert message in told
    assert "more: " not in told


def test_a_bad_flag_is_named_as_typed_and_is_wrong_usage() -> None:
    flags = [Flag("--particles", "limit.samples", 3), Flag("--widths", "simulate.widths", [0])]
    with pytest.raises(UsageError) as caught:
        study_of({}, flags)
    assert "--particles: it should be a power of two, such as 2 or 4; it is 3." in str(caught.value)
    assert "--widths: it should be greater than or equal to 1; it is 0." in str(caught.value)
    assert caught.value.exit_code == 2


def test_a_bad_flag_beside_a_bad_key_is_the_file_s_problem() -> None:
    with pytest.raises(StudyError) as caught:
        study_of({"model": {"depth": 0}}, [Flag("--lr", "training.lr", -1.0)], where="a.toml")
    assert caught.value.exit_code == 3
    assert "a.toml" in str(caught.value) and "model.depth" in str(caught.value)
    assert "--lr: it should be greater than or equal to 0; it is -1.0." in str(caught.value)


def test_bad_files(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=r"this is not TOML: .*line 2"):
        load(written(tmp_path, "[model]\ndepth = = 3\n"))
