"""NTK parameterization: the output starts at a random value and moves by a fixed kernel."""

import tpcalc as tp


def main(samples: int = 2**12, replicates: int = 64) -> None:
    data = tp.Samples(((0.6, -0.3, 0.5, 0.2),), ((0.0,),))
    program = tp.train(
        tp.MLP(depth=3, act="relu", bias="first"),
        "ntk",
        data,
        steps=1,
        loss="linear",
        queries=[(0.1, 0.7, -0.2, 0.9)],
        watch=(),
    )
    program = tp.extend(program, lambda t: t.output("moved", t["f[1,1]"] - t["f[0,1]"]))
    limit = tp.limit(program, samples=samples, replicates=replicates, seed=0)
    start = limit["f[0,1]"]
    print(f"f at the start: random, sd {start.std:.3f}")
    print(f"what one step adds: {limit['moved']}   (the kernel: 0.420084)")


if __name__ == "__main__":
    main()
