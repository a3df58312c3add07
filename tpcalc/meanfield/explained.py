"""Which properties of the nonlinearity coefficient follow from its limit: a checklist."""

from __future__ import annotations

from typing import Any, cast

from tpcalc import checks
from tpcalc.meanfield.concrete import concrete
from tpcalc.meanfield.covariance import bandwidth
from tpcalc.meanfield.network import network_of
from tpcalc.meanfield.nonlinearity import nlc, path_nlc
from tpcalc.meanfield.operations import Input, batches
from tpcalc.meanfield.reading import Layers, layers
from tpcalc.nonlinearity.tensors.coefficient import measured_nlc
from tpcalc.nonlinearity.tensors.functions import gaussian_inputs
from tpcalc.nonlinearity.tensors.layers import layerwise_nlc
from tpcalc.results.nonlinearity import Explained
from tpcalc.shown import Rows


def explained(
    network: Layers, width: int = 128, seeds: int = 4, samples: int = 250, seed: int = 0
) -> tuple[Explained, ...]:
    """Properties of the coefficient at the start of training, each as a number beside the limit n.

    Other data of the same q and c, the seed that is farthest off, NLCFROB, the covariance kernel,
    the layers one by one, a quarter of the width, the weights as they are, and all paths give n.

    Args:
        network: The network.
        width: n of the networks that are drawn.
        seeds: How many.
        samples: Inputs.
        seed: The first seed.

    Returns:
        A row for each property; narrow networks at the edge of Gaussian stability, and unstable
        ones, keep fewer of them.

    Raises:
        UsageError: Counts that are too small.
        StudyError: A network that the recursion does not follow.

    Source: Schoenherr, The nonlinearity coefficient, section 5.5.

    Example:
        >>> from tpcalc.meanfield.notation.architectures import Design, mlp
        >>> rows = explained(mlp(2, Design("tanh", 1.5)), width=64, seeds=2, samples=100)
        >>> len(rows), all(row.holds for row in rows[3:4])
        (8, True)
    """
    wide, seeds = checks.whole(width, "width", least=8), checks.whole(seeds, "seeds", least=1)
    limit = nlc(network).value
    sizes = [(wide, seed + k) for k in range(seeds)]
    networks = [_drawn(network, samples, *own) for own in (*sizes, (wide // 4, seed))]
    *found, narrow = [measured_nlc(f, x, **more) for f, x, more in networks]
    first, x, more = networks[0]
    centre = x.mean(dim=0)
    other = measured_nlc(first, centre + x.std(dim=0) * (x - centre).sign(), **more)
    farthest = max(found, key=lambda own: abs(own.nlc.value - limit))
    rows = {
        "data: components of two values, with the same q and c (4.4.2)": other.nlc,
        "initialization: the seed that is farthest off (4.4.3)": farthest.nlc,
        "proxies: NLCFROB (4.4.5)": found[0].frobenius,
        "kernels: the bandwidth of the covariance kernel (4.4.9)": bandwidth(network).estimate(),
        "layers: LNLC (4.4.11)": layerwise_nlc(first, x, **more),
        "width: a quarter of it (4.4.12)": narrow.nlc,
        "training: n of the weights as they are (4.4.13)": nlc(concrete(network, first)),
        "from layer to layer: all paths (4.4.14)": path_nlc(network),
    }
    return Rows(Explained(name, limit, value) for name, value in rows.items())


def _drawn(network: Layers, samples: int, width: int, seed: int) -> tuple[Any, Any, dict[str, Any]]:
    """A network, its inputs, and how it is measured."""
    graph = layers(network)
    start = cast("Input", graph.layers[0].operation)
    x = gaussian_inputs(samples, width, float(start.square), float(start.comean), seed)
    batch = min((size for size in batches(o for o, _ in graph.pairs) if size), default=None)
    return network_of(network, width, width, seed), x, {"batch": batch, "seed": seed}
