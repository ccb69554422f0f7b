"""transceivers: the module in each InfiniBand port is cool, and its light is as strong as its maker asks.

Weak light is what dirt does: such a link comes up, passes its first tests, and gathers errors once it is warm.
While a load runs, the temperature sensors of the mlx5 driver (Linux 6.6 and later) are read for adapters and modules.
"""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl.fleet.finding import Finding, Verdict, not_applicable, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.quantity import Quantity, at_most, between
from clusterctl.formats.infiniband.transceivers import HostTransceiver, Ranged, parse_transceivers
from clusterctl_burnin.check import Area, Check, Expected, Watch, inconclusive
from clusterctl_burnin.limits.limit import LimitKey
from clusterctl_burnin.probe import Probe, Readings, UnmeasuredError
from clusterctl_burnin.probes.ibstat import IBSTAT, compute_adapters
from clusterctl_burnin.probes.load_samples import LOAD_SAMPLES, require_all_sampled, sampled
from clusterctl_burnin.probes.nvidia_smi import missing

ADAPTER_TEMPERATURE_MAX = LimitKey(
    "adapter_temperature_max",
    "°C",
    default=102,
    source="critical threshold of ConnectX-7 and 8 (docs.nvidia.com, Monitoring); an adapter's own goes before it",
)
MODULES = Probe("transceivers", ("transceivers",), timeout=60.0)
_NAME = "transceivers"
_CLEAN = (
    "clean and inspect the fibre's ends and both transceivers, reseat them, then check again; if that "
    "does not help, replace the "
    "cable, then the transceiver at the far end"
)
_REPLACE = "reseat the transceiver; if that does not help, replace it"
_NO_TOOL = 127
_INSTALL = "install mstflint (role ib_tools) or NVIDIA's MFT on the node, then run the burn-in again"
_CHIP = "asic"
"""The label of the chip's sensor in the mlx5 driver (hwmon.c); other sensors are those of modules."""
_COOL_CHIP = "check that air passes the adapter and the fans turn; if only this adapter is hot, replace it"
_COOL = "check that air passes the ports and the fans turn; if only this transceiver is hot, replace it"


def _judge(readings: Readings, expected: Expected) -> Iterator[Finding]:
    ports = {adapter.name for adapter in compute_adapters(readings, expected.sku)}
    result = readings.result(MODULES)
    if result.rc == _NO_TOOL:
        raise UnmeasuredError(f"the transceivers cannot be read: {result.error_output}", remedy=_INSTALL)
    modules = [module for module in parse_transceivers(readings.text(MODULES)) if module.port in ports]
    bad = [finding for module in modules for finding in _bad(module)]
    yield from bad
    absent = tuple(missing(_NAME, len(modules), expected.sku.hca_count, "adapters"))
    yield from absent
    if not bad and not absent:
        parts = ", ".join(sorted({f"{module.vendor} {module.part}" for module in modules}))
        yield passed(_NAME, "all transceivers and cables are within their ranges", measured=parts)


def _bad(module: HostTransceiver) -> Iterator[Finding]:
    if not module.part:
        cause = module.output or f"{module.port} reports no module"
        remedy = (
            f"check that a transceiver or cable is in {module.port}, reseat it, then run mlxlink -d {module.port} -m"
        )
        yield inconclusive(_NAME, UnmeasuredError(cause, remedy=remedy), module.port)
        return
    if module.optical and (module.received is None or module.sent is None):
        cause = f"{_name(module)} does not report its light"
        remedy = "update the firmware of adapter and transceiver; replace the transceiver if that does not help"
        yield inconclusive(_NAME, UnmeasuredError(cause, remedy=remedy), module.port)
    yield from _outside(
        module, module.temperature, (Code.TRANSCEIVER_TEMPERATURE, "is too hot or too cold", "°C", _COOL)
    )
    yield from _outside(
        module,
        module.received,
        (Code.TRANSCEIVER_LIGHT_RECEIVED, "receives light that is too weak or too strong", "dBm", _CLEAN),
    )
    yield from _outside(
        module,
        module.sent,
        (Code.TRANSCEIVER_LIGHT_SENT, "sends light that is too weak or too strong", "dBm", _REPLACE),
    )


def _outside(module: HostTransceiver, found: Ranged | None, diagnosis: tuple[Code, str, str, str]) -> Iterator[Finding]:
    """Yield values out of range. `diagnosis`: code, what is wrong, unit and remedy."""
    if found is None or not found.outside:
        return
    code, what, unit, remedy = diagnosis
    lanes = found.outside
    where = f" on lane {', '.join(str(lane) for lane, _ in lanes)}" if len(found.values) > 1 else ""
    values = [Quantity(value, unit) for _, value in lanes]
    yield Finding(
        check=_NAME,
        verdict=Verdict.FAIL,
        code=code,
        subject=module.port,
        cause=f"{_name(module)} {what}{where}",
        measured=values[0] if len(values) == 1 else ", ".join(map(str, values)),
        expected=between(found.low, found.high, unit),
        remedy=f"{module.port}: {remedy}",
    )


def _name(module: HostTransceiver) -> str:
    return f"the module {module.vendor} {module.part} (serial {module.serial})"


def _judge_load(before: Readings, after: Readings, expected: Expected) -> Iterator[Finding]:
    """Judge the highest temperatures while the load ran: of adapters, and of modules that have a threshold."""
    del before
    samples = sampled(after)
    if not samples.sensors and "adapter" not in samples.errors:
        yield not_applicable(_NAME, "the kernel shows no temperature of an adapter (mlx5 sensors: Linux 6.6)")
        return
    limit = expected.limits[ADAPTER_TEMPERATURE_MAX]
    for one in samples.highs("adapter"):
        chip = one.gauge == _CHIP
        most = one.limit if one.limit is not None else limit.value if chip else None
        if most is not None and one.high >= most:
            yield Finding(
                check=_NAME,
                verdict=Verdict.FAIL,
                code=Code.HCA_TOO_HOT,
                subject=one.part,
                cause=f"{'the adapter' if chip else f'the transceiver ({one.gauge})'} was too hot in second {one.at:g}",
                measured=Quantity(one.high, "°C"),
                expected=at_most(most, "°C"),
                remedy=f"{one.part}: {_COOL if not chip else _COOL_CHIP}",
                deterministic=False,
            )
    require_all_sampled(samples, "adapter")


CHECK = Check(
    _NAME,
    (MODULES, IBSTAT),
    _judge,
    area=Area.INFINIBAND,
    limits=(ADAPTER_TEMPERATURE_MAX,),
    after_loads=True,
    watch=Watch((LOAD_SAMPLES,), _judge_load),
)
