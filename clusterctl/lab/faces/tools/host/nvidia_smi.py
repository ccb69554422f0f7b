"""nvidia-smi: `-q`, `-L`, `--query-gpu=… --format=csv…`, `nvlink --status`.

`-q` follows a recording of driver 535.161.08 on 8 x H100 80GB HBM3 (leptonai/gpud, Apache-2.0), in the fields that say
something of the machine; `nvlink --status` one of A100 (the same project) with the H100's links and rate; the CSV form
and the messages follow `nvidia-smi --help-query-gpu` and the manual. Without the driver's package it fails as the real
one does without its kernel module.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence

from clusterctl.lab.faces.tools.host.facts import DRIVER_VERSION, Gpu, load

CUDA = "12.2"
LINKS = 18
LINK_RATE = "26.562 GB/s"
NO_DRIVER = (
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. "
    "Make sure that the latest NVIDIA driver is installed and running.\n"
)
NO_DEVICES = "No devices were found"

FIELDS: dict[str, tuple[str, Callable[[Gpu, str], str]]] = {
    "index": ("", lambda gpu, _: str(gpu.index)),
    "name": ("", lambda gpu, _: gpu.model),
    "serial": ("", lambda gpu, _: gpu.serial),
    "uuid": ("", lambda gpu, _: gpu.uuid),
    "pci.bus_id": ("", lambda gpu, _: gpu.pci),
    "driver_version": ("", lambda _, driver: driver),
    "memory.total": ("MiB", lambda gpu, _: str(gpu.memory_mib)),
    "memory.used": ("MiB", lambda *_: "0"),
    "temperature.gpu": ("", lambda gpu, _: str(_celsius(gpu))),
    "persistence_mode": ("", lambda *_: "Enabled"),
    "pcie.link.gen.current": ("", lambda *_: "5"),
    "pcie.link.gen.max": ("", lambda *_: "5"),
    "pcie.link.width.current": ("", lambda gpu, _: str(gpu.pcie_width)),
    "pcie.link.width.max": ("", lambda *_: "16"),
    "ecc.mode.current": ("", lambda *_: "Enabled"),
    "ecc.mode.pending": ("", lambda *_: "Enabled"),
    "ecc.errors.uncorrected.volatile.total": ("", lambda gpu, _: str(gpu.uncorrectable_ecc)),
}


def main(argv: Sequence[str]) -> int:
    if not DRIVER_VERSION.exists():
        return _say(NO_DRIVER, 9)
    gpus, driver = load().gpus, DRIVER_VERSION.read_text().strip()
    if not gpus:
        return _say(f"{NO_DEVICES}\n", 6)
    return _answer(list(argv), gpus, driver)


def _answer(argv: list[str], gpus: Sequence[Gpu], driver: str) -> int:
    options = dict(word.split("=", 1) for word in argv if word.startswith("--") and "=" in word)
    if "--query-gpu" in options:
        return _csv(gpus, driver, options["--query-gpu"].split(","), options.get("--format", "").split(","))
    if argv in (["-q"], ["--query"]):
        return _say("\n".join(_query(gpus, driver)) + "\n", 0)
    if argv in (["-L"], ["--list-gpus"]):
        return _say("".join(f"{_title(gpu)}\n" for gpu in gpus), 0)
    if argv in (["nvlink", "--status"], ["nvlink", "-s"]):
        return _say("".join(_links(gpu) for gpu in gpus), 0)
    sys.stderr.write("the lab's nvidia-smi knows -q, -L, nvlink --status and --query-gpu=… --format=csv\n")
    return 2


def _say(text: str, code: int) -> int:
    sys.stdout.write(text)
    return code


def _title(gpu: Gpu) -> str:
    return f"GPU {gpu.index}: {gpu.model} (UUID: {gpu.uuid})"


def _links(gpu: Gpu) -> str:
    return f"{_title(gpu)}\n" + "".join(f"\t Link {link}: {LINK_RATE}\n" for link in range(LINKS))


def _csv(gpus: Sequence[Gpu], driver: str, fields: Sequence[str], form: Sequence[str]) -> int:
    if form[0] != "csv":
        return _say("Option --format=csv must be given for queries.\n", 2)
    for field in fields:
        if field not in FIELDS:
            return _say(f'Field "{field}" is not a valid field to query.\n', 2)
    if "noheader" not in form:
        units = [f" [{FIELDS[field][0]}]" if FIELDS[field][0] else "" for field in fields]
        _say(", ".join(field + unit for field, unit in zip(fields, units, strict=True)) + "\n", 0)
    for gpu in gpus:
        cells = []
        for field in fields:
            unit, value = FIELDS[field]
            cells.append(value(gpu, driver) + (f" {unit}" if unit and "nounits" not in form else ""))
        _say(", ".join(cells) + "\n", 0)
    return 0


def _celsius(gpu: Gpu) -> int:
    """A cool idle temperature, a little different on each GPU."""
    return 28 + gpu.index * 3 % 7


def _line(depth: int, key: str, value: str = "") -> str:
    """As the real one aligns: keys indented by four, colons in column 43."""
    text = " " * 4 * depth + key
    return f"{text:<42}: {value}" if value else text


def _query(gpus: Sequence[Gpu], driver: str) -> Iterator[str]:
    yield from ("", "==============NVSMI LOG==============", "")
    yield _line(0, "Timestamp", time.strftime("%a %b %e %H:%M:%S %Y", time.gmtime()))
    yield _line(0, "Driver Version", driver)
    yield _line(0, "CUDA Version", CUDA)
    yield ""
    yield _line(0, "Attached GPUs", str(len(gpus)))
    for gpu in gpus:
        yield from _gpu(gpu)
        yield ""


def _gpu(gpu: Gpu) -> Iterator[str]:
    yield f"GPU {gpu.pci}"
    yield _line(1, "Product Name", gpu.model)
    yield _line(1, "Product Brand", "NVIDIA")
    yield _line(1, "Product Architecture", "Hopper")
    yield _line(1, "Persistence Mode", "Enabled")
    yield from _section("MIG Mode", Current="Disabled", Pending="Disabled")
    yield _line(1, "Serial Number", gpu.serial)
    yield _line(1, "GPU UUID", gpu.uuid)
    yield _line(1, "Minor Number", str(gpu.index))
    yield _line(1, "VBIOS Version", "96.00.74.00.0D")
    yield from _pci(gpu)
    yield _line(1, "Performance State", "P0")
    used = {"Total": f"{gpu.memory_mib} MiB", "Reserved": "551 MiB", "Used": "0 MiB"}
    yield from _section("FB Memory Usage", **used, Free=f"{gpu.memory_mib - 551} MiB")
    yield _line(1, "Compute Mode", "Default")
    yield from _section("Utilization", Gpu="0 %", Memory="0 %")
    yield from _section("ECC Mode", Current="Enabled", Pending="Enabled")
    yield from _ecc(gpu)
    yield from _remapped()
    yield from _temperature(gpu)
    yield from _section("Fabric", State="Completed", Status="Success")
    yield _line(1, "Processes", "None")


def _section(name: str, **values: str) -> Iterator[str]:
    yield _line(1, name)
    for key, value in values.items():
        yield _line(2, key, value)


def _pci(gpu: Gpu) -> Iterator[str]:
    yield _line(1, "PCI")
    yield _line(2, "Bus", f"0x{gpu.pci[9:11]}")
    yield _line(2, "Device Id", "0x233010DE")
    yield _line(2, "Bus Id", gpu.pci)
    yield _line(2, "GPU Link Info")
    yield _line(3, "PCIe Generation")
    yield _line(4, "Max", "5")
    yield _line(4, "Current", "5")
    yield _line(3, "Link Width")
    yield _line(4, "Max", "16x")
    yield _line(4, "Current", f"{gpu.pcie_width}x")
    yield _line(2, "Replays Since Reset", "0")


def _ecc(gpu: Gpu) -> Iterator[str]:
    yield _line(1, "ECC Errors")
    for period in ("Volatile", "Aggregate"):
        yield _line(2, period)
        for key in ("SRAM Correctable", "SRAM Uncorrectable Parity", "SRAM Uncorrectable SEC-DED", "DRAM Correctable"):
            yield _line(3, key, "0")
        yield _line(3, "DRAM Uncorrectable", str(gpu.uncorrectable_ecc))
    yield _line(3, "SRAM Threshold Exceeded", "No")


def _remapped() -> Iterator[str]:
    yield _line(1, "Remapped Rows")
    yield _line(2, "Correctable Error", "0")
    yield _line(2, "Uncorrectable Error", "0")
    yield _line(2, "Pending", "No")
    yield _line(2, "Remapping Failure Occurred", "No")


def _temperature(gpu: Gpu) -> Iterator[str]:
    yield _line(1, "Temperature")
    yield _line(2, "GPU Current Temp", f"{_celsius(gpu)} C")
    yield _line(2, "GPU T.Limit Temp", f"{85 - _celsius(gpu)} C")
    yield _line(2, "Memory Current Temp", f"{_celsius(gpu) + 10} C")
