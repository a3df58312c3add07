"""Tiles of pairs of inputs, and the functions of an angle that the layers of ``chains`` need.

Numba's cache notices changes of the file of a function only: after a change here, the compiled
loops of ``chains_loops`` that are kept on disk must be thrown away (its file touched).
"""

from __future__ import annotations

from tpcalc.arrays import Array, Index
from tpcalc.engine.kernels_compile import exact, inner, loose, polynomial

ROWS, COLUMNS = 64, 256  # of a tile
PITCH = COLUMNS + 8  # of a tile in memory: rows 2048 bytes apart would share few cache sets
PANEL = 16  # coordinates of inputs for which the columns of a tile stay in the first cache
NEAR = 0.005  # half versine (1 - rho) / 2 below which it is formed from differences of inputs
SMALL = 0.2699  # half versines for which the short polynomials hold
TINY = 1e-300

Pair = tuple[Array, Array, Array, bool, Array, Array]
"""Inputs (N, d); the others (M, d), or the same; their transpose, padded by zero inputs to whole
tiles; whether they are the same; a number of each input, and of each other one, padded."""
Job = tuple[Index, Array, Array]
"""First row and column of each tile; where NNGP and tangent kernels go, empty if not asked for."""

angle = polynomial(
    1.7785808735277375, -6.557866313479624, 11.515881662629397, -12.45859975079597,
    9.284137819977687, -4.981761625245223, 2.0164033301068374, -0.5937410861379648,
    0.15743222714004254, -0.005203075696599376, 0.026382005143507806, 0.02760689179178396,
    0.03472856287820705, 0.04474316955864071, 0.060763926793503654, 0.08928571352523,
    0.15000000000803632, 0.33333333333329973, 2.0,
)  # fmt: skip
"""2 asin(sqrt s) / sqrt s for s in [0, 1/2]; relative error 4e-17 before rounding."""
angle_small = polynomial(
    0.07614165656705787, -0.05967996130338319, 0.056105678113559564, 0.0021159887037901733,
    0.022984415529369348, 0.02253984868954109, 0.027993671138234078, 0.03470050673865879,
    0.044744584225958714, 0.0607638797988092, 0.08928571447108954, 0.1499999999980334,
    0.33333333333334153, 2.0,
)  # fmt: skip
"""The same for s in [0, 0.27]."""
arc = polynomial(
    0.11366132592446036, -0.38489219072557274, 0.6269979801368656, -0.6245889328726089,
    0.42909747522187885, -0.20794244601856987, 0.07840039475553413, -0.017704735518716593,
    0.007915306613725855, 0.004226242976164667, 0.006643093513241805, 0.009249048024860408,
    0.013767805682029654, 0.022095947639427637, 0.03968253995077448, 0.0857142857111221,
    0.26666666666668143, 2.6666666666666665,
)  # fmt: skip
"""(sin x - x cos x) / s^(3/2), x = 2 asin(sqrt s), for s in [0, 1/2]; error 6e-17."""
arc_small = polynomial(
    0.00924433863081631, -0.006567499294146226, 0.0071520418262324, 0.001224445197051837,
    0.00411734786731894, 0.004799123291192082, 0.0065790333613689345, 0.00925423208474457,
    0.01376751298261655, 0.022095958555741046, 0.039682539703742706, 0.08571428571406085,
    0.2666666666666676, 2.6666666666666665,
)  # fmt: skip
"""The same for s in [0, 0.27]."""


@exact
def whole(columns: int) -> int:
    """So many columns, and those that fill the last vector register."""
    return (columns + 7) // 8 * 8


@inner
def copy(row: Array, to: Array) -> None:
    """Assigning a part of an array would compile for a second, for words about shapes."""
    for t in range(row.size):
        to[t] = row[t]


@inner
def gram(x: Array, yt: Array, i0: int, j0: int, width: int, panel: Array, out: Array) -> None:
    """Inner products of a tile; the order of every sum is that of the coordinates."""
    rows, length = min(ROWS, x.shape[0] - i0), x.shape[1]
    out[:] = 0.0
    for k0 in range(0, length, PANEL):
        size = min(PANEL, length - k0)
        for k in range(size):
            copy(yt[k0 + k][j0 : j0 + width], panel[k])
        eights = size // 8 * 8
        for r in range(rows):
            a, part = x[i0 + r][k0 : k0 + size], out[r][:width]
            for k in range(0, eights, 8):
                _add_eight(part, a[k : k + 8], panel[k : k + 8])
            for k in range(eights, size):
                factor, y = a[k], panel[k]
                for t in range(width):
                    part[t] += factor * y[t]


@inner
def _add_eight(out: Array, a: Array, y: Array) -> None:
    """Eight coordinates at once: the row of sums is read and written once for all of them."""
    a0, a1, a2, a3, a4, a5, a6, a7 = a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7]
    y0, y1, y2, y3, y4, y5, y6, y7 = y[0], y[1], y[2], y[3], y[4], y[5], y[6], y[7]
    for t in range(out.size):
        early = a0 * y0[t] + a1 * y1[t] + a2 * y2[t] + a3 * y3[t]
        late = a4 * y4[t] + a5 * y5[t] + a6 * y6[t] + a7 * y7[t]
        out[t] += early + late


@loose
def distance(x: Array, y: Array, ratio: float) -> float:
    """The square of |x - ratio y|; 0 for equal inputs and ratio 1."""
    found = 0.0
    for k in range(x.size):
        gap = x[k] - ratio * y[k]
        found += gap * gap
    return found


@inner
def versines(pair: Pair, i0: int, j0: int, panel: Array, out: Array) -> None:
    """The state u of a tile; the numbers of a pair are the inverse norms of its inputs."""
    x, y, yt, same, rx, ry = pair
    rows, columns = min(ROWS, x.shape[0] - i0), min(COLUMNS, y.shape[0] - j0)
    wide = whole(columns)
    gram(x, yt, i0, j0, wide, panel, out)
    for r in range(rows):
        i = i0 + r
        u, factor = out[r], rx[i]
        for t in range(wide):
            v = max(0.5 - 0.5 * (u[t] * (factor * ry[j0 + t])), 0.0)
            u[t] = v if v <= 0.5 else min(v - 1.0, -TINY)
        count = 0
        for t in range(columns):
            count += 1 if abs(u[t]) < NEAR else 0
        for t in range(columns if count else 0):
            if abs(u[t]) < NEAR:
                j, side = j0 + t, 1.0 if u[t] >= 0.0 else -1.0
                part = distance(x[i], y[j], side * ry[j] / factor) * factor * factor
                u[t] = side * max(0.25 * part, TINY)
        if same and j0 <= i < j0 + columns:
            out[r, i - j0] = 0.0


@inner
def gaps(pair: Pair, i0: int, j0: int, panel: Array, out: Array) -> None:
    """|x - y|^2 / 2 of a tile, or -|x + y|^2 / 2 where that is smaller; qx, qy: |x|^2, |y|^2."""
    x, y, yt, same, qx, qy = pair
    rows, columns = min(ROWS, x.shape[0] - i0), min(COLUMNS, y.shape[0] - j0)
    wide = whole(columns)
    gram(x, yt, i0, j0, wide, panel, out)
    for r in range(rows):
        i = i0 + r
        d = out[r]
        for t in range(wide):
            mean = 0.5 * (qx[i] + qy[j0 + t])
            d[t] = max(mean - d[t], 0.0) if d[t] >= 0.0 else min(-mean - d[t], -TINY)
        for t in range(columns):
            j = j0 + t
            if abs(d[t]) < NEAR * (qx[i] + qy[j]):
                side = 1.0 if d[t] >= 0.0 else -1.0
                d[t] = side * max(0.5 * distance(x[i], y[j], side), TINY)
        if same and j0 <= i < j0 + columns:
            out[r, i - j0] = 0.0


@inner
def _store(
    tile: Array, same: bool, fx: Array, fy: Array, i0: int, j0: int, first: Index, out: Array
) -> None:
    """Write a tile times fx fy, and its mirror image; ``first`` is where each row starts."""
    rows, columns = min(ROWS, fx.size - i0), min(COLUMNS, out.shape[1] - j0)
    for r in range(rows):
        i = i0 + r
        start = max(first[r], i - j0) if same else 0
        row, place, scale = tile[r], out[i][j0 : j0 + columns], fy[j0 : j0 + columns]
        factor = fx[i]
        for t in range(start, columns):
            row[t] *= factor * scale[t]
        for t in range(start, columns):
            place[t] = row[t]
    if same:
        for t in range(columns):
            mirror = out[j0 + t][i0 : i0 + rows]
            for r in range(min(rows, j0 + t - i0)):
                mirror[r] = tile[r, t]


@inner
def keep(
    k: Array, w: Array, same: bool, fx: Array, fy: Array, i0: int, j0: int, first: Index, job: Job
) -> None:
    """Write a tile of both kernels."""
    if job[1].size:
        _store(k, same, fx, fy, i0, j0, first, job[1])
    if job[2].size:
        _store(w, same, fx, fy, i0, j0, first, job[2])


@inner
def starts(same: bool, i0: int, j0: int, first: Index) -> None:
    """Where the rows of a tile start: left of the diagonal nothing is computed."""
    for r in range(ROWS):
        first[r] = min(max(0, i0 + r - j0) // 8 * 8, COLUMNS) if same else 0
