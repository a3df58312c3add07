"""Errors about two layers of a network, of which one is asked as a function of the other."""

from __future__ import annotations

from tpcalc.errors import UsageError


def no_such_layers(start: int, end: int, last: int) -> UsageError:
    """The error where two layers are not there in this order."""
    return UsageError(
        f"there are no layers {start} and {end} in this order.",
        hint=f"They are numbered from 0 to {last}.",
    )


def no_bottleneck(start: int, end: int) -> UsageError:
    """The error where a path leads around a layer."""
    return UsageError(
        f"layer {start} is no bottleneck for layer {end}: there is a path around it.",
        hint="Take a layer that every path leads through.",
    )


def not_made_from(what: str, layer: int) -> UsageError:
    """The error where something is not a function of a layer."""
    return UsageError(
        f"{what} is not computed from the layer {layer} that the network gives.",
        hint="A network's layers are the tensors that later ones are made from.",
    )
