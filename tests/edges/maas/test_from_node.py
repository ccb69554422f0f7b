"""MAAS from a node: what the node is asked to try, against the lab's MAAS, and the diagnoses of its answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from clusterctl.edges.maas.api import MaasApi
from clusterctl.edges.maas.host import HostFacts
from clusterctl.edges.maas.host.from_node import NAMES, NodeRequest, check_view, node_request
from clusterctl.fleet.diagnosis import Diagnosis, Health
from clusterctl.formats.maas.node_view import Lookup, MetadataAnswer, NodeView, PackageFetch, TimeAnswer
from clusterctl.ports import Deadline
from tests.edges.maas.kit import Lab, UtcClock
from tests.edges.maas.test_host_check import NEEDS

PROXY = "http://10-20-0-0--16.maas-internal:8000/"
REQUEST = NodeRequest(("maas.example", "10-20-0-0--16.maas-internal"), PROXY, ("10.20.0.2", "10.20.0.3"))
INDEX = "http://archive.example/ubuntu/dists/jammy/InRelease"
VIEW = NodeView(
    names={name: Lookup(("10.20.0.2",)) for name in REQUEST.names},
    packages=PackageFetch(INDEX, PROXY, PROXY, 200),
    time={server: TimeAnswer(stratum=3, offset=0.01) for server in REQUEST.ntp},
    metadata=MetadataAnswer("http://10.20.0.2:5248/MAAS/metadata/", True, True, 200),
)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    found = Lab(tmp_path_factory.mktemp("lab"), network="127.94.0.0/16")
    yield found
    found.close()


def asked(lab: Lab) -> NodeRequest:
    facts = HostFacts(MaasApi(lab.settings(), UtcClock()), Deadline.after(60), NEEDS)
    return node_request(facts, lab.world.machines["node001"].address)


def test_a_node_tries_what_maas_gives_its_subnet(lab: Lab) -> None:
    """The proxy by its internal name, the time of the racks; another proxy, no proxy, other time servers."""
    settings = lab.maas.service.settings
    found = asked(lab)
    assert found.proxy == "http://127-94-0-0--16.maas-internal:8000/"
    assert found.names == ("127-94-0-0--16.maas-internal",)  # its URL is an address
    assert found.ntp == (str(lab.world.layout.maas),)

    settings.update(http_proxy="http://cache.example:3142", ntp_external_only=True, ntp_servers="a.example, b.example")
    found = asked(lab)
    assert (found.proxy, found.names) == ("http://cache.example:3142", ("cache.example",))
    assert found.ntp == ("a.example", "b.example")

    settings.update(enable_http_proxy=False)
    assert asked(lab).proxy == ""


def test_a_proxys_password_stays_with_maas(lab: Lab) -> None:
    """It would stand in the command line on the node. A proxy that wants it is not measured, not broken."""
    lab.maas.service.settings.update(enable_http_proxy=True, http_proxy="http://ann:geheim@cache.example:3142")
    request = asked(lab)
    assert request.proxy == "http://cache.example:3142"
    assert "geheim" not in request.argument
    wanted = replace(VIEW, packages=PackageFetch(INDEX, "", request.proxy, 407))
    assert judged(wanted, replace(REQUEST, with_password=True))["node_proxy"].health is Health.NOT_MEASURED
    assert judged(wanted)["node_proxy"].health is Health.BROKEN


def judged(view: NodeView, request: NodeRequest = REQUEST) -> dict[str, Diagnosis]:
    found = check_view(request, view)
    assert tuple(one.name for one in found) == NAMES
    return {one.name: one for one in found}


def test_all_well() -> None:
    """Four findings, none with a remedy."""
    assert {one.health for one in judged(VIEW).values()} == {Health.OK}


WRONG: list[tuple[str, NodeView, Health, str]] = [
    ("node_dns", replace(VIEW, names={}), Health.NOT_MEASURED, "did not report"),
    (
        "node_dns",
        replace(VIEW, names={**VIEW.names, "maas.example": Lookup(error="Name or service not known")}),
        Health.BROKEN,
        "maas.example (Name or service not known)",
    ),
    ("node_proxy", replace(VIEW, packages=PackageFetch("", "", PROXY)), Health.NOT_MEASURED, "no package source"),
    (
        "node_proxy",
        replace(VIEW, packages=PackageFetch(INDEX, "", PROXY, None, "Connection refused")),
        Health.BROKEN,
        "Connection refused",
    ),
    ("node_proxy", replace(VIEW, packages=PackageFetch(INDEX, PROXY, PROXY, 403)), Health.BROKEN, "refused (HTTP 403)"),
    ("node_proxy", replace(VIEW, packages=PackageFetch(INDEX, PROXY, PROXY, 404)), Health.BROKEN, "HTTP 404"),
    ("node_proxy", replace(VIEW, packages=PackageFetch(INDEX, "", PROXY, 200)), Health.WARN, "without MAAS's proxy"),
    ("node_ntp", replace(VIEW, time={}), Health.BROKEN, "not asked"),
    (
        "node_ntp",
        replace(VIEW, time={**VIEW.time, "10.20.0.3": TimeAnswer(error="no answer in time")}),
        Health.WARN,
        "no answer in time",
    ),
    ("node_ntp", replace(VIEW, time=dict.fromkeys(REQUEST.ntp, TimeAnswer(3, 0))), Health.BROKEN, "not set"),
    (
        "node_ntp",
        replace(VIEW, time=dict.fromkeys(REQUEST.ntp, TimeAnswer(0, 2, -400.0))),
        Health.BROKEN,
        "behind the node",
    ),
    ("node_ntp", replace(VIEW, time=dict.fromkeys(REQUEST.ntp, TimeAnswer(0, 2, 3.0))), Health.WARN, "ahead of"),
    ("node_metadata", replace(VIEW, metadata=MetadataAnswer("", False)), Health.NOT_MEASURED, "no URL and key"),
    (
        "node_metadata",
        replace(VIEW, metadata=replace(VIEW.metadata, status=None, error="No route to host")),
        Health.BROKEN,
        "No route to host",
    ),
    ("node_metadata", replace(VIEW, metadata=replace(VIEW.metadata, status=401)), Health.BROKEN, "rejects"),
    ("node_metadata", replace(VIEW, metadata=replace(VIEW.metadata, named=False)), Health.BROKEN, "no instance ID"),
]


@pytest.mark.parametrize(("name", "view", "health", "words"), WRONG)
def test_one_thing_wrong(name: str, view: NodeView, health: Health, words: str) -> None:
    """Each is found as what it is, and the other three stay well."""
    found = judged(view)
    assert found[name].health is health
    assert words in found[name].found
    assert bool(found[name].remedy) is (health is not Health.NOT_MEASURED)
    assert all(one.health is Health.OK for other, one in found.items() if other != name)
