"""iPXE's scripts, as they are written down."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from clusterctl.edges.pxe import scripts
from clusterctl.edges.pxe.attempt import BootFiles
from tests.edges.pxe.kit import MAC

BASE = "http://192.0.2.1:8080"
BOOT = BootFiles(
    "deployer/d1/vmlinuz", "deployer/d1/initrd", "clusterctl.token=T BOOTIF={bootif} interface={mac} quiet"
)
SCRIPTS = {
    "entry": scripts.entry(BASE),
    "installer": scripts.installer(BASE, "node001", BOOT, MAC),
    "nothing": scripts.nothing("node001 is not installed: ${hostname} || reboot; && it's\nover"),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script(name: str) -> None:
    golden = Path(__file__).parent / "data" / f"{name}.ipxe"
    if os.environ.get("WRITE_GOLDENS"):
        golden.write_text(SCRIPTS[name])
    assert SCRIPTS[name] == golden.read_text()


def test_foreign_words_run_nothing() -> None:
    """A text of a machine or a site file is shown, and neither expanded nor taken for a command."""
    line = SCRIPTS["nothing"].splitlines()[1]
    assert not set("${}|&;'\"`\\") & set(line)


def test_a_foreign_serial_adds_no_command() -> None:
    script = scripts.onward("http://192.0.2.1:8080", "0" * 64, MAC, "A B || shell\nshell ${x}")
    serial = "A%20B%20%7C%7C%20shell%0Ashell%20%24%7Bx%7D"
    url = f"http://192.0.2.1:8080/start/{'0' * 64}.ipxe?mac={MAC}&serial={serial}"
    assert script == f"#!ipxe\nchain --autofree {url}\n"
