"""Installs of virtual metal that go wrong or are many: longer than the half hour allows."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.tests.lab_kit import eventually
from tests.metal.drives_kit import digest, drives
from tests.metal.install_kit import INSTALL_S, TO_INSTALL, MetalSite, metal_site
from tests.metal.metal_kit import needs_metal, reset, virtual_machines

pytestmark = [pytest.mark.lab, pytest.mark.soak, needs_metal, pytest.mark.timeout(3 * INSTALL_S)]
NODE, ROOT = "node001", "BOSS0001"
HALF_WAY = 100_000_000
"""Bytes on the root disk: the image is being unpacked."""


def of(metal: MetalSite, node: str, serial: str) -> Path:
    return drives(metal.lab, node)[serial]


def test_power_cut_half_way_is_finished_by_the_next_run(tmp_path: Path) -> None:
    """The BMC takes the power while the disk is written, and the run is killed: the next run begins that install again
    and finishes it; data drives stay as they were.
    """
    with metal_site("metalc", "10.173.0.0/16", tmp_path, 1) as metal:
        settings = metal.lab.site / "site.yml"
        settings.write_text(settings.read_text().replace("silence_minutes: 10", "silence_minutes: 4"))
        before = metal.data()
        root = of(metal, NODE, ROOT)
        with metal.site.start(*TO_INSTALL) as run:
            written = eventually(lambda: root.stat().st_blocks * 512 > HALF_WAY or run.ended, INSTALL_S)
            assert written, metal.consoles()
            assert not run.ended, run.stderr
            assert reset(metal.lab, NODE, "ForceOff") == 204
            assert eventually(lambda: not virtual_machines(metal.lab))
            run.kill()
        again = metal.install()
        assert again.wait() == 0, f"{again.stdout}\n{again.stderr}\n{metal.consoles()}"
        assert metal.ssh(NODE, "hostname") == NODE
        assert metal.data() == before


def test_a_machine_with_another_serial_is_not_written_to(tmp_path: Path) -> None:
    """Its firmware reports another serial than its BMC (a swapped board): refused with both serials named before any
    installer is loaded, and nothing is written to any drive.
    """
    with metal_site("metalw", "10.173.0.0/16", tmp_path, 1, "--fault", "wrong-serial:node001") as metal:
        before = {serial: digest(drive) for serial, drive in drives(metal.lab, NODE).items()}
        run = metal.install()
        assert run.wait() == 1, f"{run.stdout}\n{run.stderr}\n{metal.consoles()}"
        assert {serial: digest(drive) for serial, drive in drives(metal.lab, NODE).items()} == before
        assert "is not installed: the machine with" in metal.consoles()
        why = metal.site.run("why", NODE).stdout
        assert "XXLAB0001" in why
        assert "LAB0001" in why.replace("XXLAB0001", "")


def test_three_at_once(tmp_path: Path) -> None:
    """Three machines boot, ask and write at the same time; each becomes itself."""
    nodes = ("node001", "node002", "node003")
    with metal_site("metalt", "10.173.0.0/16", tmp_path, len(nodes)) as metal:
        before = metal.data()
        run = metal.install()
        assert run.wait() == 0, f"{run.stdout}\n{run.stderr}\n{metal.consoles()}"
        assert {node: metal.ssh(node, "hostname") for node in nodes} == {node: node for node in nodes}
        assert metal.data() == before
