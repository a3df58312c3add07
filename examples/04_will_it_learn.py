"""Before a run: which layers die, what would make them move, and whether the answer is right."""

import tpcalc as tp


def main(depth: int = 4, widths: tuple[int, ...] = (256, 1024, 4096), seeds: int = 8) -> None:
    net = tp.MLP(depth, "relu", bias="first")
    start = tp.check(net, "naive-ip", steps=2)
    print(f"naive-ip: {start.verdict}; {start.facts[0]}")

    rates = tp.solve(net, "naive-ip", steps=2)
    for step in rates.steps:
        print(f"step {step.step}: learning rates eta n^(-c), c = {', '.join(step.c)}")

    llr = tp.check(net, "ip-llr", steps=2)
    print(f"ip-llr: {llr.verdict}, {llr.valid_for}")

    # The same exponents from networks of finite width.
    found = tp.orders(tp.train(net, "naive-ip", tp.digits(samples=2, seed=0), steps=1))
    rows = {row.name: row for row in tp.measure(found, widths=widths, seeds=seeds, seed=1).rows}
    for layer in range(1, depth + 1):
        row = rows[f"h[{layer},0,0]"]
        print(f"h of layer {layer} at the start: n^({row.n}), measured {row.slope:.2f}")


if __name__ == "__main__":
    main()
