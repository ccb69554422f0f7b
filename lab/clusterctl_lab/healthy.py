"""Builds healthy machines: eight H100, eight ConnectX-7, 2 TiB, a root disk and four NVMe drives, as delivered."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab import part_places as sockets
from clusterctl_lab.ethernet import HOSTS_PER_RACK, host_port, rack_of
from clusterctl_lab.layout import Layout
from clusterctl_lab.machine import HOSTS_PER_LEAF, Bmc, Gpu, Hca, Machine, Psu, SwitchPort, leaf
from clusterctl_lab.server_models import MAKES
from clusterctl_lab.vendor import Vendor

GPU_BUSES = (0x1B, 0x43, 0x52, 0x61, 0x9D, 0xC3, 0xD1, 0xDF)
HCA_BUSES = (0x18, 0x40, 0x4F, 0x5E, 0x9A, 0xC0, 0xCE, 0xDC)
DATA_BAYS = 4


def build(index: int, layout: Layout, password: str, *, rails: int = 8, vendor: Vendor = Vendor.DELL) -> Machine:
    """A healthy machine; `index` from 1. All about it follows from `index` and `vendor`, so a lab is reproducible."""
    octets = f"{index >> 8 & 255:02x}:{index & 255:02x}"
    make = MAKES[vendor]
    return Machine(
        name=f"node{index:03d}",
        index=index,
        serial=f"LAB{index:04d}",
        rack=rack_of(index),
        unit=4 + 8 * ((index - 1) % HOSTS_PER_RACK),
        bmc=Bmc(
            address=layout.bmc(index),
            mac=f"02:1a:bb:00:{octets}",
            user="root",
            password=password,
            firmware=make.bmc_firmware,
            vendor=vendor,
        ),
        address=layout.host(index),
        boot_mac=f"02:1a:ee:00:{octets}",
        gpus=tuple(_gpu(index, i, bus) for i, bus in enumerate(GPU_BUSES)),
        hcas=tuple(_hca(index, i, bus, make.hca_model) for i, bus in enumerate(HCA_BUSES[:rails])),
        drives=(make.boot_drive(index), *(make.data_drive(index, bay) for bay in range(DATA_BAYS))),
        manufacturer=make.manufacturer,
        model=make.model,
        bios_version=make.bios_version,
        network=host_port(index),
        psus=tuple(Psu(f"PS{slot}", f"PSU{index:04d}{slot}") for slot in range(1, make.psus + 1)),
        dimms=sockets.dimms(vendor, index),
        fans=sockets.fans(vendor),
    )


def with_roce(machine: Machine) -> Machine:
    """Return the machine with its adapters in Ethernet mode; their cables go to the same switches' ports."""
    return replace(machine, hcas=tuple(replace(hca, ethernet=True) for hca in machine.hcas))


def _gpu(machine: int, index: int, bus: int) -> Gpu:
    return Gpu(
        index=index,
        serial=f"165{machine:05d}{index:04d}",
        uuid=f"GPU-{machine:08x}-0000-4000-8000-{index:012x}",
        pci=f"00000000:{bus:02X}:00.0",
    )


def _hca(machine: int, rail: int, bus: int, model: str) -> Hca:
    """Each rail has a leaf of its own in each pod; the machine's place in its pod is its port there."""
    pod, place = divmod(machine - 1, HOSTS_PER_LEAF)
    return Hca(
        name=f"mlx5_{rail}",
        rail=rail,
        guid=f"a088c20300{machine:04x}{rail:02x}",
        serial=f"MT2340{machine:04d}{rail:02d}",
        pci=f"0000:{bus:02x}:00.0",
        cable=SwitchPort(leaf(rail, pod), place + 1),
        model=model,
    )
