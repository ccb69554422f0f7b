"""All findings about a MAAS host, in a fixed order; one that cannot be made hides no other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from clusterctl.edges.maas.host import images, network, region
from clusterctl.edges.maas.host.questions import Questions
from clusterctl.fleet.diagnosis import Diagnosis, broken, not_measured
from clusterctl.fleet.errors import EdgeError, ParseError

CHECKS: Mapping[str, Callable[[Questions], Diagnosis]] = {
    "maas_key": region.key,
    "maas_version": region.version,
    "maas_clock": region.clock,
    "maas_racks": images.racks,
    "maas_images": images.series,
    "maas_commissioning": images.commissioning,
    "maas_dhcp": network.dhcp,
    "maas_addresses": network.addresses,
    "maas_subnet": network.routes,
    "maas_proxy": region.proxy,
    "maas_ntp": region.time_service,
    "maas_node_timeout": region.timeout,
}
NOT_TRIED = not_measured(
    "maas_power",
    "whether MAAS reaches the BMCs: it shows at the first commissioning, or by MAAS's own query-power-state",
)


@dataclass(frozen=True, slots=True)
class Examination:
    """`reached`: MAAS answered to our key, so that the findings are about it and not about the way to it."""

    found: tuple[Diagnosis, ...]
    reached: bool


def examine(host: Questions) -> Examination:
    """Every check's finding. Where MAAS cannot be asked at all, that is the one finding, and nothing else is asked.

    Raises `UsageError` where the person named a subnet that MAAS has not.
    """
    first, *others = CHECKS
    try:
        key = CHECKS[first](host)
    except (EdgeError, ParseError) as error:
        silent = tuple(not_measured(name, "MAAS could not be asked") for name in others)
        return Examination((broken(first, error.message, error.remedy), *silent), reached=False)
    return Examination((key, *(_made(name, host) for name in others), NOT_TRIED), reached=True)


def _made(name: str, host: Questions) -> Diagnosis:
    try:
        return CHECKS[name](host)
    except (EdgeError, ParseError) as error:
        return not_measured(name, error.message, error.remedy)
