"""Every recorded answer of a real MAAS, fed to the client over HTTP: a value or the right typed error, never a secret."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
import stamina

from clusterctl.edges.maas.api import MaasApi, MaasBusyError, MaasRefusedError
from clusterctl.edges.maas.settings import MaasSettings
from clusterctl.edges.maas.states import status_of
from clusterctl.edges.redaction import Redaction
from clusterctl.fleet.errors import AuthenticationError, ClusterctlError
from clusterctl.formats.maas import machines as formats
from clusterctl.formats.maas import region as host
from clusterctl.ports import Deadline, InstallState
from tests.edges.maas.kit import API_KEY, UtcClock
from tests.edges.maas.recordings import Recording, load

RECORDINGS = load()
SECRET = "x3secret"
ERRORS = {401: AuthenticationError, 503: MaasBusyError}
pytestmark = pytest.mark.skipif(not RECORDINGS, reason="no recorded exchanges next to the checkout")


class Replies(BaseHTTPRequestHandler):
    """Answers every request with the recording of the moment."""

    recording: Recording

    def _reply(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        recording = self.recording
        self.send_response(recording.status)
        for name, value in recording.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(recording.raw) if recording.status != 204 else 0))
        self.end_headers()
        if recording.status != 204:
            self.wfile.write(recording.raw)

    do_GET = do_POST = do_PUT = _reply  # noqa: N815 — the names that http.server calls

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture(scope="module")
def replies() -> Iterator[tuple[type[Replies], MaasApi]]:
    handler = type("OneReply", (Replies,), {})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    settings = MaasSettings(
        f"http://127.0.0.1:{server.server_address[1]}/MAAS", API_KEY, "jammy", allow_plain_http=True
    )
    with stamina.set_testing(True, attempts=1):
        yield handler, MaasApi(settings, UtcClock())
    server.shutdown()
    server.server_close()


def send(api: MaasApi, recording: Recording) -> Any:
    deadline = Deadline.after(60)
    if recording.method == "GET":
        return api.get("machines/", (), deadline)
    return api.post("machines/", "", [("field", "value")], deadline)


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda recording: f"{recording.number}-{recording.name}")
def test_each_recorded_answer_is_a_value_or_the_right_error(recording, replies):
    """Success gives the body and evidence of it; refusals the typed error with MAAS's words, and for a bad key no body."""
    handler, api = replies
    handler.recording = recording
    if recording.status < 300:
        answer = send(api, recording)
        assert answer.body == (recording.body if recording.is_json else None)
        kept = Redaction(API_KEY.split(":")).bytes(recording.raw)
        assert answer.evidence.content == (kept if recording.status != 204 else b"")
        return
    with pytest.raises(ClusterctlError) as caught:
        send(api, recording)
    error = caught.value
    assert type(error) is ERRORS.get(recording.status, MaasRefusedError)
    assert error.remedy
    assert SECRET not in str(error)
    if isinstance(error, MaasRefusedError) and recording.is_json:
        assert error.fields.keys() == recording.body.keys()
        assert " ".join(next(iter(recording.body.values()))[0][:200].split()) in str(error)
    elif recording.body and recording.status != 401:
        assert " ".join(str(recording.body).split()) in str(error)


def test_every_recorded_machine_is_understood():
    """All machine bodies parse; the states that occur map to ours, none by accident."""
    seen: Counter[tuple[str, InstallState]] = Counter()
    for recording in RECORDINGS:
        bodies = recording.body if isinstance(recording.body, list) else [recording.body]
        for body in bodies:
            if isinstance(body, dict) and "interface_set" in body and body["node_type_name"] == "Machine":
                machine = formats.machine(body)
                assert machine.system_id == body["system_id"]
                assert (machine.serial is None) == (body["hardware_info"]["system_serial"] == "Unknown")
                seen[machine.status_name, status_of(machine).state] += 1
    print(f"{sum(seen.values())} machines in {len(seen)} states")
    assert sum(seen.values()) == 84
    assert dict(seen.keys()) == {
        "New": InstallState.ABSENT,
        "Commissioning": InstallState.PREPARING,
        "Testing": InstallState.PREPARING,
        "Ready": InstallState.READY,
        "Allocated": InstallState.READY,
        "Deploying": InstallState.INSTALLING,
        "Deployed": InstallState.INSTALLED,
        "Releasing": InstallState.RELEASING,
        "Disk erasing": InstallState.ERASING,
        "Exiting rescue mode": InstallState.RELEASING,
        "Entering rescue mode": InstallState.FAILED,
        "Broken": InstallState.FAILED,
        "Failed commissioning": InstallState.FAILED,
        "Failed deployment": InstallState.FAILED,
        "Failed testing": InstallState.FAILED,
        "Releasing failed": InstallState.FAILED,
    }


def test_recorded_drives_events_and_user_are_understood():
    """The other bodies that the client reads."""
    by_name = {recording.name: recording for recording in RECORDINGS}
    drives = formats.block_devices(by_name["blockdevices"].body)
    assert [(drive.id, drive.name, drive.serial, drive.root) for drive in drives] == [
        (1, "nvme0n1", "7CHTDD-nvme0n1", True),
        (2, "sda", "7CHTDD-sda", False),
    ]
    newest = formats.events(by_name["events-power-fail"].body)[1]
    assert (newest.level, newest.type, newest.node) == ("ERROR", "Failed to power on node", "7chtdd")
    assert formats.user_name(by_name["whoami-operator"].body) == "operator"
    assert formats.machine(by_name["machine-deployed"].body).addresses == ("10.10.0.51",)


def test_what_maas_recorded_of_itself_is_understood():
    """Version, user, images, rack controllers, subnets and a setting: what `maas check` reads."""
    by_name = {recording.name: recording for recording in RECORDINGS}
    assert host.version(by_name["version-auth"].body) == "3.4.10"
    assert (host.is_admin(by_name["whoami"].body), host.is_admin(by_name["whoami-operator"].body)) == (True, False)
    images = host.boot_resources(by_name["boot-resources"].body)
    assert [image.architecture for image in images if image.is_of("jammy", "amd64/generic")] == [
        "amd64/ga-22.04",
        "amd64/hwe-22.04",
    ]
    assert [image.name for image in images if image.is_of("custom/rocky9-custom", "amd64")] == ["rocky9-custom"]
    (rack,) = host.racks(by_name["rackcontrollers"].body)
    assert (rack.hostname, rack.services["rackd"]) == ("rack1", "unknown")
    (subnet,) = host.subnets(by_name["subnets"].body)
    assert (str(subnet.network), subnet.dhcp, subnet.gateway) == ("10.10.0.0/24", True, "10.10.0.1")
    assert by_name["get-config"].body == "focal"
