"""Runs on a node, as the built-in probe `nccl-init COUNT SECONDS ARGV…`: starts a collective so many times.

Standard library only, Python 3.9. ARGV is mpirun with a short all-reduce over the node's GPUs: each start makes NCCL's
communicators and destroys them. It ends at the first start that fails, or that takes more than SECONDS.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any, Dict, List, Sequence

from clusterctl_burnin.node.processes import adopt_orphans, kill_descendants, run

OUTPUT = 4096  # characters of the output of a start that failed


def start(argv: Sequence[str], limit: float) -> Dict[str, Any]:
    """Start the program once; return its seconds, exit code (None where it did not end in time) and output."""
    began = time.monotonic()
    ended = run(argv, began + limit, session=True)
    kill_descendants()
    output = (ended.stdout + ended.stderr)[-OUTPUT:]
    return {"seconds": round(time.monotonic() - began, 3), "code": ended.code, "output": output}


def main(argv: List[str]) -> int:
    """Print the document; return 127 where the program could not be started at all."""
    count, limit, program = int(argv[0]), float(argv[1]), argv[2:]
    adopt_orphans()
    seconds: List[float] = []
    failed = None
    for _ in range(count):
        try:
            one = start(program, limit)
        except OSError as error:
            sys.stderr.write(f"{program[0]}: {error.strerror}\n")
            return 127
        if one["code"] != 0:
            failed = one
            break
        seconds.append(one["seconds"])
    json.dump({"asked": count, "seconds": seconds, "failed": failed}, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
