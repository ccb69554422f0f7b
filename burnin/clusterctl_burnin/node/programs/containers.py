"""Runs on a node, as the built-in probe `containers`: how the containers are that the site wants on every host.

Standard library only, Python 3.9. Docker is asked only where the site lists some.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any, Callable

from clusterctl_burnin.node.processes import Result
from clusterctl_burnin.node.processes import ask as ask_tool

Ask = Callable[..., Result]
LIST = ("docker", "ps", "--all", "--no-trunc", "--format", "{{json .}}")


def main(requirements: dict[str, Any], ask: Ask = ask_tool) -> int:
    """Print `{"wanted", "containers": [{name, state, status}]}`. Returns Docker's exit code."""
    wanted, found = requirements.get("containers") or [], []
    if wanted:
        code, output, stderr = ask(*LIST)
        if code != 0:
            sys.stderr.write(stderr)
            return code
        listed = [json.loads(line) for line in output.splitlines() if line.strip()]
        found = [{"name": c["Names"], "state": c["State"], "status": c["Status"]} for c in listed]
    json.dump({"wanted": list(wanted), "containers": [one for one in found if one["name"] in wanted]}, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main(json.loads(os.environ.get("CLUSTERCTL_REQUIREMENTS", "{}"))))
