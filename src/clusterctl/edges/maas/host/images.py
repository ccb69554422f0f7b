"""Findings about MAAS's rack controllers and what they boot machines with."""

from __future__ import annotations

from clusterctl.edges.maas.host.questions import Questions
from clusterctl.fleet.diagnosis import Diagnosis, broken, enumerated, not_measured, ok, warn

REGION_SERVES_IMAGES = (3, 5)
"""From this version on racks fetch images from the region when they need them, and `list_boot_images` always says
synced (src/maasserver/api/rackcontrollers.py).
"""
ALIVE = ("running", "degraded")
REMEDY = "maas PROFILE boot-source-selections create 1 os=ubuntu release={0} arches={1} subarches='*' labels='*', "


def racks(host: Questions) -> Diagnosis:
    """`rackd` is the service by which a rack tells the region that it lives."""
    name = "maas_racks"
    if not host.racks:
        return broken(name, "MAAS has no rack controller", "install one: maas init rack, on a host of that network")
    states = {rack.hostname: rack.services.get("rackd", "unknown") for rack in host.racks}
    gone = [f"{rack} ({state})" for rack, state in states.items() if state not in ALIVE]
    if len(gone) == len(states) and all(state == "unknown" for state in states.values()):
        return not_measured(name, f"MAAS does not tell whether {enumerated(list(states))} are connected")
    if len(gone) == len(states):
        return broken(name, f"no rack controller is connected: {enumerated(gone)}", "start maas on them")
    if gone:
        return warn(name, f"rack controllers are not connected: {enumerated(gone)}", "start maas on them")
    return ok(name, f"{len(states)} connected: {enumerated(list(states))}")


def series(host: Questions) -> Diagnosis:
    """The release to install is there, whole."""
    return _imported(host, "maas_images", host.wanted.series, "provisioning.series")


def commissioning(host: Questions) -> Diagnosis:
    """What machines are inventoried with, which need not be what is installed."""
    release = str(host.setting("commissioning_distro_series") or "")
    return _imported(host, "maas_commissioning", release, "commissioning_distro_series")


def _imported(host: Questions, name: str, release: str, said_by: str) -> Diagnosis:
    arch = host.wanted.architecture.partition("/")[0]
    remedy = REMEDY.format(release.rpartition("/")[2], arch) + "then maas PROFILE boot-resources import"
    found = [image for image in host.images if image.is_of(release, host.wanted.architecture)]
    if not found:
        names = sorted({image.name for image in host.images})
        there = enumerated(names) or "none at all"
        return broken(name, f"no image of {release!r} ({said_by}) for {arch}; MAAS has {there}", remedy)
    partial = [image.architecture for image in found if not host.is_complete(image)]
    if partial:
        return broken(
            name, f"{release} is still being fetched: {enumerated(partial)}", "wait, or see maas PROFILE events query"
        )
    lagging = _lagging(host, {image.name for image in found}, arch)
    if lagging:
        return warn(name, f"{release} is not yet on {enumerated(lagging)}", "wait until the racks have synced")
    return ok(name, f"{release} for {arch}: {enumerated([image.architecture for image in found])}")


def _lagging(host: Questions, names: set[str], arch: str) -> list[str]:
    """Racks without the image, where racks keep their own."""
    if _version(host.version) >= REGION_SERVES_IMAGES:
        return []
    held = {rack.hostname: host.rack_images(rack) for rack in host.racks}
    return [
        f"{rack} ({images.status})"
        for rack, images in held.items()
        if not any((known, arch) in images.names for known in names)
    ]


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".")[:2] if part.isdigit())
