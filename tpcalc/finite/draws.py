"""The random inputs of a program at finite width: matrices, Gaussian groups, scalars.

Every draw comes from a stream of its own, named by the seed, the width and what is drawn. So a
seed's network is the same whichever seeds run beside it, on every device, for every number of
threads, and in every number format (draws are made in float64 and rounded); and networks of two
widths are independent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from tpcalc.arrays import Array
from tpcalc.doors.machine import available_cores
from tpcalc.engine.crew import carry_out
from tpcalc.engine.starts import factor
from tpcalc.program.laws import LAWS
from tpcalc.program.nodes import Family

# Entries of one stream of a matrix: large enough that starting a stream costs nothing, small
# enough to stay in cache and to share one matrix among threads.
_BLOCK = 2**18
# Below this many entries threads cost more than they save.
_THREADED = 2**20


@dataclass(frozen=True, slots=True)
class Network:
    """Which network is drawn: streams of different networks are independent.

    Args:
        seed: The seed, not negative.
        width: The width n.

    Example:
        >>> a, b = Network(1, 64).stream("matrix", "W"), Network(1, 64).stream("matrix", "W")
        >>> float(a.normal()) == float(b.normal())
        True
    """

    seed: int
    width: int

    def stream(self, kind: str, name: str, block: int = 0) -> np.random.Generator:
        """The random stream of one input.

        Args:
            kind: What is drawn (``"matrix"``, ``"group"``, ``"scalar"``).
            name: Its name.
            block: Number of the stream, where one input takes several.
        """
        digest = blake2b(f"{kind}:{name}".encode(), digest_size=16).digest()
        words = [self.seed, self.width, int.from_bytes(digest, "little"), block]
        return np.random.Generator(np.random.SFC64(np.random.SeedSequence(words)))


def fill_entries(
    family: Family, networks: Sequence[Network], targets: Sequence[NDArray[np.floating]]
) -> None:
    """Fill one array for each network with independent entries of the law of a matrix."""
    draw = LAWS[family.law].draw
    assert draw is not None
    rows, cols = targets[0].shape
    height = max(1, _BLOCK // cols)

    def fill(network: Network, target: NDArray[np.floating], block: int) -> None:
        part = target[block * height : (block + 1) * height]
        part[...] = draw(network.stream("matrix", family.name, block), part.shape)

    jobs = [
        partial(fill, network, target, block)
        for network, target in zip(networks, targets, strict=True)
        for block in range(-(-rows // height))
    ]
    threaded = len(targets) * rows * cols >= _THREADED
    carry_out(jobs, min(len(jobs), available_cores()) if threaded else 1)


def orthogonal(family: Family, network: Network, rows: int, cols: int) -> Array:
    """Columns (rows, if there are fewer) of a Haar orthogonal matrix, entries of mean square 1.

    The Q of a Gaussian matrix is Haar distributed once the diagonal of R is made positive, which
    makes the factorisation unique.

    Source:
        F. Mezzadri, How to generate random matrices from the classical compact groups, section 5.

    Example:
        >>> W = orthogonal(Family("W", ("n", "m"), law="orthogonal"), Network(0, 3), 3, 2)
        >>> bool(np.allclose(W.T @ W, 3 * np.eye(2)))
        True
    """
    tall, thin = max(rows, cols), min(rows, cols)
    gaussian = np.empty((tall, thin))
    fill_entries(replace(family, law="gaussian"), [network], [gaussian])
    q, r = np.linalg.qr(gaussian)
    q *= np.where(np.diag(r) < 0, -1.0, 1.0) * np.sqrt(tall)
    return q if rows >= cols else q.T


def draw_group(group: Family, members: Sequence[int], network: Network, size: int) -> Array:
    """Members of a Gaussian group, shape (len(members), size).

    Example:
        >>> twins = Family.group("g", "n", (0.0, 0.0), ((1.0, 1.0), (1.0, 1.0)))
        >>> a, b = draw_group(twins, (0, 1), Network(0, 4), 4)
        >>> bool((a == b).all())
        True
    """
    mean = np.array([float(group.means[index]) for index in members])[:, None]
    generator = network.stream("group", group.name)
    if group.cov is None:
        draws = generator.standard_normal((group.size, size))
        found: Array = draws[list(members)] + mean
        return found
    cov = np.array([[float(value) for value in row] for row in group.cov])
    rows = np.array(factor(cov, group.name))
    draws = generator.standard_normal((rows.shape[1], size))
    correlated: Array = rows[list(members)] @ draws + mean
    return correlated


def draw_scalar(family: Family, network: Network) -> float:
    """A random number of one network.

    Example:
        >>> draw_scalar(Family.scalar("b", 0.5, 0), Network(3, 64))
        0.5
    """
    normal = network.stream("scalar", family.name).standard_normal()
    return float(family.means[0]) + float(family.std) * float(normal)
