"""The JSON API: its description is true, its keys are those of the command line, and it needs a token."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator, FormatChecker

from clusterctl.edges.web.accounts import AccountFile
from clusterctl.fleet.access import UserRole
from clusterctl.fleet.event import NewEvent, Stream
from clusterctl.fleet.payloads.hardware import FabricFault, FabricFaultSeen, FabricLinksJudged
from clusterctl.fleet.payloads.maintenance import MaintenanceOrdered
from clusterctl.fleet.payloads.rma import RmaOpened
from clusterctl.fleet.payloads.runs import NightEnded, NightStarted
from clusterctl.operations.context import SiteContext, open_site
from clusterctl.operations.incidents import listed, update
from clusterctl_cli.main import cli
from clusterctl_web.actions import INCIDENTS, NODES, PLANS, Subjects
from clusterctl_web.openapi import BASE, document
from tests.cli.site_of_three import PROOF, SWAPPED, quarantined, write
from tests.web.browser import MADE, Browser, access

LINKS = FabricLinksJudged(verdict="fail", links=8, proven=7, bad=1, seconds=3600.0, causes=("FAIL a cable",))
FAULT = FabricFault(
    kind="missing", subjects=("leaf-1 port 3",), cause="a cable is missing", action="plug it in", rack="A01", links=1,
)  # fmt: skip


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SiteContext]:
    """A site with a stopped node and its evidence, a night, a fault of the fabric and judged links."""
    opened = open_site(write(tmp_path_factory.mktemp("api")))
    opened.journal.store([PROOF])
    opened.journal.append(quarantined("n2", "discover", SWAPPED))
    now = datetime.now(UTC)
    opened.journal.append(
        [
            NewEvent(Stream.RUN, "night-1", NightStarted(closes=now + timedelta(hours=3), percent=5)),
            NewEvent(Stream.FABRIC, "links", LINKS),
            NewEvent(Stream.FABRIC, FAULT.subject, FabricFaultSeen(fault=FAULT)),
            NewEvent(Stream.RUN, "night-1", NightEnded(tested=("n1",), failed=(), stuck={"n3": "x"}, ended="closed")),
        ]
    )
    opened.journal.append(
        [NewEvent(Stream.PART, "1650", RmaOpened(case="4711", reason="hot", part="gpu 3", node="n2"))]
    )
    order = MaintenanceOrdered(plan={"reason": "a driver"}, waves=(("n1",),), skipped={})
    opened.journal.append([NewEvent(Stream.MAINTENANCE, "n2", order)])
    update(opened)
    yield opened
    opened.journal.close()


@pytest.fixture
def client(context: SiteContext, tmp_path: Path) -> Browser:
    """A client with the token of a viewer."""
    allowed = access(tmp_path)
    file = allowed.accounts
    assert isinstance(file, AccountFile)
    secret = file.add_token("reader", UserRole.VIEWER, "root", MADE, datetime.now(UTC) + timedelta(days=1))
    return Browser(context, allowed, headers={"Authorization": f"Bearer {secret}"})


def filled(path: str, context: SiteContext) -> str:
    name = listed(context)[0].state.id if path.startswith("/incidents") else "n2"
    return BASE + path.replace("{name}", name).replace("{digest}", PROOF.digest)


def undocumented(schema: Mapping[str, Any], value: object, where: str = "") -> Iterator[str]:
    """The keys of an answer that the description does not have."""
    name = schema.get("$ref", "").rpartition("/")[2]
    schema = document()["components"]["schemas"][name] if name else schema
    if "anyOf" in schema and value is not None:
        yield from undocumented(schema["anyOf"][0], value, where)
    elif isinstance(value, list) and "items" in schema:
        for item in value:
            yield from undocumented(schema["items"], item, f"{where}[]")
    elif isinstance(value, dict) and "properties" in schema:
        yield from (f"{where}.{key}" for key in value.keys() - schema["properties"].keys())
        for key, inner in value.items():
            yield from undocumented(schema["properties"].get(key, {}), inner, f"{where}.{key}")


READ = sorted(path for path, operations in document()["paths"].items() if "get" in operations)
ELSEWHERE = "/jobs/", "/runs/{run}", "/nodes/{name}/logs", "/nodes/{name}/bmc-log", "/nodes/{name}/figures", "/parts/"
"""Answers that tests of their own compare."""


@pytest.mark.parametrize("path", [path for path in READ if not path.startswith(ELSEWHERE)])
def test_each_answer_is_as_described(client: Browser, path: str, context: SiteContext) -> None:
    """It fits its schema, and has no key that the schema does not have."""
    answer = client.get(filled(path, context))
    assert answer.status_code == 200, answer.text
    described = document()["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    schema = {**described, "components": document()["components"]}
    found = answer.json()
    Draft202012Validator(schema, format_checker=FormatChecker()).validate(found)
    assert [*undocumented(described, found)] == []
    (first,) = [*found.values()][:1] if path in ("/incidents", "/rmas") else [found]
    assert found["orders"] if path == "/work-orders" else first


def test_nodes_are_found_by_a_part(client: Browser) -> None:
    """By serial or slot of a part, and with a stage only those of it; too long a question is refused, and documented."""

    def found(**asked: str) -> list[str]:
        answer = client.get(f"{BASE}/nodes", params=asked)
        assert answer.status_code == 200, answer.text
        return [node["name"] for node in answer.json()["nodes"]]

    assert found(q="DISK-S2") == ["n2"]
    assert found(q="m.2 a01 quarantined") == found(q="m.2", stage="quarantined") == ["n2"]
    assert found(q="disk-s2", stage="gold") == found(q="no such serial") == []
    for wrong in ("", " ", "x" * 201):
        answer = client.get(f"{BASE}/nodes", params={"q": wrong})
        assert (answer.status_code, answer.json()["error"]["where"]) == (404, "q")
    parameters = document()["paths"]["/nodes"]["get"]["parameters"]
    assert {one["name"] for one in parameters} == {"stage", "q"}


@pytest.mark.parametrize("subjects", [NODES, PLANS, INCIDENTS], ids=lambda one: one.path)
def test_orders_are_described(subjects: Subjects) -> None:
    """Each action is named; the description is valid, and its own schemas accept what an order sends."""
    described = document()["paths"][f"{subjects.path}/{{name}}/actions/{{action}}"]["post"]
    (action,) = [one["schema"] for one in described["parameters"] if one["name"] == "action"]
    assert action["enum"] == sorted(subjects.actions)
    body = described["requestBody"]["content"]["application/json"]["schema"]
    Draft202012Validator(body).validate({"reason": "a fan", "approved": "0" * 64})
    assert [*Draft202012Validator(body).iter_errors({"colour": "red"})]


def test_each_path_is_described(client: Browser) -> None:
    """And the description is served."""
    served = client.get(f"{BASE}/openapi.json").json()
    paths = {
        route.path.removeprefix(BASE).replace(":path}", "}")
        for route in client.app.routes
        if route.path.startswith(BASE)
    }
    assert paths == {*served["paths"], "/openapi.json"}
    assert served["openapi"] == "3.1.0"


@pytest.mark.parametrize(
    "words", [("nodes",), ("nodes", "n2"), ("why", "n2"), ("report", "--work-orders", "-o", "json")]
)
def test_the_keys_are_those_of_the_command_line(client: Browser, words: tuple[str, ...], context: SiteContext) -> None:
    path = {("nodes",): "/nodes", ("nodes", "n2"): "/nodes/n2", ("why", "n2"): "/nodes/n2/why"}.get(
        words, "/work-orders"
    )
    options = () if "-o" in words else ("--json",)
    ran = CliRunner().invoke(cli, [*words, *options, "--site", str(context.site.folder)])
    printed, answered = json.loads(ran.output), client.get(BASE + path).json()
    if "n2" in words:
        (printed,) = printed["nodes"]
    for volatile in ("at", "since"):
        printed.pop(volatile, None)
        answered.pop(volatile, None)
    assert printed == answered


def test_nights_and_fabric_are_those_of_the_journal(client: Browser) -> None:
    (night,) = client.get(f"{BASE}/nights").json()["nights"]
    assert (night["tested"], night["stuck"], night["reason"]) == (["n1"], {"n3": "x"}, "closed")
    assert night["links"]["bad"] == 1
    fabric = client.get(f"{BASE}/fabric").json()
    assert [fault["cause"] for fault in fabric["faults"]] == ["a cable is missing"]
    assert fabric["links"]["proven"] == 7


def test_events_come_in_parts(client: Browser) -> None:
    """The newest first; each part begins where the one before has ended."""
    whole = client.get(f"{BASE}/nodes/n2/events").json()["events"]
    first = client.get(f"{BASE}/nodes/n2/events?limit=2").json()["events"]
    then = client.get(f"{BASE}/nodes/n2/events?limit=2&before={first[-1]['seq']}").json()["events"]
    assert whole[:4] == first + then
    assert whole[0]["seq"] > whole[-1]["seq"]


def test_a_stage_is_chosen(client: Browser) -> None:
    assert [node["name"] for node in client.get(f"{BASE}/nodes?stage=gold").json()["nodes"]] == ["n1"]


@pytest.mark.parametrize(
    "path", ["/nodes/none", "/nodes/n1/why/x", "/nodes/n2/evidence/abc", "/nodes/n2/events?limit=x", "/nothing"]
)
def test_what_is_not_there_is_an_error(client: Browser, path: str) -> None:
    answer = client.get(BASE + path)
    assert answer.status_code == 404


def test_an_error_has_the_keys_of_the_command_line(client: Browser) -> None:
    error = client.get(f"{BASE}/nodes/none").json()["error"]
    assert error.keys() == {"kind", "message", "where", "remedy"}
    client.headers = {}
    refused = client.get(f"{BASE}/nodes")
    assert refused.status_code == 401
    assert refused.json()["error"]["kind"] == "authentication"
