"""Quirks of an emulated BMC: each does what it promises, to the machine that has it and to no other; no network."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clusterctl.fleet.errors import UsageError
from clusterctl_lab.bmc_quirk import BmcQuirk
from clusterctl_lab.emulators.redfish.bmc import Bmc
from clusterctl_lab.emulators.redfish.exchange import Answer, Delivery
from clusterctl_lab.emulators.redfish.quirks import QUIRKS, Certificate, certificate_of
from clusterctl_lab.fault_injection import BMC_QUIRKS, bmc_quirks, inject_all
from clusterctl_lab.faults import FAULTS
from clusterctl_lab.machine import Machine
from clusterctl_lab.world import World
from lab.tests.emulators.redfish.bmc_kit import PASSWORD, RESET, SESSIONS, SYSTEM, ask, bmc_of, message_ids, world_of
from lab.tests.emulators.redfish.test_control import booting_world, play, reset, settle
from lab.tests.emulators.redfish.test_protocol import Clock

ROOT = "/redfish/v1"
LOGIN = {"UserName": "root", "Password": PASSWORD}
PXE = {"Boot": {"BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Once"}}
ACCOUNT = f"{ROOT}/AccountService/Accounts/2"


def with_quirks(world: World, *quirks: BmcQuirk, name: str = "node001") -> None:
    machine = world.machines[name]
    world.machines[name] = replace(machine, bmc=replace(machine.bmc, quirks=frozenset(quirks)))


def quirky(*quirks: BmcQuirk, clock: Any = lambda: 0.0) -> Bmc:
    world = world_of()
    with_quirks(world, *quirks)
    return bmc_of(world, clock=clock)


def log_in(bmc: Bmc, **wrong: str) -> Answer:
    return ask(bmc, "POST", SESSIONS, {**LOGIN, **wrong}, authorization="")


def walk(bmc: Bmc) -> Iterator[tuple[str, Answer]]:
    """Every resource that can be reached from the root, as this BMC answers it."""
    seen, ahead = set(), [ROOT]
    while ahead:
        path = ahead.pop()
        if path in seen:
            continue
        seen.add(path)
        answer = ask(bmc, "GET", path)
        if answer.status != 200:
            continue  # an OEM part that stands within another resource, as recorded
        yield path, answer
        ahead += links(answer.body)


def links(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("@odata.id"), str):
            yield value["@odata.id"].partition("#")[0].rstrip("/")
        for inner in value.values():
            yield from links(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from links(inner)


def test_every_quirk_has_its_file_and_none_is_a_fault() -> None:
    """The registry has all of them, with words for people; faults, which must be found, are others."""
    assert list(QUIRKS) == list(BmcQuirk)
    assert all(quirk.does and quirk.source for quirk in QUIRKS.values())
    assert not {quirk.value for quirk in BmcQuirk} & set(FAULTS)
    assert BMC_QUIRKS not in FAULTS


def test_a_boot_override_is_answered_and_forgotten() -> None:
    """200, and when one looks the override is gone and the mode is Legacy."""
    bmc = quirky(BmcQuirk.REVERTS_BOOT)
    assert ask(bmc, "PATCH", SYSTEM, PXE).status == 200
    shown = ask(bmc, "GET", SYSTEM).body["Boot"]
    assert [shown[f"BootSourceOverride{key}"] for key in ("Target", "Enabled", "Mode")] == [
        "None",
        "Disabled",
        "Legacy",
    ]


def patch(bmc: Bmc, if_match: str = "") -> int:
    return ask(bmc, "PATCH", SYSTEM, PXE, if_match=if_match).status


def test_weak_etags_match_without_their_weakness_only() -> None:
    """The ETag as given is a 412, without W/ it is taken; none is taken too; a stale one is not."""
    bmc = quirky(BmcQuirk.WEAK_ETAG)
    answer = ask(bmc, "GET", SYSTEM)
    tag = answer.headers["ETag"]
    assert tag.startswith('W/"')
    assert answer.body["@odata.etag"] == tag
    assert [patch(bmc, tag), patch(bmc, tag[2:]), patch(bmc, tag[2:]), patch(bmc)] == [412, 200, 412, 200]


def test_if_match_required() -> None:
    """428 without, 412 with a stale one, 200 with the present one or with `*`; actions need none and take none."""
    bmc = quirky(BmcQuirk.IF_MATCH_REQUIRED)
    tag = ask(bmc, "GET", SYSTEM).headers["ETag"]
    assert [patch(bmc), patch(bmc, '"stale"'), patch(bmc, tag), patch(bmc, "*")] == [428, 412, 200, 200]
    assert message_ids(ask(bmc, "PATCH", SYSTEM, PXE)) == ["PreconditionRequired"]
    assert ask(bmc, "POST", RESET, {"ResetType": "ForceOff"}).status == 409
    assert ask(bmc, "POST", RESET, {"ResetType": "ForceOff"}, if_match="*").status == 412


def test_if_match_refused() -> None:
    """Whatever it names, and there is no ETag to name."""
    bmc = quirky(BmcQuirk.IF_MATCH_REFUSED)
    assert "ETag" not in ask(bmc, "GET", SYSTEM).headers
    assert [patch(bmc, "*"), patch(bmc, '"x"'), patch(bmc)] == [412, 412, 200]


def test_identity_is_not_acceptable() -> None:
    """406 to that encoding, and to no other."""
    bmc = quirky(BmcQuirk.REFUSES_IDENTITY)
    assert ask(bmc, "GET", SYSTEM, encoding="identity").status == 406
    assert ask(bmc, "GET", SYSTEM, encoding="gzip, deflate").status == 200


def test_spurious_401s_never_come_twice() -> None:
    """Three to eight requests are answered between two of them; the session lives on; each run is as the other."""
    bmc = quirky(BmcQuirk.SPURIOUS_401)
    token = log_in(bmc).headers["X-Auth-Token"]
    reported = [ask(bmc, "GET", SYSTEM, token=token).status for _ in range(200)]
    answered = [len(run) for run in "".join("x" if status == 200 else " " for status in reported).split()]
    assert set(answered[1:-1]) == set(range(3, 9))
    again = quirky(BmcQuirk.SPURIOUS_401)
    token = log_in(again).headers["X-Auth-Token"]
    assert reported == [ask(again, "GET", SYSTEM, token=token).status for _ in range(200)]


def test_a_locked_account_refuses_the_right_password_for_half_a_minute() -> None:
    """Three wrong ones; sessions that are open go on; requests without credentials count for nothing."""
    clock = Clock()
    bmc = quirky(BmcQuirk.LOCKS_OUT, clock=clock)
    token = log_in(bmc).headers["X-Auth-Token"]
    for _ in range(5):
        assert ask(bmc, "GET", SYSTEM, authorization="").status == 401
    assert [log_in(bmc, Password="wrong").status for _ in range(2)] == [401, 401]
    assert log_in(bmc).status == 201
    assert [log_in(bmc, Password="wrong").status for _ in range(3)] == [401] * 3
    assert log_in(bmc).status == 401
    assert ask(bmc, "GET", ACCOUNT, token=token).body["Locked"]
    clock.now += 30
    assert log_in(bmc).status == 201


def test_the_factory_password_opens_accounts_only() -> None:
    """403 with where to change it, until it is changed; then all is open."""
    bmc = quirky(BmcQuirk.MUST_CHANGE_PASSWORD)
    token = log_in(bmc).headers["X-Auth-Token"]
    refused = ask(bmc, "GET", SYSTEM, token=token)
    assert (refused.status, message_ids(refused)) == (403, ["PasswordChangeRequired"])
    assert ACCOUNT in json.dumps(refused.body)
    assert ask(bmc, "GET", ACCOUNT, token=token).body["PasswordChangeRequired"]
    assert ask(bmc, "PATCH", ACCOUNT, {"Password": "another-one"}, token=token).status == 200
    assert ask(bmc, "GET", SYSTEM, token=token).status == 200


def test_one_session_at_a_time() -> None:
    """A second one is refused in the vendor's words until the first is given back."""
    bmc = quirky(BmcQuirk.SESSION_LIMIT)
    first = log_in(bmc)
    assert message_ids(log_in(bmc)) == ["RAC0218"]
    assert ask(bmc, "DELETE", first.headers["Location"]).status == 204
    assert log_in(bmc).status == 201


def test_sessions_end_in_the_middle() -> None:
    """After twenty requests the token is worth nothing and the slot is free; a new login has its own twenty."""
    bmc = quirky(BmcQuirk.ENDS_SESSIONS)
    for _ in range(10):
        token = log_in(bmc).headers["X-Auth-Token"]
        reported = [ask(bmc, "GET", SYSTEM, token=token).status for _ in range(21)]
        assert reported == [200] * 20 + [401]


def test_nothing_is_changed_in_post() -> None:
    """A PATCH is refused while the machine is in POST, and taken before and after; resets and reads go on."""
    world = world_of()
    with_quirks(world, BmcQuirk.POST_BUSY)
    bmc = bmc_of(world)
    reported = []
    for posting in (False, True, False):
        world.states["node001"].posting = posting
        reported.append((patch(bmc), ask(bmc, "GET", SYSTEM).status))
    assert reported == [(200, 200), (409, 200), (200, 200)]


def test_already_there_is_a_bad_request() -> None:
    """400 in the words of the vendor's 409."""
    answer = ask(quirky(BmcQuirk.ALREADY_IS_400), "POST", RESET, {"ResetType": "ForceOff"})
    assert (answer.status, message_ids(answer)) == (400, ["PSU502"])


def test_unavailable_gives_the_time_to_wait() -> None:
    """Now and then a 503 with Retry-After, and the next request is answered."""
    bmc = quirky(BmcQuirk.UNAVAILABLE)
    answers = [ask(bmc, "GET", SYSTEM) for _ in range(60)]
    struck = [number for number, answer in enumerate(answers) if answer.status == 503]
    assert all(answers[number].headers["Retry-After"] == "1" for number in struck)
    assert all(3 < later - before <= 9 for before, later in pairwise(struck))
    assert {answer.status for answer in answers} == {200, 503}


def test_slow_bmcs_take_the_time_that_they_are_given() -> None:
    """Each answer within the range, and the same run again takes the same."""
    reported = []
    for _ in range(2):
        world = world_of()
        (machine,) = inject_all(world.machines, BMC_QUIRKS, "node001:slow=0.05-0.3")
        world.machines["node001"] = machine
        bmc = bmc_of(world)
        reported.append([ask(bmc, "GET", SYSTEM).delay for _ in range(50)])
    assert all(0.05 <= delay <= 0.3 for delay in reported[0])
    assert len(set(reported[0])) > 10
    assert reported[0] == reported[1]


def spoilt(quirk: BmcQuirk) -> dict[str, Answer]:
    """The resources that one with the quirk answers otherwise than a well-behaved one."""
    whole = dict(walk(quirky()))
    bmc = quirky(quirk)
    assert len(whole) > 100
    answers = {path: ask(bmc, "GET", path) for path in whole}
    return {path: answer for path, answer in answers.items() if answer != whole[path]}


def is_json(content: bytes) -> bool:
    try:
        json.loads(content)
    except ValueError:
        return False
    return True


def test_broken_json_is_broken_and_always_the_same() -> None:
    """About one in eight, never what a client needs to log in; no parser takes it."""
    found = spoilt(BmcQuirk.BROKEN_JSON)
    assert 0.05 < len(found) / len(dict(walk(quirky()))) < 0.25
    assert spoilt(BmcQuirk.BROKEN_JSON) == found
    for answer in found.values():
        assert answer.content is not None
        assert not is_json(answer.content)
    assert not {ROOT, SYSTEM, SESSIONS} & set(found)


@pytest.mark.parametrize("quirk", [BmcQuirk.MISSING_MEMBERS, BmcQuirk.WRONG_TYPES])
def test_properties_go_or_change_their_type(quirk: BmcQuirk) -> None:
    """One property of a resource, about one resource in four; the properties that identify the resource stay."""
    whole = dict(walk(quirky()))
    found = spoilt(quirk)
    assert 0.1 < len(found) / len(whole) < 0.5
    for path, answer in found.items():
        before, after = whole[path].body, answer.body
        assert before is not None
        assert after is not None
        changed = [name for name in before if name not in after or after[name] != before[name]]
        assert len(changed) == 1
        assert not changed[0].startswith(("@", "Members"))
        assert (changed[0] in after) == (quirk is BmcQuirk.WRONG_TYPES)


def test_redirects_lead_to_the_same_resource() -> None:
    """308 to the path with a slash, which answers as the resource does."""
    bmc = quirky(BmcQuirk.REDIRECTS)
    found = spoilt(BmcQuirk.REDIRECTS)
    assert found
    for path, answer in found.items():
        assert (answer.status, answer.headers["Location"]) == (308, f"{path}/")
        assert ask(bmc, "GET", f"{path}/").status == 200


def test_bodies_are_cut_and_then_whole() -> None:
    """Now and then a read, and the next one is whole; no change is cut."""
    bmc = quirky(BmcQuirk.CUTS_BODIES)
    reported = [ask(bmc, "GET", SYSTEM).delivery for _ in range(60)]
    assert {before for before, later in pairwise(reported) if later is Delivery.CUT} == {Delivery.WHOLE}
    assert {ask(bmc, "PATCH", SYSTEM, PXE).delivery for _ in range(20)} == {Delivery.WHOLE}


def test_the_effect_is_done_and_its_answer_lost() -> None:
    """Power comes on, the override holds, and no event is sent; logins and log-outs are answered."""

    async def scene() -> None:
        world, _ = booting_world()
        with_quirks(world, BmcQuirk.LOSES_ANSWERS)
        bmc = bmc_of(world)
        session = log_in(bmc)
        lost = [ask(bmc, "PATCH", SYSTEM, PXE), reset(bmc, "On")]
        await settle()
        assert [answer.delivery for answer in lost] == [Delivery.LOST] * 2
        assert world.states["node001"].power
        assert session.delivery is Delivery.WHOLE
        assert ask(bmc, "DELETE", session.headers["Location"]).delivery is Delivery.WHOLE
        assert reset(bmc, "On").status == 409

    play(scene())


def test_a_reused_connection_is_dropped() -> None:
    """The first request on one is answered, the second is not."""
    bmc = quirky(BmcQuirk.CLOSES_REUSED)
    assert [ask(bmc, "GET", SYSTEM, reused=reused).delivery for reused in (False, True)] == [
        Delivery.WHOLE,
        Delivery.LOST,
    ]


def test_certificates() -> None:
    """One of another host and one that has expired; by default its own."""
    shown = {}
    for quirk in (None, BmcQuirk.OTHER_CERTIFICATE, BmcQuirk.EXPIRED_CERTIFICATE):
        world = world_of()
        with_quirks(world, *([quirk] if quirk else []))
        shown[quirk] = certificate_of(world.machines["node001"])
    assert list(shown.values()) == [Certificate.OWN, Certificate.OTHER, Certificate.EXPIRED]


def answers(bmc: Bmc) -> list[Answer]:
    """A conversation with all kinds of requests, and what came of it."""
    log_in(bmc)
    asked = [
        ask(bmc, "GET", ROOT),
        *(ask(bmc, "GET", f"{SYSTEM}/Processors/CPU.Socket.{number}") for number in (1, 2)),
        ask(bmc, "PATCH", SYSTEM, PXE),
        ask(bmc, "GET", SYSTEM),
        ask(bmc, "POST", RESET, {"ResetType": "ForceOff"}),
        ask(bmc, "GET", ACCOUNT),
        *(ask(bmc, "GET", f"{ROOT}/Chassis") for _ in range(4)),
    ]
    return [replace(answer, headers={**answer.headers}) for answer in asked]


@settings(max_examples=40, deadline=None)
@given(st.sets(st.sampled_from(list(BmcQuirk)), min_size=1), st.booleans())
def test_no_quirk_leaks_to_another_machine(quirks: set[BmcQuirk], quirky_first: bool) -> None:
    """Whatever one BMC does, its neighbour in the same world answers as in a world without it, before and after; and
    when the quirks go, so does all that came of them.
    """
    expected = answers(bmc_of(world_of(2), "node002"))
    world = world_of(2)
    with_quirks(world, *quirks)
    bad, good = bmc_of(world, "node001"), bmc_of(world, "node002")
    if quirky_first:
        answers(bad)
    assert answers(good) == expected
    answers(bad)
    assert world.machines["node002"].bmc.quirks == frozenset()
    assert world.states["node002"].boot_mode == "UEFI"
    with_quirks(world)
    assert all(answer.status in (200, 204, 409) and not answer.delay for answer in answers(bad))


def test_quirks_come_and_go_by_name() -> None:
    """Several in one target, more by another; shown in the order of the enumeration; a healed machine has none."""
    world = world_of(2)
    for target in ("node002:weak-etag,slow=0.1-0.2", "node002:redirects"):
        (machine,) = inject_all(world.machines, BMC_QUIRKS, target)
        asyncio.run(world.replace(machine))
    machine: Machine = world.machines["node002"]
    assert bmc_quirks(machine) == ("bmc-quirks:weak-etag", "bmc-quirks:slow", "bmc-quirks:redirects")
    assert (machine.bmc.latency_s, machine.faults) == ((0.1, 0.2), ())
    assert not world.machines["node001"].bmc.quirks
    assert not world.healthy["node002"].bmc.quirks


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("", "names no node"),
        ("node001", "names no node with quirks"),
        ("node001:", "names no node with quirks"),
        ("node009:slow", "there is no node009"),
        ("node001:polite", "there is no quirk 'polite'"),
        ("node001:slow=fast", "takes no 'fast'"),
        ("node001:slow=3-1", "takes no '3-1'"),
        ("node001:weak-etag=1-2", "takes no '1-2'"),
    ],
)
def test_wrong_targets_are_refused(target: str, words: str) -> None:
    """With what is wrong and what there is."""
    with pytest.raises(UsageError, match=words) as caught:
        inject_all(world_of().machines, BMC_QUIRKS, target)
    assert caught.value.remedy
