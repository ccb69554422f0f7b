"""What a machine can boot from, and in which order it tries."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass

from clusterctl_lab.machine import Machine


class BootTarget(enum.Enum):
    """An override (DMTF ComputerSystem, BootSource). NONE: the machine follows its boot order."""

    NONE = "None"
    PXE = "Pxe"
    HDD = "Hdd"
    CD = "Cd"
    UEFI_HTTP = "UefiHttp"
    USB_CD = "UsbCd"
    USB = "Usb"
    FLOPPY = "Floppy"
    SD_CARD = "SDCard"
    BIOS_SETUP = "BiosSetup"
    UTILITIES = "Utilities"
    DIAGS = "Diags"
    UEFI_SHELL = "UefiShell"
    UEFI_TARGET = "UefiTarget"
    UEFI_BOOT_NEXT = "UefiBootNext"

    @property
    def from_network(self) -> bool:
        return self in (BootTarget.PXE, BootTarget.UEFI_HTTP)

    def follows_order(self, *, inserted: bool) -> bool:
        """It names nothing to boot from, or a drive with nothing in it: only discs are ever `inserted`."""
        if self in (BootTarget.CD, BootTarget.USB_CD):
            return not inserted
        drives = (BootTarget.USB, BootTarget.FLOPPY, BootTarget.SD_CARD)
        return self in (BootTarget.NONE, BootTarget.UEFI_TARGET, BootTarget.UEFI_BOOT_NEXT, *drives)

    @property
    def ends_there(self) -> bool:
        """The machine leaves POST for a program that the lab has no machine for, and stays in it."""
        return self in (
            *(BootTarget.CD, BootTarget.USB_CD, BootTarget.BIOS_SETUP, BootTarget.UTILITIES),
            *(BootTarget.DIAGS, BootTarget.UEFI_SHELL),
        )


@dataclass(frozen=True, slots=True)
class BootOption:
    """One entry of the boot order. `reference` as `Boot0000`; `device` is a MAC or a drive's serial."""

    reference: str
    target: BootTarget
    device: str
    name: str


@dataclass(frozen=True, slots=True)
class Medium:
    """What is in a virtual drive: the URL of an image."""

    image: str
    write_protected: bool = True


@dataclass(frozen=True, slots=True)
class HttpBoot:
    """One boot from a URI. `authorities`: the certificates (PEM) that the firmware trusts for it."""

    uri: str
    authorities: tuple[str, ...]


def options(machine: Machine) -> tuple[BootOption, ...]:
    """In the order that the machine is delivered with: network first, as an installer expects, then its drives."""
    return tuple(
        BootOption(f"Boot{number:04X}", target, device, name)
        for number, (target, device, name) in enumerate(_devices(machine))
    )


def first(machine: Machine, order: tuple[str, ...]) -> BootTarget:
    """The devices in the order that the firmware tries. An empty `order` means as delivered; devices of `order` that no
    longer exist are skipped.
    """
    there = {option.reference: option.target for option in options(machine)}
    tried = [there[reference] for reference in order or there if reference in there]
    return tried[0] if tried else BootTarget.PXE


def drives_first(machine: Machine) -> tuple[str, ...]:
    """Return the boot order of a server that boots from the network only for an installation."""
    ordered = sorted(options(machine), key=lambda option: option.target is not BootTarget.HDD)
    return tuple(option.reference for option in ordered)


def devices(machine: Machine, order: tuple[str, ...], override: BootTarget) -> tuple[str, ...]:
    """Return the devices that the firmware tries, in order: MACs and serials of drives. An override precedes the boot
    order, which follows where the override does not boot.
    """
    known = {option.reference: option for option in options(machine)}
    tried = [known[reference] for reference in order or known if reference in known]
    tried.sort(key=lambda option: not _meant(override, option.target))
    return tuple(dict.fromkeys(option.device for option in tried))


def _meant(override: BootTarget, target: BootTarget) -> bool:
    return override is target or (override.from_network and target.from_network)


def _devices(machine: Machine) -> Iterator[tuple[BootTarget, str, str]]:
    yield BootTarget.PXE, machine.boot_mac, "PXE Device 1"
    yield BootTarget.UEFI_HTTP, machine.boot_mac, "HTTP Device 1"
    for drive in machine.drives:
        if drive.boot or drive.serial == machine.boots_from:
            yield BootTarget.HDD, drive.serial, f"{drive.model} {drive.slot}"
