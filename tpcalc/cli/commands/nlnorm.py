"""``tpcalc nlnorm ACTIVATION``: an activation made for a nonlinearity coefficient."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from tpcalc.cli.asked import of_layers


@partial(of_layers, first="activation")
def nlnorm(
    typed: dict[str, Any],
    target: str,
    activation: str | None = None,
    method: str | None = None,
    network: str | None = None,
    share: str = "amount",
    out: Path | None = None,
    as_json: bool = False,
) -> None:
    """An activation of mean 0 and length 1 for a nonlinearity coefficient, with code of torch."""
    from tpcalc.cli.asked import asked_network
    from tpcalc.cli.show import answer, check_page
    from tpcalc.cli.values import activation as activation_of
    from tpcalc.cli.values import rational
    from tpcalc.errors import UsageError
    from tpcalc.practice.nlnorm import nlnorm as made

    check_page(out)
    if activation is None:
        if network is None:
            raise UsageError("there is no activation.", hint="Write tpcalc nlnorm relu --target 2.")
        activation = typed.pop("act", "relu")
    own, wanted = activation_of(activation), float(rational("--target", target))
    title, inside = activation, {}
    if network is not None:
        # Of a length that stays 1, with what is made for it.
        usual = {"act": own, "weights": "1"} if network in ("mlp", "resnet") else {}
        whole = asked_network(network, {**usual, **typed})
        inside = {"network": whole.network, "inputs": whole.inputs, "share": share}
        title = f"{activation} in {whole.title}"
    elif typed:
        said = f"--{next(iter(typed))}: it is of a network (--network)."
        raise UsageError(said, hint="Leave it out.")
    found = made(own, wanted, method, **inside)
    if out is not None:
        found.save(out)
    model = {"activation": activation, "target": wanted, "method": method, "network": network}
    answer("nlnorm", {**model, **typed}, found, title, as_json, written={"out": out})
