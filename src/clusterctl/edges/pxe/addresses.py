"""The address at which PXE serves: its listening socket, and its network by the controller's interfaces."""

from __future__ import annotations

import ipaddress
import json
import socket

from clusterctl.edges.processes import Surroundings, run
from clusterctl.fleet.errors import EnvironmentBrokenError
from clusterctl.ports import Deadline

SECONDS = 30
SILENT_S = 90
"""Seconds without an acknowledgement after which a connection is dropped: a machine that lost its power during a
download frees its slot."""


def listen(address: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 is any free port."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, SILENT_S * 1000)  # its connections inherit it
        sock.bind((address, port))
        sock.listen(1024)
    except OSError as error:
        sock.close()
        raise EnvironmentBrokenError(
            f"cannot serve there: {error.strerror}",
            where=f"{address}:{port}",
            remedy="give provisioning an address of this controller and a free port",
        ) from None
    return sock


def network_of(interface: str, address: str) -> ipaddress.IPv4Network:
    """Return the network of this address on the interface (iproute2). Raises `EnvironmentBrokenError`."""
    argv = ("ip", "-json", "-4", "address", "show", "dev", interface)
    ran = run(argv, Deadline.after(SECONDS), Surroundings(missing="install iproute2"))
    if ran.exit_status != 0:
        raise _missing(interface, ran.stderr.strip() or "there is no such interface")
    return found_in(ran.stdout, interface, address)


def found_in(text: str, interface: str, address: str) -> ipaddress.IPv4Network:
    """Return the network of the address in the output of `ip -json address show`."""
    listed = [item for link in json.loads(text or "[]") for item in link.get("addr_info", [])]
    for item in listed:
        if item.get("local") == address:
            return ipaddress.IPv4Interface(f"{address}/{item['prefixlen']}").network
    has = ", ".join(f"{item['local']}/{item['prefixlen']}" for item in listed) or "no address"
    raise _missing(interface, f"it has {has}, not {address}")


def announcing(interface: str) -> str:
    """Return the IPv6 address from which dnsmasq can send router advertisements; empty where there is none.

    It takes none from a link-local address: without another one it answers no router solicitation.
    """
    argv = ("ip", "-json", "-6", "address", "show", "dev", interface, "scope", "global")
    ran = run(argv, Deadline.after(SECONDS), Surroundings(missing="install iproute2"))
    listed = [item for link in json.loads(ran.stdout or "[]") for item in link.get("addr_info", [])]
    return next((str(item["local"]) for item in listed if "local" in item), "")


def _missing(interface: str, why: str) -> EnvironmentBrokenError:
    return EnvironmentBrokenError(
        why,
        where=f"interface {interface}",
        remedy="assign provisioning.address to it, or correct provisioning.interface and .address in site.yml",
    )
