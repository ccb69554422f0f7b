"""storage_read: real bytes from a real HTTP server or file, judged by the site's rate; unmeasured never passes."""

from __future__ import annotations

import functools
import json
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.finding import Verdict
from clusterctl.fleet.quantity import Quantity, at_least
from clusterctl.formats.host.storage_read import parse_storage_read
from clusterctl_burnin.fleet_metrics import samples
from clusterctl_burnin.host_requirements import HostRequirements, StorageSource
from clusterctl_burnin.node.programs import storage_read
from clusterctl_burnin.registry import CHECKS, NODE_LOADS
from clusterctl_burnin.sweep import sweep
from tests.burnin.kit import LIMITS
from tests.burnin.solo_kit import findings, readings

SIZE = 3 * storage_read.BLOCK + 4096
SIGNATURE = "X-Amz-Signature=5f3a"


class Quiet(SimpleHTTPRequestHandler):
    """Serves files; answers 403 where the path asks for it. What it was asked is kept by the server."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self.path.startswith("/forbidden"):
            self.send_error(403, f"no right to {self.path}")
        else:
            super().do_GET()

    def log_message(self, *_: object) -> None:
        """Print nothing."""


class Server(ThreadingHTTPServer):
    """Readers end their connections when their time is over."""

    def handle_error(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("store")
    (folder / "object").write_bytes(bytes(SIZE))
    (folder / "empty").write_bytes(b"")
    with Server(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def program(capsys: pytest.CaptureFixture[str], readers: int = 3, **source: Any) -> str:
    """What the program prints after a second of reading."""
    assert storage_read.main(["1", str(readers)], source) == 0
    return capsys.readouterr().out


def document(*readers: tuple[float, float, str], source: str = "https://s3.example/b/o", gbps: float = 10) -> str:
    """Readers by their GB, seconds and trouble."""
    entries = [{"bytes": int(size * 1e9), "seconds": seconds, "trouble": trouble} for size, seconds, trouble in readers]
    return json.dumps({"version": 1, "source": source, "least_gbps": gbps, "readers": entries})


def test_an_object_is_read_by_all_readers(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each of them reads more than once through it within the second, and the query is not printed."""
    printed = program(capsys, url=f"{store}/object?{SIGNATURE}", gbps=0.001)
    assert SIGNATURE not in printed
    found = parse_storage_read(printed)
    assert found.source == f"{store}/object"
    assert [reader.trouble for reader in found.readers] == ["", "", ""]
    assert all(reader.bytes > 0 for reader in found.readers)
    (finding,) = findings("storage_read", printed)
    assert (finding.verdict, finding.expected) == (Verdict.PASS, at_least(0.001, "Gb/s"))


def test_a_file_is_read_past_the_page_cache(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As one on NFS is, with O_DIRECT; a file system without it is reported as unmeasured."""
    file = tmp_path / "sample"
    file.write_bytes(bytes(SIZE))
    found = parse_storage_read(program(capsys, path=str(file), gbps=0.001))
    assert found.source == str(file)
    assert all(reader.bytes > 0 or reader.trouble for reader in found.readers)


@pytest.mark.parametrize(
    ("path", "reason"), [("/forbidden?X", "HTTP 403"), ("/empty", "empty"), ("/absent", "HTTP 404")]
)
def test_what_cannot_be_read_is_unmeasured(
    store: str, path: str, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The reason is reported without the URL's query, which may be a signature, even where the server repeats it."""
    url = f"{store}{path}{'' if '?' in path else '?'}{SIGNATURE}"
    printed = program(capsys, readers=1, url=url, gbps=1)
    assert SIGNATURE not in printed
    (finding,) = findings("storage_read", printed)
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert reason in finding.cause


def test_a_server_that_is_not_there_and_a_file_that_is_absent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both are unmeasured, never slow."""
    for source in ({"url": "http://127.0.0.1:1/b/o"}, {"path": str(tmp_path / "absent")}):
        (finding,) = findings("storage_read", program(capsys, readers=1, gbps=1, **source))
        assert finding.verdict is Verdict.INCONCLUSIVE


def test_a_site_without_storage_is_not_asked(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is read then."""
    (finding,) = findings("storage_read", program(capsys))
    assert finding.verdict is Verdict.NOT_APPLICABLE


def test_a_slow_node_fails_and_may_be_run_again() -> None:
    """10 GB by two readers in 10 s are 8 Gb/s; the slowest reader's time counts."""
    (finding,) = findings("storage_read", document((5, 9.0, ""), (5, 10.0, "")))
    assert (finding.verdict, finding.subject, finding.deterministic) == (Verdict.FAIL, "node", False)
    assert (finding.measured, finding.expected) == (Quantity(8.0, "Gb/s"), at_least(10, "Gb/s"))
    assert "MTU" in finding.remedy


def test_one_reader_that_could_not_go_on_spoils_the_rate() -> None:
    """What the others read is then no figure of the node, fast or slow."""
    for size in (1, 100):
        (finding,) = findings("storage_read", document((size, 10.0, ""), (size, 2.0, "Connection reset by peer")))
        assert finding.verdict is Verdict.INCONCLUSIVE
        assert "Connection reset by peer" in finding.cause


def test_the_rate_is_compared_over_the_fleet() -> None:
    """One figure for each node."""
    (sample,) = samples("node001", "sku", readings("storage_read", document((50, 10.0, ""))))
    assert (sample.metric.name, sample.value) == ("storage_read_gbps", pytest.approx(40.0))


@pytest.mark.parametrize("text", ["", "[]", '{"version": 2}', document((1, 1.0, "")).replace("0", "-", 1)])
def test_another_document_is_refused(text: str) -> None:
    with pytest.raises(ParseError):
        parse_storage_read(text)


def test_only_its_own_session_is_given_the_signed_url() -> None:
    """The sessions of checks and other loads do not have it, and no text of the requirements shows it."""
    wanted = HostRequirements(storage=StorageSource(url=f"https://s3.example/b/o?{SIGNATURE}", gbps=10))
    assert SIGNATURE not in repr(wanted)
    others = (*CHECKS.values(), *(load.check(LIMITS) for name, load in NODE_LOADS.items() if name != "storage_read"))
    assert SIGNATURE.encode() not in sweep(others, requirements=wanted).stdin
    assert SIGNATURE.encode() in sweep([NODE_LOADS["storage_read"].check(LIMITS)], requirements=wanted).stdin
    (probe,) = NODE_LOADS["storage_read"].probes(LIMITS, 10)
    assert probe.argv == ("storage-read", "10", "8")


def test_wrong_arguments_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2, and nothing is read."""
    assert storage_read.main(["1"], {}) == storage_read.main(["0", "1"], {}) == storage_read.main(["x", "1"], {}) == 2
    assert "two numbers" in capsys.readouterr().err
