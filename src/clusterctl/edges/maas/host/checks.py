"""The checks of a MAAS host. Each returns one diagnosis; a check that cannot be made does not hide the others."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from clusterctl.edges.maas.api import FORBIDDEN, MaasRefusedError
from clusterctl.edges.maas.host.facts import HostFacts
from clusterctl.edges.maas.matching import DEFAULT_POOL
from clusterctl.edges.maas.rights import REMEDY
from clusterctl.fleet.diagnosis import Diagnosis, broken, enumerated, not_measured, ok, warn
from clusterctl.fleet.errors import EdgeError, ParseError
from clusterctl.formats.maas.region import Subnet

OLDEST, NEWEST = (3, 2), (3, 7)
REGION_SERVES_IMAGES = (3, 5)
"""From this version on racks fetch images from the region on demand, and `list_boot_images` always reports "synced"
(src/maasserver/api/rackcontrollers.py).
"""
CLOCK_WARN_S, CLOCK_BROKEN_S = 5.0, 240.0
"""MAAS refuses requests that are 300 s off."""
DEFAULT_NODE_TIMEOUT = 30
"""Minutes. A server with eight GPUs and 2 TB needs 10 for its POST alone, and boots twice."""
CONNECTED = ("running", "degraded")
"""States of the service `rackd`, by which a rack reports to the region."""
NOT_HOSTS = 2
"""Network and broadcast address."""
SELECT_IMAGE = "maas PROFILE boot-source-selections create 1 os=ubuntu release={} arches={} subarches='*' labels='*', "


def _key(host: HostFacts) -> Diagnosis:
    name = "maas_key"
    if host.admin:
        return ok(name, f"{host.where} accepts our key, of administrator {host.user}")
    return broken(
        name,
        f"our key belongs to {host.user}, which is no administrator",
        "use an administrator's key: only administrators commission, lay out drives and tag",
    )


def _rights(host: HostFacts) -> Diagnosis:
    """Check that our key may administer the machines of the site's pools; an administrator's key may not, with RBAC."""
    name, found = "maas_rights", host.rights
    if found.refused:
        message = f"our key may not administer the machines of pool {enumerated(sorted(found.refused))}"
        return broken(name, f"{message}: they could be enrolled, and not commissioned", REMEDY)
    if found.empty:
        message = (
            f"MAAS takes the rights of {host.user} from an external service, and no machine is there to try them on"
        )
        return not_measured(name, f"{message} in pool {enumerated(sorted(found.empty))}")
    if found.tried:
        return ok(name, f"our key administers machines of pool {enumerated(sorted(found.tried))}")
    return ok(name, "MAAS itself keeps our user: an administrator administers every pool")


def _maas_version(host: HostFacts) -> Diagnosis:
    name, text = "maas_version", host.version
    match = re.match(r"(\d+)\.(\d+)", text)
    if match is None:
        return not_measured(name, f"MAAS reports version {text!r}")
    found = (int(match[1]), int(match[2]))
    if found < OLDEST:
        return broken(name, f"MAAS {text}: clusterctl needs 3.2 or later", "upgrade MAAS, one minor version at a time")
    if found > NEWEST:
        return warn(name, f"MAAS {text} is newer than 3.7, the newest that clusterctl was written for", "try one node")
    return ok(name, f"MAAS {text}")


def _clock(host: HostFacts) -> Diagnosis:
    name, off = "maas_clock", host.offset_s
    if off is None:
        return not_measured(name, "MAAS sends no time")
    message = f"MAAS's clock is {abs(off):.0f} s {'ahead of' if off > 0 else 'behind'} ours"
    remedy = "run NTP on both: MAAS refuses keys at 300 s, and machines take their time from MAAS"
    if abs(off) > CLOCK_BROKEN_S:
        return broken(name, message, remedy)
    return warn(name, message, remedy) if abs(off) > CLOCK_WARN_S else ok(name, message)


def _pool(host: HostFacts) -> Diagnosis:
    """Check that the site's pool exists, and that its machines may be moved into it."""
    name, pool = "maas_pool", host.needs.pool
    if not pool:
        return ok(name, "the site names no pool: machines stay in theirs")
    if pool not in host.pools:
        shown = enumerated(sorted(host.pools)) or "none at all"
        if not host.local:
            message = f"MAAS shows our key no pool {pool!r}; it shows {shown}"
            return broken(name, message, f"create the pool, or let {host.user} see it: {REMEDY}")
        message = f"MAAS has no pool {pool!r}; it has {shown}"
        return broken(name, message, f"maas PROFILE resource-pools create name={pool}")
    allowed = (pool, DEFAULT_POOL, *host.needs.move_from_pools)
    others = [f"{one.hostname} ({one.pool})" for one in host.machines if one.pool not in allowed]
    if others:
        return warn(
            name,
            f"these machines are in another pool, and will not be moved into {pool}: {enumerated(sorted(others))}",
            "if no one needs them there, add that pool to provisioning.move_from_pools, or move them in MAAS",
        )
    return ok(name, f"pool {pool}")


def _racks(host: HostFacts) -> Diagnosis:
    name = "maas_racks"
    if not host.racks:
        return broken(name, "MAAS has no rack controller", "install one: maas init rack, on a host of that network")
    states = {rack.hostname: rack.services.get("rackd", "unknown") for rack in host.racks}
    lost = [f"{rack} ({state})" for rack, state in states.items() if state not in CONNECTED]
    if all(state == "unknown" for state in states.values()):
        return not_measured(name, f"MAAS does not report whether {enumerated(list(states))} are connected")
    if len(lost) == len(states):
        return broken(name, f"no rack controller is connected: {enumerated(lost)}", "start maas on them")
    if lost:
        return warn(name, f"rack controllers are not connected: {enumerated(lost)}", "start maas on them")
    return ok(name, f"{len(states)} connected: {enumerated(list(states))}")


def _series(host: HostFacts) -> Diagnosis:
    return _imported(host, "maas_images", host.needs.series, "provisioning.series")


def _commissioning(host: HostFacts) -> Diagnosis:
    """Check the release that commissions machines, which may differ from the release that is installed."""
    release = str(host.setting("commissioning_distro_series") or "")
    return _imported(host, "maas_commissioning", release, "commissioning_distro_series")


def _imported(host: HostFacts, name: str, release: str, setting: str) -> Diagnosis:
    arch = host.needs.architecture.partition("/")[0]
    found = host.images_of(release)
    if not found:
        present = enumerated(sorted({image.name for image in host.images})) or "none at all"
        select = SELECT_IMAGE.format(release.rpartition("/")[2], arch)
        message = f"no image of {release!r} ({setting}) for {arch}; MAAS has {present}"
        return broken(name, message, f"{select}then maas PROFILE boot-resources import")
    partial = [image.architecture for image in found if not host.is_complete(image)]
    if partial:
        message = f"{release} is still being fetched: {enumerated(partial)}"
        return broken(name, message, "wait, or see maas PROFILE events query")
    lagging = _lagging(host, {image.name for image in found}, arch)
    if lagging:
        return warn(name, f"{release} is not yet on {enumerated(lagging)}", "wait until the racks have synced")
    return ok(name, f"{release} for {arch}: {enumerated([image.architecture for image in found])}")


def _lagging(host: HostFacts, names: set[str], arch: str) -> list[str]:
    """Return the racks without the image, where racks keep images themselves."""
    version = tuple(int(part) for part in host.version.split(".")[:2] if part.isdigit())
    if version >= REGION_SERVES_IMAGES:
        return []
    held = {rack.hostname: host.rack_images(rack) for rack in host.racks}
    return [
        f"{rack} ({images.status})"
        for rack, images in held.items()
        if not any((known, arch) in images.names for known in names)
    ]


def _dhcp(host: HostFacts) -> Diagnosis:
    name = "maas_dhcp"
    without = [subnet for subnet in host.subnets if not subnet.dhcp]
    if without or not host.subnets:
        where = _listed(without) or "any VLAN"
        return broken(
            name,
            f"MAAS serves no DHCP on {where}: no machine can boot from the network",
            "maas PROFILE ipranges create subnet=ID type=dynamic start_ip=… end_ip=…, then "
            "maas PROFILE vlan update FABRIC VID dhcp_on=True primary_rack=ID",
        )
    foreign = [f"{subnet.foreign_dhcp} on {subnet.vlan}" for subnet in host.subnets if subnet.foreign_dhcp]
    if foreign:
        return warn(name, f"another DHCP server answers: {', '.join(foreign)}", "switch it off on that VLAN")
    return ok(name, f"MAAS serves DHCP on {_listed(host.subnets)}")


def _addresses(host: HostFacts) -> Diagnosis:
    """Check that the dynamic range suffices for booting machines, and the remaining addresses for installed ones."""
    name, nodes, at_once = "maas_addresses", host.needs.nodes, min(host.needs.at_once, host.needs.nodes)
    dynamic, rest = _free_addresses(host)
    message = f"{dynamic} addresses for machines that boot, {rest} for installed ones; the site has {nodes} nodes"
    if dynamic < at_once:
        return broken(
            name,
            f"{message}, {at_once} of them at once",
            "maas PROFILE ipranges create subnet=ID type=dynamic start_ip=… end_ip=…, as large as the site",
        )
    if rest < nodes:
        return broken(name, message, "make the subnet larger, or the ranges in it smaller")
    if dynamic < nodes:
        return warn(name, message, "make the dynamic range as large as the site: a lease outlives its boot by minutes")
    return ok(name, message)


def _free_addresses(host: HostFacts) -> tuple[int, int]:
    """Return the numbers of addresses in dynamic ranges, and in no range at all."""
    ids = {subnet.id for subnet in host.subnets}
    ranges = [item for item in host.ranges if item.subnet in ids]
    dynamic = sum(item.count for item in ranges if item.dynamic)
    total = sum(subnet.network.num_addresses - NOT_HOSTS for subnet in host.subnets if subnet.managed)
    return dynamic, max(total - sum(item.count for item in ranges), 0)


def _routes(host: HostFacts) -> Diagnosis:
    name = "maas_subnet"
    isolated = [subnet for subnet in host.subnets if not subnet.gateway]
    if isolated:
        return warn(
            name,
            f"{_listed(isolated)} has no gateway: installed machines reach nothing outside it",
            "maas PROFILE subnet update CIDR gateway_ip=ADDRESS, unless that is intended",
        )
    nameless = [subnet for subnet in host.subnets if not subnet.nameservers]
    if nameless and not host.setting("upstream_dns"):
        return warn(
            name,
            f"{_listed(nameless)} has no name servers and MAAS no upstream DNS: names outside MAAS do not resolve",
            "maas PROFILE maas set-config name=upstream_dns value=ADDRESS",
        )
    gateways = ", ".join(subnet.gateway for subnet in host.subnets)
    return ok(name, f"gateway {gateways}" if gateways else "MAAS has no subnet to check")


def _proxy(host: HostFacts) -> Diagnosis:
    name = "maas_proxy"
    if not host.setting("enable_http_proxy"):
        return warn(
            name,
            "machines fetch packages without any proxy: each downloads its own from the archive",
            "maas PROFILE maas set-config name=enable_http_proxy value=true, unless they have another cache",
        )
    bypassing = [str(subnet.network) for subnet in host.subnets if not subnet.proxied]
    if bypassing:
        return warn(
            name,
            f"machines on {', '.join(bypassing)} may not use MAAS's proxy",
            "maas PROFILE subnet update CIDR allow_proxy=true",
        )
    proxy = host.setting("http_proxy")
    return ok(name, f"machines fetch packages through {proxy}" if proxy else "MAAS's own proxy caches packages")


def _ntp(host: HostFacts) -> Diagnosis:
    name, servers = "maas_ntp", str(host.setting("ntp_servers") or "")
    if not servers:
        return warn(
            name,
            "MAAS has no NTP servers: no time service corrects the racks' clocks, from which machines take their time",
            "maas PROFILE maas set-config name=ntp_servers value=ADDRESS",
        )
    if host.setting("ntp_external_only"):
        return ok(name, f"machines take their time from {servers}")
    return ok(name, f"machines take their time from the racks, and the racks from {servers}")


def _node_timeout(host: HostFacts) -> Diagnosis:
    name, minutes = "maas_node_timeout", host.setting("node_timeout")
    if not isinstance(minutes, int):
        return not_measured(name, f"node_timeout is {minutes!r}")
    message = f"MAAS allows a machine {minutes} minutes for each boot (node_timeout)"
    remedy = "maas PROFILE maas set-config name=node_timeout value=60"
    if minutes < DEFAULT_NODE_TIMEOUT:
        return broken(name, f"{message}: GPU servers need longer", remedy)
    if minutes == DEFAULT_NODE_TIMEOUT:
        return warn(name, f"{message}, the default: short for a long POST, twice", remedy)
    limit = min(host.needs.limits.commissioning, host.needs.limits.deploying) / 60
    if limit < minutes:
        return warn(
            name,
            f"{message}, and clusterctl gives up after {limit:.0f}, before MAAS reports its reason",
            "raise provisioning.deadlines.commissioning and .deploying above it",
        )
    return ok(name, message)


def _listed(subnets: Iterable[Subnet]) -> str:
    return ", ".join(f"{subnet.network} ({subnet.vlan})" for subnet in subnets)


CHECKS: Mapping[str, Callable[[HostFacts], Diagnosis]] = {
    "maas_key": _key,
    "maas_rights": _rights,
    "maas_version": _maas_version,
    "maas_pool": _pool,
    "maas_clock": _clock,
    "maas_racks": _racks,
    "maas_images": _series,
    "maas_commissioning": _commissioning,
    "maas_dhcp": _dhcp,
    "maas_addresses": _addresses,
    "maas_subnet": _routes,
    "maas_proxy": _proxy,
    "maas_ntp": _ntp,
    "maas_node_timeout": _node_timeout,
}
NOT_TRIED = not_measured(
    "maas_power",
    "whether MAAS reaches the BMCs: the first commissioning shows it, or MAAS's own query-power-state",
)


@dataclass(frozen=True, slots=True)
class HostReport:
    """The diagnoses in a fixed order. `reached`: MAAS accepted our key, so that they describe MAAS itself."""

    found: tuple[Diagnosis, ...]
    reached: bool


def check_host(host: HostFacts) -> HostReport:
    """Return every check's diagnosis. Where MAAS does not answer our key, that is the only finding and no other check
    sends a request.

    Raises `UsageError` where MAAS lacks the subnet that the operator named.
    """
    first, *others = CHECKS
    try:
        key = CHECKS[first](host)
    except (EdgeError, ParseError) as error:
        skipped = tuple(not_measured(name, "MAAS did not answer") for name in others)
        return HostReport((broken(first, error.message, error.remedy), *skipped), reached=False)
    return HostReport((key, *(_made(name, host) for name in others), NOT_TRIED), reached=True)


def _made(name: str, host: HostFacts) -> Diagnosis:
    try:
        return CHECKS[name](host)
    except MaasRefusedError as error:
        if error.status == FORBIDDEN:
            return broken(name, f"our key may not read this: {error.message}", "use an administrator's key")
        return not_measured(name, error.message, error.remedy)
    except (EdgeError, ParseError) as error:
        return not_measured(name, error.message, error.remedy)
