"""Installers to run the shell in."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.edges.pxe_answers.installers import Installer, installer

SHELLS = ("dash", "busybox")
TRANSPORTS = ("curl", "wget")


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=TRANSPORTS)
def machine(request: pytest.FixtureRequest, shell: str, tmp_path: Path) -> Installer:
    """Every shell with every HTTP client."""
    return installer(tmp_path, shell, request.param)


@pytest.fixture
def bookworm(tmp_path: Path) -> Installer:
    """As debian-installer is."""
    return installer(tmp_path, "busybox", "wget")


@pytest.fixture
def live_server(tmp_path: Path) -> Installer:
    """As Ubuntu's live server is."""
    return installer(tmp_path, "dash", "curl")
