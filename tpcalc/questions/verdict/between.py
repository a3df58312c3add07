"""Whether what an update adds to a map is what its readers feel of it."""

from __future__ import annotations

from collections.abc import Sequence

from tpcalc.exponents import Ex
from tpcalc.exponents.chamber import Chamber
from tpcalc.questions.verdict.ledger import Ledger
from tpcalc.questions.verdict.probe import Probe
from tpcalc.questions.verdict.sizes import Order, Sizes, grows, stays

BETWEEN = "a power, factor or norm stands between the map and what reads it"


def is_felt(run: Probe, ledger: Ledger, label: str, step: int, chamber: Chamber) -> bool | None:
    """Whether what stands between a map and its readers is of order one; None: it vanishes.

    On each way to a reader it is a product; the largest of them counts.
    """
    uses: dict[str, dict[str, list[tuple[str, ...]]]] = {}
    for key, names in run.at("between", step).items():
        use, way, _ = key.rsplit("#", 2)
        if use.partition("@")[0] == label:
            uses.setdefault(use, {}).setdefault(way, []).append(names)
    for ways in uses.values():
        ledger.settle([name for way in ways.values() for names in way for name in names])
        products = [_product(ledger, way, chamber) for way in ways.values()]
        if any(grows(order, chamber.sign) is not False for order in products):
            return False
        left = [stays(order, chamber.sign) for order in products]
        if True not in left:
            return False if None in left else None
    return True


def _product(ledger: Ledger, factors: Sequence[tuple[str, ...]], chamber: Chamber) -> Order:
    """The size of a product of factors, each of several cells.

    Where nothing is tested, leading coefficients are taken to be different from 0.
    """
    power, status = Ex(), "exact"
    for names in factors:
        found = {name: ledger.found[name] for name in names}
        orders = {name: own.order if ledger.tests else own.if_led for name, own in found.items()}
        exact_first = sorted(names, key=lambda name: orders[name].status)
        best = Sizes(orders, chamber).largest(exact_first)
        order = Order(None, "exact", "") if best is None else orders[best]
        if order.n is None:
            return order
        power, status = power + order.n, max(status, order.status)
    return Order(power, status, "")
