"""dnsmasq as our child: its configuration tested before use, itself gone whenever we are."""

from __future__ import annotations

import collections
import logging
import os
import shutil
import signal
import subprocess
import threading
from pathlib import Path

from clusterctl.edges import processes
from clusterctl.fleet.errors import EnvironmentBrokenError
from clusterctl.ports import Deadline

PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
_ENVIRONMENT = {"PATH": PATH, "LC_ALL": "C"}
START_S = 60.0
STOP_S = 10.0
LAST_LINES = 40
_STARTED = "started, "
_BAD_SIGNS = ("cannot", "failed to", "unknown", "not accessible", "inaccessible", "in use")
"""Of its log's lines that say why it ends (src/log.c, die())."""
_LOG = logging.getLogger(__name__)


class Dnsmasq:
    """Runs until `close`. Raises `EnvironmentBrokenError` with its own last words where it does not start.

    One thread starts it and hears it for as long as it lives: the kernel kills it (PR_SET_PDEATHSIG) when the thread
    that started it ends, which is when this process does.
    """

    def __init__(self, configuration: Path) -> None:
        self._configuration = configuration
        self._lines: collections.deque[str] = collections.deque(maxlen=LAST_LINES)
        self._process: subprocess.Popen[bytes] | None = None
        self._ready = threading.Event()
        test(configuration)
        self._thread = threading.Thread(target=self._live, name="pxe-dnsmasq", daemon=True)
        self._thread.start()
        self._ready.wait(START_S)
        if not self.alive or not self._has_started:
            self.close()
            raise self.trouble("dnsmasq does not start")

    @property
    def pid(self) -> int:
        return self._process.pid if self._process is not None else 0

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def _has_started(self) -> bool:
        return any(_STARTED in line for line in self._lines)

    def trouble(self, what: str) -> EnvironmentBrokenError:
        """`what`, and dnsmasq's last words."""
        words = [line.partition(": ")[2] for line in self._lines if any(sign in line.lower() for sign in _BAD_SIGNS)]
        said = words[0] if words else (self._lines[-1] if self._lines else "it said nothing")
        return EnvironmentBrokenError(
            f"{what}: {said}",
            where=str(self._configuration),
            remedy="end what else serves DHCP or TFTP on that interface, then run it again",
        )

    def close(self) -> None:
        if self._process is not None and self._process.poll() is None:
            processes.end(self._process, STOP_S, terminate=True)
        self._thread.join(STOP_S)

    def _live(self) -> None:
        try:
            argv = processes.killed_with_us(tool(), "--keep-in-foreground", f"--conf-file={self._configuration}")
            self._process = processes.start(argv, _ENVIRONMENT, missing="apt-get install util-linux", errors=True)
            for line in self._process.stderr or ():
                self._lines.append(line.decode(errors="replace").strip())
                _LOG.debug("%s", self._lines[-1])
                if self._has_started:
                    self._ready.set()
            self._process.wait()
        except EnvironmentBrokenError as error:
            self._lines.append(str(error))
        finally:
            self._ready.set()


def tool() -> str:
    """Where dnsmasq is. Raises `EnvironmentBrokenError` with the package to install."""
    found = shutil.which("dnsmasq", path=PATH)
    if found is None:
        raise EnvironmentBrokenError("dnsmasq is missing", where="dnsmasq", remedy="apt-get install dnsmasq-base")
    return found


def test(configuration: Path) -> None:
    """`dnsmasq --test`: raises `EnvironmentBrokenError` in its words where it does not understand the file."""
    argv = (tool(), "--test", f"--conf-file={configuration}")
    ran = processes.run(argv, Deadline.after(START_S), processes.Surroundings(variables=_ENVIRONMENT))
    if ran.exit_status != 0:
        raise EnvironmentBrokenError(
            ran.stderr.strip().removeprefix("dnsmasq: "),
            where=str(configuration),
            remedy="correct provisioning in site.yml: interface, address, gateway, nameservers",
        )


def reread(pid: int, configuration: Path) -> None:
    """Have the dnsmasq of that configuration read its hosts again (SIGHUP); nothing where it is gone."""
    try:
        if str(configuration).encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
            os.kill(pid, signal.SIGHUP)
    except (OSError, ValueError):
        return
