"""muP on handwritten digits: what an infinitely wide network learns in a few steps."""

import tpcalc as tp


def main(steps: int = 6, samples: int = 2**13) -> None:
    data = tp.digits(classes=(0, 1), samples=8, seed=0)
    program = tp.train(
        tp.MLP(depth=3, act="relu"),
        "mup",
        data,
        steps=steps,
        lr=0.5,
        batch=4,
        queries=[data.inputs[7]],
        watch=("h",),
    )
    limit = tp.limit(program, samples=samples, seed=0)
    for t in range(steps + 1):
        feature = limit[f"h[3,{t},4]"].second_moment
        print(f"t = {t}: f(query) = {limit[f'f[{t},4]']}, E h^2 in layer 3 = {feature}")


if __name__ == "__main__":
    main()
