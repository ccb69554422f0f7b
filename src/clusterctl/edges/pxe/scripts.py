"""The scripts that iPXE runs (ipxe.org/scripting). Pure; all text of others is made plain before it is shown.

A script that ends by `exit 1` gives the machine back to its firmware as "this did not boot": UEFI then tries the next
entry of its boot order, where `exit 0` would have it stop at its menu (UEFI 2.10, 3.1.1).
"""

from __future__ import annotations

from clusterctl.edges.pxe.attempt import BootFiles, plain
from clusterctl.fleet.node import Mac

HEAD = "#!ipxe\n"
MOST_CARDS = 64


def entry(base: str) -> str:
    """What every machine runs first: it asks for the script of each of its cards, the one that booted first."""
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
        f"iseq ${{i}} {MOST_CARDS} || goto next\n"
        ":none\n"
        "echo clusterctl: no installer for this machine, on to the next boot entry\n"
        "exit 1\n"
    )


def installer(base: str, node: str, boot: BootFiles, mac: Mac) -> str:
    """Loads kernel and initrd and starts them; where one does not come it tries again, as a controller may restart.

    `initrd=` names what an EFI-stub kernel older than 5.7 asks its loader for.
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
        "echo clusterctl: that did not come, once more in 5 s\n"
        "sleep 5\n"
        "goto load\n"
        ":failed\n"
        "echo clusterctl: the installer could not be loaded\n"
        "exit 1\n"
    )


def nothing(why: str) -> str:
    """For a machine that is not to be installed (now): it says why, and boots on."""
    return f"{HEAD}echo clusterctl: {_shown(why)}\nexit 1\n"


def bootif(mac: Mac) -> str:
    """The booting card as PXELINUX and after it initramfs-tools, dracut and casper have it: `01-aa-bb-…`."""
    return f"01-{mac.replace(':', '-').lower()}"


def _shown(words: str) -> str:
    """In a script `${…}` is expanded, and a line is split at `||`, `&&` and `;`; a sentence needs none of them."""
    return "".join(char if char.isalnum() or char in " .,:_-/()'" else " " for char in plain(words)).replace("'", "")
