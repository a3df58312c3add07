"""Random matrices that are never formed: orthonormal directions, and what they are sent to.

A matrix Ŵ of shape (d1, d2), d1 = r1 n, d2 = r2 n, entries N(0, 1/n), is known only through the
vectors it was applied to. Each of its two sides keeps

* ``q``: orthonormal directions of the space the side reads from, (1/N) q_i·q_j = δ_ij, and
* ``e``: the images of those directions in the space the side writes to.

A product is four reads: ``multiply`` reads q of its own side and e of the other one and returns
coefficients; ``materialise`` then reads e of the own side and q of the other one. Because a product
is returned as coefficients, sums of products and weight updates are sums of coefficient rows, and
one ``materialise`` at the end forms the vector.

Spaces may have many replicates: independent matrices that take the same products, one call for all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from tpcalc import checks
from tpcalc.arrays import Array
from tpcalc.engine.crew import products
from tpcalc.engine.directions_basis import Basis as Basis
from tpcalc.engine.directions_basis import Push, left_the_range
from tpcalc.engine.directions_store import SampleSpace as SampleSpace
from tpcalc.engine.directions_store import Store as Store
from tpcalc.engine.directions_store import Vector
from tpcalc.engine.directions_store import accumulate as accumulate
from tpcalc.engine.directions_store import materialise as materialise
from tpcalc.engine.draws import Draws
from tpcalc.errors import EvaluationError

Spaces = tuple[SampleSpace, SampleSpace]
"""Those of W x and of x."""
Normals = tuple[Draws, Draws]
"""Fresh normals on each of them."""
IMAGES = "float32"  # of limits: fresh draws, which single precision holds as they are


@dataclass(frozen=True, slots=True)
class Product:
    """The products of one matrix side with B inputs, as coefficients.

    ``Ŵ x_j = sum_i coords[j, i] e_i + sum_i echo[j, i] q'_i`` with e of this side and q' of the
    other side. They stay valid when directions are added later (missing ones count as 0).

    Args:
        coords: Coefficients on this side's ``e``, shape (replicates, B, rows of this side after
            the call); these are also the coordinates of x_j in this side's ``q``, so that
            (1/N) x_j·x_k = coords[r, j]·coords[r, k] up to the tolerance.
        echo: Coefficients on the other side's ``q``, shape (replicates, B, rows of the other
            side): the correction term of the limit. A finite matrix has no columns here.
    """

    coords: Array
    echo: Array


class MatrixSide:
    """One side of a random matrix: directions and their images.

    ``side.q`` (a ``Basis``) and ``side.e`` (a ``Store``) are what ``materialise`` takes.
    """

    def __init__(
        self, space: SampleSpace, output: SampleSpace, capacity: int, dtype: DTypeLike,
        images: DTypeLike, tolerance: float, kept: int | None = None,
    ) -> None:  # fmt: skip
        self.space = space
        self.output = output
        replicates, kept = space.replicates, capacity if kept is None else kept
        self.q = Basis(
            space.size, capacity, dtype, space.block, tolerance, replicates, space.memory
        )
        self.e = Store(output.size, kept, images, output.block, replicates, output.memory)

    def clear(self) -> None:
        """Forget all directions, keep the memory."""
        self.q.clear()
        self.e.clear()


class TwoSided:
    """What all random matrices have in common: two sides, and draws."""

    def __init__(self, forward: Any, transposed: Any, draws: Normals) -> None:
        self.forward = forward
        self.transposed = transposed
        self._draws = dict(zip((False, True), draws, strict=True))
        self._work: dict[bool, list[Vector]] = {False: [], True: []}

    def side(self, transpose: bool) -> Any:
        """The side that ``multiply(..., transpose)`` uses: what it reads from and writes to."""
        return self.transposed if transpose else self.forward

    @property
    def min_ratios(self) -> Vector:
        """The smallest accepted residual of each replicate, as a part of its vector, or 1."""
        return np.asarray(np.minimum(self.forward.q.min_ratios, self.transposed.q.min_ratios))

    def reset(self, *draws: Draws) -> None:
        """Forget all directions and keep the memory, for the next replicate."""
        self.forward.clear()
        self.transposed.clear()
        self._draws = dict(zip((False, True), draws, strict=True))


class _Matrix(TwoSided):
    """What the limit of a matrix and a finite one have in common."""

    def __init__(
        self, spaces: Spaces, capacities: tuple[int, int], draws: Normals, storage: str,
        images: str, tolerance: float,
    ) -> None:  # fmt: skip
        check_spaces(spaces, storage)
        options = np.dtype(storage), np.dtype(images), tolerance
        rows, cols = spaces
        forward = MatrixSide(cols, rows, capacities[0], *options)
        super().__init__(forward, MatrixSide(rows, cols, capacities[1], *options), draws)


class LimitMatrix(_Matrix):
    """The limit of a Gaussian matrix, on samples of the coordinates.

    With orthonormal directions q_i of the inputs, W x has the Gaussian part
    ``sum_i (q_i·x / N) e_i``, e_i fresh draws N(0, r_in), and the correction part
    ``sum_p (r_in / r_out) (e'_p·x / N) q'_p`` over the directions of the transposed side. This is
    Stein's lemma in an orthonormal basis: no derivative is taken, kinks and singular Gram matrices
    need no care. The sizes of the spaces are numbers of samples; ratios enter the covariances.

    A fresh draw and the q'_p before it are orthogonal in the limit. On N samples they are so but
    for 1/sqrt(N), which many directions add up: averages are then off by a part of k/N. With
    ``adjoint`` draws are projected off them, so that y·(W x) = (W^T y)·x holds on the samples too.

    Source: Yang, Tensor Programs III (arXiv:2009.10685), box 1: Gaussian and correction part of a
    product; Stein's lemma in place of its derivatives.

    Example:
        >>> from tpcalc.engine.draws import SobolDraws
        >>> space, draws = SampleSpace(4096), SobolDraws(2, 12, 0)
        >>> matrix = LimitMatrix((space, space), (1, 1), (draws, draws))
        >>> v, x, y = (space.zeros() for _ in range(3))
        >>> v[:] = 1.0
        >>> product = matrix.multiply([v], transpose=True)
        >>> materialise(x, [(matrix.transposed.e, product.coords[:, 0])])
        >>> product = matrix.multiply([x])
        >>> coords, echo = product.coords[:, 0], product.echo[:, 0]
        >>> materialise(y, [(matrix.forward.e, coords), (matrix.transposed.q, echo)])
        >>> round(float(v @ y) / 4096, 2)  # (1/n) v·W W^T v
        1.0
    """

    def __init__(
        self, spaces: Spaces, capacities: tuple[int, int], draws: Normals,
        storage: str = "float64", tolerance: float = 1e-5, adjoint: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(spaces, capacities, draws, storage, IMAGES, tolerance)
        self._adjoint = adjoint
        # off[transpose][r, i, p] = q'_p·e_i / N, by direction of this side and of the other one
        self._off = {
            side: np.zeros((spaces[0].replicates, *counts) if adjoint else 0)
            for side, counts in ((False, capacities), (True, capacities[::-1]))
        }

    def reset(self, *draws: Draws) -> None:
        """Forget all directions and keep the memory, for the next replicate."""
        super().reset(*draws)
        for table in self._off.values():  # replicates with fewer directions read zeros beyond
            table.fill(0.0)

    def multiply(self, vectors: Sequence[Vector], transpose: bool = False) -> Product:
        """Products of W (or of its transpose) with several vectors."""
        side, other = self.side(transpose), self.side(not transpose)
        push = side.q.push(vectors, beside=other.e)
        self._draw(push, transpose)
        assert push.beside is not None
        overlaps = push.beside.transpose(0, 2, 1) / side.space.size
        off = np.zeros(1)
        if self._adjoint:
            (count, rows), coords = (other.q.rows, side.q.rows), push.coords
            known = self._off[not transpose][:, :count, :rows].transpose(0, 2, 1)
            overlaps -= products(coords, known)
            off = products(coords, self._off[transpose][:, :rows, :count])
        echo = overlaps * (side.space.ratio / side.output.ratio) - off
        return Product(push.coords, _finite(echo))

    def _draw(self, push: Push, transpose: bool) -> None:
        """Images of new directions, and what they are projected off."""
        side, other = self.side(transpose), self.side(not transpose)
        spread = math.sqrt(side.space.ratio)
        side.e.reserve(push.new)
        for _, replicate, row in push.places():
            self._draws[transpose].fill(side.e.row_view(row, replicate), spread, replicate)
        if self._adjoint and other.q.rows and push.new.any():
            overlaps = other.q.dots_with(side.e, push.before, push.new) / side.output.size
            for m, replicate, row in push.places():
                own = slice(None) if replicate is None else replicate
                self._off[transpose][own, row, : other.q.rows] = overlaps[own, :, m]


class FiniteMatrix(_Matrix):
    """A Gaussian matrix of finite size, revealed on the directions asked for: exact in law.

    The interface of ``LimitMatrix``; space sizes are the sizes d of the vectors and ratios must be
    d / n. Images are true images, so that ``Product.echo`` has no columns: the part of W q that the
    transposed side knows already, ``sum_p (e'_p·q / d_out) q'_p``, is written into its image, and a
    fresh draw, projected off the q'_p, adds the rest.

    Example:
        >>> from tpcalc.engine.draws import PlainDraws
        >>> space, draws = SampleSpace(5), PlainDraws(5, 0)
        >>> matrix = FiniteMatrix((space, space), (1, 1), (draws, draws))
        >>> x, y, image, back = (space.zeros() for _ in range(4))
        >>> x[:5], y[:5] = 1.0, range(5)
        >>> materialise(image, [(matrix.forward.e, matrix.multiply([x]).coords[:, 0])])
        >>> materialise(back, [(matrix.transposed.e, matrix.multiply([y], True).coords[:, 0])])
        >>> bool(abs(y @ image - back @ x) < 1e-12)  # y·(W x) = (W^T y)·x
        True
    """

    def __init__(
        self, spaces: Spaces, capacities: tuple[int, int], draws: Normals,
        storage: str = "float64", tolerance: float = 1e-10,
    ) -> None:  # fmt: skip
        super().__init__(spaces, capacities, draws, storage, storage, tolerance)
        widths = [space.size / space.ratio for space in spaces]
        if not math.isclose(*widths, rel_tol=1e-9):
            raise EvaluationError(
                f"the two spaces of a matrix belong to the widths {widths[0]:g} and {widths[1]:g}.",
                hint="The ratio of a space at finite width n is its size divided by n.",
            )
        # known[r, i, p] = q'_p·W q_i, by direction of W and of W^T
        self._known = np.zeros((spaces[0].replicates, *capacities))

    def multiply(self, vectors: Sequence[Vector], transpose: bool = False) -> Product:
        """Products of W (or of its transpose) with several vectors."""
        side = self.side(transpose)
        push = side.q.push(vectors)
        if push.new.any():
            self._reveal(push, transpose)
        return Product(push.coords, np.zeros((len(push.coords), len(vectors), 0)))

    def _reveal(self, push: Push, transpose: bool) -> None:
        """Images of new directions, given everything that both sides know."""
        side, other = self.side(transpose), self.side(not transpose)
        overlaps = None
        if other.q.rows:
            overlaps = other.e.dots_with(side.q, push.before, push.new)
        work = self._fresh(push, transpose)
        if overlaps is not None:
            target = other.q.dots(work, push.new).transpose(0, 2, 1).copy()
            side.q.reveal(
                self._known, transpose, overlaps, push, other.q.counts, target, side.output.size
            )
            accumulate(work, [(other.q, target)], push.new)
        self._keep(work, push, transpose)

    def _fresh(self, push: Push, transpose: bool) -> list[Vector]:
        """Fresh draws for new directions, in buffers."""
        side, buffers = self.side(transpose), self._work[transpose]
        while len(buffers) < int(push.new.max()):
            buffers.append(side.output.zeros())
        work, spread = buffers[: int(push.new.max())], math.sqrt(side.space.ratio)
        for m, replicate, _ in push.places():
            part = _part(work[m].reshape(-1, side.output.block), replicate, side.output)
            self._draws[transpose].fill(part, spread, replicate)
        return work

    def _keep(self, work: Sequence[Vector], push: Push, transpose: bool) -> None:
        """Store buffers as the images of new directions."""
        side = self.side(transpose)
        side.e.reserve(push.new)
        for m, replicate, row in push.places():
            image = _part(work[m].reshape(-1, side.output.block), replicate, side.output)
            side.e.row_view(row, replicate)[:] = image


def check_spaces(spaces: Spaces, storage: str) -> None:
    """Refuse spaces that no matrix lies between, and numbers that are none."""
    row_space, col_space = spaces
    checks.one_of("storage", storage, ("float64", "float32"))
    if row_space.block != col_space.block:
        raise EvaluationError("the two spaces of a matrix have blocks of different sizes.")
    if row_space.replicates != col_space.replicates:
        raise EvaluationError("the two spaces of a matrix have different numbers of replicates.")


def _part(blocks: Vector, replicate: int | None, space: SampleSpace) -> Vector:
    """The blocks of one replicate, or of all."""
    if replicate is None:
        return blocks
    count = space.padded // space.block
    return blocks[replicate * count : (replicate + 1) * count]


def _finite(coefficients: Array) -> Array:
    if not np.isfinite(coefficients).all():
        raise left_the_range("the correction term")
    return coefficients
