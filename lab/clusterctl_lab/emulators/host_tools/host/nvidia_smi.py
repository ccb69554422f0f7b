"""nvidia-smi: `-q`, `-L`, `--query-gpu=… --format=csv…`, `nvlink --status` and `-e`, `topo -m`, `--persistence-mode=1`.

`-q` and `topo -m` are in `nvidia_smi_query.py` and `nvidia_smi_topology.py`. `nvlink --status` follows a recording of
A100 (leptonai/gpud, Apache-2.0) with the H100's links and rate; links that are down follow one of V100
(Azure/azhpc-diagnostics#73). `nvlink -e` follows one of H100 (stas00/ml-engineering). The CSV form and the messages
follow `nvidia-smi --help-query-gpu` and the manual. Without the driver's package it fails as the real tool does without
its kernel module. While a GPU has left the PCI bus it names that GPU and reports no other GPU, with exit code 15 (its
manual; the text as in JosephKJ/OWOD#81).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from clusterctl_lab.emulators.host_tools.host.boot import uptime
from clusterctl_lab.emulators.host_tools.host.facts import Gpu, driver_version, load
from clusterctl_lab.emulators.host_tools.host.nvidia_smi_query import query
from clusterctl_lab.emulators.host_tools.host.nvidia_smi_topology import table

LINKS = 18
LINK_RATE = "26.562 GB/s"
NO_DRIVER = (
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. "
    "Make sure that the latest NVIDIA driver is installed and running.\n"
)
NO_DEVICES = "No devices were found"
LOST = "Unable to determine the device handle for GPU {}: GPU is lost.  Reboot the system to recover this GPU\n"

FIELDS: dict[str, tuple[str, Callable[[Gpu, str], str]]] = {
    "index": ("", lambda gpu, _: str(gpu.index)),
    "name": ("", lambda gpu, _: gpu.model),
    "serial": ("", lambda gpu, _: gpu.serial),
    "uuid": ("", lambda gpu, _: gpu.uuid),
    "pci.bus_id": ("", lambda gpu, _: gpu.pci),
    "driver_version": ("", lambda _, driver: driver),
    "memory.total": ("MiB", lambda gpu, _: str(gpu.memory_mib)),
    "memory.used": ("MiB", lambda gpu, _: str(gpu.memory_used_mib)),
    "temperature.gpu": ("", lambda gpu, _: str(gpu.temperature_c)),
    "persistence_mode": ("", lambda gpu, _: "Enabled" if gpu.persistence else "Disabled"),
    "pcie.link.gen.current": ("", lambda *_: "5"),
    "pcie.link.gen.max": ("", lambda *_: "5"),
    "pcie.link.width.current": ("", lambda gpu, _: str(gpu.pcie_width)),
    "pcie.link.width.max": ("", lambda *_: "16"),
    "ecc.mode.current": ("", lambda gpu, _: "Enabled" if gpu.ecc else "Disabled"),
    "ecc.mode.pending": ("", lambda gpu, _: "Enabled" if gpu.ecc else "Disabled"),
    "ecc.errors.uncorrected.volatile.total": ("", lambda gpu, _: str(gpu.uncorrectable_ecc)),
}


def main(argv: Sequence[str]) -> int:
    if not driver_version():
        return _print(NO_DRIVER, 9)
    gpus, driver = load().gpus, driver_version()
    if not gpus:
        return _print(f"{NO_DEVICES}\n", 6)
    if lost := [gpu for gpu in gpus if not gpu.on_bus]:
        return _print(LOST.format(lost[0].pci[4:]), 15)
    return _answer(list(argv), gpus, driver)


def _answer(argv: list[str], gpus: Sequence[Gpu], driver: str) -> int:
    options = dict(word.split("=", 1) for word in argv if word.startswith("--") and "=" in word)
    if "--query-gpu" in options:
        return _csv(gpus, driver, options["--query-gpu"].split(","), options.get("--format", "").split(","))
    if argv in (["-q"], ["--query"]):
        return _print("\n".join(query(gpus, driver)) + "\n", 0)
    if argv in (["-L"], ["--list-gpus"]):
        return _print("".join(f"{_title(gpu)}\n" for gpu in gpus), 0)
    return _more(argv, gpus)


def _more(argv: list[str], gpus: Sequence[Gpu]) -> int:
    match argv:
        case ["nvlink", "--status" | "-s"]:
            return _print("".join(_links(gpu) for gpu in gpus), 0)
        case ["nvlink", "--errorcounters" | "-e"]:
            return _print("".join(_errors(gpu) for gpu in gpus), 0)
        case ["topo", "-m" | "--matrix"]:
            return _print("".join(f"{line}\n" for line in table(load())), 0)
        case ["--persistence-mode=1"]:
            done = "".join(f"Persistence mode is already Enabled for GPU {gpu.pci}.\n" for gpu in gpus)
            return _print(f"{done}All done.\n", 0)
    known = "-q, -L, nvlink --status, nvlink -e, topo -m, --persistence-mode=1 and --query-gpu=… --format=csv"
    sys.stderr.write(f"the lab's nvidia-smi knows {known}\n")
    return 2


def _print(text: str, code: int) -> int:
    sys.stdout.write(text)
    return code


def _title(gpu: Gpu) -> str:
    return f"GPU {gpu.index}: {gpu.model} (UUID: {gpu.uuid})"


def _links(gpu: Gpu) -> str:
    """Return the links. Where all are down the driver prints one line (recorded on A100 by
    Azure/azurehpc-health-checks, MIT).
    """
    if len(set(gpu.links_down)) == LINKS:
        return f"{_title(gpu)}\nNVML: Unable to retrieve NVLink information as all links are inActive\n"
    rates = ("<inactive>" if link in gpu.links_down else LINK_RATE for link in range(LINKS))
    return f"{_title(gpu)}\n" + "".join(f"\t Link {link}: {rate}\n" for link, rate in enumerate(rates))


def _errors(gpu: Gpu) -> str:
    """The replays of the last link grow at the model's rate; a link that is down has no counters."""
    if len(set(gpu.links_down)) == LINKS:
        return _links(gpu)
    replays = int(gpu.nvlink_replays_per_hour * uptime() / 3600) + gpu.shows("nvlink")
    up = [link for link in range(LINKS) if link not in gpu.links_down]
    links = (
        f"\t Link {link}: Replay Errors: {replays if link == up[-1] else 0}\n"
        f"\t Link {link}: Recovery Errors: 0\n"
        f"\t Link {link}: CRC Errors: 0\n"
        for link in up
    )
    return f"{_title(gpu)}\n" + "\n".join(links)


def _csv(gpus: Sequence[Gpu], driver: str, fields: Sequence[str], form: Sequence[str]) -> int:
    if form[0] != "csv":
        return _print("Option --format=csv must be given for queries.\n", 2)
    for field in fields:
        if field not in FIELDS:
            return _print(f'Field "{field}" is not a valid field to query.\n', 2)
    if "noheader" not in form:
        units = [f" [{FIELDS[field][0]}]" if FIELDS[field][0] else "" for field in fields]
        _print(", ".join(field + unit for field, unit in zip(fields, units, strict=True)) + "\n", 0)
    for gpu in gpus:
        cells = []
        for field in fields:
            unit, value = FIELDS[field]
            cells.append(value(gpu, driver) + (f" {unit}" if unit and "nounits" not in form else ""))
        _print(", ".join(cells) + "\n", 0)
    return 0
