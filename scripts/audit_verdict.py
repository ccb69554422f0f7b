"""Reads what `pip-audit --format json` prints: exit code 1 for a known weakness, 3 for a package not compared."""

from __future__ import annotations

import json
import sys

WEAK, NOT_COMPARED = 1, 3


def main(text: str) -> int:
    """Print each weakness, and how many packages were compared."""
    try:
        packages = json.loads(text)["dependencies"]
    except (ValueError, KeyError, TypeError):
        print("pip-audit printed no result: no package was compared", file=sys.stderr)
        return NOT_COMPARED
    weak = [(one, found) for one in packages for found in one.get("vulns", [])]
    skipped = [one["name"] for one in packages if "skip_reason" in one]
    for package, found in weak:
        fixed = ", ".join(found["fix_versions"]) or "no version yet"
        print(f"{package['name']} {package['version']}: {found['id']}, corrected in {fixed}")
    print(f"advisories: {len(packages) - len(skipped)} of {len(packages)} packages compared, {len(weak)} weaknesses")
    if weak:
        return WEAK
    return NOT_COMPARED if skipped or not packages else 0


if __name__ == "__main__":
    sys.exit(main(sys.stdin.read()))
