"""gpu_count: the node has as many GPUs as its SKU, all of its model; an absent one is named where the BMC knows it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from clusterctl.fleet.finding import Finding, Verdict, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.hardware.products import names_gpu
from clusterctl.fleet.quantity import Quantity, exactly
from clusterctl.formats.nvidia.nvidia_smi import GpuReading
from clusterctl_burnin.check import Area, Cause, Check, Expected, known
from clusterctl_burnin.probe import Readings
from clusterctl_burnin.probes.nvidia_smi import NVIDIA_SMI, lost, read

_NAME = "gpu_count"
_RESEAT = "power the machine off and on; if it is still absent, reseat the GPU or its tray, then replace it"


def _judge(readings: Readings, expected: Expected) -> Iterator[Finding]:
    if pci := lost(readings.result(NVIDIA_SMI)):
        yield _off_the_bus(f"gpu {pci}", pci, expected)
        return
    gpus, wanted = read(readings).gpus, expected.sku.gpu_count
    gone = [gpu for gpu in gpus if gpu.recovery.lost]
    yield from (_off_the_bus(gpu.subject, gpu.pci, expected) for gpu in gone)
    others = tuple(_other_models([gpu for gpu in gpus if gpu not in gone], expected.sku.gpu_model))
    yield from others
    if len(gpus) != wanted:
        yield _wrong_count(gpus, expected)
    elif not others and not gone:
        yield passed(
            _NAME, "all GPUs are there", measured=Quantity(len(gpus), "GPUs"), expected=exactly(wanted, "GPUs")
        )


def _other_models(gpus: Iterable[GpuReading], model: str) -> Iterator[Finding]:
    """Yield the GPUs that are not of the SKU's model. Raises `UnmeasuredError` where a model is unknown."""
    for gpu in gpus:
        if not names_gpu(known(gpu.model, f"{gpu.subject}'s model"), model):
            yield Finding(
                check=_NAME,
                verdict=Verdict.FAIL,
                code=Code.GPU_WRONG_MODEL,
                subject=gpu.subject,
                cause="the GPU's model is not the SKU's",
                measured=gpu.model or "",
                expected=model,
                remedy="replace the GPU, or correct the SKU",
                serial=gpu.serial or "",
            )


def _off_the_bus(subject: str, pci: str, expected: Expected) -> Finding:
    return Finding(
        check=_NAME,
        verdict=Verdict.FAIL,
        code=Code.GPU_OFF_THE_BUS,
        subject=subject,
        cause="nvidia-smi lists the GPU but cannot reach it: the GPU has left the PCI bus",
        remedy=_RESEAT,
        serial=_serial(pci, expected),
    )


def _serial(pci: str, expected: Expected) -> str:
    inventory_gpus = (expected.inventory.gpus if expected.inventory else None) or ()
    return next((gpu.serial for gpu in inventory_gpus if gpu.serial and gpu.pci == pci), "")


def _wrong_count(gpus: tuple[GpuReading, ...], expected: Expected) -> Finding:
    absent = _absent(gpus, expected)
    wanted = expected.sku.gpu_count
    cause = f"{len(gpus)} of {wanted} GPUs answer" if len(gpus) < wanted else f"{len(gpus)} GPUs answer, not {wanted}"
    if absent:
        cause += f"; absent: {', '.join(absent)}"
    remedy = _RESEAT if len(gpus) < wanted else "correct the SKU, or remove the surplus GPU"
    return Finding(
        check=_NAME,
        verdict=Verdict.FAIL,
        code=Code.GPU_COUNT,
        cause=cause,
        measured=Quantity(len(gpus), "GPUs"),
        expected=exactly(wanted, "GPUs"),
        remedy=remedy,
    )


def _absent(gpus: tuple[GpuReading, ...], expected: Expected) -> list[str]:
    """Return the GPUs that the BMC reports and the driver does not list, by serial or else by PCI address."""
    inventory_gpus = (expected.inventory.gpus if expected.inventory else None) or ()
    serials, addresses = {g.serial for g in gpus}, {g.pci for g in gpus}
    gone = [g for g in inventory_gpus if (g.serial not in serials if g.serial else g.pci not in addresses)]
    return [f"{g.slot}{f' (serial {g.serial})' if g.serial else ''}" for g in gone]


CHECK = Check(_NAME, (NVIDIA_SMI,), _judge, area=Area.GPU, causes=(Cause("nvidia_driver"),), after_loads=True)
