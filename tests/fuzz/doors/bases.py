"""Small questions that have answers: what the cases of the doors are mutations of."""

from __future__ import annotations

from typing import Any

SMALL = "--depth 1 --samples 1 --steps 0"
STEP = "--depth 1 --samples 1 --steps 1"
COMMANDS = tuple(
    line.split()
    for line in f"""
orders mlp {STEP}
orders p.json
orders mlp {SMALL} --param ac:0,1/2,1;c --at c=0
check mlp {SMALL} --first
check mlp --depth 1 --steps 1 --deep 0
check resnet --depth L --hurst 3/4 --alpha 3/4 --nonlin between --layers 2
check resnet --depth L --param depth-mup --nonlin post --steps 1 --lr-depth 1
solve mlp --depth 1 --deep 0
phases mlp --depth 1 --steps 1 --param ac:0,1/2,a;c --box a=0:1 --box c=-1:0 --svg old.svg
limit mlp {SMALL}
limit mlp {STEP} --group hidden:lr=1 --schedule warmup:2 --act tanh --bias all
limit mlp {SMALL} --method particles --particles 16 --replicates 2 --threads 1
limit p.json --only y --values a=1/2
limit rnn --length 2 --samples 1 --steps 0
limit resnet --depth 1 --samples 1 --steps 0 --along rbf(1/10)
limit resnet --depth 2,oo --param depth-mup --nonlin post --steps 0 --samples 1
limit mlp --depth 1 --steps 0 --data d.csv --query q.csv
kernel mlp --depth 1 --samples 2 --kinds nngp --save old.npz
kernel mlp --depth 1 --data d.csv --method exact --out old.html
kernel p.json
sheet relu --dilate 2 --shift 1/2 --against identity --out old.html
signal relu --rank 1/4 --depth 5
signal erf --weights 1.5 --biases 0.05 --depth 5 --out old.md
nlc mlp --depth 1 --act relu
nlc net.txt --q 1 --c 0
nlc mlp --depth 2 --norm layer --skip 1
simulate mlp {SMALL} --widths 4 --seeds 2
simulate p.json --widths 4,8 --seeds 2
compare mlp {SMALL} --widths 4,8 --seeds 2
report mlp {SMALL} --widths 4,8 --seeds 2 --out old.md
report p.json --widths 4 --seeds 2 --out old.md
recipe depth-mup --depth 8 --base 4 --lr 1 --multiplier 1
recipe --alpha 1/2 --raw 1
transfer mlp --depth 1 --steps 1 --samples 1 --rates 1 --seeds 1 --widths 4
transfer resnet --depth 2,4 --param depth-mup --nonlin post --steps 1 --samples 1 --lr 1:2:2 --out old.md
show mlp {SMALL} --words
show p.json --dependencies
list
list activations
doctor
sweep mlp --grid depth=1,2 --question check --steps 0 --work w --table old.csv --out old.html
experiment e.toml --work w --out old.html
experiment k.toml
regularity w.npy --alphas 1/2,1
regularity c.txt --autocovariance --sequences 2
regularity w.csv --multiplier 2 --act relu --seed 1
""".splitlines()
    if line
)
QUESTIONS = tuple(
    line.split()
    for line in """
check s.toml
check s.toml --first
limit s.toml
orders s.toml
simulate s.toml
compare s.toml
kernel s.toml
show s.toml
solve s.toml --deep 0
report s.toml --out old.md
sweep s.toml --work w --out old.md --table old.csv
transfer s.toml --rates 1 --widths 4 --seeds 1
""".splitlines()
    if line
)
STUDY: dict[str, Any] = {
    "model": {"architecture": "mlp", "depth": 1, "act": "relu"},
    "training": {"steps": 0, "inputs": [[1.0, 0.5]], "targets": [1.0]},
    "limit": {"seed": 1},
    "simulate": {"widths": [4, 8], "seeds": 2},
}
STUDIES: tuple[dict[str, Any], ...] = (
    STUDY,
    STUDY | {"training": STUDY["training"] | {"steps": 1, "optimizer": "adam", "batch": 1}},
    STUDY | {"model": {"architecture": "resnet", "depth": 1, "alpha": "1/2"}},
    STUDY | {"model": {"architecture": "rnn", "length": 2}},
    STUDY | {"sweep": {"question": "check", "grid": {"model.depth": [1, 2], "lr": [0.5]}}},
    {
        "model": {"architecture": "resnet", "depth": "L", "param": "depth-mup", "nonlin": "post"},
        "training": {"steps": 0},
    },
    {
        "model": {"architecture": "net.py:net", "parameters": {}},
        "training": STUDY["training"],
        "simulate": STUDY["simulate"],
    },
)
EXPERIMENT: dict[str, Any] = {
    "name": "E",
    "title": "a title",
    "shows": ["losses"],
    "training": {"depth": 1, "width": 16, "lr": 0.1, "batch": 2, "steps": 1, "trials": 1},
    "stand-in": {"width": 16, "batch": 2, "steps": 1, "trials": 1},
    "std": {"relu": 1.4},
    "networks": [{"param": "mup", "bias": "none", "act": ["relu"]}],
}
DEPTHS: tuple[dict[str, Any], ...] = (
    {
        "kind": "depth",
        "name": "D",
        "title": "a title",
        "model": {"act": "identity", "nonlin": "post"},
        "training": {"steps": 1, "inputs": [[1.0]], "targets": [[1.0]]},
        "depths": {"recipes": ["depth-mup"], "blocks": [2, 4]},
        "transfer": {"rates": [0.5, 1.0], "multipliers": [1.0], "average": 1},
        "references": [{"where": "x", "what": "rate", "blocks": 2, "value": 0.4}],
    },
    {
        "kind": "depth",
        "name": "S",
        "title": "a title",
        "model": {"act": "relu", "nonlin": "between", "layers": 2, "law": "uniform"},
        "depths": {"blocks": [2, 4], "widths": [4], "seeds": 2},
        "start": {"along": ["fresh"], "alphas": ["1/2"], "ratios": ["D"], "places": [1.0]},
    },
)
TEXT_PROGRAMS = (
    """
@tp.program
def made(t):
    v = t.gaussian("v")
    W = t.matrix("W")
    h = tp.n**-0.5 * (W @ tp.relu(v))
    t.output("y", tp.mean(h * h))
    t.output("h", h)
""",
    """
@tp.program
def made(t):
    u, v = t.gaussian("u"), t.gaussian("v")
    a = tp.mean(u * v)
    t.output("y", tp.mean(tp.tanh(u + 2 * a * v)))
    t.output("z", tp.n ** (tp.symbol("a") / 2) * a)
""",
    'made = tp.train(tp.MLP(1, "relu"), "mup", tp.Samples([[0.6]], [1]), steps=1)\n',
)
TABLES = {
    "d.csv": "x1,x2,y\n1,0.5,1\n0.5,-1,-1\n",
    "q.csv": "x1,x2\n1,2\n0,1\n",
    "w.csv": "\n".join("1,0.5,-0.25,2" for _ in range(6)),
    "c.txt": "1 0.5 0.25 0.125\n",
    "net.txt": "x = input(1, 0)\na = dense(x, 3/2, rank=1/4)\nb = bias(a, 0.05)\nc = tanh(b)\n"
    "d = dense(c)\ne = 0.5*a + d\n",
    "own.opt": "optimizer slow(beta=9/10, decay=0)\nm = beta m + (1 - beta) g\n"
    "w = (1 - lr decay) w - lr sign(m)\n",
}  # fmt: skip
OF_TABLES = {
    "d.csv": "limit mlp --depth 1 --steps 0 --data d.csv",
    "q.csv": "limit mlp --depth 1 --steps 0 --samples 1 --query q.csv",
    "w.csv": "regularity w.csv",
    "c.txt": "regularity c.txt --autocovariance",
    "net.txt": "nlc net.txt",
    "own.opt": f"orders mlp {STEP} --optimizer own.opt",
}
OWN_NETWORK = """import tpcalc as tp
{top}
@tp.network
def net(t, x):
    {first}
    h = t.linear({n}, "in", name={name}{init})(x)
    {inside}
    h = h + t.linear(t.n, t.n, name="block")({act}(h))
    {end}
    return {out}
"""
NETWORK_PARTS = {
    "top": "",
    "first": "pass",
    "n": "t.n",
    "name": '"embed"',
    "init": "",
    "inside": "pass",
    "act": "tp.relu",
    "end": "pass",
    "out": 't.linear(t.outputs, t.n, name="read")(h)',
}
OWN_PROGRAM = """import tpcalc as tp
{top}
@tp.program
def net(t):
    v = t.gaussian({name})
    {inside}
    W = t.matrix("W")
    h = {factor} * (W @ {act}(v))
    {end}
    t.output({output}, {out})
"""
PROGRAM_PARTS = {
    "top": "",
    "name": '"v"',
    "inside": "pass",
    "factor": "tp.n**-0.5",
    "act": "tp.relu",
    "end": "pass",
    "output": '"y"',
    "out": "tp.mean(h * h)",
}
OWN_MODULE = """import torch
from torch import nn
{top}
class Net(nn.Module):
    def __init__(self, n):
        super().__init__()
        {inside}
        self.a, self.b = nn.Linear(4, {n}), nn.Linear(n, 2)

    def forward(self, x):
        {end}
        return {out}

def make(n):
    {first}
    return {made}

def optimizer(model, n):
    return {optimizer}
"""
MODULE_PARTS = {
    "top": "",
    "inside": "pass",
    "n": "n",
    "end": "pass",
    "out": "self.b(torch.relu(self.a(x)))",
    "first": "pass",
    "made": "Net(n)",
    "optimizer": "torch.optim.SGD(model.parameters(), lr=0.1)",
}
STATEMENTS = (
    "raise ValueError('x' * 100_000)", "raise ValueError", "raise KeyError('a')", "1 / 0",
    "raise SystemExit(3)", "raise SystemExit('text')", "import sys; sys.exit()", "raise GeneratorExit",
    "raise StopIteration", "raise MemoryError", "raise RecursionError", "raise OSError(2, 'no')",
    "raise BrokenPipeError", "raise type('Mine', (BaseException,), {})('mine')", "raise UnicodeDecodeError('a', b'b', 0, 1, 'c')",
    "raise type('Mine', (Exception,), {'__str__': lambda self: 1 / 0})", "import nosuch_module",
    "def recursive(): recursive()\\n{indent}recursive()", "raise Warning('w')", "assert False", "nosuch",
    "raise EOFError", "raise UnicodeEncodeError('utf-8', '\\\\ud800', 0, 1, 'no')", "raise BaseExceptionGroup('g', [KeyError()])",
    "raise ExceptionGroup('g', [ValueError('a' * 1000)])", "import warnings; warnings.warn('from a user')",
    "raise KeyboardInterrupt", "print('\\\\ud800')", "del h", "h = None", "x = v = None", "return", "return 1", "yield 1", "return net",
)  # fmt: skip
EXPRESSIONS = (
    "None", "1", "-1", "0", "0.0", "1e400", "float('nan')", "10**30", "10**5000", "'1e999999999 n^(-1)'", "'n^(1/0)'",
    "'9' * 5000", "'x' * 200_000", "''", "'a\\0b'", "'\\ud800'", "[]", "{}", "object()", "lambda z: z", "lambda *_: 1 / 0",
    "lambda *_: None", "lambda z: z**10**9", "lambda z: z**(10**18)", "lambda z: 1 / z", "lambda z: z / 0", "lambda z: z * 10**400",
    "lambda z: z * float('nan')", "lambda z: z + 'a'", "lambda z: [z]", "lambda z: abs(z)", "lambda z: z.nosuch", "lambda z: z[0]",
    "lambda z: z @ z", "lambda z: -z", "lambda z: z == z", "lambda z: bool(z)", "lambda z: float(z)", "lambda z: len(z)",
    "lambda z: sum(z)", "lambda z: tp.softmax(z)", "lambda z: z.norm()", "lambda z: tp.n**1000 * z", "lambda z: tp.n**(10**30) * z",
    "lambda z: z + 1j", "t", "x", "h", "v", "W", "tp", "tp.n", "tp.n**400", "tp.n**10**5000", "tp.symbol('a')", "tp.tanh", "tp.mean",
    "(h, h)", "[h] * 3", "h.T", "x if x > 0 else -x", "tp.mean(h)", "tp.leaky_relu(float('nan'))", "tp.leaky_relu('1e999999999')",
    "tp.function('f', lambda z: 1 / 0)", "tp.layers.layer_norm", "h * 10**9", "h ** 100000", "torch.zeros(3)", "torch.nan", "x.sum()", "n * 10**12",
    "model", "[]", "torch.optim.SGD(model.parameters(), lr=float('nan'))", "torch.optim.Adam([], lr=1)", "torch.optim.LBFGS(model.parameters())",
    "nn.Linear(4, 2)", "nn.Identity()", "torch.fft.fft(x)", "x.numpy()", "x if x.sum() > 0 else -x", "self.nosuch", "self.b(x)", "x.item()",
)  # fmt: skip
PYTHON_QUESTIONS = (
    "check net.py:net --first",
    "limit net.py:net --steps 0 --samples 1",
    "orders net.py:net",
    "simulate net.py:net --widths 4 --seeds 2",
    "show net.py:net",
    "kernel net.py:net --samples 2",
)
MODULE_QUESTIONS = (
    "check net.py:make --input x:2x4 --first",
    "check net.py:make --input x:2x4 --optimizer net.py:optimizer --first",
    "orders net.py:Net --input x:2x4",
    "limit net.py:make --input x:1x4",
    "simulate net.py:make --input x:1x4 --widths 4 --seeds 2",
    "show net.py:make --input x:1x4",
)
