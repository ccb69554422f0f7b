"""A virtual machine as QEMU's arguments: pure text.

q35 with UEFI (OVMF), in software emulation: `/dev/kvm` may be there and still not boot a stock kernel.
`-no-reboot`: a virtual machine's reset ends the process, and the world starts the next boot with what its BMC then
reports.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from clusterctl_lab.emulators.redfish.identity import system_uuid
from clusterctl_lab.hosts.addresses import RAIL_MTU
from clusterctl_lab.machine import Drive, Machine
from clusterctl_lab.metal import wires
from clusterctl_lab.metal.share import TAG

QEMU = "qemu-system-x86_64"
FIRMWARE = Path("/usr/share/OVMF/OVMF_CODE_4M.fd")
VARIABLES = Path("/usr/share/OVMF/OVMF_VARS_4M.fd")
MEMORY_MIB = 1024
TRANSLATION_CACHE_MIB = 256
UNREADABLE = (
    "file.driver=blkdebug,file.inject-error.0.event=none,file.inject-error.0.errno=5,"
    "file.image.driver=file,file.image.filename"
)
"""A drive that answers, and fails every read and write with an I/O error."""


@dataclass(frozen=True, slots=True)
class Places:
    """Where its things lie; `drives` by serial, `console` is a socket that listens, `share` what its OS may read;
    `authorities`: EFI signature lists for a boot over HTTPS, None where it has none.
    """

    variables: Path
    drives: dict[str, Path]
    console: Path
    share: Path
    authorities: Path | None = None


def command_line(machine: Machine, devices: Sequence[str], places: Places) -> tuple[str, ...]:
    """`devices`: MACs and serials, in the order that the firmware tries them. Others are there and not booted from.

    QMP is spoken over standard input and output.
    """
    return (
        *(QEMU, "-name", machine.name, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
        *("-accel", f"tcg,thread=multi,tb-size={TRANSLATION_CACHE_MIB}", "-cpu", "Nehalem", "-smp", "1"),
        *("-m", str(MEMORY_MIB), "-machine", "q35", "-qmp", "stdio"),
        *("-drive", f"if=pflash,format=raw,readonly=on,file={_text(FIRMWARE)}"),
        *("-drive", f"if=pflash,format=raw,file={_text(places.variables)}"),
        *("-fw_cfg", "name=opt/org.tianocore/IPv6PXESupport,string=n"),
        *_trusted(places.authorities),
        *("-chardev", f"socket,id=console,path={_text(places.console)}", "-serial", "chardev:console"),
        *("-smbios", _identity(machine), "-device", "virtio-rng-pci"),
        *("-netdev", f"tap,id=net0,ifname={wires.tap(machine)},script=no,downscript=no"),
        *("-device", f"virtio-net-pci,netdev=net0,mac={machine.boot_mac},romfile={_index(devices, machine.boot_mac)}"),
        *(
            word
            for number, drive in enumerate(machine.drives)
            if drive.on_bus
            for word in _drive(number, drive, devices, places)
        ),
        *(word for number in range(len(machine.hcas)) for word in _rail(number, machine)),
        *("-fsdev", f"local,id=share,path={_text(places.share)},security_model=none,readonly=on"),
        *("-device", f"virtio-9p-pci,fsdev=share,mount_tag={TAG}"),
    )


def _trusted(authorities: Path | None) -> tuple[str, ...]:
    """OVMF takes them from there (OvmfPkg/README, "HTTPS Boot")."""
    return () if authorities is None else ("-fw_cfg", f"name=etc/edk2/https/cacerts,file={_text(authorities)}")


def _rail(number: int, machine: Machine) -> Iterator[str]:
    """The card that carries an adapter's traffic; nothing is booted from it."""
    hca = machine.hcas[number]
    name, mac = f"rail{number}", wires.rail_mac(machine, hca)
    yield from ("-netdev", f"tap,id={name},ifname={wires.rail_tap(machine, hca)},script=no,downscript=no")
    yield from ("-device", f"virtio-net-pci,netdev={name},mac={mac},host_mtu={RAIL_MTU},romfile=")


def _drive(number: int, drive: Drive, devices: Sequence[str], places: Places) -> Iterator[str]:
    """Thin: what the virtual machine discards or zeroes takes no room. Has a port of its own, to be pulled out of."""
    name = f"drive{number}"
    image = UNREADABLE if drive.failed else "file"
    options = "format=raw,if=none,cache=unsafe,discard=unmap,detect-zeroes=unmap"
    yield from ("-drive", f"id={name},{options},{image}={_text(places.drives[drive.serial])}")
    yield from ("-device", f"pcie-root-port,id=bay{number},chassis={number + 1}")
    yield from ("-device", f"nvme,id={device_id(number)},bus=bay{number},drive={name},{_properties(drive, devices)}")


def device_id(number: int) -> str:
    """What QEMU calls the machine's drive of that number, counted from 0."""
    return f"nvme{number}"


def _properties(drive: Drive, devices: Sequence[str]) -> str:
    return f"serial={_text(drive.serial)}{_index(devices, drive.serial)}"


def _identity(machine: Machine) -> str:
    serial = machine.smbios_serial or machine.serial
    reported = {
        "manufacturer": machine.manufacturer,
        "product": machine.model,
        "serial": serial,
        "uuid": system_uuid(machine).lower(),
    }
    return "type=1," + ",".join(f"{key}={_text(value)}" for key, value in reported.items())


def _index(devices: Sequence[str], device: str) -> str:
    return f",bootindex={devices.index(device)}" if device in devices else ""


def _text(value: object) -> str:
    """QEMU reads a comma as the end of a value unless it is doubled."""
    return str(value).replace(",", ",,")
