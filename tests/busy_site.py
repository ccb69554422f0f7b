"""A site with one machine whose BMC is busy: what acts on it works for minutes. For tests of detached runs."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from clusterctl.fleet.event import NewEvent, Payload, Stream
from clusterctl.fleet.node import Step
from clusterctl.operations import detached, runs
from clusterctl.operations.bootstrap import RunRequest
from clusterctl.operations.context import Invocation, SiteContext, open_site
from clusterctl.operations.runs import RunRecord, RunState
from lab.tests.lab_kit import eventually
from tests.edges.site.ready import write_ready_site
from tests.ports import reserve_port

PATIENCE_S = 600.0
SHEET = "name,bmc_address,serial,rack,unit\nn1,127.0.0.1,S1,A01,4\n"
DISCOVER = RunRequest(steps=(Step.DISCOVER,))


class BusyBmc(BaseHTTPRequestHandler):
    """Answers each request with `503`: a discover waits for it, for minutes."""

    def answer(self) -> None:
        self.send_response(503)
        self.send_header("Retry-After", "60")
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_POST = answer  # noqa: N815 — names of http.server

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@dataclass
class Place:
    """A site with one machine whose BMC is busy. Runs that a test leaves behind are killed."""

    folder: Path

    def open(self, actor: str = "ann") -> SiteContext:
        return open_site(self.folder, Invocation(actor, "discover"))

    def runs(self) -> tuple[RunRecord, ...]:
        context = self.open()
        with closing(context.journal):
            return runs.read(context)

    def find(self, name: str = "") -> RunRecord:
        context = self.open()
        with closing(context.journal):
            return runs.find(context, name)

    def order(self, approved: str = "") -> RunRecord:
        context = self.open()
        with closing(context.journal):
            return detached.order(context, DISCOVER, detached.Origin(command="discover", approved=approved, key="k1"))

    def until(self, name: str, state: RunState) -> RunRecord:
        assert eventually(lambda: self.find(name).state is state, PATIENCE_S), self.find(name)
        return self.find(name)

    def works(self, name: str) -> bool:
        """Whether the run has begun its step on the node."""
        context = self.open()
        with closing(context.journal):
            return bool(runs.progress(context, runs.find(context, name)))

    def write(self, name: str, *payloads: Payload) -> None:
        """Write events of a run, as some process would have."""
        context = self.open()
        with closing(context.journal):
            context.journal.append([NewEvent(Stream.RUN, name, payload) for payload in payloads])

    def end(self) -> None:
        """Kill the runs that a test leaves behind."""
        for record in self.runs():
            process = record.process
            ours = record.state is RunState.RUNNING and process is not None and runs.owner(process).is_here
            if process is not None and ours and process.pid != os.getpid():
                os.kill(process.pid, signal.SIGKILL)


@contextmanager
def busy_site(parent: Path) -> Iterator[Place]:
    """Yield the site, and serve its BMC meanwhile."""
    port = reserve_port("127.0.0.1")
    folder = write_ready_site(parent / "site")
    (folder / "bmcs.csv").write_text(SHEET)
    text = (folder / "site.yml").read_text()
    plain = f"  user: root\n  scheme: http\n  allow_plain_http: true\n  port: {port}\n"
    (folder / "site.yml").write_text(text.replace("  user: root\n", plain, 1).replace("  ca_file: bmc-ca.pem", "  #"))
    server = ThreadingHTTPServer(("127.0.0.1", port), BusyBmc)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    found = Place(folder)
    try:
        yield found
    finally:
        found.end()
        server.shutdown()
        server.server_close()
        thread.join()
