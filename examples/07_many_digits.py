"""An infinitely wide network trained on hundreds of digits, beside networks of finite width."""

from collections.abc import Callable

import tpcalc as tp

BATCH, CLASSES = 16, tuple(range(10))


def main(
    steps: int = 16,
    held_out: int = 100,
    samples: int | None = None,
    replicates: int = 4,
    widths: tuple[int, ...] = (256, 1024),
    seeds: int = 4,
) -> None:
    data = tp.digits(CLASSES)
    seen = steps * BATCH
    run = tp.Training(
        tp.MLP(3, "tanh"),
        "mup",
        tp.Samples(data.inputs[:seen], data.targets[:seen]),
        steps=steps,
        batch=BATCH,
        lr=4.0,
        queries=data.inputs[seen : seen + held_out],
        watch=[],
    )
    last = [f"f[{steps},{BATCH}:]"]  # of all queries; those of earlier steps need not be followed
    limit = tp.limit(run, outputs=last, samples=samples, replicates=replicates)
    error = max(limit[name].stderr for name in limit)
    found = accuracy(lambda name: limit[name].value, data, seen, held_out, steps)
    print(
        f"infinite width: {found:.0%} of {held_out} digits after {seen}, "
        f"standard errors up to {error:.1g}"
    )
    networks = tp.simulate(run, widths, seeds=seeds, backend="dense", outputs=last)
    for width in widths:
        rows = [row for row in networks.rows if row.width == width]
        drawn = [{row.name: row.values[seed] for row in rows} for seed in range(seeds)]
        each = [accuracy(own.__getitem__, data, seen, held_out, steps) for own in drawn]
        print(f"width {width}: {', '.join(f'{own:.0%}' for own in each)}")


def accuracy(
    value: Callable[[str], float], data: tp.Samples, seen: int, held_out: int, steps: int
) -> float:
    """The share of held-out digits of which the output of the right class is the largest."""
    right = 0
    for query in range(held_out):
        outputs = [value(f"f[{steps},{BATCH + query},{k}]") for k in range(len(CLASSES))]
        right += outputs.index(max(outputs)) == data.targets[seen + query].index(1.0)
    return right / held_out


if __name__ == "__main__":
    main()
