"""``Kernel``: the NNGP and the NTK of a set of inputs, with how far they may be off."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tpcalc import checks
from tpcalc.doors.files import from_json
from tpcalc.errors import EvaluationError, StudyError, TpcalcError, UsageError
from tpcalc.results.estimate import Method, rounded_up
from tpcalc.results.kernel_file import misfit, read_matrices, write_matrices
from tpcalc.results.prediction import Regression
from tpcalc.results.tables import Provenance
from tpcalc.shown import Shown

if TYPE_CHECKING:
    from numpy.typing import NDArray

KINDS = ("nngp", "ntk")
"""The kernels there are, in the order in which they are shown."""

SCHEMA = 1
"""Version of the description in the file that ``save`` writes."""


@dataclass(frozen=True, eq=False, repr=False)
class Kernel(Regression, Shown):
    """The kernels of a network of infinite width.

    NNGP: K_ij = E f(x_i) f(x_j), the covariance of the outputs at the start. NTK: the inner product
    of the gradients of f(x_i) and f(x_j) by all parameters, each layer's with its own learning
    rate.

    Errors are in units of sqrt(K_ii K_jj), so that they mean the same for every pair of inputs.
    Where ``method`` is exact or quadrature they bound |K_ij - truth|, rounding and truncation
    together. Where it is particles no bound exists, and they are the largest standard error. Of a
    large kernel errors may be followed for some entries only; ``notes`` say where that is so.

    Args:
        nngp: float64 (or float32) of shape (N, M), or (N, K, M, K) where K outputs are correlated;
            None if it was not asked for.
        ntk: The same.
        method: The least certain method that was used: exact, then quadrature, then particles.
        error: The largest error of all entries but those that ``coincident_error`` is for.
        coincident_error: The largest error of pairs of different inputs that nearly coincide
            (correlation above 0.99), where formulas lose digits; None if it is not kept apart.
        independent: Whether the NTK may be computed as if the backward pass had weights of its own
            (gradient independence); None without an NTK.
        notes: What a reader should know besides.
        symmetric: Whether rows and columns are the same inputs.
        model: What the kernel belongs to, in words.
        provenance: What it was computed from and with.
        labels: The class of each row, by which pictures are sorted; may be empty.

    Raises:
        UsageError: There is no matrix, or shapes, labels or errors do not fit.
        EvaluationError: An entry is not a finite number.

    Source:
        Jacot, Gabriel, Hongler, Neural tangent kernel, arXiv:1806.07572; Yang, Tensor Programs II,
        arXiv:2006.14548.

    Example:
        >>> import numpy as np
        >>> made = Provenance("0.1.0", "ab12")
        >>> found = Kernel(np.eye(2), None, Method.EXACT, 0.0, None, None, (), True, "mlp", made)
        >>> found
        NNGP of 2 x 2, exact, error 0
        >>> found.spectrum("nngp").tolist()
        [1.0, 1.0]
    """

    nngp: NDArray[Any] | None
    ntk: NDArray[Any] | None
    method: Method
    error: float
    coincident_error: float | None
    independent: bool | None
    notes: tuple[str, ...]
    symmetric: bool
    model: str
    provenance: Provenance
    labels: tuple[str, ...] = ()
    _spectra: dict[Any, NDArray[Any]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        if not self.kinds:
            raise UsageError("a kernel holds an NNGP, an NTK or both; neither is given.")
        for kind in self.kinds:
            object.__setattr__(self, kind, _checked(getattr(self, kind), kind))
        shapes = sorted({self.shape_of(kind) for kind in self.kinds})
        if len(shapes) > 1:
            raise UsageError(
                f"NNGP and NTK are of different inputs: {shapes[0]} and {shapes[1]} of them."
            )
        rows, columns = self.shape
        if self.symmetric and rows != columns:
            raise UsageError(f"a kernel of {rows} x {columns} inputs cannot be symmetric.")
        if self.labels and len(self.labels) != rows:
            raise UsageError(f"{len(self.labels)} labels for {rows} rows; one is needed for each.")
        for name in ("error", "coincident_error"):
            value = getattr(self, name)
            if value is None and name == "coincident_error":
                continue
            if not float(value) >= 0:
                raise UsageError(f"{name} is {value}; it is 0 or more.")
            object.__setattr__(self, name, float(value))

    @property
    def kinds(self) -> tuple[str, ...]:
        """Which kernels there are: ``"nngp"``, ``"ntk"`` or both."""
        return tuple(kind for kind in KINDS if getattr(self, kind) is not None)

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of inputs of the rows and of the columns."""
        return self.shape_of(self.kinds[0])

    def shape_of(self, kind: str) -> tuple[int, int]:
        """The numbers of inputs of one kernel, which are those of the other too.

        Args:
            kind: ``"nngp"`` or ``"ntk"``.
        """
        found = self._held(kind).shape
        return (found[0], found[len(found) // 2])

    def outputs(self, kind: str) -> int:
        """How many correlated outputs each input has; 1 if they are independent copies.

        Args:
            kind: ``"nngp"`` or ``"ntk"``.
        """
        found = self._held(kind)
        return int(found.shape[1]) if found.ndim == 4 else 1

    def matrix(self, kind: str) -> NDArray[Any]:
        """A kernel as a matrix of float64; the outputs of one input follow each other.

        Args:
            kind: ``"nngp"`` or ``"ntk"``.

        Raises:
            UnknownName: Another kind.
            UsageError: That kernel was not computed.
        """
        found = self._held(kind).astype("float64", copy=False)
        if found.ndim == 4:
            rows, outputs, columns, _ = found.shape
            return found.reshape(rows * outputs, columns * outputs)
        return found

    def spectrum(self, kind: str) -> NDArray[Any]:
        """The eigenvalues of a kernel, the largest first.

        Args:
            kind: ``"nngp"`` or ``"ntk"``.

        Returns:
            As many as the matrix has rows; ``resolution`` says how far each may be off.

        Raises:
            UnknownName: Another kind.
            UsageError: That kernel was not computed, or is between two sets of inputs.
            EvaluationError: The matrix is not symmetric up to its error.
        """
        if kind not in self._spectra:
            self._spectra[kind] = _decomposed(self.self_adjoint(kind), vectors=False)[0][::-1]
        return self._spectra[kind]

    def eigenvectors(self, kind: str) -> tuple[NDArray[Any], NDArray[Any]]:
        """The eigenvalues of a kernel, the smallest first, and its eigenvectors.

        They are kept, and predictions from the same kernel share them.

        Args:
            kind: ``"nngp"`` or ``"ntk"``.

        Returns:
            The eigenvalues, and the matrix whose columns are the eigenvectors.

        Raises:
            UnknownName: Another kind.
            UsageError: That kernel was not computed, or is between two sets of inputs.
            EvaluationError: The matrix is not symmetric up to its error.
        """
        if (kind, "vectors") not in self._spectra:
            values, vectors = _decomposed(self.self_adjoint(kind))
            self._spectra.update({kind: values[::-1], (kind, "vectors"): vectors})
        return self._spectra[kind][::-1], self._spectra[kind, "vectors"]

    def self_adjoint(self, kind: str) -> NDArray[Any]:
        """The matrix of a kernel of inputs with themselves.

        Args:
            kind: ``"nngp"`` or ``"ntk"``.

        Raises:
            UsageError: That kernel was not computed, or is between two sets of inputs.
            EvaluationError: The matrix is not symmetric up to its error.
        """
        import numpy as np

        matrix = self.matrix(kind)
        if not self.symmetric:
            rows, columns = self.shape
            raise UsageError(
                f"the {kind.upper()} of {rows} x {columns} different inputs has no eigenvalues.",
                hint="Leave out X2.",
            )
        gap = _asymmetry(matrix)
        if gap > 4 * self.worst * float(np.diagonal(matrix).max()) + 1e-12 * abs(matrix).max():
            raise EvaluationError(
                f"the {kind.upper()} differs from its transpose by {gap:.1e}, more than its error; "
                "it has no real spectrum to speak of.",
            )
        return matrix

    def resolution(self, kind: str) -> float:
        """How far an eigenvalue may be off; smaller ones are not told from 0.

        Every eigenvalue moves by at most the Frobenius norm of the error, error * trace, and the
        rounding of the eigenvalues themselves is added. Of sampled kernels it is three standard
        errors, not a bound.

        Args:
            kind: ``"nngp"`` or ``"ntk"``.

        Raises:
            UnknownName: Another kind.
            UsageError: That kernel was not computed, or is between two sets of inputs.

        Source:
            Weyl's inequality; Horn, Johnson, Matrix Analysis, Corollary 4.3.15.
        """
        import numpy as np

        found = self.spectrum(kind)
        trace = float(np.trace(self.matrix(kind)))
        rounding = len(found) * float(np.finfo(np.float64).eps) * float(abs(found).max())
        return self.worst * max(trace, 0.0) + rounding

    def effective_rank(self, kind: str) -> float:
        """The exponential of the entropy of the normalised eigenvalues: from 1 to the full rank.

        Args:
            kind: ``"nngp"`` or ``"ntk"``.

        Raises:
            UnknownName: Another kind.
            UsageError: That kernel was not computed, or is between two sets of inputs.
            EvaluationError: All eigenvalues are 0.

        Source:
            Roy, Vetterli, The effective rank, EUSIPCO 2007, definition 1.
        """
        import numpy as np

        # What rounding has made negative is 0: a kernel is positive semidefinite.
        found = np.clip(self.spectrum(kind), 0.0, None)
        if not found.any():
            raise EvaluationError(f"the {kind.upper()} is 0, so it has no effective rank.")
        shares = found[found > 0] / found.sum()
        return float(np.exp(-(shares * np.log(shares)).sum()))

    def effective_rank_range(self, kind: str) -> tuple[float, float]:
        """Between what the effective rank lies, by the error of the kernel.

        Of sampled kernels three standard errors are taken for the error.

        Args:
            kind: ``"nngp"`` or ``"ntk"``.

        Source:
            Mirsky's inequality for the eigenvalues, and Audenaert, A sharp continuity estimate for
            the von Neumann entropy, quant-ph/0610146, Theorem 1, for the entropy.
        """
        rank, size = self.effective_rank(kind), len(self.spectrum(kind))
        rounding = size * 2.3e-16
        error = self.worst + rounding
        distance = (math.sqrt(size) + 1) * error / 2 / (1 - error) if error < 1 else 1.0
        if size == 1 or distance >= 1 - 1 / size:
            return 1.0, float(size)
        entropy = -distance * math.log(distance) - (1 - distance) * math.log1p(-distance)
        off = distance * math.log(size - 1) + entropy
        return max(1.0, rank * math.exp(-off)), min(float(size), rank * math.exp(off))

    def save(self, path: str | Path) -> Path:
        """Write the kernel to a file that ``Kernel.load``, or numpy alone, reads.

        The file appears whole or not at all.

        Args:
            path: A file ending in ``.npz``; another ending is that of any answer.

        Returns:
            The path.

        Raises:
            StudyError: Another suffix, or a place that cannot be written.
        """
        place = checks.file(path)
        if place.suffix.lower() in (".json", ".csv", ".html", ".md"):
            return super().save(place)
        arrays = {kind: getattr(self, kind) for kind in self.kinds}
        write_matrices(place, _described(self), arrays)
        return place

    @classmethod
    def load(cls, path: str | Path) -> Kernel:
        """Read what ``save`` wrote.

        Args:
            path: The file.

        Raises:
            StudyError: The file cannot be read, or holds no kernel of this version.
        """
        return load_kernel(path)

    @property
    def worst(self) -> float:
        """The error that holds for every entry, in units of sqrt(K_ii K_jj)."""
        largest = max(self.error, self.coincident_error or 0.0)
        return 3 * largest if self.method is Method.PARTICLES else largest

    def _held(self, kind: str) -> NDArray[Any]:
        checks.one_of("kernel", kind, KINDS)
        found: NDArray[Any] | None = getattr(self, kind)
        if found is None:
            raise UsageError(
                f"the {kind.upper()} was not computed.", hint=f"Ask for it with kinds=({kind!r},)."
            )
        return found

    def __repr__(self) -> str:
        rows, columns = self.shape
        several = max(self.outputs(kind) for kind in self.kinds)
        size = f"{rows} x {columns}" + (f", {several} outputs" if several > 1 else "")
        sign = "standard error" if self.method is Method.PARTICLES else "error <="
        words = [f"{' and '.join(map(str.upper, self.kinds))} of {size}", self.method.value]
        words.append(f"{sign} {rounded_up(self.error)}" if self.error else "error 0")
        if self.coincident_error:
            words.append(f"{rounded_up(self.coincident_error)} between nearly coincident inputs")
        return ", ".join(words)


def load_kernel(path: str | Path) -> Kernel:
    """Read a kernel from a file.

    Args:
        path: What ``Kernel.save`` wrote.

    Returns:
        The kernel that was saved.

    Raises:
        StudyError: The file cannot be read, or holds no kernel of this version.

    Example:
        >>> import tempfile
        >>> import numpy as np
        >>> made = Provenance("0.1.0", "ab12")
        >>> one = Kernel(np.eye(3), None, Method.EXACT, 0.0, None, None, (), True, "mlp", made)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     load_kernel(one.save(Path(folder) / "kernel.npz"))
        NNGP of 3 x 3, exact, error 0
    """
    place = checks.file(path)
    text, arrays = read_matrices(place, KINDS)
    data = from_json(text, str(place))
    version = data.get("schema") if isinstance(data, Mapping) else None
    if version != SCHEMA:
        raise StudyError(
            f"the kernel has version {version!r}; this release reads version {SCHEMA}.",
            where=str(place),
            hint="Read it with the release of tpcalc that wrote it, or compute it again.",
        )
    return _made(data, arrays, place)


def _checked(value: Any, kind: str) -> NDArray[Any]:
    """A view of a matrix that cannot be written to."""
    import numpy as np

    given = np.asarray(value)
    square = given.ndim == 4 and given.shape[1] == given.shape[3]
    if not (given.ndim == 2 or square) or given.size == 0:
        raise UsageError(
            f"the {kind.upper()} has shape {given.shape}; it must be (N, M), or (N, K, M, K) with "
            "K outputs, and not empty.",
        )
    single = given.dtype == np.float32
    found = np.ascontiguousarray(given, dtype=np.float32 if single else np.float64).view()
    # One pass over the entries; a sum that is not finite may also have overflowed.
    with np.errstate(over="ignore", invalid="ignore"):
        whole = bool(np.isfinite(found.sum(dtype=np.float64)))
    if not whole and not np.isfinite(found).all():
        bad = tuple(int(index) for index in np.argwhere(~np.isfinite(found))[0])
        raise EvaluationError(
            f"entry {', '.join(map(str, bad))} of the {kind.upper()} is {found[bad]}, not a finite "
            "number."
        )
    found.flags.writeable = False
    return found


def _asymmetry(matrix: NDArray[Any]) -> float:
    """The largest |K_ij - K_ji|, in strips, so that no second matrix is made."""
    strips = range(0, len(matrix), 512)
    return max(
        float(abs(matrix[k : k + 512, k:] - matrix[k:, k : k + 512].T).max()) for k in strips
    )


def _decomposed(matrix: NDArray[Any], *, vectors: bool = True) -> tuple[NDArray[Any], ...]:
    """The eigenvalues, the smallest first, and the eigenvectors; nobody writes into them."""
    import numpy as np

    try:
        found = np.linalg.eigh(matrix) if vectors else (np.linalg.eigvalsh(matrix),)
    except np.linalg.LinAlgError as error:
        raise EvaluationError(f"the eigenvalues were not found: {error}.") from error
    for one in found:
        one.flags.writeable = False
    return tuple(found)


def _described(kernel: Kernel) -> str:
    from tpcalc.results.codec import to_json

    return json.dumps(
        {
            "schema": SCHEMA,
            "kinds": kernel.kinds,
            "method": kernel.method.value,
            "error": repr(kernel.error),  # infinite ones too, and every digit
            "coincident_error": None
            if kernel.coincident_error is None
            else repr(kernel.coincident_error),
            "independent": kernel.independent,
            "notes": kernel.notes,
            "symmetric": kernel.symmetric,
            "model": kernel.model,
            "labels": kernel.labels,
            "provenance": to_json(kernel.provenance),
        },
        allow_nan=False,
    )


def _made(data: Mapping[str, Any], arrays: Mapping[str, Any], place: Path) -> Kernel:
    from tpcalc.results.codec import from_json

    try:
        if list(data["kinds"]) != list(arrays):
            raise misfit(place, "a matrix is missing")
        provenance = from_json(data["provenance"])
        if not isinstance(provenance, Provenance):
            raise misfit(place, "its provenance is another record")
        near = data["coincident_error"]
        return Kernel(
            nngp=arrays.get("nngp"),
            ntk=arrays.get("ntk"),
            method=Method(data["method"]),
            error=float(data["error"]),
            coincident_error=None if near is None else float(near),
            independent=_truth(data["independent"], unknown=True),
            notes=checks.names(data["notes"], "notes"),
            symmetric=bool(_truth(data["symmetric"])),
            model=checks.text(data["model"], "model"),
            provenance=provenance,
            labels=checks.names(data["labels"], "labels"),
        )
    except KeyError as error:
        raise misfit(place, f"its description lacks {error}") from None
    except (TypeError, ValueError) as error:
        raise misfit(place, str(error)) from None
    except TpcalcError as error:
        if error.where == str(place):
            raise
        raise misfit(place, error.message.rstrip(".")) from None


def _truth(value: Any, *, unknown: bool = False) -> bool | None:
    if isinstance(value, bool) or (unknown and value is None):
        return value
    raise ValueError(f"{value!r} is no answer to a yes-or-no question")
