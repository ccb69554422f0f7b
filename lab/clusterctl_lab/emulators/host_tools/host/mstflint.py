"""mstflint: `-d PCI query`, `-i IMAGE query` and `-y -d PCI -i IMAGE burn`, for the firmware of `adapter_flash`.

Output as in MFT's manual (docs.nvidia.com/networking/display/mftv4330, flint); `FW Version(Running)` is printed where
it differs. The lab's images are text: `image()` writes one.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from clusterctl_lab.emulators.host_tools.host import adapter_flash
from clusterctl_lab.emulators.host_tools.host.facts import Hca, load
from clusterctl_lab.emulators.host_tools.host.small_files import text_of

PSID = "MT_0000000838"
"""Of the MCX75310AAS-NEAT, a ConnectX-7 for NDR, as its users print it."""
MAGIC = "clusterctl lab, adapter firmware"


def image(psid: str, version: str) -> str:
    """An image's content."""
    return f"{MAGIC}\n{psid}\n{version}\n"


def main(argv: Sequence[str]) -> int:
    if list(argv) in (["-v"], ["--version"]):
        sys.stdout.write("mstflint, mstflint 4.21.0, built for the rehearsal lab\n")
        return 0
    parser = argparse.ArgumentParser("mstflint")
    parser.add_argument("-d", dest="device")
    parser.add_argument("-i", dest="image")
    parser.add_argument("-y", dest="yes", action="store_true")
    parser.add_argument("command", choices=("q", "query", "b", "burn"))
    options = parser.parse_args(argv)
    hca = next((each for each in load().hcas if each.pci == options.device), None)
    if options.device and hca is None:
        return _complain(f"Cannot open Device: {options.device}. No such file or directory")
    found = _image(options.image) if options.image else None
    if options.image and found is None:
        return _complain(f"Cannot open Image: {options.image}. Bad firmware file")
    if options.command in ("b", "burn"):
        return _burn(hca, found, sure=options.yes) if hca and found else _complain("burn takes -d and -i")
    if hca is not None:
        return _query(hca)
    return _report(*found) if found else _complain("query takes -d or -i")


def _image(path: str) -> tuple[str, str] | None:
    try:
        lines = text_of(path).splitlines()
    except (OSError, ValueError):
        return None
    return (lines[1], lines[2]) if len(lines) == 3 and lines[0] == MAGIC else None


def _burn(hca: Hca, found: tuple[str, str], *, sure: bool) -> int:
    psid, version = found
    flash = adapter_flash.read(hca)
    sys.stdout.write(f"\n    Current FW version on flash:  {flash.burnt or hca.firmware}\n")
    sys.stdout.write(f"    New FW version:               {version}\n\n")
    if psid != hca.psid:
        return _complain(
            f"PSID mismatch. The PSID on flash ({hca.psid}) differs from the PSID in the given image ({psid})."
        )
    if not sure:
        return _complain("Aborted by user")
    flash.burnt = version
    adapter_flash.write(hca, flash)
    sys.stdout.write("FSMST_INITIALIZE -   OK\nWriting Boot image component -   OK\n")
    sys.stdout.write("-I- To load new FW run mstfwreset or reboot machine.\n")
    return 0


def _query(hca: Hca) -> int:
    return _report(hca.psid, adapter_flash.read(hca).burnt or hca.firmware, adapter_flash.running(hca), hca.guid)


def _report(psid: str, version: str, running: str = "", guid: str = "") -> int:
    fields = {"Image type": "FS4", "FW Version": version}
    if running not in ("", version):
        fields["FW Version(Running)"] = running
    fields |= {"Product Version": version, "Description": "UID                GuidsNumber"}
    fields["Base GUID"] = f"{guid or 'N/A'}        16"
    fields |= {"Image VSD": "N/A", "Device VSD": "N/A", "PSID": psid, "Security Attributes": "secure-fw"}
    sys.stdout.write("".join(f"{name + ':':<23}{value}\n" for name, value in fields.items()))
    return 0


def _complain(words: str) -> int:
    sys.stderr.write(f"-E- {words}\n")
    return 1
