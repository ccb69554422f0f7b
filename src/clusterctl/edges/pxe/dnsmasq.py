"""What dnsmasq is told (dnsmasq(8), 2.86 to 2.90): it answers machines of ours alone, and gives them iPXE. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from clusterctl.edges.pxe.settings import Dhcp, PxeSettings
from clusterctl.fleet.node import Mac

LEASE = "12h"
UEFI_X64 = (7, 9)
UEFI_X64_HTTP = 16
BIOS = 0
"""Client architectures (RFC 4578, 2.1, and IANA's list after it)."""


@dataclass(frozen=True, slots=True)
class Places:
    """Where dnsmasq's files lie."""

    hosts: Path
    leases: Path
    tftp: Path


def configuration(settings: PxeSettings, network: ipaddress.IPv4Network, places: Places) -> str:
    """The configuration file, an option a line.

    It stays root: its files lie in the site's state, which is nobody else's, and the kernel forgets whom it is to kill
    with us once a process changes its user or group (PR_SET_PDEATHSIG in prctl(2)).
    """
    return "".join(f"{line}\n" for line in _lines(settings, network, places))


def reservation(node: str, macs: Sequence[Mac], address: str) -> str:
    """A machine that is answered, by any of its cards; one line of a file in dhcp-hostsdir."""
    return f"{','.join((*macs, *([address] if address else []), node))}\n"


def _lines(settings: PxeSettings, network: ipaddress.IPv4Network, places: Places) -> Iterator[str]:
    yield "port=0"
    yield f"interface={settings.interface}"
    yield "except-interface=lo"
    yield "bind-interfaces"
    yield "log-dhcp"
    yield "log-facility=-"
    yield "pid-file="
    yield "user=root"
    yield "group=root"
    yield f"dhcp-hostsdir={places.hosts}"
    yield f"dhcp-leasefile={places.leases}"
    yield "dhcp-ignore=tag:!known"
    yield "enable-tftp"
    yield f"tftp-root={places.tftp}"
    yield "dhcp-userclass=set:ipxe,iPXE"
    yield "dhcp-match=set:ipxe,175"
    yield from (f"dhcp-match=set:efi64,option:client-arch,{arch}" for arch in UEFI_X64)
    yield f"dhcp-match=set:bios,option:client-arch,{BIOS}"
    yield from _reserving(settings, network) if settings.dhcp is Dhcp.RESERVE else _beside(settings, network)
    yield f"dhcp-boot=tag:ipxe,{settings.base}/boot.ipxe"
    if settings.announce:
        yield "enable-ra"
        yield f"ra-param={settings.interface},0,0"
        yield "dhcp-range=::,constructor:" + settings.interface + ",ra-only,64,1h"


def _reserving(settings: PxeSettings, network: ipaddress.IPv4Network) -> Iterator[str]:
    """The network's only DHCP server, for addresses that are written down."""
    yield f"dhcp-range={network.network_address},static,{network.netmask},{LEASE}"
    yield "dhcp-authoritative"
    yield f"dhcp-option=option:router{',' + settings.gateway if settings.gateway else ''}"
    if settings.nameservers:
        yield f"dhcp-option=option:dns-server,{','.join(settings.nameservers)}"
    yield f"dhcp-match=set:http64,option:client-arch,{UEFI_X64_HTTP}"
    yield f"dhcp-boot=tag:!ipxe,tag:efi64,{settings.loader}"
    yield "dhcp-boot=tag:!ipxe,tag:bios,undionly.kpxe"
    yield "dhcp-option-force=tag:!ipxe,tag:http64,60,HTTPClient"
    yield f"dhcp-boot=tag:!ipxe,tag:http64,{settings.base}/files/tftp/{settings.loader}"


def _beside(settings: PxeSettings, network: ipaddress.IPv4Network) -> Iterator[str]:
    """Another server gives the addresses; we say only what to boot (PXE 2.1, 2.2: proxyDHCP, ports 67 and 4011)."""
    yield f"dhcp-range={network.network_address},proxy,{network.netmask}"
    yield f'pxe-service=tag:!ipxe,X86-64_EFI,"iPXE",{settings.loader}'
    yield 'pxe-service=tag:!ipxe,X86PC,"iPXE",undionly.kpxe'
    yield f'pxe-service=tag:ipxe,X86-64_EFI,"clusterctl",{settings.base}/boot.ipxe'
    yield f'pxe-service=tag:ipxe,X86PC,"clusterctl",{settings.base}/boot.ipxe'
