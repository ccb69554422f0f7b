"""A node for the sampler: its files of /sys and /dev, a stand-in for nvidia-smi, and a sampler that runs on them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from clusterctl.formats.host.load_samples import LoadSamples, parse_load_samples
from clusterctl_burnin.node.programs import load_sampler, load_samples

AER = "RxErr 0\nBadTLP {0}\nTOTAL_ERR_{1} {0}\n"
SMI = """#!/bin/sh
if [ "$1" = nvlink ]; then echo >> {folder}/asked; cat {folder}/nvlink; exit 0; fi
while :; do cat {folder}/rows; echo >> {folder}/printed; sleep {pause}; done
"""
ROW = "{0}, {1}, 66, 699.2, 1980, 0, {2}, 0x0000000000000004\n"
PATIENCE_S = 600.0
ADAPTERS = tuple(f"0000:{bus}:00.0" for bus in ("9a", "ba", "c0", "c8", "d0", "d8", "e0", "e8"))


class FakeNode:
    """GPUs and adapters, with the kernel's layout of /sys (Documentation/ABI, hwmon.c of the mlx5 driver).

    `devices`: further PCIe devices with AER; `modules`: of memory.
    """

    def __init__(self, folder: Path, adapters: int = 2, gpus: int = 2, devices: int = 0, modules: int = 0) -> None:
        self.folder, self.root = folder, folder / "root"
        (self.root / "dev").mkdir(parents=True)
        (self.root / "dev/kmsg").write_text("6,1,100,-;Linux version 6.8\n")
        self.gpus = gpus
        for number in range(adapters):
            self._adapter(f"mlx5_{number}", number, ADAPTERS[number])
        for number in range(gpus):
            self._device(f"0000:{0x1B + 0x28 * number:02x}:00.0" if gpus == 2 else f"0001:{number:02x}:00.0")
        for number in range(devices):
            self._device(f"0002:{number:02x}:00.0")
        for number in range(modules):
            module = self.root / f"sys/devices/system/edac/mc/mc0/dimm{number}"
            module.mkdir(parents=True)
            for counter in load_sampler.EDAC:
                (module / counter).write_text("0\n")
        self.rows(0)
        self.links(0)
        tool = folder / "bin/nvidia-smi"
        tool.parent.mkdir()
        tool.write_text(SMI.format(folder=folder, pause="0.1" if gpus == 2 else "1"))
        tool.chmod(0o755)

    def _device(self, pci: str) -> Path:
        device = self.root / "sys/bus/pci/devices" / pci
        device.mkdir(parents=True)
        for kind, word in (("correctable", "COR"), ("nonfatal", "NONFATAL"), ("fatal", "FATAL")):
            (device / f"aer_dev_{kind}").write_text(AER.format(0, word))
        return device

    def _adapter(self, name: str, number: int, pci: str) -> None:
        device = self._device(pci)
        folder = self.root / "sys/class/infiniband" / name
        counters = folder / "ports/1/counters"
        counters.mkdir(parents=True)
        (folder / "device").symlink_to(device)
        for counter in load_sampler.PORT:
            (counters / counter).write_text("3\n")
        for counter in load_sampler.CONGESTION:
            file = folder / "ports/1" / counter
            file.parent.mkdir(exist_ok=True)
            file.write_text("5\n")
        sensors = self.root / f"sys/class/hwmon/hwmon{number}"
        sensors.mkdir(parents=True)
        (sensors / "device").symlink_to(device)
        for file, text in (
            ("name", "mlx5"),
            ("temp1_input", "61000"),
            ("temp1_label", "asic"),
            ("temp1_crit", "105000"),
        ):
            (sensors / file).write_text(f"{text}\n")

    def rows(self, uncorrected: int) -> None:
        """What nvidia-smi prints of the GPUs; the second one has these uncorrected errors."""
        new = self.folder / "rows.new"
        new.write_text("".join(ROW.format(g, 60 + 4 * g, uncorrected if g == 1 else 0) for g in range(self.gpus)))
        new.replace(self.folder / "rows")

    def links(self, replays: int) -> None:
        """What `nvidia-smi nvlink -e` prints; link 3 of the second GPU has these replays."""
        gpus = "".join(
            f"GPU {gpu}: NVIDIA H100 80GB HBM3 (UUID: GPU-{gpu})\n"
            f"\t Link 3: Replay Errors: {replays if gpu == 1 else 0}\n\t Link 3: Recovery Errors: 0\n\t Link 3: CRC Errors: 0\n"
            for gpu in range(self.gpus)
        )
        new = self.folder / "nvlink.new"
        new.write_text(gpus)
        new.replace(self.folder / "nvlink")

    def log(self, priority: int, text: str) -> None:
        """Let the kernel log a message."""
        with (self.root / "dev/kmsg").open("a") as file:
            file.write(f"{priority},2,200,-;{text}\n")

    def count(self, path: str, value: int) -> None:
        (self.root / "sys" / path).write_text(f"{value}\n")

    def aer(self, pci: str, kind: str, value: int) -> None:
        (self.root / f"sys/bus/pci/devices/{pci}/aer_dev_{kind}").write_text(AER.format(value, kind.upper()))

    def heat(self, number: int, celsius: float) -> None:
        self.count(f"class/hwmon/hwmon{number}/temp1_input", round(celsius * 1000))


class Running:
    """A sampler that runs; `ended` asks it for its document."""

    def __init__(self, process: subprocess.Popen[bytes], address: str) -> None:
        self.process, self.address = process, address

    def begun(self) -> bool:
        return load_samples.begun(self.address)

    def document(self) -> str:
        return load_samples.ask(self.address, b"document\n", PATIENCE_S).decode()

    def end(self) -> None:
        load_samples.ask(self.address, b"end\n", PATIENCE_S)

    def samples(self) -> LoadSamples:
        return parse_load_samples(self.document())


ALONE = (
    "import sys; from pathlib import Path; from clusterctl_burnin.node.programs import load_sampler; "
    "sys.exit(load_sampler.main(sys.argv[3:], Path(sys.argv[1]), '\\0' + sys.argv[2]))"
)
"""The sampler as a command of its own."""


def argv(
    node: FakeNode,
    address: str,
    limit: float = PATIENCE_S,
    pace: tuple[float, float] = (0.1, 0.2),
    program: str = ALONE,
) -> list[str]:
    return [sys.executable, "-c", program, str(node.root), address.lstrip("\0"), *map(str, pace), str(limit)]


@contextmanager
def sampling(
    node: FakeNode,
    address: str,
    limit: float = PATIENCE_S,
    pace: tuple[float, float] = (0.1, 0.2),
    program: str = ALONE,
) -> Iterator[Running]:
    """Run a sampler on the node; nothing of it is left afterwards."""
    path = f"{node.folder / 'bin'}:/usr/bin:/bin"
    environment = {"PATH": path, "PYTHONPATH": ":".join(sys.path)}
    process = subprocess.Popen(argv(node, address, limit, pace, program), env=environment, start_new_session=True)
    running = Running(process, f"\0{address}")
    try:
        assert running.begun()
        yield running
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # its nvidia-smi, too
        process.wait()


def settle(node: FakeNode) -> None:
    """Wait until the sampler has read all sources once more: it asks for the links only when it has the last answer."""
    files = [node.folder / name for name in ("asked", "printed")]
    before = [_size(file) for file in files]
    until = time.monotonic() + PATIENCE_S
    while any(_size(file) < was + 4 for file, was in zip(files, before, strict=True)):
        assert time.monotonic() < until
        time.sleep(0.05)


def _size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0
