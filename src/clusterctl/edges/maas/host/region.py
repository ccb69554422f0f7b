"""Findings about MAAS itself: version, key, clock, time-outs, proxy, time service."""

from __future__ import annotations

import re

from clusterctl.edges.maas.host.questions import Questions
from clusterctl.fleet.diagnosis import Diagnosis, broken, not_measured, ok, warn

OLDEST, NEWEST = (3, 2), (3, 7)
CLOCK_WARN_S, CLOCK_BROKEN_S = 5.0, 240.0
"""MAAS refuses requests whose time is 300 s off."""
MAAS_DEFAULT_TIMEOUT = 30
"""Minutes; servers with eight GPUs and 2 TB take 10 for their POST alone, and boot twice."""


def key(host: Questions) -> Diagnosis:
    name = "maas_key"
    if host.admin:
        return ok(name, f"{host.where} knows us as {host.user}, an administrator")
    return broken(
        name,
        f"our key is {host.user}'s, who is no administrator",
        "use an administrator's key: only those commission, lay out drives and tag",
    )


def version(host: Questions) -> Diagnosis:
    name, told = "maas_version", host.version
    match = re.match(r"(\d+)\.(\d+)", told)
    if match is None:
        return not_measured(name, f"MAAS calls its version {told!r}")
    found = (int(match[1]), int(match[2]))
    if found < OLDEST:
        return broken(name, f"MAAS {told}: clusterctl speaks to 3.2 and later", "upgrade MAAS, one minor at a time")
    if found > NEWEST:
        return warn(name, f"MAAS {told} is newer than 3.7, the newest that clusterctl was written for", "try one node")
    return ok(name, f"MAAS {told}")


def clock(host: Questions) -> Diagnosis:
    name, off = "maas_clock", host.offset_s
    if off is None:
        return not_measured(name, "MAAS tells no time")
    said = f"MAAS's clock is {abs(off):.0f} s {'before' if off > 0 else 'behind'} ours"
    remedy = "run NTP on both: MAAS refuses keys at 300 s, and machines take their time from MAAS"
    if abs(off) > CLOCK_BROKEN_S:
        return broken(name, said, remedy)
    return warn(name, said, remedy) if abs(off) > CLOCK_WARN_S else ok(name, said)


def timeout(host: Questions) -> Diagnosis:
    name, minutes = "maas_node_timeout", host.setting("node_timeout")
    if not isinstance(minutes, int):
        return not_measured(name, f"node_timeout is {minutes!r}")
    said = f"MAAS gives a machine {minutes} minutes for each boot (node_timeout)"
    remedy = "maas PROFILE maas set-config name=node_timeout value=60"
    if minutes < MAAS_DEFAULT_TIMEOUT:
        return broken(name, f"{said}: GPU servers need longer", remedy)
    if minutes == MAAS_DEFAULT_TIMEOUT:
        return warn(name, f"{said}, the default: short for a long POST, twice", remedy)
    limit = min(host.wanted.limits.commissioning, host.wanted.limits.deploying) / 60
    if limit < minutes:
        return warn(
            name,
            f"{said}, and clusterctl loses patience after {limit:.0f}: MAAS's own reason is never heard",
            "raise provisioning.deadlines.commissioning and .deploying above it",
        )
    return ok(name, said)


def proxy(host: Questions) -> Diagnosis:
    name = "maas_proxy"
    if not host.setting("enable_http_proxy"):
        return warn(
            name,
            "machines fetch packages without any proxy: each its own, from the archive",
            "maas PROFILE maas set-config name=enable_http_proxy value=true, where they have no other cache",
        )
    bare = [str(subnet.network) for subnet in host.subnets if not subnet.proxied]
    if bare:
        return warn(
            name,
            f"machines on {', '.join(bare)} may not use MAAS's proxy",
            "maas PROFILE subnet update CIDR allow_proxy=true",
        )
    outside = host.setting("http_proxy")
    return ok(name, f"machines fetch packages through {outside}" if outside else "MAAS's own proxy caches packages")


def time_service(host: Questions) -> Diagnosis:
    name, servers = "maas_ntp", str(host.setting("ntp_servers") or "")
    if not servers:
        return warn(
            name,
            "MAAS has no NTP servers: its racks' time, which machines take, is nobody's",
            "maas PROFILE maas set-config name=ntp_servers value=ADDRESS",
        )
    if host.setting("ntp_external_only"):
        return ok(name, f"machines take their time from {servers}")
    return ok(name, f"machines take their time from the racks, and these from {servers}")
