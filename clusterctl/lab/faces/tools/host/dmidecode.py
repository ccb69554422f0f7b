"""dmidecode: `-s KEYWORD` and `-t 17` (memory modules), as dmidecode 3.4 prints SMBIOS (DMTF DSP0134)."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from clusterctl.lab.faces.tools.host.facts import Dimm, Facts, load


def main(argv: Sequence[str]) -> int:
    facts = load()
    if len(argv) == 2 and argv[0] in ("-s", "--string"):
        return _string(facts, argv[1])
    if list(argv) in (["-t", "17"], ["-t", "memory"], ["--type", "17"]):
        sys.stdout.write("# dmidecode 3.4\nGetting SMBIOS data from sysfs.\nSMBIOS 3.3.0 present.\n\n")
        sys.stdout.write("\n".join(_module(number, dimm) for number, dimm in enumerate(facts.dimms)) + "\n")
        return 0
    sys.stderr.write("the lab's dmidecode knows -s KEYWORD and -t 17\n")
    return 2


def _string(facts: Facts, keyword: str) -> int:
    values = {
        "system-serial-number": facts.serial,
        "system-manufacturer": facts.manufacturer,
        "system-product-name": facts.model,
    }
    if keyword not in values:
        sys.stderr.write(f"Invalid string keyword: {keyword}\n")
        return 2
    sys.stdout.write(f"{values[keyword]}\n")
    return 0


def _module(number: int, dimm: Dimm) -> str:
    """Empty sockets are left out."""
    return (
        f"Handle 0x{0x1100 + number:04X}, DMI type 17, 92 bytes\nMemory Device\n\tTotal Width: 72 bits\n"
        f"\tData Width: 64 bits\n\tSize: {dimm.size_mib // 1024} GB\n\tForm Factor: DIMM\n\tLocator: {dimm.locator}\n"
        "\tType: DDR5\n\tSpeed: 4800 MT/s\n"
    )
