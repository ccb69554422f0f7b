"""rdma-stack: the RDMA drivers and libraries of this host: those of the distribution, as the role ofed installs them.

Stands in for a burn-in program that would read the controller's own kernel and packages. Versions are those of Ubuntu
24.04; an OFED that is left in part prints what NVIDIA's documents show for `ofed_info -s`.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence

from clusterctl_lab.emulators.host_tools.host.facts import load

RELEASE = "MLNX_OFED_LINUX-24.10-2.1.8.0:"
SOURCE = "1C2D4F8E6A9B3C5D7E0F1A2"


def main(argv: Sequence[str]) -> int:
    if argv:
        sys.stderr.write("the lab's rdma-stack takes no arguments\n")
        return 2
    facts = load()
    requirements = json.loads(os.environ.get("CLUSTERCTL_REQUIREMENTS", "{}"))
    document = {
        "wanted": requirements.get("ofed") or "",
        "ofed": RELEASE if facts.ofed_mixed else None,
        "module": {"version": None, "source": SOURCE, "next_source": SOURCE},
        "packages": {"ibverbs-providers": "50.0-2build2", "rdma-core": "50.0-2build2"},
    }
    json.dump(document, sys.stdout)
    return 0
