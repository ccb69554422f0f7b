"""The lab's MAAS switches machines through BMCs as MAAS does: it tries again what fails, and no rejected login."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from clusterctl.ports import Deadline, InstallState
from clusterctl_lab.bmc_quirk import BmcQuirk
from tests.edges.maas.kit import Lab, until


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    lab = Lab(tmp_path)
    yield lab
    lab.close()


def test_a_bmc_that_fails_some_requests_is_asked_again(lab):
    """A BMC that answers 503 now and then fails neither a commissioning nor an install."""
    machine = lab.world.machines["node001"]
    moody = replace(machine, bmc=replace(machine.bmc, quirks=frozenset({BmcQuirk.UNAVAILABLE})))
    lab.run(lab.world.replace(moody))
    deadline = Deadline.after(120)
    installer, target = lab.installer(), lab.target()
    for _ in range(2):
        installer.prepare(target, deadline)
        until(installer, target, InstallState.READY)
        installer.start(target, deadline)
        until(installer, target, InstallState.INSTALLED)
        installer.release(target, deadline)
        until(installer, target, InstallState.READY)
