"""A PyTorch module in its first steps: infinite width beside modules that torch trains."""

import torch
from torch import nn

import tpcalc as tp

FEATURES, RATE = 64, 0.5


class Digits(nn.Module):
    """Two layers and a readout in muP: the entries of the last map start at size 1/n."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.enter = nn.Linear(FEATURES, n, bias=False)
        self.hidden = nn.Linear(n, n, bias=False)
        self.read = nn.Linear(n, 1, bias=False)
        nn.init.normal_(self.enter.weight)
        nn.init.normal_(self.hidden.weight, std=n**-0.5)
        nn.init.normal_(self.read.weight, std=1 / n)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.read(torch.tanh(self.hidden(torch.tanh(self.enter(x)))))


def optimizer(model: nn.Module, n: int) -> torch.optim.Optimizer:
    """The rates of muP for gradient descent: n, 1 and 1/n."""
    rates = {"enter.weight": n, "read.weight": 1 / n}
    return torch.optim.SGD(tp.torch.param_groups(model, rates, lr=RATE))


def main(
    steps: int = 2,
    samples: int = 2**13,
    widths: tuple[int, ...] = (64, 256, 1024),
    seeds: int = 16,
) -> None:
    digits = tp.digits(classes=(0, 1), samples=8, seed=0)
    x, y = torch.tensor(digits.inputs), torch.tensor(digits.targets)
    network = tp.torch.network(Digits, x)
    run = tp.torch.training(
        Digits,
        x,
        optimizer=optimizer,
        data=tp.torch.samples(network, x, y),
        steps=steps,
        batch=len(x),
        watch=(),
    )
    limit = tp.limit(run, samples=samples, seed=0)
    drawn = tp.simulate(run, widths, seeds=seeds)
    print(f"largest z: {max(row.z for row in tp.compare(limit, drawn).rows):.1f}")
    print("infinite width:", *(f"{limit[f'f[{steps},{k}]'].value:.3f}" for k in range(len(x))))
    for n in widths:
        found = torch.stack([trained(n, seed, steps, x, y) for seed in range(seeds)])
        print(f"modules of width {n}:", *(f"{value:.3f}" for value in found.mean(0).tolist()))


def trained(n: int, seed: int, steps: int, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The outputs of one module of finite width, trained by torch alone."""
    torch.manual_seed(seed)
    module = Digits(n)
    descent = optimizer(module, n)
    for _ in range(steps):
        descent.zero_grad()
        (0.5 * (module(x) - y).square().mean()).backward()
        descent.step()
    return module(x).detach().flatten()


if __name__ == "__main__":
    main()
