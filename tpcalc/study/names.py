"""The catalogue names of a study, looked up all at once."""

from __future__ import annotations

from collections.abc import Iterator

from tpcalc.errors import TpcalcError
from tpcalc.study.schema import Study

__all__ = ["unknown_names"]


def unknown_names(study: Study) -> Iterator[tuple[str, str]]:
    """The key and the problem of every name that the catalogue does not have.

    Args:
        study: A study whose types and ranges are right.
    """
    from tpcalc.catalog.activations import lookup as activation
    from tpcalc.catalog.architectures import REGISTRY as ARCHITECTURES
    from tpcalc.catalog.losses import lookup as loss
    from tpcalc.catalog.optimizers import lookup as optimizer
    from tpcalc.catalog.parameterizations import lookup as parameterization

    model, training = study.model, study.training
    for key, find, name in (
        ("model.architecture", ARCHITECTURES.__getitem__, model.architecture),
        ("model.act", activation, model.act),
        ("model.param", parameterization, model.param),
        ("training.optimizer", optimizer, training.optimizer),
        ("training.loss", loss, training.loss),
    ):
        try:
            find(name)
        except TpcalcError as error:
            yield key, " ".join(part for part in (error.message, error.hint) if part)
