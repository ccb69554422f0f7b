"""Virtual machines all the way: from power-off to gold, with Ansible, burn-in and faults in guests that boot by themselves.

Longer than the half hour allows, and only for a controller whose cores are free: see "Measured" in docs/how-to/lab.md.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.site_kit import Controller
from tests.metal.install_kit import GOLD_S, NODES, MetalSite, metal_site
from tests.metal.metal_kit import needs_metal

pytestmark = [pytest.mark.lab, pytest.mark.soak, needs_metal, pytest.mark.timeout(GOLD_S + 900)]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[MetalSite, Controller]]:
    """One bootstrap of two machines, to the end."""
    with metal_site("metalg", "10.179.0.0/16", tmp_path_factory.mktemp("gold"), len(NODES)) as metal:
        yield metal, metal.bootstrap()


def test_both_machines_are_gold(run: tuple[MetalSite, Controller]) -> None:
    """Exit code 0, and no finding that keeps anyone from training."""
    metal, controller = run
    assert controller.wait() == 0, f"{controller.stdout}\n{controller.stderr}\n{metal.consoles()}"
    assert metal.site.stages() == dict.fromkeys(NODES, "gold")


@pytest.mark.parametrize("node", NODES)
def test_a_guest_was_really_configured(run: tuple[MetalSite, Controller], node: str) -> None:
    """Its own kernel has the settings, its own systemd runs the exporter, and the driver's package is there."""
    metal, _ = run
    assert metal.ssh(node, "cat", "/proc/sys/kernel/numa_balancing") == "0"
    assert metal.ssh(node, "systemctl", "is-active", "prometheus-node-exporter") == "active"
    assert metal.ssh(node, "cat", "/proc/swaps").splitlines()[1:] == []
    assert len(metal.ssh(node, "sudo", "nvidia-smi", "-L").splitlines()) == 8


def test_a_gold_machine_that_loses_a_gpu_shows_it(run: tuple[MetalSite, Controller]) -> None:
    """In the running guest, through the same tool that the burn-in asks."""
    metal, _ = run
    metal.lab("inject", "missing-gpu", NODES[0])
    assert len(metal.ssh(NODES[0], "sudo", "nvidia-smi", "-L").splitlines()) == 7
