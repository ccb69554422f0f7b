"""What a command does not ask is not loaded: 0.2 s of the controller's processor time at the start of a check."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.edges.site.ready import write_ready_site

PROGRAM = """
import sys, threading
from pathlib import Path
from clusterctl.edges.site import contents
from clusterctl.operations import check
from clusterctl.operations.adapters import Access
from clusterctl.operations.compose import StepFactory
from clusterctl.operations.context import open_site
context = open_site(Path(sys.argv[1]))
adapters = context.adapters(Access.READ)
suite, _ = check.suite_of(contents.suite(context.site), idle=False)
checker = StepFactory(context, adapters, threading.Event(), read_only=True).node_checker(suite)
loaded = lambda: [name for name in ("redfish", "requests_oauthlib", "clusterctl.edges.ansible") if name in sys.modules]
print(loaded())
adapters.bmcs
print(loaded())
context.journal.close()
"""


def test_a_checker_of_healthy_nodes_loads_no_bmc_no_maas_and_no_ansible(tmp_path: Path) -> None:
    """The adapter to the BMCs is loaded once one is asked."""
    write_ready_site(tmp_path)
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)], capture_output=True, text=True, check=True, timeout=300
    )
    assert ran.stdout.splitlines() == ["[]", "['redfish']"]
