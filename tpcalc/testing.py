"""Checks of modules of torch for test suites: ``from tpcalc.testing import assert_learns``."""

from __future__ import annotations

from typing import Any

from tpcalc.finite.networks.parity import differences
from tpcalc.questions.first_order import first_order
from tpcalc.results import FirstOrder
from tpcalc.results.first_order import FINE
from tpcalc.torch.training import Make, network, training

LEARNS = ("feature learning",)


def assert_same_numbers(make: Make, inputs: Any, tolerance: float = 1e-10, **given: Any) -> None:
    """Check that modules and the network that is read of them are one function.

    Outputs, and gradients of every parameter, are compared at the smallest width in double
    precision: a test of rules of one's own (``tp.torch.rule``), which needs no theory.

    Args:
        make: As for ``tp.torch.network``.
        inputs: As for ``tp.torch.network``.
        tolerance: The largest difference, relative to what is compared.
        given: The other arguments of ``tp.torch.network``.

    Raises:
        AssertionError: They differ; it names the parameters.

    Example:
        >>> from tpcalc.engine.device.devices import load_torch
        >>> nn = load_torch().nn
        >>> def make(n):
        ...     return nn.Sequential(nn.Linear(3, n), nn.Tanh(), nn.Linear(n, 2))
        >>> assert_same_numbers(make, load_torch().ones(4, 3))
    """
    found = differences(network(make, inputs, eps=True, **given), inputs)
    wrong = {name: apart for name, apart in found.items() if not apart <= tolerance}
    if wrong:
        told = ", ".join(f"{name} by {apart:.1e}" for name, apart in wrong.items())
        raise AssertionError(f"the module and the network that is read of it differ: {told}")


def assert_learns(make: Make, inputs: Any, *, maximal: bool = True, **given: Any) -> FirstOrder:
    """Check that first steps are stable, change features, and move every parameter.

    Args:
        make: As for ``tp.torch.training``.
        inputs: As for ``tp.torch.training``.
        maximal: Whether every parameter has to learn, at the first step or later.
        given: ``optimizer`` and what else ``tp.torch.training`` takes.

    Returns:
        The verdict of first steps.

    Raises:
        AssertionError: They do not; it names the first fact that decides, and the parameters.

    Example:
        >>> from tpcalc.engine.device.devices import load_torch
        >>> nn = load_torch().nn
        >>> def make(n):
        ...     return nn.Sequential(nn.Linear(3, n), nn.Tanh(), nn.Linear(n, 2))
        >>> assert_learns(make, load_torch().ones(4, 3), optimizer="adam(lr=1e-3)")
        Traceback (most recent call last):
        ...
        AssertionError: ...
    """
    found = first_order(training(make, inputs, **given))
    if found.word not in LEARNS:
        raise AssertionError(f"{found.word}: {found.facts[0] if found.facts else ''}")
    still = [f"{row.name} {row.word}" for row in found.rows if row.word not in FINE]
    if maximal and still:
        raise AssertionError(f"{found.word}, and not every parameter learns: {', '.join(still)}")
    return found
