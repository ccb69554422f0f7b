"""`configure --check` in words and as JSON: what was not measured is never clean, many hosts stay readable."""

from __future__ import annotations

from clusterctl.operations.drift import NodeDrift
from clusterctl.ports import PlayOutcome
from clusterctl_cli.render_drift import drift_json, drift_text

SYSCTL, SSHD = "base : Write kernel settings", "ssh_access : Write sshd's settings"


def test_a_hundred_hosts_are_a_line_a_task() -> None:
    """With how many, the first few by name, and the sum; the task of most nodes first."""
    looks = [NodeDrift(f"node{n:03}", (SYSCTL, SSHD) if n <= 12 else (SSHD,) if n <= 20 else ()) for n in range(1, 101)]
    lines = drift_text(looks, {}).splitlines()
    assert lines == [
        f"20 nodes ({', '.join(f'node{n:03}' for n in range(1, 9))} and 12 more): {SSHD} would change",
        f"12 nodes ({', '.join(f'node{n:03}' for n in range(1, 9))} and 4 more): {SYSCTL} would change",
        "100 nodes read: 80 as the site has it, 20 drifted, 0 not measured.",
        "Nothing was changed.",
    ]


def test_what_was_not_reached_is_not_clean() -> None:
    """Nor is one whose check broke off, whatever it printed before, or one that needs a reboot."""
    away = NodeDrift.of(PlayOutcome("n1", ok=False, changed=0, message="timed out", unreachable=True))
    broken = NodeDrift.of(PlayOutcome("n2", ok=False, changed=1, failed_task="T", message="no", changes=(SYSCTL,)))
    reboot = NodeDrift.of(PlayOutcome("n3", ok=True, changed=0, reboot_for=("ofed",), boot_id="b"))
    good = NodeDrift.of(PlayOutcome("n4", ok=True, changed=0))
    assert [look.clean for look in (away, broken, reboot, good)] == [False, False, False, True]
    states = {node["name"]: node["state"] for node in drift_json([away, broken, reboot, good], {})["nodes"]}
    assert states == {"n1": "unmeasured", "n2": "unmeasured", "n3": "drifted", "n4": "clean"}
    text = drift_text([away, broken, reboot, good], {"n5": "it was never configured"})
    assert "1 node (n1): not measured: not reached: timed out" in text
    assert "1 node (n3): ofed needs a reboot" in text
    assert "1 node (n5): not read: it was never configured" in text
    assert "4 nodes read: 1 as the site has it, 1 drifted, 2 not measured." in text


def test_an_empty_pool_is_reported() -> None:
    """An empty pool is not a clean one."""
    assert "no node was read" in drift_text([], {})
