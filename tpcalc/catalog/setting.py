"""The training run that a setting of an experiment is."""

from __future__ import annotations

from tpcalc.catalog.architectures.mlp import MLP
from tpcalc.catalog.training import Training
from tpcalc.results import Setting

__all__ = ["run_of"]


def run_of(setting: Setting) -> Training:
    """The run of a setting, without its data.

    Args:
        setting: What is trained, and how.

    Raises:
        StudyError: A parameterization that is not defined for the optimizer, or an optimizer
            that is outside the theory.
        UsageError: A schedule shorter than the run, or groups that fit nothing.
        UnknownName: No such activation, parameterization, optimizer or schedule.

    Example:
        >>> run = run_of(Setting("tanh", "mup", 2, 64, optimizer="adam", schedule="linear"))
        >>> run.plain, [str(c) for c in run.tables[0].c]
        (False, ['0', '1/2', '0'])
    """
    return Training(
        MLP(setting.depth, setting.act, setting.bias),
        setting.parameterization,
        steps=setting.steps,
        optimizer=setting.optimizer,
        lr=setting.lr,
        schedule=setting.schedule,
        groups=setting.groups,
        loss="xent",
        batch=setting.batch,
    )
