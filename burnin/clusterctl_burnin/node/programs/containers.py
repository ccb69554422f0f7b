"""Runs on a node, as the built-in probe `containers`: how the containers are that the site wants on every host.

Standard library only, Python 3.9. Docker is asked only where the site lists some.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any, Callable, Tuple

Ask = Callable[..., Tuple[int, str, str]]  # evaluated on Python 3.9
LIST = ("docker", "ps", "--all", "--no-trunc", "--format", "{{json .}}")


def run(*argv: str) -> tuple[int, str, str]:
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, check=False, text=True)
    except OSError as error:
        return 127, "", f"{argv[0]}: {error.strerror}"
    return done.returncode, done.stdout, done.stderr


def main(requirements: dict[str, Any], ask: Ask = run) -> int:
    """Print `{"wanted", "containers": [{name, state, status}]}`. Returns Docker's exit code."""
    wanted, found = requirements.get("containers") or [], []
    if wanted:
        code, said, complaint = ask(*LIST)
        if code != 0:
            sys.stderr.write(complaint)
            return code
        listed = [json.loads(line) for line in said.splitlines() if line.strip()]
        found = [{"name": c["Names"], "state": c["State"], "status": c["Status"]} for c in listed]
    json.dump({"wanted": list(wanted), "containers": [one for one in found if one["name"] in wanted]}, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main(json.loads(os.environ.get("CLUSTERCTL_REQUIREMENTS", "{}"))))
