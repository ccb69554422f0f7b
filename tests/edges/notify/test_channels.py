"""Channels by apprise, against a real SMTP server and a real HTTP receiver."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import apprise
import pytest
import requests

from clusterctl.edges.notify import AppriseChannels
from clusterctl.edges.notify.apprise_channels import name_incident
from clusterctl.edges.redaction import KNOWN
from clusterctl.edges.site import load_site
from clusterctl.fleet.errors import EdgeError, UsageError
from clusterctl.fleet.incidents.incident import Phase
from clusterctl.fleet.incidents.message import IncidentMessage
from tests.edges.notify.receivers import Mailbox, Receiver, http_receiver, mail_server
from tests.edges.site.ready import write_ready_site

TOKEN = "tok3n-of-the-channel-9f8e7d"
TEXT = IncidentMessage(
    incident="inc-0123456789",
    title="[lab] incident: n2: 2 uncorrectable errors",
    body="warning: nodes\n- n2 (A01 unit 12): <script> # _x_ *y* 5 < 6\nincident inc-0123456789, message 1",
    phase=Phase.OPENED,
)


@pytest.fixture
def mailbox() -> Iterator[Mailbox]:
    with mail_server() as found:
        yield found


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with http_receiver() as found:
        yield found


def channels(folder: Path, **urls: str) -> AppriseChannels:
    """Return the channels of a site; their URLs stand in files."""
    write_ready_site(folder)
    lines = ["notify:", "  channels:"]
    for name, url in urls.items():
        file = folder / "secrets" / f"{name}-url"
        file.write_text(f"{url}\n")
        file.chmod(0o600)
        lines.append(f"    {name}: {{url: {{file: secrets/{name}-url}}}}")
    lines += ["  routes:", f"    - {{to: [{', '.join(urls)}]}}", ""]
    with (folder / "site.yml").open("a") as site_file:
        site_file.write("\n".join(lines))
    site = load_site(folder)
    assert site.settings.notify is not None
    return AppriseChannels(site, site.settings.notify)


def test_a_mail_arrives_as_it_was_written(tmp_path: Path, mailbox: Mailbox) -> None:
    """Title and text as they are, whatever characters they have; sender and recipient as the URL names them."""
    channels(tmp_path, ops=mailbox.url).send("ops", TEXT)
    (mail,) = mailbox.mails
    assert mail["Subject"] == TEXT.title
    assert mail["To"] == "ops@site.example"
    assert "clusterctl@site.example" in mail["From"]
    body = mail.get_body(("plain",))
    assert body is not None
    assert [line.rstrip() for line in body.get_content().strip().splitlines()] == TEXT.body.splitlines()


def test_an_http_receiver_gets_the_message(tmp_path: Path, receiver: Receiver) -> None:
    """One POST, with the incident's id in its text."""
    channels(tmp_path, chat=receiver.url(TOKEN)).send("chat", TEXT)
    ((path, posted),) = receiver.posts
    assert path == f"/hooks/{TOKEN}"
    assert posted["title"] == TEXT.title
    assert TEXT.incident in posted["message"]
    assert posted["type"] == "warning"


@pytest.mark.parametrize("status", [500, 404, 302, 401])
def test_a_message_that_is_not_taken_is_an_error(
    tmp_path: Path, receiver: Receiver, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    """The error names the channel and not its URL; nothing of the URL is logged; a redirect is not followed."""
    receiver.answers.append(status)
    caplog.set_level(logging.DEBUG)
    with pytest.raises(EdgeError) as error:
        channels(tmp_path, chat=receiver.url(TOKEN)).send("chat", TEXT)
    assert error.value.where == "chat"
    assert TOKEN not in f"{error.value}"
    assert TOKEN not in KNOWN(caplog.text)  # as each handler of ours writes it
    assert len(receiver.posts) == 1


@pytest.mark.parametrize("token", ["s3c", "hook7", "secret"])
@pytest.mark.parametrize("status", [200, 500])
def test_a_short_secret_is_logged_by_no_library(
    tmp_path: Path, receiver: Receiver, caplog: pytest.LogCaptureFixture, token: str, status: int
) -> None:
    """Of any length, and without digits: what is no token by its form is known to no filter of the log."""
    receiver.answers.append(status)
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.DEBUG, "urllib3")
    with nullcontext() if status == 200 else pytest.raises(EdgeError) as error:
        channels(tmp_path, chat=receiver.url(token)).send("chat", TEXT)
    assert token not in str(error)
    assert len(receiver.posts) == 1
    logged = [record.getMessage() for record in caplog.records if record.name != "apprise"]  # pytest adds itself there
    assert not any(token in line for line in logged)
    requests.get(f"http://127.0.0.1:{receiver.port}/other", timeout=600)
    assert "/other" in caplog.text  # other requests are logged as before


def test_a_pager_learns_which_alert_a_message_is_about(tmp_path: Path, receiver: Receiver) -> None:
    """The incident's id is the key of the alert: a repeat adds none, and the last message closes it."""
    sender = channels(tmp_path, pager=f"goalert://127.0.0.1:{receiver.port}/{uuid4()}")
    for phase in (Phase.OPENED, Phase.RESOLVED):
        sender.send("pager", replace(TEXT, phase=phase))
    opened, resolved = [posted for _, posted in receiver.posts]
    assert (opened["dedup"], opened.get("action")) == (TEXT.incident, None)
    assert (resolved["dedup"], resolved["action"]) == (TEXT.incident, "close")


@pytest.mark.parametrize(
    ("url", "key", "action"),
    [
        ("pagerduty://a1b2@c3d4", "dedup", "map"),
        ("pagerduty://a1b2@c3d4?dedup=mine&action=resolve", "", "resolve"),
        ("splunk://route@a1b2", "entity_id", "map"),
        ("opsgenie://a1b2c3d4", "alias", "map"),
        ("signl4://a1b2", "external_id", "map"),
        ("pagertree://int_0123456789", "thirdparty", "map"),
        ("pagerduty://a1b2@c3d4?action=trigger", "dedup", "map"),
    ],
)
def test_the_key_of_each_pager(url: str, key: str, action: str) -> None:
    """What the channel's URL sets stays."""
    service = apprise.Apprise.instantiate(url)
    name_incident(service, TEXT.incident)
    assert getattr(service, key or "dedup") == (TEXT.incident if key else "mine")
    assert service.action == action


def test_a_chat_has_no_key() -> None:
    name_incident(apprise.Apprise.instantiate("json://127.0.0.1:1/x"), TEXT.incident)


def test_a_mail_server_that_refuses_is_an_error(tmp_path: Path, mailbox: Mailbox) -> None:
    mailbox.refuses = 1
    with pytest.raises(EdgeError, match="not taken"):
        channels(tmp_path, ops=mailbox.url).send("ops", TEXT)
    assert not mailbox.mails


def test_a_port_where_nothing_listens_is_an_error(tmp_path: Path) -> None:
    with http_receiver() as gone:
        url = gone.url(TOKEN)
    with pytest.raises(EdgeError) as error:
        channels(tmp_path, chat=url).send("chat", TEXT)
    assert TOKEN not in str(error.value)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("nonsense://x", "names no service"),
        ("x-no-url-at-all", "names no service"),
        ("jsons://127.0.0.1:1/x?verify=no", "turns the check of TLS certificates off"),
    ],
)
def test_a_url_that_cannot_be_used_is_a_usage_error(tmp_path: Path, url: str, message: str) -> None:
    """The error names file, line and field, and does not repeat the URL."""
    with pytest.raises(UsageError, match=message) as error:
        channels(tmp_path, chat=url).send("chat", TEXT)
    assert "site.yml" in error.value.where
    assert url not in str(error.value)


def test_the_parts_of_a_url_are_secrets(tmp_path: Path) -> None:
    """A token and a password are hidden wherever they surface; the words of a URL are not."""
    url = "mailto://alice:pa55%2Fword@mail.example?smtp=127.0.0.1:1&cto=1"
    with pytest.raises(EdgeError):
        channels(tmp_path, ops=url).send("ops", TEXT)
    shown = KNOWN("the password pa55/word of alice at mail.example")
    assert "pa55" not in shown
    assert "alice at mail.example" in shown
