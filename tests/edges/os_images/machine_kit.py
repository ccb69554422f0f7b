"""A virtual machine of QEMU in software emulation: UEFI, one network port, NVMe drives."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from clusterctl_lab.metal.efi_variables import boot_next_from

OVMF = Path("/usr/share/OVMF")
MAC = "52:54:00:00:00:01"
GATEWAY = "10.0.2.2"
"""What QEMU's user-mode network calls the loopback address of the machine it runs on."""


@dataclass(frozen=True)
class Drive:
    serial: str
    path: Path
    size: int

    @classmethod
    def made(cls, folder: Path, serial: str, size: int, content: bytes = b"") -> Drive:
        """A sparse raw file; `content` lies at its begin, and at its end."""
        path = folder / f"{serial}.raw"
        with path.open("wb") as file:
            file.write(content)
            file.truncate(size)
            file.seek(size - len(content))
            file.write(content)
        return cls(serial, path, size)


@dataclass(frozen=True)
class VirtualMachine:
    """`folder` holds its console and firmware variables."""

    folder: Path
    serial: str
    drives: tuple[Drive, ...]
    ssh_port: int

    def boot_deployer(self, kernel: Path, initrd: Path, arguments: str) -> subprocess.Popen[bytes]:
        """As iPXE would start it; the machine ends where it restarts or switches itself off."""
        return self._start(
            "-no-reboot", "-kernel", str(kernel), "-initrd", str(initrd), "-append", f"{arguments} BOOTIF={self.bootif}"
        )

    def boot_https(self, uri: str, authorities: Path) -> subprocess.Popen[bytes]:
        """As a BMC orders it that was given the URI; the firmware trusts the EFI signature lists of that file."""
        trusted = f"name=etc/edk2/https/cacerts,file={authorities}"
        return self._start("-no-reboot", "-fw_cfg", trusted, boot_next=uri)

    def boot_disk(self) -> subprocess.Popen[bytes]:
        return self._start()

    @property
    def bootif(self) -> str:
        return f"01-{MAC.replace(':', '-')}"

    @property
    def console(self) -> str:
        """What the machine has printed; nothing before QEMU has opened the file."""
        file = self.folder / "console.log"
        return file.read_text(errors="replace") if file.exists() else ""

    def _start(self, *more: str, boot_next: str = "") -> subprocess.Popen[bytes]:
        variables = self.folder / "vars.fd"
        empty = (OVMF / "OVMF_VARS_4M.fd").read_bytes()
        variables.write_bytes(boot_next_from(boot_next, empty) if boot_next else empty)
        argv = [
            *("setpriv", "--pdeathsig", "KILL", "qemu-system-x86_64", "-accel", "tcg,thread=multi,tb-size=256"),
            *("-M", "q35", "-cpu", "Nehalem", "-smp", "1", "-m", "1024", "-display", "none", "-nodefaults"),
            *("-drive", f"if=pflash,format=raw,readonly=on,file={OVMF / 'OVMF_CODE_4M.fd'}"),
            *("-drive", f"if=pflash,format=raw,file={variables}"),
            *("-serial", f"file:{self.folder / 'console.log'}"),
            *("-netdev", f"user,id=n0,hostfwd=tcp:127.0.0.1:{self.ssh_port}-:22"),
            *("-device", f"virtio-net-pci,netdev=n0,mac={MAC},romfile="),
            *("-device", "virtio-rng-pci"),
            *("-smbios", f"type=1,manufacturer=Supermicro,product=SYS-LAB,serial={self.serial}"),
        ]
        for number, drive in enumerate(self.drives):
            argv += ["-drive", f"file={drive.path},format=raw,if=none,id=d{number},cache=unsafe"]
            argv += ["-device", f"nvme,drive=d{number},serial={drive.serial}"]
        return subprocess.Popen([*argv, *more], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
