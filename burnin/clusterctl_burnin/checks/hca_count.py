"""hca_count: the node has as many adapters of the SKU's link layer as its SKU."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from clusterctl.fleet.finding import Finding, Verdict, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.hardware.sku import LinkLayer
from clusterctl.fleet.quantity import Quantity, exactly
from clusterctl_burnin.check import Area, Check, Expected
from clusterctl_burnin.probe import Readings
from clusterctl_burnin.probes.ibstat import ETHERNET, IBSTAT, compute_adapters

_NAME = "hca_count"
_RESEAT = "power the machine off and on; if it is still absent, reseat the adapter, then replace it"
_SURPLUS = "correct the SKU, or set the surplus adapter to another link layer"
_OTHER_LAYER = (
    "set the adapters to {0} (mlxconfig LINK_TYPE_P1); where the compute fabric is {1}, write hca_link_layer: {1} into "
    "the SKU"
)


def _judge(readings: Readings, expected: Expected) -> Iterator[Finding]:
    adapters, wanted = compute_adapters(readings, expected.sku), expected.sku.hca_count
    count, names = str(len(adapters)), ", ".join(a.name for a in adapters) or "none"
    if len(adapters) == wanted:
        yield passed(
            _NAME,
            f"all {expected.sku.hca_link_layer} adapters are there",
            measured=Quantity(len(adapters), "adapters"),
            expected=exactly(wanted, "adapters"),
        )
    else:
        remedy = _remedy(readings, len(adapters), expected)
        cause = f"{count} of {wanted} {expected.sku.hca_link_layer} adapters answer: {names}"
        yield Finding(
            check=_NAME,
            verdict=Verdict.FAIL,
            code=Code.HCA_COUNT,
            cause=cause,
            measured=Quantity(len(adapters), "adapters"),
            expected=exactly(wanted, "adapters"),
            remedy=remedy,
        )


def _remedy(readings: Readings, count: int, expected: Expected) -> str:
    """Return what to do; where the missing adapters are there in the other link layer, that is the cause."""
    sku = expected.sku
    other: LinkLayer = "InfiniBand" if sku.hca_link_layer == ETHERNET else ETHERNET
    if count > sku.hca_count:
        return _SURPLUS
    if count + len(compute_adapters(readings, replace(sku, hca_link_layer=other))) >= sku.hca_count:
        return _OTHER_LAYER.format(sku.hca_link_layer, other)
    return _RESEAT


CHECK = Check(_NAME, (IBSTAT,), _judge, area=Area.INFINIBAND)
