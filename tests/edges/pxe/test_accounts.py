"""As which users the services run, and what the operator reads about it."""

from __future__ import annotations

import os
import pwd
import re
from pathlib import Path

import pytest

from clusterctl.edges.pxe.accounts import DHCP_USER, HTTP_USER, SHARED, InstallAccount, account, judge, require_readable
from clusterctl.fleet.diagnosis import Health
from clusterctl.fleet.errors import EnvironmentBrokenError

HTTP, DHCP, UNPRIVILEGED = (
    InstallAccount(HTTP_USER, 990, 990),
    InstallAccount(DHCP_USER, 991, 991),
    InstallAccount(SHARED, 65534, 65534),
)


@pytest.mark.parametrize(
    ("http", "dhcp", "health", "found", "remedy"),
    [
        (HTTP, DHCP, Health.OK, "the HTTP service runs as clusterctl-pxe, dnsmasq as dnsmasq", ""),
        (UNPRIVILEGED, DHCP, Health.WARN, f"the HTTP service runs as {SHARED}", "adduser --system .* clusterctl-pxe"),
        (HTTP, UNPRIVILEGED, Health.WARN, f"dnsmasq as {SHARED}", "adduser --system .* dnsmasq"),
        (None, None, Health.WARN, "run as ops, the user of clusterctl", "run clusterctl as root"),
    ],
)
def test_each_case_has_its_diagnosis(
    http: InstallAccount | None, dhcp: InstallAccount | None, health: Health, found: str, remedy: str
) -> None:
    judged = judge(http, dhcp, "ops")
    assert judged.health is health
    assert found in judged.found
    assert re.search(remedy, judged.remedy) if remedy else not judged.remedy


def test_a_missing_account_is_replaced_by_the_shared_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """As root; another user can give none. An account of user or group 0 is none."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    shared = pwd.getpwnam(SHARED)
    assert account("no-such-user") == InstallAccount(SHARED, shared.pw_uid, shared.pw_gid)
    assert account("root") == account("no-such-user")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert account(SHARED) is None


def test_what_the_account_may_not_read_is_named(tmp_path: Path) -> None:
    """A kernel that was copied with mode 0600, a closed folder; links and unfinished work are no matter."""
    (tmp_path / "images" / "x").mkdir(parents=True)
    (tmp_path / ".unfinished").mkdir(mode=0o700)
    (tmp_path / ".unfinished" / "part").touch(mode=0o600)
    (tmp_path / "current").symlink_to("images")
    kernel = tmp_path / "vmlinuz"
    kernel.touch(mode=0o600)
    tmp_path.chmod(0o755)
    with pytest.raises(EnvironmentBrokenError, match=r"vmlinuz: user clusterctl-pxe.*chmod -R o\+rX"):
        require_readable(tmp_path, HTTP)
    kernel.chmod(0o644)
    require_readable(tmp_path, HTTP)
    (tmp_path / "images").chmod(0o750)
    with pytest.raises(EnvironmentBrokenError, match="images: user clusterctl-pxe"):
        require_readable(tmp_path, HTTP)
    require_readable(tmp_path, InstallAccount(HTTP_USER, 990, (tmp_path / "images").stat().st_gid))
    require_readable(tmp_path, None)
