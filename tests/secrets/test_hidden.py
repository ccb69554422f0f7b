"""Objects that hold secrets, and errors about secrets, do not show them: not in repr, str, pickle or a traceback."""

from __future__ import annotations

import logging
import os
import pickle
import resource
import stat
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clusterctl.edges.ansible.controller_transport.playbooks import ControllerPlaybooks
from clusterctl.edges.ansible.workspace import PlayLimits, RunSettings
from clusterctl.edges.hostkeys import HostKeys
from clusterctl.edges.maas import MaasInstaller, MaasSettings
from clusterctl.edges.redaction import KNOWN, Redaction
from clusterctl.edges.site import SiteNode, load_site
from clusterctl.edges.site.roles import write_site
from clusterctl.edges.site.secrets import private_text, resolve
from clusterctl.fleet.errors import ClusterctlError
from clusterctl.fleet.finding import Origin
from clusterctl.fleet.node import Mac, Serial
from clusterctl.ports import BmcAddress, InstallTarget
from clusterctl.site.fields import SecretRef
from clusterctl_lab.site_files import Keys
from tests.paths import ROOT
from tests.secrets.kit import UtcClock

SECRET = "s3cr3t-value-of-test"


def target() -> InstallTarget:
    bmc = BmcAddress("192.0.2.1", "root", SECRET)
    return InstallTarget("n1", Serial("S"), (Mac("aa"),), bmc, Serial("D"), "key", "ops", SECRET)


def playbooks() -> ControllerPlaybooks:
    folder = Path("/nonexistent")
    return ControllerPlaybooks(
        RunSettings(
            work_dir=folder,
            playbooks_dir=folder,
            roles_dir=folder,
            limits=PlayLimits(1),
            origin=Origin.SIMULATED,
            clock=UtcClock(),
            secrets={"door": SECRET},
        ),
    )


def settings() -> MaasSettings:
    return MaasSettings("https://maas.example/MAAS", f"a:b:{SECRET}", "jammy")


HOLDERS: dict[str, Callable[[], Any]] = {
    "a BMC's address": lambda: target().bmc,
    "an install target": target,
    "MAAS's settings": settings,
    "MAAS": lambda: MaasInstaller(settings(), UtcClock()),
    "a line of the sheet": lambda: SiteNode("f:2", "n1", "192.0.2.1", password=SECRET),
    "a node of the site": lambda: SiteNode("f:2", "n1", "192.0.2.1", password=SECRET),
    "Ansible": playbooks,
    "a redaction": lambda: Redaction([SECRET]),
    "a lab's keys": lambda: Keys(SECRET, f"a:b:{SECRET}", SECRET, "ssh-ed25519 AAAA"),
}


@pytest.mark.parametrize("holder", HOLDERS)
def test_an_object_with_a_secret_does_not_show_it(holder: str) -> None:
    """In `repr`, `str`, f-strings, and as what a debugger or crash reporter would show of a frame's variables."""
    thing = HOLDERS[holder]()
    with pytest.raises(RuntimeError) as crash:
        crash_with(thing)
    frames = traceback.TracebackException.from_exception(crash.value, capture_locals=True).format()
    assert SECRET not in f"{thing} {thing!r} {[thing]} {''.join(frames)}"


def crash_with(thing: Any) -> None:
    raise RuntimeError(type(thing).__name__)


@pytest.mark.parametrize("holder", sorted(HOLDERS.keys() - {"Ansible", "a lab's keys"}))
def test_an_object_with_a_secret_is_not_pickled(holder: str) -> None:
    """Nothing of ours is sent or written that way; it cannot happen by mistake."""
    with pytest.raises(TypeError) as caught:
        pickle.dumps(HOLDERS[holder]())
    assert SECRET not in str(caught.value)


def written(folder: Path, text: str, mode: int = 0o600) -> Path:
    file = folder / "secret"
    file.write_text(text)
    file.chmod(mode)
    return file


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o666])
def test_a_secret_that_others_may_read_is_refused(tmp_path: Path, mode: int) -> None:
    """The error names the file and the command that mends it, not what is in it."""
    file = written(tmp_path, SECRET, mode)
    with pytest.raises(ClusterctlError, match="chmod 600") as caught:
        private_text(file, "site.yml bmc.password")
    assert SECRET not in str(caught.value)


def test_what_was_read_is_known_to_the_log(tmp_path: Path) -> None:
    """From the moment that a secret is read, no log line or last word of this process repeats it."""
    file = written(tmp_path, SECRET + "-from-file\n")
    assert resolve(SecretRef(file=file.name), tmp_path, "field") == SECRET + "-from-file"
    assert KNOWN(f"password={SECRET}-from-file") == "password=(secret)"


def test_a_sheets_passwords_are_known_to_the_log(tmp_path: Path) -> None:
    """Factory passwords stand in the sheet; loading the site is reading them. A sheet that others may read is refused."""
    folder = tmp_path / "site"
    write_site(folder)
    sheet = folder / "bmcs.csv"
    sheet.write_text(f"name,bmc_address,bmc_password\nn1,10.0.0.1,{SECRET}-of-sheet\n")
    with pytest.raises(ClusterctlError, match="chmod 600"):
        load_site(folder)
    sheet.chmod(0o600)
    assert SECRET not in repr(load_site(folder))
    assert KNOWN(f"{SECRET}-of-sheet") == "(secret)"


WRONG = {
    "in the site file": ("password: {env: CLUSTERCTL_BMC_PASSWORD}", f"password: {SECRET}"),
    "among others": ("password: {env: CLUSTERCTL_BMC_PASSWORD}", f"password: [{SECRET}]"),
    "as a wrong kind": ("password: {env: CLUSTERCTL_BMC_PASSWORD}", f"password: {{plain: {SECRET}}}"),
    "as MAAS's key": ("api_key: {file: secrets/maas-api-key}", f"api_key: {SECRET}"),
    "as a role's secret": ("configure:\n", f"configure:\n  secrets: {{door: {SECRET}}}\n"),
}


@pytest.mark.parametrize("place", WRONG)
def test_a_secret_in_the_wrong_place_is_not_repeated(tmp_path: Path, place: str) -> None:
    """The error for a secret in site.yml has the place where it belongs."""
    folder = tmp_path / "site"
    write_site(folder)
    old, new = WRONG[place]
    text = (folder / "site.yml").read_text()
    assert old in text
    (folder / "site.yml").write_text(text.replace(old, new))
    with pytest.raises(ClusterctlError) as caught:
        load_site(folder)
    assert SECRET not in f"{caught.value} {caught.value!r} {caught.value.__cause__!r}"


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_our_secret_files_are_private_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    """Host keys, pins, a new site's folder for secrets, the state folder and the journal."""
    from clusterctl.edges.disk import write_once
    from clusterctl.operations.context import open_site
    from clusterctl.operations.site_facts import state_dir

    before = os.umask(umask)
    try:
        write_site(tmp_path / "site")
        context = open_site(tmp_path / "site")
        context.journal.close()
        state = state_dir(context.site)
        HostKeys(state / "host_keys").get("n1")
        write_once(state / "bmc_pins/10.0.0.1", b"pin")
    finally:
        os.umask(before)
    private = [tmp_path / "site/secrets", state, *state.rglob("*")]
    assert {"journal.db", "n1", "10.0.0.1"} <= {path.name for path in private}
    assert not [path for path in private if stat.S_IMODE(path.stat().st_mode) & 0o077]


def test_log_lines_and_their_tracebacks_are_discreet() -> None:
    """A known secret that is logged by mistake, or in an exception's text, is logged as a mask."""
    from clusterctl.operations.run_log import RedactingFormatter

    KNOWN.add([SECRET + "-logged"])
    error = ValueError(f"bad value {SECRET}-logged")
    record = logging.LogRecord("x", logging.ERROR, "f", 1, "sent %r", (SECRET + "-logged",), (ValueError, error, None))
    line = RedactingFormatter("%(message)s").format(record)
    assert "sent '(secret)'" in line
    assert "ValueError: bad value (secret)" in line
    assert SECRET not in line


CRASH = """
import sys, threading
from clusterctl_cli.main import harden
from clusterctl.edges.redaction import KNOWN
password = sys.stdin.read()
KNOWN.add([password])
harden()
def fail():
    raise RuntimeError(f"cannot use {password}")
thread = threading.Thread(target=fail)
thread.start()
thread.join()
fail()
"""


def test_a_crash_shows_no_secret() -> None:
    """An uncaught error, in any thread, is logged with files and lines, but without the secret in its text."""
    argv = [sys.executable, "-c", CRASH]
    crash = subprocess.run(argv, input=SECRET, capture_output=True, text=True, cwd=ROOT, check=False)
    assert crash.returncode == 1
    assert crash.stderr.count("RuntimeError: cannot use (secret)") == 2
    assert SECRET not in crash.stderr


def test_no_core_is_dumped() -> None:
    """A core would hold every secret, in a file or in a pipe; children inherit the limit, at which pipes get none, too."""
    ask = "import resource; from clusterctl_cli.main import harden; harden(); import ctypes, subprocess, sys; "
    ask += "print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0), flush=True); "  # PR_GET_DUMPABLE
    ask += "print(subprocess.run(['cat', '/proc/self/limits'], capture_output=True, text=True).stdout)"
    before = resource.getrlimit(resource.RLIMIT_CORE)
    asked = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, cwd=ROOT, check=True)
    dumpable, *limits = asked.stdout.splitlines()
    expected = "0" if before[1] == 0 else "1"
    assert dumpable == "0"
    assert next(line.split()[4:6] for line in limits if line.startswith("Max core file")) == [expected, expected]
    assert resource.getrlimit(resource.RLIMIT_CORE) == before
