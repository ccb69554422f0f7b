"""dmidecode: `-s KEYWORD`, `-t 17` (memory modules) and `-t 4` (processors), as dmidecode 3.4 prints SMBIOS (DMTF
DSP0134).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from clusterctl_lab.emulators.host_tools.host.facts import Dimm, Facts, load


def main(argv: Sequence[str]) -> int:
    facts = load()
    if len(argv) == 2 and argv[0] in ("-s", "--string"):
        return _string(facts, argv[1])
    if list(argv) in (["-t", "17"], ["-t", "memory"], ["--type", "17"]):
        return _tables(_module(number, dimm) for number, dimm in enumerate(facts.dimms))
    if list(argv) in (["-t", "4"], ["-t", "processor"], ["--type", "4"]):
        return _tables(_processor(number, facts) for number in range(facts.cpus))
    sys.stderr.write("the lab's dmidecode knows -s KEYWORD, -t 17 and -t 4\n")
    return 2


def _tables(tables: Iterable[str]) -> int:
    sys.stdout.write("# dmidecode 3.4\nGetting SMBIOS data from sysfs.\nSMBIOS 3.3.0 present.\n\n")
    sys.stdout.write("\n".join(tables) + "\n")
    return 0


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
    """Return the module's record. Empty sockets are left out; a socket with a module that was not started is reported
    as empty.
    """
    size = f"{dimm.size_mib // 1024} GB" if dimm.seen else "No Module Installed"
    return (
        f"Handle 0x{0x1100 + number:04X}, DMI type 17, 92 bytes\nMemory Device\n\tTotal Width: 72 bits\n"
        f"\tData Width: 64 bits\n\tSize: {size}\n\tForm Factor: DIMM\n\tLocator: {dimm.locator}\n"
        "\tType: DDR5\n\tSpeed: 4800 MT/s\n"
    )


def _processor(number: int, facts: Facts) -> str:
    cores = facts.cores // facts.cpus
    status = "Enabled" if number < facts.working_cpus else "Disabled By BIOS"
    return (
        f"Handle 0x{0x0400 + number:04X}, DMI type 4, 48 bytes\nProcessor Information\n"
        f"\tSocket Designation: CPU{number + 1}\n"
        f"\tType: Central Processor\n\tManufacturer: Intel\n\tStatus: Populated, {status}\n"
        f"\tCore Count: {cores}\n\tCore Enabled: {cores}\n\tThread Count: {2 * cores}\n"
    )
