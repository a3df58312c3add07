"""Functions of torch tensors, networks that show their layers, and their inputs, as arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from tpcalc import checks
from tpcalc.arrays import Array, Index
from tpcalc.engine.device.devices import load_torch, resolve_device, resolve_dtype
from tpcalc.errors import EvaluationError, NotDifferentiable, StudyError, UsageError
from tpcalc.finite.networks.uses import Kind, Tap
from tpcalc.networks.order import not_made_from
from tpcalc.nonlinearity.function import Function, Pairs
from tpcalc.nonlinearity.meta import elem_like, meta_gaussian
from tpcalc.nonlinearity.noise import Faults, checked_errors
from tpcalc.nonlinearity.sample import Sample, given
from tpcalc.results import Method
from tpcalc.shown import Shown

Tensor = Any
_BATCH = 250


class HasLayers(Protocol):
    """A network that gives all of its layers on a batch, the batch itself first."""

    def layers(self, x: Tensor) -> Sequence[Tensor]:
        """All layers on a batch, each with a row for each input."""


@dataclass(frozen=True)
class Tapped(Shown):
    """A function that gives its layers, as a network; ``module`` holds its batch norms, if any."""

    function: Callable[[Tensor], Sequence[Tensor]]
    module: Any = None

    @property
    def taps(self) -> tuple[Tap, ...]:
        """What each part of a Sequential does with the one before."""
        parts = list(self.module or ())
        return (Tap(0, kind="input"), *(_tap(k, part) for k, part in enumerate(parts)))

    def layers(self, x: Tensor) -> Sequence[Tensor]:
        """All layers on a batch."""
        # A layer of its own, so that derivatives by the input see what all paths contribute.
        start = x.clone()
        return [start, *self.function(start)]


_LINEAR = ("Linear", "Flatten", "Identity")


def _tap(before: int, part: Any) -> Tap:
    """A part of a Sequential, by its class: norms, activations of torch, or linear maps."""
    name, home = type(part).__name__, type(part).__module__
    coordinates = home.endswith("activation") and "Softmax" not in name and "GLU" not in name
    kind: Kind = "weights" if name in _LINEAR else "coordinates" if coordinates else "norm"
    return Tap(before + 1, parents=(before,), kind=kind)


def tapped(module: Any) -> Tapped:
    """A ``torch.nn.Sequential`` with the output of each of its parts as a layer.

    Args:
        module: The module.

    Returns:
        A function of batches, with ``layers``.

    Raises:
        UsageError: It is no Sequential.

    Example:
        >>> nn = load_torch().nn
        >>> net = tapped(nn.Sequential(nn.Linear(2, 5), nn.ReLU()))
        >>> [tuple(layer.shape) for layer in net.layers(load_torch().ones(3, 2))]
        [(3, 2), (3, 5), (3, 5)]
    """
    if not isinstance(module, load_torch().nn.Sequential):
        raise UsageError(
            f"a {type(module).__name__} does not list its layers.",
            hint="Write Tapped(function) with a function that gives a batch's layers.",
        )

    def run(x: Tensor) -> list[Tensor]:
        found = [x]
        for part in module:
            found.append(part(found[-1].clone()))  # the part may change its input in place
        return found[1:]

    return Tapped(run, module)


@contextmanager
def batch_moments(function: Any) -> Iterator[None]:
    """Let all batch norms of a module use the moments of their batch, and leave their averages."""
    base = load_torch().nn.modules.batchnorm._BatchNorm
    found = getattr(function, "modules", None)
    parts = list(found()) if callable(found) else []
    _check_dropout(parts)
    norms = [part for part in parts if isinstance(part, base)]
    kept = [(part.running_mean, part.running_var, part.track_running_stats) for part in norms]
    for part in norms:
        part.running_mean, part.running_var, part.track_running_stats = None, None, False
    try:
        yield
    finally:
        for part, (mean, variance, tracked) in zip(norms, kept, strict=True):
            part.running_mean, part.running_var, part.track_running_stats = mean, variance, tracked


def _check_dropout(parts: list[Any]) -> None:
    dropout = load_torch().nn.modules.dropout._DropoutNd
    for part in parts:
        share = part.p if isinstance(part, dropout) else getattr(part, "dropout", 0.0)
        if part.training and isinstance(share, float) and share > 0:
            raise UsageError(
                f"the module drops units at random ({type(part).__name__}, {share:g}) in training "
                "mode: it is another function in each run.",
                hint="Call .eval() first; batch norms use the moments of the batch all the same.",
            )


class Torch(Function):
    """A function of torch tensors that gives its layers, the batch first and the outputs last."""

    method = Method.FINITE

    def __init__(
        self, layers: Callable[[Tensor], Sequence[Tensor]], module: Any, like: Tensor
    ) -> None:
        self._call, self._module, self._like = layers, module, like
        self.eps = self.input_eps = float(load_torch().finfo(like.dtype).eps)

    def tensor(self, x: Array) -> Tensor:
        """Inputs as the function takes them."""
        rows = load_torch().from_numpy(np.ascontiguousarray(x))
        return rows.reshape(len(x), *self._like.shape[1:]).to(self._like.device, self._like.dtype)

    def entries(self, array: Array) -> Tensor:
        """Numbers beside the inputs: of their type, where they are."""
        return load_torch().from_numpy(array).to(self._like.device, self._like.dtype)

    def errors(self, error: Callable[[Tensor, Tensor], Tensor], labels: Tensor) -> Faults:
        """The errors of outputs at moved inputs, for the labels of the places that they had."""
        known = labels.to(self._like.device)

        def faults(x: Array, places: Index) -> Array:
            with batch_moments(self._module), load_torch().no_grad():
                found = error(self._call(self.tensor(x))[-1], known[places])
            return checked_errors(found.cpu().double().numpy(), len(x))

        return faults

    def values(self, x: Array) -> Array:
        """The outputs at inputs."""
        with batch_moments(self._module), load_torch().no_grad():
            found = self._call(self.tensor(x))[-1]
        self.eps = float(load_torch().finfo(found.dtype).eps)
        return rows_of(found)

    def layers(self, x: Array) -> list[Array]:
        """All layers at inputs."""
        with batch_moments(self._module), load_torch().no_grad():
            return [rows_of(layer) for layer in self._call(self.tensor(x))]

    def jvp(self, x: Array, v: Array) -> list[Array]:
        """The derivatives of all layers along vectors."""
        with batch_moments(self._module):
            _, found = load_torch().func.jvp(
                lambda part: tuple(self._call(part)), (self.tensor(x),), (self.tensor(v),)
            )
        return [rows_of(tangent) for tangent in found]

    def vjp(
        self, x: Array, ends: Pairs, above: Callable[[int, Any], Any]
    ) -> dict[tuple[int, int], Array]:
        """Products u J(x) for layers l by layers m (None: all), u by l and the layer itself."""
        torch, found = load_torch(), {}
        with batch_moments(self._module), torch.enable_grad():
            layers = self._call(self.tensor(x).requires_grad_())
            for end, starts in ends.items():
                value = layers[end]
                if not value.requires_grad:
                    raise EvaluationError(
                        "the outputs do not depend on the inputs through torch.",
                        hint="The function must not detach them or compute with another library.",
                    )
                u = torch.as_tensor(above(end, value.detach())).to(value.device, value.dtype)
                starts = range(len(layers)) if starts is None else starts
                below = [layers[start] for start in starts]
                pulled = torch.autograd.grad(value, below, u, retain_graph=True, allow_unused=True)
                for start, g in zip(starts, pulled, strict=True):
                    if g is None:
                        raise not_made_from("the output" if end < 0 else f"layer {end}", start)
                    found[start, end] = rows_of(g)
        return found

    def apart(self, x: Array) -> Array:
        """The outputs of several batches, so that batch norm has the moments of each."""
        with batch_moments(self._module), load_torch().no_grad():
            return rows_of(self._mapped(self._stacked(x)), 2)

    def slopes_apart(self, x: Array, v: Array) -> Array:
        """The derivatives of several batches."""
        with batch_moments(self._module):
            both = (self._stacked(x),), (self._stacked(v),)
            return rows_of(load_torch().func.jvp(self._mapped, *both)[1], 2)

    def bends_apart(self, x: Array, v: Array, u: Array) -> Array:
        """The second derivative along v of u f of several batches, off kinks."""
        grad, at, along = load_torch().autograd.grad, self._stacked(x), self._stacked(v)
        c = at.new_zeros(len(at), *[1] * (at.ndim - 1)).requires_grad_()
        try:
            with batch_moments(self._module), load_torch().enable_grad():
                found = self._mapped(at + c * along)
                weights = self.entries(u).reshape(found.shape)
                (slope,) = grad((weights * found).sum(), c, create_graph=True)
                if not slope.requires_grad:
                    return np.zeros(len(x))
                (bent,) = grad(slope.sum(), c, materialize_grads=True)
        except NotDifferentiable:  # slopes that jump, in a network that knows of no function there
            return super().bends_apart(x, v, u)
        return rows_of(bent)[:, 0]

    def _mapped(self, batches: Tensor) -> Tensor:
        return load_torch().func.vmap(lambda part: self._call(part)[-1])(batches)

    def _stacked(self, x: Array) -> Tensor:
        flat = self.tensor(x.reshape(-1, x.shape[2]))
        return flat.reshape(*x.shape[:2], *flat.shape[1:])


def rows_of(tensor: Tensor, dimensions: int = 1) -> Array:
    """A tensor as an array, with what follows its first dimensions in rows."""
    found = tensor.detach().cpu().double().numpy()
    return np.asarray(found.reshape(*found.shape[:dimensions], -1))


def numbers(values: Any, name: str) -> Any:
    """A tensor of what is given as one, or as an array of numbers."""
    torch = load_torch()
    is_one = isinstance(values, torch.Tensor)
    return values if is_one else torch.as_tensor(checks.reals(values, name))


def function_on(f: Any, x: Any, batch: int | None, seed: int) -> tuple[Torch, Sample]:
    """A function from a batch of inputs to one of outputs, and the inputs."""
    like, sample = inputs_of(x, batch, seed)
    return Torch(lambda part: [part, outputs(f, part)], f, like), sample


def network_on(network: HasLayers, x: Any, batch: int | None, seed: int) -> tuple[Torch, Sample]:
    """A network that shows its layers, and the inputs."""
    checks.called(getattr(network, "layers", None), "network.layers", x)
    like, sample = inputs_of(x, batch, seed)
    return Torch(network.layers, getattr(network, "module", network), like), sample


def inputs_of(x: Any, batch: int | None, seed: int) -> tuple[Tensor, Sample]:
    """A tensor like the inputs, and these in a random order, as whole batches."""
    torch = load_torch()
    rows = x.detach() if isinstance(x, torch.Tensor) else torch.tensor(checks.inputs(x, "x"))
    if rows.ndim < 2 or len(rows) < 2 or not rows.is_floating_point():
        raise UsageError(
            f"x has shape {tuple(rows.shape)} and holds {str(rows.dtype).removeprefix('torch.')}.",
            hint="It has a row of real features for each input, and two inputs or more.",
        )
    if not bool(torch.isfinite(rows).all()):
        raise StudyError("an entry is not finite.", where="x", hint="Drop or repair that input.")
    size = min(_BATCH, len(rows)) if batch is None else checks.whole(batch, "batch", least=1)
    kept = len(rows) // size * size
    if kept < 2:
        raise UsageError(
            f"a batch has {size} inputs, and there are {len(rows)}.",
            hint=f"Take batch = {len(rows)} or less, and two inputs or more.",
        )
    return rows[:1], given(rows_of(rows), size, seed, kept)


def outputs(f: Callable[[Any], Any], batch: Tensor) -> Tensor:
    """The outputs of a function on a batch, a row for each input."""
    try:
        found = f(batch.clone())  # a function may change its input in place
    except (RuntimeError, ValueError, TypeError) as error:
        raise EvaluationError(
            f"the function fails on a batch of shape {tuple(batch.shape)} and type {batch.dtype}: "
            f"{error}",
            hint="Give inputs of the type and device of its parameters, two for batch norm.",
        ) from error
    is_tensor = isinstance(found, load_torch().Tensor)
    if not is_tensor or found.ndim < 1 or len(found) != len(batch):
        shape = tuple(getattr(found, "shape", ()))
        raise EvaluationError(
            f"a batch of {len(batch)} inputs gives outputs of shape {shape}.",
            hint="The function takes a batch and gives a row for each of its inputs.",
        )
    if found.is_complex():
        raise EvaluationError("the outputs are complex numbers.", hint="Give real outputs.")
    return found.reshape(len(batch), -1)


def elementlike_inputs(
    count: int,
    features: int,
    square: float = 1.0,
    comean: float = 0.0,
    seed: int = 0,
    device: str = "cpu",
    dtype: str = "float64",
) -> Tensor:
    """Inputs of second moment q exactly, any two with second moment c exactly.

    Args:
        count: How many, at most ``features``.
        features: Features of an input.
        square, comean: q, and c, at least 0 and below q.
        seed, device, dtype: The seed, where they are, and their number format.

    Returns:
        A tensor of shape (count, features).

    Raises:
        UsageError: More than fit, or moments that no inputs have.

    Source: Schoenherr, The nonlinearity coefficient, section 5.2.

    Example:
        >>> x = elementlike_inputs(3, 8, 2.0, 0.5)
        >>> [[round(number, 9) for number in row] for row in (x @ x.T / 8).tolist()]
        [[2.0, 0.5, 0.5], [0.5, 2.0, 0.5], [0.5, 0.5, 2.0]]
    """
    found = elem_like(square, comean, count=count, dimension=features, seed=seed)
    return _placed(found, device, dtype)


def gaussian_inputs(
    count: int,
    features: int,
    square: float = 1.0,
    comean: float = 0.0,
    seed: int = 0,
    device: str = "cpu",
    dtype: str = "float64",
) -> Tensor:
    """Inputs around one centre: entries N(0, c) of the centre plus N(0, q - c) of each input.

    Args:
        count: How many.
        features: Features of an input.
        square, comean: q, and c, at least 0 and below q.
        seed, device, dtype: The seed, where they are, and their number format.

    Returns:
        A tensor of shape (count, features).

    Raises:
        UsageError: Moments that no inputs have.

    Source: Schoenherr, The nonlinearity coefficient, section 5.2.

    Example:
        >>> gaussian_inputs(5, 3).shape
        torch.Size([5, 3])
    """
    found = meta_gaussian(square, comean, samples=count, neurons=features, seed=seed)
    return _placed(found, device, dtype)


def _placed(array: Array, device: str, dtype: str) -> Tensor:
    return load_torch().from_numpy(array).to(resolve_device(device), resolve_dtype(dtype))
