"""Judges a rehearsal: exit code 0 exactly when the broken machines, and only they, are in quarantine.

    clusterctl nodes --json | python scripts/rehearse_verdict.py --machines 8 --broken node003 node005

Every other machine must be gold, none may be lacking, and each quarantine must name its cause and a remedy.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any


def complaints(nodes: Sequence[Mapping[str, Any]], machines: int, broken: set[str]) -> Iterator[str]:
    """What is not as it must be, one line each; nothing when the rehearsal went well."""
    names = {node["name"] for node in nodes}
    if len(names) != machines:
        yield f"{len(names)} nodes are known, {machines} were rehearsed with"
    for name in sorted(broken - names):
        yield f"{name}: was broken on purpose and is not even known"
    for node in nodes:
        expected = "quarantined" if node["name"] in broken else "gold"
        if node["stage"] != expected:
            yield f"{node['name']}: is {node['stage']} ({node['cause'] or 'no cause given'}), should be {expected}"
        elif expected == "quarantined" and not (node["cause"] and node["remedy"]):
            yield f"{node['name']}: is in quarantine without a cause or a remedy"


def main(argv: Sequence[str]) -> int:
    """Read the fleet from standard input, print the verdict, return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--machines", type=int, required=True)
    parser.add_argument("--broken", nargs="+", required=True, metavar="NODE")
    arguments = parser.parse_args(argv)
    found = list(complaints(json.load(sys.stdin)["nodes"], arguments.machines, set(arguments.broken)))
    for line in found:
        print(line)
    sound = arguments.machines - len(arguments.broken)
    print("the rehearsal FAILED" if found else f"as it should be: {sound} gold, {len(arguments.broken)} in quarantine")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
