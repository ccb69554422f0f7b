"""A made-up machine as the kernel shows it: a folder with /sys and /dev in it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Sysfs:
    root: Path

    def board(self, **reported: str) -> None:
        for name, value in reported.items():
            self._write(f"sys/class/dmi/id/{name}", value)

    def port(self, name: str, mac: str, *, kind: str = "1", real: bool = True, permanent: str = "") -> None:
        """A network port; `real`: hardware stands behind it; `permanent`: what a bond's member had before."""
        folder = f"sys/class/net/{name}"
        self._write(f"{folder}/address", mac)
        self._write(f"{folder}/type", kind)
        if real:
            (self.root / folder / "device").mkdir()
        if permanent:
            self._write(f"{folder}/bonding_slave/perm_hwaddr", permanent)

    def block(
        self, name: str, content: Path | bytes | int, *, bus: str = "pci0000:00", **reported: str | bytes
    ) -> None:
        """A block device. `content`: bytes, or the size of a sparse file; `attributes`: its attributes, `__` for `/`."""
        folder = self.root / f"sys/devices/{bus}/block/{name}"
        (folder / "device").mkdir(parents=True)
        (self.root / "sys/class/block").mkdir(parents=True, exist_ok=True)
        (self.root / "sys/class/block" / name).symlink_to(folder)
        device = self.root / "dev" / name
        device.parent.mkdir(exist_ok=True)
        if isinstance(content, Path):
            device.symlink_to(content)
        else:
            with device.open("wb") as file:
                file.write(content if isinstance(content, bytes) else b"")
                if isinstance(content, int):
                    file.truncate(content)
        self._write(f"{folder}/size", str(device.stat().st_size // 512))
        for attribute, value in reported.items():
            self._write(f"{folder}/{attribute.replace('__', '/')}", value)

    def _write(self, path: str, value: str | bytes) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(value if isinstance(value, bytes) else f"{value}\n".encode())
