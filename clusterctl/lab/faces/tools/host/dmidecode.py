"""dmidecode: `-s KEYWORD` and `-t 17` (memory modules), as dmidecode 3.4 prints SMBIOS (DMTF DSP0134)."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from clusterctl.lab.faces.tools.host.facts import Facts, load

SLOTS = 32


def main(argv: Sequence[str]) -> int:
    facts = load()
    if len(argv) == 2 and argv[0] in ("-s", "--string"):
        return _string(facts, argv[1])
    if list(argv) in (["-t", "17"], ["-t", "memory"], ["--type", "17"]):
        sys.stdout.write("# dmidecode 3.4\nGetting SMBIOS data from sysfs.\nSMBIOS 3.3.0 present.\n\n")
        sys.stdout.write("\n".join(_module(slot, facts) for slot in range(SLOTS)) + "\n")
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


def _module(slot: int, facts: Facts) -> str:
    """64 GB in each slot from the first on, as far as the machine's memory goes."""
    size = "64 GB" if slot < facts.memory_gib // 64 else "No Module Installed"
    return (
        f"Handle 0x{0x1100 + slot:04X}, DMI type 17, 92 bytes\nMemory Device\n\tTotal Width: 72 bits\n"
        f"\tData Width: 64 bits\n\tSize: {size}\n\tForm Factor: DIMM\n\tLocator: {'AB'[slot // 16]}{slot % 16 + 1}\n"
        "\tType: DDR5\n\tSpeed: 4800 MT/s\n"
    )
