"""transceiver_firmware: modules of one kind in a node's InfiniBand ports have the same firmware, of the site's list.

The list is `firmware.transceiver` of the limits file, by part number; without it modules of one kind are only compared.
Copper cables have no firmware.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from clusterctl.fleet.finding import Finding, Verdict, not_applicable, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.formats.infiniband.transceivers import HostTransceiver, parse_transceivers
from clusterctl_burnin.check import Area, Cause, Check, Expected
from clusterctl_burnin.checks.transceivers import MODULES
from clusterctl_burnin.limits.firmware import PartRequirements
from clusterctl_burnin.probe import Readings
from clusterctl_burnin.probes.ibstat import IBSTAT, compute_adapters
from clusterctl_burnin.probes.nvidia_smi import missing

_NAME = "transceiver_firmware"
_UPDATE = "update the modules to one version (flint --linkx, or the switch's tool), or correct the limits' list"
_NOT_REPORTED = "no version"


def _judge(readings: Readings, expected: Expected) -> Iterator[Finding]:
    modules = _modules(readings, expected)
    absent = tuple(missing(_NAME, len(modules), expected.sku.hca_count, "modules"))
    yield from absent
    optical = [module for module in modules if module.optical]
    wanted = expected.limits.firmware.transceiver
    if not absent and not any(module.firmware for module in optical) and wanted is None:
        yield not_applicable(_NAME, "no module of the node reports a firmware")
        return
    bad = [*_listed(optical, wanted), *_mixed(optical)]
    yield from bad
    if not bad and not absent:
        versions = ", ".join(sorted({f"{module.part} {module.firmware}" for module in optical}))
        yield passed(_NAME, "modules of one kind have the same firmware", measured=versions)


def _modules(readings: Readings, expected: Expected) -> list[HostTransceiver]:
    """Return the modules with a part number in the ports of the compute adapters."""
    ports = {adapter.name for adapter in compute_adapters(readings, expected.sku)}
    return [one for one in parse_transceivers(readings.text(MODULES)) if one.port in ports and one.part]


def _listed(modules: Sequence[HostTransceiver], wanted: PartRequirements | None) -> Iterator[Finding]:
    """Yield the modules whose kind or version the limits' list does not have."""
    for module in modules if wanted else ():
        wish = wanted.wanted.get(module.part) if wanted else None
        if wanted is not None and wish is None:
            verdict, code, allowed = wanted.stranger, Code.PART_NOT_LISTED, ", ".join(wanted.wanted)
            cause, has = f"the limits' list of firmware does not know {module.part}", module.part
        elif wish is not None and module.firmware not in wish.versions:
            verdict, code, allowed = wish.verdict, Code.FIRMWARE_NOT_LISTED, ", ".join(wish.versions)
            cause, has = "the module's firmware is none of the limits' list", module.firmware or _NOT_REPORTED
        else:
            continue
        yield Finding(
            check=_NAME,
            verdict=verdict,
            code=code,
            subject=module.port,
            cause=cause,
            measured=has,
            expected=allowed,
            remedy=_UPDATE,
            serial=module.serial,
        )


def _mixed(modules: Sequence[HostTransceiver]) -> Iterator[Finding]:
    """Yield kinds with several versions: a fault of one version then shows on some rails only."""
    kinds: dict[str, dict[str, list[str]]] = {}
    for module in modules:
        kinds.setdefault(module.part, {}).setdefault(module.firmware or _NOT_REPORTED, []).append(module.port)
    for kind, versions in kinds.items():
        if len(versions) > 1:
            has = "; ".join(f"{version}: {', '.join(ports)}" for version, ports in sorted(versions.items()))
            yield Finding(
                check=_NAME,
                verdict=Verdict.WARN,
                code=Code.TRANSCEIVER_FIRMWARE_DIFFERS,
                cause=f"modules of one kind ({kind}) have different firmware",
                measured=has,
                expected="one",
                remedy=_UPDATE,
            )


CHECK = Check(
    _NAME,
    (MODULES, IBSTAT),
    _judge,
    area=Area.INFINIBAND,
    causes=(Cause("hca_count", unmeasured=True), Cause("transceivers", unmeasured=True)),
)
