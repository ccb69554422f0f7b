"""Authentication, sessions, methods and errors of the emulated BMC; no network."""

from __future__ import annotations

import pytest

from lab.tests.emulators.redfish.bmc_kit import PASSWORD, RESET, SESSIONS, SYSTEM, ask, bmc_of, message_ids, world_of

LOGIN = {"UserName": "root", "Password": PASSWORD}


class Clock:
    """Seconds that pass when the test advances them."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def log_in(bmc) -> tuple[str, str]:
    answer = ask(bmc, "POST", SESSIONS, LOGIN, authorization="", client="127.0.0.9")
    assert answer.status == 201
    return answer.headers["X-Auth-Token"], answer.headers["Location"]


@pytest.mark.parametrize("path", ["/redfish", "/redfish/v1", "/redfish/v1/"])
def test_the_root_is_for_everyone(path) -> None:
    """The vendor, and that this is a lab, are readable without credentials; nothing else is."""
    bmc = bmc_of(world_of())
    assert ask(bmc, "GET", path, authorization="").status == 200
    root = ask(bmc, "GET", "/redfish/v1", authorization="").body
    assert (root["Vendor"], root["Oem"]["Clusterctl"]["Simulated"]) == ("Dell", True)


@pytest.mark.parametrize(
    "authorization", ["", "Basic", "Basic !!!", "Basic cm9vdDp3cm9uZw==", "Bearer x", "Basic /w=="]
)
def test_wrong_or_broken_credentials_are_refused(authorization) -> None:
    """Anything but the right user and password is a 401 with a Redfish error that explains how to authenticate."""
    answer = ask(bmc_of(world_of()), "GET", SYSTEM, authorization=authorization)
    assert (answer.status, message_ids(answer)) == (401, ["AccessDenied"])
    assert answer.headers["WWW-Authenticate"].startswith("Basic ")


def test_a_session_opens_works_and_closes() -> None:
    """Login gives token and location; the token opens the tree until the session is deleted."""
    bmc = bmc_of(world_of())
    token, location = log_in(bmc)
    assert ask(bmc, "GET", SYSTEM, token=token).status == 200
    session = ask(bmc, "GET", location, token=token).body
    assert (session["UserName"], session["Password"], session["ClientOriginIPAddress"]) == ("root", None, "127.0.0.9")
    assert ask(bmc, "DELETE", location, token=token).status == 204
    assert ask(bmc, "GET", SYSTEM, token=token).status == 401
    assert ask(bmc, "DELETE", location).status == 404


def test_login_with_a_wrong_password_opens_nothing() -> None:
    """A failed login is a 401 and takes no slot."""
    bmc = bmc_of(world_of())
    answer = ask(bmc, "POST", SESSIONS, LOGIN | {"Password": "wrong"}, authorization="")
    assert answer.status == 401
    assert ask(bmc, "GET", SESSIONS).body["Members"] == []


def test_the_seventh_session_is_refused_as_dell_does() -> None:
    """Six slots; then RAC0218, until one is given back."""
    bmc = bmc_of(world_of())
    opened = [log_in(bmc) for _ in range(6)]
    answer = ask(bmc, "POST", SESSIONS, LOGIN, authorization="")
    assert (answer.status, message_ids(answer)) == (503, ["RAC0218"])
    token, location = opened[0]
    assert ask(bmc, "DELETE", location, token=token).status == 204
    log_in(bmc)


def test_idle_sessions_expire_and_used_ones_do_not() -> None:
    """1800 s of idleness end a session and free its slot; use keeps it."""
    clock = Clock()
    bmc = bmc_of(world_of(), clock=clock)
    idle, used = log_in(bmc)[0], log_in(bmc)[0]
    clock.now += 1000
    assert ask(bmc, "GET", SYSTEM, token=used).status == 200
    clock.now += 1000
    assert ask(bmc, "GET", SYSTEM, token=used).status == 200
    assert ask(bmc, "GET", SYSTEM, token=idle).status == 401
    assert len(ask(bmc, "GET", SESSIONS).body["Members"]) == 1


def test_missing_resources_are_not_found() -> None:
    """A path that the machine has not is a 404 that names it."""
    answer = ask(bmc_of(world_of()), "GET", f"{SYSTEM}/Processors/Video.Slot.99-1")
    assert (answer.status, message_ids(answer)) == (404, ["SYS403", "ResourceMissingAtURI"])
    assert "Video.Slot.99-1" in answer.body["error"]["@Message.ExtendedInfo"][0]["Message"]


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [("DELETE", SYSTEM, "GET, HEAD, PATCH"), ("GET", RESET, "POST"), ("POST", f"{SYSTEM}/Processors", "GET, HEAD")],
)
def test_wrong_methods_are_refused_with_the_right_ones(method, path, allowed) -> None:
    """405 names the methods that are allowed (DSP0266 requires it)."""
    answer = ask(bmc_of(world_of()), method, path)
    assert (answer.status, answer.headers["Allow"], message_ids(answer)) == (405, allowed, ["SYS402"])


@pytest.mark.parametrize(
    ("method", "path", "body", "message"),
    [
        ("POST", RESET, b"{broken", "MalformedJSON"),
        ("POST", RESET, b"[]", "MalformedJSON"),
        ("POST", RESET, b"\xff", "MalformedJSON"),
        ("POST", RESET, {}, "PropertyMissing"),
        ("POST", RESET, {"ResetType": "Explode"}, "PropertyValueNotInList"),
        ("POST", RESET, {"ResetType": ["On"]}, "PropertyValueNotInList"),
        ("POST", SESSIONS, {"UserName": "root"}, "PropertyMissing"),
        ("PATCH", SYSTEM, {"AssetTag": "x"}, "PropertyMissing"),
        ("PATCH", SYSTEM, {"Boot": {"BootOrder": []}}, "PropertyValueNotInList"),
        ("PATCH", SYSTEM, {"Boot": {"BootNext": "Boot0001"}}, "PropertyUnknown"),
        ("PATCH", SYSTEM, {"Boot": {"BootSourceOverrideTarget": "Floppy"}}, "PropertyValueNotInList"),
        ("PATCH", SYSTEM, {"Boot": {"BootSourceOverrideTarget": ["Pxe"]}}, "PropertyValueNotInList"),
        ("PATCH", SYSTEM, {"Boot": {"BootSourceOverrideTarget": "Pxe"}}, "PropertyMissing"),
        (
            "PATCH",
            SYSTEM,
            {"Boot": {"BootSourceOverrideTarget": "Pxe", "BootSourceOverrideMode": "Legacy"}},
            "PropertyValueNotInList",
        ),
    ],
)
def test_bad_requests_change_nothing(method, path, body, message) -> None:
    """What cannot be understood or is not allowed is a 400 with its reason, and the machine stays as it was."""
    world = world_of()
    bmc = bmc_of(world)
    before = ask(bmc, "GET", SYSTEM).body
    answer = ask(bmc, method, path, body)
    assert (answer.status, message_ids(answer)) == (400, [message])
    assert ask(bmc, "GET", SYSTEM).body == before


def test_logins_are_audited_without_the_password() -> None:
    """The Lifecycle Log records which user logged in from where, in the recorded words."""
    bmc = bmc_of(world_of())
    log_in(bmc)
    log = ask(bmc, "GET", "/redfish/v1/Managers/iDRAC.Embedded.1/LogServices/Lclog/Entries").body
    assert log["Members"][0]["Message"] == "Successfully logged in using root, from 127.0.0.9 and REDFISH."
    assert PASSWORD not in str(log)
