"""The training run that a setting of an experiment is."""

from __future__ import annotations

from tpcalc.errors import StudyError, UsageError
from tpcalc.networks.architectures.mlp import MLP
from tpcalc.results import Setting
from tpcalc.training.optimizer import TWO
from tpcalc.training.training import Training


def run_of(setting: Setting) -> Training:
    """The run of a setting, without its data.

    Example:
        >>> run = run_of(Setting("tanh", "mup", 2, 64, optimizer="adam", schedule="linear"))
        >>> run.plain, [str(c) for c in run.tables[0].c]
        (False, ['0', '1/2', '0'])
    """
    run = Training(
        MLP(setting.depth, setting.act, setting.bias),
        setting.parameterization,
        steps=setting.steps,
        optimizer=setting.optimizer,
        lr=setting.lr,
        schedule=setting.factors or setting.schedule or None,
        groups={pattern: dict(pairs) for pattern, pairs in setting.groups},
        loss="xent",
        batch=setting.batch,
    )
    for mark in run.network.marks:
        run.optimizer_of(mark).path(TWO)  # or it is refused
    _check_calibration(setting, run)
    return run


def _check_calibration(setting: Setting, run: Training) -> None:
    """Whether base rates of the first step can be found."""
    if not setting.calibrated:
        return
    if run.factors[0] != 1:
        raise UsageError(
            f"the rates of step 0 are calibrated, and the schedule has the factor "
            f"{run.factors[0]} there.",
            where=setting.text,
            hint="Take a schedule that begins at 1, or rates that are not calibrated.",
        )
    for mark in run.network.marks:
        optimizer = run.optimizer_of(mark)
        if not optimizer.is_linear_in_rate:
            raise StudyError(
                f"the rate of {mark.label} cannot be calibrated: the first step of "
                f"{optimizer.name} is no rate times a direction.",
                where=setting.text,
                hint="Write the update as 'w = w - lr (...)', or take rates that are given.",
            )
