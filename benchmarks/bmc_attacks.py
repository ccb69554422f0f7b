"""Each attack of tests/redfish_trees/attacks.py on each kind of resource of each tree in tests/redfish_trees.

    python -m benchmarks.bmc_attacks [--share N] [CASE …]

Prints what must not be: an uncaught error, a FAIL of another part, a pass of what was not read, silence. With --share N
one of N attacks is tried, the same ones each time. Ends with status 1 where there is anything.
"""

from __future__ import annotations

import argparse
import re
import sys
import zlib
from collections import Counter

from tests.redfish_trees.attacks import HARMFUL, HARMLESS, Attack, Machine, violations
from tests.redfish_trees.load import CASES, load_truth


def tried(machine: Machine, attack: Attack, path: str, *, harmless: bool) -> list[str] | None:
    """Return what must not be; None where the attack changes nothing there."""
    wire = attack(machine.tree, path)
    if wire is None:
        return None
    try:
        return violations(machine, machine.discover({**machine.wire, **wire}), harmless=harmless)
    except Exception as error:  # noqa: BLE001 - an uncaught error is a result
        return [f"uncaught {type(error).__name__}: {str(error)[:100]}"]


def main() -> None:
    """Try all, or those of the cases that are named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", nargs="*")
    parser.add_argument("--share", type=int, default=1)
    given = parser.parse_args()
    count, wrong = 0, Counter[tuple[str, str]]()
    for name in given.case or [name for name in CASES if "error" not in load_truth(name)["identity"]]:
        machine = Machine(name)
        for title, attack in {**HARMLESS, **HARMFUL}.items():
            for path in machine.paths():
                if zlib.crc32(f"{title}{path}".encode()) % given.share:
                    continue
                found = tried(machine, attack, path, harmless=title in HARMLESS)
                count += found is not None
                for one in found or ():
                    key = title, re.sub(r"\d+", "#", one)[:110]
                    if not wrong[key]:
                        print(f"{name}: {title}: {path}: {one[:200]}", flush=True)
                    wrong[key] += 1
        print(f"{name}: {count} attacks so far, {sum(wrong.values())} wrong", flush=True)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
