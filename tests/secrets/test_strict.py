"""Nothing in the product turns a check of identity off, and ssh gets this option wherever it gets any."""

from __future__ import annotations

import configparser
import re
import shlex
from pathlib import Path

import pytest

from clusterctl.edges.ansible.workspace import PlayLimits, Workspace
from clusterctl.fleet.errors import UntrustedError
from clusterctl.ports import Deadline
from tests.edges.ansible.support import PINNED, host
from tests.edges.ssh.sshd import SSHD, Sshd
from tests.paths import ROOT
from tests.secrets.kit import UtcClock

ROOMS = ("src", "cli", "burnin", "lab", "playbooks", "roles", "inventory", "scripts", "benchmarks")
KINDS = {".py", ".yml", ".yaml", ".j2", ".cfg", ".sh", ".toml", ".conf", ""}

FORBIDDEN = {
    "paramiko believes unknown hosts": r"AutoAddPolicy|WarningPolicy|set_missing_host_key_policy",
    "ssh believes unknown hosts": r"StrictHostKeyChecking[\"'=: ]+(no|off|accept-new|ask)",
    "ssh forgets hosts": r"UserKnownHostsFile[\"'=: ]+/dev/null",
    "Ansible believes unknown hosts": r"host_key_checking[\"'=: ]+(false|no|0)",
    "TLS is not verified": r"verify\s*=\s*False|_create_unverified_context|validate_certs[\"'=: ]+(false|no)",
    "warnings of that are silenced": r"disable_warnings|InsecureRequestWarning",
    "curl does not verify": r"curl\s+(-\w*k\b|.*--insecure)|--no-check-certificate",
    "apt does not verify": r"allow[-_]unauthenticated|trusted=yes|no-check-gpg|AllowUnauthenticated|trusted:\s*yes",
    "a certificate is not asked for": r"CERT_NONE|check_hostname\s*=\s*False",
}
"""What it means → how it is written, whatever the case."""

PINS = {"src/clusterctl/edges/tls.py", "src/clusterctl/edges/redfish/pins.py"}
"""Where no authority is asked: because a pin decides, or because a certificate is looked at and nothing is sent."""
PINNED_KEYS = {"src/clusterctl/edges/os_images/deployer/http.sh": "curl --insecure --pinnedpubkey "}
"""Where curl holds its peer to one public key instead: the file, and the beginning of each such call."""


def sources() -> list[Path]:
    found = [path for room in ROOMS for path in (ROOT / room).rglob("*") if path.suffix in KINDS and path.is_file()]
    return [path for path in found if "__pycache__" not in path.parts]


@pytest.mark.parametrize("meaning", FORBIDDEN)
def test_no_check_is_turned_off(meaning: str) -> None:
    """Searched for in all code, roles and templates; the places that pin are named."""
    if not (ROOT / "roles").is_dir():
        pytest.skip("no checkout")
    pattern = re.compile(FORBIDDEN[meaning], re.IGNORECASE)
    files = sources()
    assert len(files) > 300
    found = {str(path.relative_to(ROOT)) for path in files if pattern.search(path.read_text(errors="replace"))}
    allowed = {"a certificate is not asked for": PINS, "curl does not verify": set(PINNED_KEYS)}
    assert found == allowed.get(meaning, set())


@pytest.mark.parametrize(("file", "call"), PINNED_KEYS.items())
def test_what_asks_no_authority_is_held_to_a_key(file: str, call: str) -> None:
    """Each call of curl that leaves the certificate out names the key."""
    if not (ROOT / "roles").is_dir():
        pytest.skip("no checkout")
    text = (ROOT / file).read_text()
    assert text.count("--insecure") == text.count(call) == 1


@pytest.mark.parametrize("written", ["StrictHostKeyChecking=no", "stricthostkeychecking: 'accept-new'"])
def test_the_search_finds_what_it_looks_for(written: str) -> None:
    """It is not merely blind."""
    assert re.search(FORBIDDEN["ssh believes unknown hosts"], written, re.IGNORECASE)


def test_a_site_cannot_turn_verification_off() -> None:
    """No field of the site file is called so: `verify: false` does not exist. `checks` are what hosts are held to."""
    from pydantic import TypeAdapter

    from clusterctl.site.settings import SiteSettings

    fields = set(re.findall(r'"(\w+)":', str(TypeAdapter(SiteSettings).json_schema()).replace("'", '"')))
    assert {"ca_file", "tls_fingerprint", "first_use"} <= fields
    assert {name for name in fields if re.search(r"verif|insecure|strict|check", name)} == {"checks"}


def test_the_ssh_options_of_ansible(tmp_path: Path) -> None:
    """Only the pinned keys, only public-key login, nothing of the operator's own configuration or agent."""
    workspace = Workspace.create(tmp_path)
    workspace.fill([host("n1", port=22), host("n2", port=2222)], {}, Path("/roles"), PlayLimits(forks=2))
    config = configparser.RawConfigParser()
    config.read(workspace.root / "ansible.cfg")
    words = shlex.split(config["ssh_connection"]["ssh_args"])
    options = dict(word.split("=", 1) for word in words if "=" in word)
    assert words[:2] == ["-F", "none"]
    assert (
        options.items()
        >= {
            "StrictHostKeyChecking": "yes",
            "UserKnownHostsFile": str(workspace.root / "known_hosts"),
            "GlobalKnownHostsFile": "/dev/null",
            "UpdateHostKeys": "no",
            "PreferredAuthentications": "publickey",
            "IdentitiesOnly": "yes",
            "IdentityAgent": "none",
        }.items()
    )
    assert config["defaults"]["host_key_checking"] == "true"
    assert (workspace.root / "known_hosts").read_text() == f"127.0.0.1 {PINNED}\n[127.0.0.1]:2222 {PINNED}\n"
    assert not re.search(r"password|pass\b|become_pass", workspace.inventory.read_text())


@pytest.mark.skipif(SSHD is None, reason="no sshd")
def test_a_host_with_another_key_hears_no_login(tmp_path: Path) -> None:
    """The key exchange ends it: no user name, no signature is sent."""
    from clusterctl.edges.ssh import ParamikoShell
    from clusterctl.fleet.finding import Origin

    with Sshd(tmp_path) as sshd, ParamikoShell(UtcClock(), Origin.SIMULATED) as shell:
        with pytest.raises(UntrustedError) as caught:
            shell.run(sshd.address(host_key="stranger"), ["true"], b"", Deadline.after(60))
        assert caught.value.remedy
        assert sshd.process is not None
        sshd.process.terminate()
        assert sshd.process.stderr is not None
        output = sshd.process.stderr.read().decode()
    assert "Accepted" not in output
    assert "preauth" in output
