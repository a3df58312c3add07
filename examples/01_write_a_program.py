"""Write a program, ask for its limit, and check it against networks of finite width."""

import tpcalc as tp


@tp.program
def there_and_back(t):
    v = t.gaussian("v")
    W = t.matrix("W")
    h = tp.n**-0.5 * (W @ tp.relu(v))
    g = tp.n**-0.5 * (W.T @ tp.tanh(h))  # the same W: g remembers v
    t.output("g", g)
    t.output("overlap", t.inner(v, g))


def main(samples: int = 2**14, widths: tuple[int, ...] = (256, 1024, 4096)) -> None:
    limit = tp.limit(there_and_back, samples=samples, seed=0)
    print(limit["g"].formula.text)
    print("overlap:", limit["overlap"])
    networks = tp.simulate(there_and_back, widths=widths, seeds=16, seed=0)
    for row in tp.compare(limit, networks).rows:
        if row.name == "overlap":
            print(f"width {row.width}: {row.mean:.4f} ± {row.stderr:.4f}, z = {row.z:.1f}")


if __name__ == "__main__":
    main()
