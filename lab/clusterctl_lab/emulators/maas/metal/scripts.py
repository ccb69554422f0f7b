"""The scripts that iPXE runs (ipxe.org/scripting). Pure.

One that ends by `exit 1` gives the machine back to its firmware as "this did not boot": UEFI tries the next entry of
its boot order.
"""

from __future__ import annotations

from clusterctl_lab.emulators.maas.metal.boot_files import BootFiles

HEAD = "#!ipxe\n"
TRIES = 10


def entry(base: str) -> str:
    """What every machine runs first: it asks for its own script, by the card that booted."""
    return f"{HEAD}chain --autofree {base}/boot/${{netX/mac:hexhyp}}.ipxe ||\nexit 1\n"


def local_disk(why: str) -> str:
    """On to the next entry of the boot order. `why` is plain words without iPXE's own characters."""
    return f"{HEAD}echo MAAS: {why}\nexit 1\n"


def ephemeral(base: str, files: BootFiles, mac: str, token: str) -> str:
    """Start the deployer, which asks for what is to be done with `token`."""
    arguments = (
        f"clusterctl.server={base} clusterctl.token={token} BOOTIF=01-{mac.replace(':', '-').lower()} ip=dhcp quiet "
        "mitigations=off console=ttyS0"
    )
    return (
        f"{HEAD}"
        "set tries:int32 0\n"
        ":load\n"
        "imgfree\n"
        f"kernel --name vmlinuz {base}/files/{files.kernel} initrd=initrd.img {arguments} || goto again\n"
        f"initrd --name initrd.img {base}/files/{files.initrd} || goto again\n"
        "boot || goto again\n"
        ":again\n"
        "inc tries\n"
        f"iseq ${{tries}} {TRIES} && exit 1 ||\n"
        "sleep 5\n"
        "goto load\n"
    )
