"""hca_firmware: every InfiniBand adapter runs the site's firmware or a later one, adapters of a kind all the same."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from clusterctl.fleet.finding import Finding, Verdict, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.formats.infiniband.adapters import Adapter
from clusterctl_burnin.check import Area, Check, Expected, inconclusive, known
from clusterctl_burnin.limits.limit import VERSION, LimitKey
from clusterctl_burnin.probe import Readings, UnmeasuredError
from clusterctl_burnin.probes.ibstat import IBSTAT, compute_adapters, serial_of
from clusterctl_burnin.probes.nvidia_smi import missing

HCA_FIRMWARE_MIN = LimitKey("hca_firmware_min", VERSION)

_NAME = "hca_firmware"
_VERSION = re.compile(r"\d+(?:\.\d+)+")


def _judge(readings: Readings, expected: Expected) -> Iterator[Finding]:
    adapters, wanted = compute_adapters(readings, expected.sku), expected.limits.versions[HCA_FIRMWARE_MIN.name].value
    bad = [finding for adapter in adapters for finding in _bad(adapter, wanted, expected)]
    yield from bad
    absent = tuple(missing(_NAME, len(adapters), expected.sku.hca_count, "adapters"))
    yield from absent
    mixed = () if bad or absent else tuple(_mixed(adapters))
    yield from mixed
    if not bad and not absent and not mixed:
        found = ", ".join(sorted({adapter.firmware for adapter in adapters}))
        yield passed(_NAME, "all adapters have a firmware that is new enough", measured=found, expected=wanted)


def _mixed(adapters: Iterable[Adapter]) -> Iterator[Finding]:
    """Yield versions that are new enough and differ: an error of one version then shows on some rails only."""
    kinds: dict[str, dict[str, list[str]]] = {}
    for adapter in adapters:
        kinds.setdefault(adapter.model, {}).setdefault(adapter.firmware, []).append(adapter.name)
    for kind, versions in kinds.items():
        if len(versions) > 1:
            has = "; ".join(f"{version}: {', '.join(names)}" for version, names in sorted(versions.items()))
            remedy = "update all adapters to one version (clusterctl firmware)"
            yield Finding(
                check=_NAME,
                verdict=Verdict.WARN,
                code=Code.HCA_FIRMWARE_DIFFERS,
                cause=f"adapters of one kind ({kind}) have different firmware",
                measured=has,
                expected="one",
                remedy=remedy,
            )


def _bad(adapter: Adapter, wanted: str, expected: Expected) -> Iterator[Finding]:
    serial = serial_of(adapter, expected)
    try:
        older = _older(adapter, wanted)
    except UnmeasuredError as error:
        yield inconclusive(_NAME, error, adapter.name, serial)
        return
    if older:
        cause = "the adapter's firmware is older than the site's"
        remedy = f"update the firmware of {adapter.name} to {wanted} or later (mlxfwmanager or mstflint), then reboot"
        allowed = f"{wanted} or later"
        yield Finding(
            check=_NAME,
            verdict=Verdict.FAIL,
            code=Code.HCA_FIRMWARE_OLD,
            subject=adapter.name,
            cause=cause,
            measured=adapter.firmware,
            expected=allowed,
            remedy=remedy,
            serial=serial,
        )


def _older(adapter: Adapter, wanted: str) -> bool:
    """Compare versions number by number. The first one stands for the chip: 28 is ConnectX-7."""
    version = known(adapter.firmware or None, f"{adapter.name}'s firmware")
    if not _VERSION.fullmatch(version):
        raise UnmeasuredError(
            (f"{adapter.name} reports {version!r} as its firmware"), remedy="query the adapter with mstflint"
        )
    have, need = _numbers(version), _numbers(wanted)
    if have[0] != need[0]:
        raise UnmeasuredError(
            f"{adapter.name} has firmware {version}, of another chip than the limits' {wanted}",
            remedy="check that the adapter has the SKU's model, or correct hca_firmware_min in the limits",
        )
    return have < need


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in version.split("."))


CHECK = Check(_NAME, (IBSTAT,), _judge, area=Area.INFINIBAND, limits=(HCA_FIRMWARE_MIN,))
