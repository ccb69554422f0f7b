"""logs: a node's log, from a real journald file or from Loki, joined with the journal; what is missing is reported."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from clusterctl.edges.loki import Loki
from clusterctl.fleet.errors import (
    AuthenticationError,
    EdgeError,
    ParseError,
    UnreachableError,
    UntrustedError,
    UsageError,
)
from clusterctl.fleet.event import Event, Kind
from clusterctl.fleet.finding import Observed
from clusterctl.fleet.peer_text import MAX_LINE, has_unseen
from clusterctl.formats.node_logs import LEVELS, TOO_LARGE, parse_journald, parse_range
from clusterctl.operations import node_logs
from clusterctl.operations.context import SiteContext, open_site
from clusterctl.operations.log_documents import logs_json
from clusterctl.operations.node_logs import LogsRequest, LogsResult, notes
from clusterctl.operations.operation import Control
from clusterctl.ports import Deadline, HostAddress, Ran
from clusterctl.ports.logs import LogLines, LogWindow
from clusterctl.site.monitoring import LokiSettings
from clusterctl_cli.main import run
from clusterctl_cli.render_logs import logs_text
from tests.cli.nights import SilentOutside
from tests.edges.maas.testca import Ca
from tests.edges.site.ready import write_ready_site
from tests.events import new_event
from tests.operations.journald_files import Entry, JournaldHost, write_journal
from tests.ports import reserve_port

HOST = "127.0.0.1"
XID = "NVRM: Xid (PCI:0000:44:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
HOSTILE = "\x1b[2J\x1b]0;owned\x07 <script>alert(1)</script> \u202egnp.exe"


def now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)


START = now()
"""Moments of the tests are held against it: they pass however long they take."""


@pytest.fixture
def context(tmp_path: Path) -> Iterator[SiteContext]:
    """n1 has an address and a host key, n2 neither; the journal has seen n1 just now."""
    site = tmp_path / "site"
    site.mkdir()
    write_ready_site(site)
    (site / "bmcs.csv").write_text("name,bmc_address,serial,rack,unit\nn1,10.0.0.1,,A01,1\nn2,10.0.0.2,,A01,2\n")
    context = open_site(site)
    for name in ("n1", "n2"):
        described = {"name": name, "bmc": f"10.0.0.{name[1]}", "rack": "A01", "unit": int(name[1])}
        context.journal.append([new_event("node", f"id-{name}", Kind.NODE_DESCRIBED, described)])
    known = [(Kind.HOST_KEY_PINNED, {"public": "ssh-ed25519 AAAA"}), (Kind.NODE_ADDRESSED, {"address": "10.0.1.1"})]
    context.journal.append([new_event("node", "id-n1", kind, data) for kind, data in known])
    yield context
    context.journal.close()


def window(hours: float = 1, text: str = "", at_most: int = 1000, until: datetime | None = None) -> LogWindow:
    since = (until or START) - timedelta(hours=hours)
    return LogWindow(since=since, until=until or now() + timedelta(minutes=1), text=text, at_most=at_most)


def read(context: SiteContext, shell: Any, request: LogsRequest, store: Any = None) -> LogsResult:
    with_hosts = replace(context, connect=lambda site, _access: SilentOutside(site, shell=shell))
    return node_logs.run(with_hosts, request, Control(), store)


def asked(wanted: LogWindow, node: str = "n1", source: str = "") -> LogsRequest:
    return LogsRequest(node=node, window=wanted, source=source)


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> JournaldHost:
    """A host whose journal has an entry of two days ago, and some of the last hour, among them hostile ones."""
    end = START
    kernel = {"_TRANSPORT": "kernel", "SYSLOG_IDENTIFIER": "kernel", "PRIORITY": "3"}
    ssh = {"_SYSTEMD_UNIT": "ssh.service", "SYSLOG_IDENTIFIER": "sshd", "PRIORITY": "6"}
    entries = [
        Entry(end - timedelta(days=2), "two days ago", ssh),
        Entry(end - timedelta(minutes=50), "session opened", ssh),
        Entry(end - timedelta(minutes=40), XID, kernel),
        Entry(end - timedelta(minutes=30), HOSTILE, ssh),
        Entry(end - timedelta(minutes=20), b"\xff\xfe no text \x00", {"_SYSTEMD_UNIT": "odd.service"}),
        Entry(end - timedelta(minutes=10), "x" * 5000, ssh),
        Entry(end - timedelta(minutes=5), "a.b (c) + [d]", ssh),
    ]
    return JournaldHost(write_journal(tmp_path_factory.mktemp("journald"), entries))


@dataclass
class Silent:
    """No host answers."""

    def run(self, host: HostAddress, argv: Sequence[str], stdin: bytes, deadline: Deadline) -> Observed[Ran]:
        raise UnreachableError("no SSH: [Errno 113] No route to host", where=host.name)


@dataclass
class Answering:
    """A host that gives this result to each command."""

    ran: Ran

    def run(self, host: HostAddress, argv: Sequence[str], stdin: bytes, deadline: Deadline) -> Observed[Ran]:
        return Observed(self.ran, ())


def test_a_real_journald_is_read(context: SiteContext, host: JournaldHost) -> None:
    """Lines of the window, oldest first, with writer and level; as another user than root behind sudo."""
    result = read(context, host, asked(window()))
    assert [line.text[:7] for line in result.lines][:2] == ["session", "NVRM: X"]
    assert (result.lines[1].unit, result.lines[1].level, result.lines[1].text) == ("kernel", "err", XID)
    assert [line.text for line in result.lines][-2:] == [TOO_LARGE, "a.b (c) + [d]"]
    assert result.exit_code == 0
    (source,) = result.sources
    assert (source.read.complete, source.read.cut, source.read.unreadable) == (True, False, 0)
    assert host.ran[-1][:3] == ("sudo", "-n", "journalctl")


def test_events_of_the_node_stand_between_its_lines(context: SiteContext, host: JournaldHost) -> None:
    """The journal's events of the window are joined by time, whatever text is looked for."""
    result = read(context, host, asked(window(text="xid")))
    joined = list(result.joined)
    assert [type(one) for one in joined] == [type(result.lines[0]), Event, Event, Event]
    assert {one.kind for one in joined[1:] if isinstance(one, Event)} == {
        Kind.NODE_DESCRIBED,
        Kind.HOST_KEY_PINNED,
        Kind.NODE_ADDRESSED,
    }
    assert not list(read(context, host, asked(window(until=START - timedelta(minutes=45)))).events)


@pytest.mark.parametrize("text", ["xid", "XID (pci", "a.b (c) + [d]"])
def test_the_text_is_no_pattern(context: SiteContext, host: JournaldHost, text: str) -> None:
    """Case is ignored, and what a pattern would act on is plain text."""
    assert len(read(context, host, asked(window(text=text))).lines) == 1


@pytest.mark.parametrize("text", ["x.d", "a+b", ".*"])
def test_a_text_that_no_line_has(context: SiteContext, host: JournaldHost, text: str) -> None:
    """No line is no error, and is reported."""
    result = read(context, host, asked(window(text=text)))
    assert (list(result.lines), result.exit_code) == ([], 0)
    assert "n1's journald has no line of n1 in this time" in list(notes(result))


def test_the_newest_lines_are_kept(context: SiteContext, host: JournaldHost) -> None:
    """More lines than wanted: the newest of the window, and a note. So also where the window ends in the past."""
    result = read(context, host, asked(window(at_most=2)))
    assert [line.text for line in result.lines] == [TOO_LARGE, "a.b (c) + [d]"]
    assert any("only the newest 2 are shown" in note for note in notes(result))
    past = read(context, host, asked(window(until=START - timedelta(minutes=35), at_most=1)))
    assert [line.text for line in past.lines] == [XID]


def test_a_log_that_begins_in_the_window(context: SiteContext, host: JournaldHost) -> None:
    """Nothing before the window may mean lost lines: the result has it."""
    result = read(context, host, asked(window(hours=72)))
    assert result.lines[0].text == "two days ago"
    assert result.sources[0].read.complete is False
    assert any("older lines may be lost" in note for note in notes(result))


def test_hostile_lines_are_bounded_and_visible(context: SiteContext, host: JournaldHost) -> None:
    """Neither text nor JSON holds a character that a terminal acts on."""
    result = read(context, host, asked(window()))
    text = logs_text(result, width=None)
    assert not has_unseen(text)
    assert "\\x1b[2J" in text
    assert "\\xff" in text
    assert max(len(line.text) for line in result.lines) <= MAX_LINE
    assert not has_unseen(json.dumps(logs_json(result), ensure_ascii=False))


def test_a_silent_node_has_its_events(context: SiteContext) -> None:
    """The log could not be read: the events are printed, the reason is named, and the exit code is 1."""
    result = read(context, Silent(), asked(window()))
    assert result.exit_code == 1
    assert len(result.events) == 3
    assert [note for note in notes(result) if "No route to host" in note]
    unknown = read(context, Silent(), asked(window(), node="n2"))
    assert unknown.exit_code == 1
    assert "host key is unknown" in unknown.sources[0].problem


@pytest.mark.parametrize(
    ("ran", "problem"),
    [
        (Ran(None, "", "", 120.0), "took too long"),
        (Ran(1, "", "sudo: a password is required\n", 0.1), "a password is required"),
        (Ran(127, "", "", 0.1), "ended with 127"),
    ],
)
def test_a_journald_that_cannot_be_read(context: SiteContext, ran: Ran, problem: str) -> None:
    result = read(context, Answering(ran), asked(window()))
    assert problem in result.sources[0].problem
    assert result.exit_code == 1


def test_lines_that_are_no_entries_are_counted() -> None:
    """Each is missing and counted; those of the same output that are entries are read."""
    good = json.dumps({"__REALTIME_TIMESTAMP": "1795000000000000", "MESSAGE": ["first", "second"], "PRIORITY": "9"})
    bad = ["no JSON", "[]", "{}", '{"__REALTIME_TIMESTAMP": "-1"}', '{"__REALTIME_TIMESTAMP": 5}', "[" * 500]
    lines, unreadable = parse_journald("\n".join([*bad, good, ""]))
    assert [(line.text, line.level, line.unit) for line in lines] == [("first", "", "unknown")]
    assert unreadable == len(bad)
    assert len(LEVELS) == 8


@dataclass
class LokiServer:
    """Loki's `query_range` on the loopback. `status`, `content`: its answer; `asked`: query and headers."""

    content: bytes
    status: int = 200
    port: int = field(default_factory=lambda: reserve_port(HOST))
    asked: list[tuple[str, Mapping[str, str], Mapping[str, str]]] = field(default_factory=list)


@contextmanager
def loki_server(server: LokiServer, ca: Ca | None = None) -> Iterator[LokiServer]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            server.asked.append((parts.path, query, {name.lower(): value for name, value in self.headers.items()}))
            self.send_response(server.status)
            self.send_header("Content-Length", str(len(server.content)))
            self.end_headers()
            self.wfile.write(server.content)

        def log_message(self, *_: object) -> None:
            pass

    web = ThreadingHTTPServer((HOST, server.port), Handler)
    if ca is not None:
        web.socket = ca.server_context(HOST).wrap_socket(web.socket, server_side=True)
    thread = threading.Thread(target=web.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        web.shutdown()
        web.server_close()
        thread.join()


def streams(*values: tuple[datetime, str]) -> bytes:
    """Return an answer of Loki with one stream of the kernel and these lines."""
    pairs = [[str(int(at.timestamp()) * 10**9), text] for at, text in values]
    stream = {"stream": {"host": "n1", "transport": "kernel", "level": "error"}, "values": pairs}
    data = {"resultType": "streams", "result": [stream], "stats": {}}
    return json.dumps({"status": "success", "data": data}).encode()


def loki(port: int, *, ca_file: str = "", scheme: str = "http") -> Loki:
    return Loki(LokiSettings(url=f"{scheme}://{HOST}:{port}", tenant="hpc"), "t0ken-of-loki", ca_file)


def test_loki_is_asked_for_one_node_and_window(context: SiteContext) -> None:
    """The query names the node by its label, quotes the text, and asks backward for one line more than wanted."""
    at = START - timedelta(minutes=3)
    with loki_server(LokiServer(streams((at, XID), (at - timedelta(minutes=1), HOSTILE)))) as server:
        wanted = window(text='xid "79"', at_most=5)
        result = read(context, Silent(), asked(wanted), loki(server.port))
    assert [line.at for line in result.lines] == [at - timedelta(minutes=1), at]
    assert (result.lines[1].unit, result.lines[1].level) == ("kernel", "error")
    assert [source.name for source in result.sources] == ["loki"]
    ((path, query, headers),) = server.asked
    assert path == "/loki/api/v1/query_range"
    assert query["query"] == '{host="n1"} |~ "(?i)xid\\\\ \\"79\\""'
    assert (query["limit"], query["direction"]) == ("6", "backward")
    assert query["start"] == f"{int(wanted.since.timestamp())}000000000"
    assert headers["authorization"] == "Bearer t0ken-of-loki"
    assert headers["x-scope-orgid"] == "hpc"
    assert not has_unseen(logs_text(result, width=80))


def test_the_node_is_read_where_loki_cannot_be(context: SiteContext, host: JournaldHost) -> None:
    """Both sources are in the result, with the reason; with --from loki the node is left alone."""
    with loki_server(LokiServer(b"<html>502</html>", status=502)) as server:
        store = loki(server.port)
        result = read(context, host, asked(window()), store)
        only = read(context, host, asked(window(), source="loki"), store)
    assert [(source.name, bool(source.problem)) for source in result.sources] == [("loki", True), ("node", False)]
    assert result.exit_code == 0
    assert result.lines
    assert [source.name for source in only.sources] == ["loki"]
    assert only.exit_code == 1


@pytest.mark.parametrize(
    ("status", "content", "error"),
    [
        (401, b"", AuthenticationError),
        (500, b"max entries limit", EdgeError),
        (302, b"", EdgeError),
        (200, b"no JSON", ParseError),
        (200, b'{"status":"success","data":{"resultType":"matrix","result":[]}}', ParseError),
        (200, b"[" * 1000, ParseError),
    ],
)
def test_answers_of_loki_that_are_no_lines(status: int, content: bytes, error: type[Exception]) -> None:
    with (
        loki_server(LokiServer(content, status=status)) as server,
        pytest.raises(error) as caught,
    ):
        loki(server.port).read("n1", window(), Deadline.after(30))
    assert "t0ken-of-loki" not in str(caught.value)


def test_values_of_loki_that_are_no_lines_are_counted() -> None:
    pairs: list[Any] = [None, [], ["1"], [1, "x"], ["x", "y"], ["9" * 21, "z"], ["1795000000000000000", "good", {}]]
    stream = {"stream": {"unit": "ssh.service"}, "values": pairs}
    document = {"data": {"resultType": "streams", "result": [stream, "no stream"]}}
    lines, unreadable = parse_range(json.dumps(document).encode())
    assert [(line.text, line.unit) for line in lines] == [("good", "ssh.service")]
    assert unreadable == 7


def test_loki_is_trusted_by_its_authority_alone(tmp_path: Path) -> None:
    """An unknown authority is refused before the token is sent."""
    ca = Ca(tmp_path)
    with loki_server(LokiServer(streams((now(), XID))), ca) as server:
        with pytest.raises(UntrustedError, match="ca_file"):
            loki(server.port, scheme="https").read("n1", window(), Deadline.after(30))
        assert not server.asked
        trusted = loki(server.port, ca_file=str(ca.file), scheme="https").read("n1", window(), Deadline.after(30))
    assert isinstance(trusted, LogLines)
    assert trusted.complete is None
    assert [line.text for line in trusted.lines] == [XID]


@pytest.mark.parametrize(
    ("request_", "field_"),
    [
        (LogsRequest(node="n1", window=LogWindow(since=START, until=START - timedelta(hours=1))), "--since"),
        (asked(window(hours=24 * 40)), "--since"),
        (asked(window(text="a\nb")), "--grep"),
        (asked(window(text="a" * 300)), "--grep"),
        (asked(window(), node="n*"), "NODE"),
        (asked(window(), node="n9"), "NODE"),
        (asked(window(), source="loki"), "site.yml"),
    ],
)
def test_wrong_requests(context: SiteContext, request_: LogsRequest, field_: str) -> None:
    with pytest.raises(UsageError) as caught:
        read(context, Silent(), request_)
    assert field_ in caught.value.where


def test_the_command(context: SiteContext, capsys: pytest.CaptureFixture[str]) -> None:
    """A node that cannot be reached: events on stdout, the reason on stderr, exit code 1; wrong moments are exit code 2."""
    site = str(context.site.folder)
    assert run(["logs", "n2", "--site", site, "--since", "2h"]) == 1
    answer = capsys.readouterr()
    assert "event  node.described" in answer.out
    assert "host key is unknown" in answer.err
    assert run(["logs", "n2", "--site", site, "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document.keys() == {"node", "since", "until", "sources", "entries", "events_cut"}
    assert document["sources"][0]["read"] is False
    assert document["entries"][0]["event"]["kind"] == "node.described"
    for wrong in (["--since", "tomorrow"], ["--since", "2999-01-01"], ["--since", "1h", "--until", "2h"], []):
        assert run(["logs", *(["n2"] if wrong else []), "--site", site, *wrong]) == 2
        capsys.readouterr()
