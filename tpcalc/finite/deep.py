"""Deep residual networks of finite width at the start, layer by layer, many networks at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np

from tpcalc.arrays import Array
from tpcalc.doors.machine import available_cores
from tpcalc.finite.draws import Network
from tpcalc.finite.paths import draw_paths
from tpcalc.functions import Fn
from tpcalc.functions.tape import evaluate
from tpcalc.program.along import along_of
from tpcalc.program.branch import Branch
from tpcalc.program.laws import LAWS
from tpcalc.progress import Progress
from tpcalc.tasks.alone import alone
from tpcalc.tasks.run import elsewhere, results
from tpcalc.tasks.task import Task

_CHUNK = 2**27  # bytes of matrices that are drawn at once


def run_deep(
    start: Branch,
    depth: int,
    width: int,
    seeds: Sequence[int],
    alphas: Sequence[float],
    threads: int | None = None,
    places: Sequence[float] = (1.0,),
    progress: Callable[[float], None] | None = None,
) -> Array:
    """Natural logarithms of how blocks carry the stream and its adjoint.

    Networks of one seed have the same matrices for all powers in front of a block.
    """
    each = 2 * depth * width * width * 8
    size = max(1, _CHUNK // each)
    parts = [seeds[k : k + size] for k in range(0, len(seeds), size)]
    layers = [round(place * depth) for place in places]
    shared = start, depth, width, alphas, layers
    told: Progress | None = None if progress is None else lambda fraction, _: progress(fraction)
    if elsewhere():
        tasks = [Task(f"networks from seed {part[0]} on", (part,)) for part in parts]
        return np.concatenate(results(_chunk, tasks, shared=shared, progress=told), axis=3)
    workers = min(len(parts), threads or available_cores())
    found = []
    with alone(), ThreadPoolExecutor(workers) as pool:
        for logs in pool.map(partial(_chunk, shared), parts):
            found.append(logs)
            if told is not None:
                told(len(found) / len(parts), "")
    return np.concatenate(found, axis=3)


def _chunk(
    shared: tuple[Branch, int, int, Sequence[float], Sequence[int]],
    seeds: Sequence[int],
    progress: Progress | None = None,
) -> Array:
    start, depth, width, alphas, layers = shared
    networks = [Network(seed, width) for seed in seeds]
    outer, inner = (
        None if law is None else _matrices(name, law, entries, depth, networks)
        for name, law, entries in zip(
            ("V", "W"), (start.outer, start.inner), start.laws, strict=True
        )
    )
    fn = Fn(start.activation, 1)
    slope = fn.by(0)
    front = start.multiplier * np.array([float(depth) ** -float(alpha) for alpha in alphas])
    first = _ends("x", networks, len(alphas))
    x, before = first.copy(), []
    found = np.empty((4, len(layers), len(alphas), len(seeds)))
    with np.errstate(over="ignore", invalid="ignore"):
        for layer in range(depth + 1):
            _put(found[:2], layers, layer, x, first)
            if layer == depth:
                break
            h = x if inner is None else inner(layer, x, False)
            before.append(h)
            y = _applied(fn, h)
            y = y if outer is None else outer(layer, y, False)
            y = y - y.mean(axis=1, keepdims=True) if start.centred else y
            x = x + front * y
        last = _ends("p", networks, len(alphas))
        p = last
        for layer in range(depth, -1, -1):
            _put(found[2:], layers, depth - layer, p, last)
            if layer == 0:
                break
            y = p - p.mean(axis=1, keepdims=True) if start.centred else p
            y = y if outer is None else outer(layer - 1, y, True)
            y = y * _applied(slope, before[layer - 1])
            y = y if inner is None else inner(layer - 1, y, True)
            p = p + front * y
    return found


def _put(array: Array, layers: Sequence[int], layer: int, after: Array, before: Array) -> None:
    """The logarithms of a layer, where they are asked."""
    if layer in layers:
        logs = np.stack(list(_logs(after, before)))
        for place in (place for place, one in enumerate(layers) if one == layer):
            array[:, place] = logs


def _applied(fn: Fn, h: Array) -> Array:
    return np.broadcast_to(evaluate(fn, [h], []), h.shape)


def _logs(after: Array, before: Array) -> Iterator[Array]:
    for change in (after, after - before):
        yield (_log_norm(change) - _log_norm(before)).T


def _log_norm(x: Array) -> Array:
    """Of numbers whose squares may be outside of the range of floating point."""
    most = np.abs(x).max(axis=1)
    safe = np.where(most > 0, most, 1.0)
    with np.errstate(divide="ignore"):
        found: Array = np.log(most) + 0.5 * np.log(np.square(x / safe[:, None]).sum(axis=1))
    return found


def _ends(name: str, networks: Sequence[Network], count: int) -> Array:
    """A vector of each network, shape (networks, width, count); the same in all columns."""
    draws = [network.stream("end", name).standard_normal(network.width) for network in networks]
    return np.repeat(np.array(draws)[:, :, None], count, axis=2)


def _matrices(
    name: str, law: str, entries: str, depth: int, networks: Sequence[Network]
) -> Callable[[int, Array, bool], Array]:
    """Products with the matrices of all layers, or their transposes: ``(layer, y, transpose)``."""
    own = along_of(law)
    if own.row.path is not None:
        return partial(_fixed, own.path(depth), own.mixes)
    width = networks[0].width
    found = np.empty((len(networks), depth, width * width))
    draw = LAWS[entries].draw
    for place, network in enumerate(networks):
        generator = network.stream("along", name)
        if own.fresh:
            assert draw is not None
            found[place] = draw(generator, found.shape[1:])
        else:
            draw_paths(law, depth, width * width, generator, found[place].T)
    found *= width**-0.5
    return partial(_drawn, found.reshape(len(networks), depth, width, width))


def _drawn(matrices: Array, layer: int, y: Array, transpose: bool) -> Array:
    own = matrices[:, layer]
    return (own.transpose(0, 2, 1) if transpose else own) @ y


def _fixed(matrices: Array, mixes: bool, layer: int, y: Array, transpose: bool) -> Array:
    """Of matrices that are not random."""
    own = matrices[layer].T if transpose else matrices[layer]
    if not mixes:
        return np.asarray(own[0, 0] * y)
    return np.concatenate(list(np.tensordot(own, np.split(y, 2, axis=1), 1)), axis=1)
