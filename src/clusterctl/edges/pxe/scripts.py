"""The scripts that iPXE runs (ipxe.org/scripting). Pure; foreign text is made printable before it is shown.

A script that ends with `exit 1` returns to the firmware as a failed boot: UEFI then tries the next entry of its boot
order. After `exit 0` it would stop at its menu (UEFI 2.10, 3.1.1).
"""

from __future__ import annotations

from urllib.parse import quote

from clusterctl.edges.pxe.attempt import BootFiles, plain
from clusterctl.fleet.node import Mac

HEAD = "#!ipxe\n"
MAX_CARDS = 64


def entry(base: str) -> str:
    """Return the script that every machine runs first: it asks for the script of each card, the booted card first."""
    asks = "?serial=${serial:uristring}&uuid=${uuid}"
    return (
        f"{HEAD}"
        f"echo clusterctl: asking {base} what to boot\n"
        f"chain --autofree {base}/boot/${{netX/mac:hexhyp}}.ipxe{asks} ||\n"
        "set i:int32 0\n"
        ":next\n"
        "isset ${net${i}/mac} || goto none\n"
        f"chain --autofree {base}/boot/${{net${{i}}/mac:hexhyp}}.ipxe{asks} ||\n"
        "inc i\n"
        f"iseq ${{i}} {MAX_CARDS} || goto next\n"
        ":none\n"
        "echo clusterctl: no installer for this machine, on to the next boot entry\n"
        "exit 1\n"
    )


def onward(base: str, ticket: str, mac: Mac, serial: str) -> str:
    """Return the script that asks for the installer's, by the ticket of the machine's attempt.

    iPXE prints each URL that it loads, so that this one holds no token.
    """
    return f"{HEAD}chain --autofree {base}/start/{ticket}.ipxe?mac={mac}&serial={quote(serial, safe='')}\n"


def installer(base: str, node: str, boot: BootFiles, mac: Mac) -> str:
    """Return the script that loads kernel and initrd and starts them. It tries again: the controller may restart.

    `initrd=` is the name by which an EFI-stub kernel before 5.7 asks its loader for it.
    """
    arguments = boot.arguments.replace("{mac}", mac).replace("{bootif}", bootif(mac))
    return (
        f"{HEAD}"
        f"echo clusterctl: installing {plain(node)}\n"
        "set tries:int32 0\n"
        ":load\n"
        "imgfree\n"
        f"kernel --name vmlinuz {base}/files/{boot.kernel} initrd=initrd.img {arguments} || goto again\n"
        f"initrd --name initrd.img {base}/files/{boot.initrd} || goto again\n"
        "boot || goto again\n"
        ":again\n"
        "inc tries\n"
        "iseq ${tries} 10 && goto failed ||\n"
        "echo clusterctl: the download failed, trying again in 5 s\n"
        "sleep 5\n"
        "goto load\n"
        ":failed\n"
        "echo clusterctl: the installer could not be loaded\n"
        "exit 1\n"
    )


def nothing(why: str) -> str:
    """Return the script for a machine that is not installed now: it prints the reason and boots on."""
    return f"{HEAD}echo clusterctl: {_shown(why)}\nexit 1\n"


def bootif(mac: Mac) -> str:
    """Return the booting card in the form of PXELINUX, initramfs-tools, dracut and casper: `01-aa-bb-…`."""
    return f"01-{mac.replace(':', '-').lower()}"


def _shown(words: str) -> str:
    """Remove the characters that a script expands (`${…}`) or splits at (`||`, `&&`, `;`)."""
    return "".join(char if char.isalnum() or char in " .,:_-/()'" else " " for char in plain(words)).replace("'", "")
