"""JSON of lldpctl in both of its shapes: the neighbours, or an error that names the place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.network.lldp import Neighbour
from clusterctl.formats.host.lldp import parse_lldpctl

DATA = Path(__file__).parent / "data"
TEXTS = {name: (DATA / name).read_text() for name in ("two_neighbours.json", "two_neighbours.json0")}


def neighbour(interface: str, port: str, mac: str) -> Neighbour:
    return Neighbour(interface, "eth-leaf-1", (port,), mac, "c2:50:3e:00:00:01")


@pytest.mark.parametrize("name", TEXTS)
def test_both_shapes_give_the_same(name):
    """`-f json` and `-f json0` of one moment give equal neighbours."""
    report = parse_lldpctl(TEXTS[name])
    assert report.neighbours == (
        neighbour("ens1f0", "swp1", "c2:50:3e:00:00:01"),
        neighbour("ens1f1", "swp2", "c2:50:3e:00:00:02"),
    )


@pytest.mark.parametrize("text", ['{"lldp": {}}', '{"lldp": [{}]}', '{"lldp": [{"interface": []}]}'])
def test_no_neighbour_is_an_answer(text):
    """A daemon without neighbours prints an empty element; that is no error."""
    assert parse_lldpctl(text).neighbours == ()


def test_a_single_neighbour_is_folded():
    """With one neighbour `-f json` has an object in the place of the list; a chassis may have no name."""
    port = {"id": {"type": "ifname", "value": "Ethernet4"}, "descr": "to node001"}
    chassis = {"id": {"type": "mac", "value": "C2:50:3E:00:00:01"}, "mgmt-ip": "192.0.2.1"}
    text = json.dumps({"lldp": {"interface": {"eth0": {"via": "LLDP", "chassis": chassis, "port": port}}}})
    expected = Neighbour("eth0", "c2:50:3e:00:00:01", ("Ethernet4", "to node001"), None, "c2:50:3e:00:00:01")
    assert parse_lldpctl(text).neighbours == (expected,)


def test_a_bare_chassis_of_an_id_only():
    """A chassis that sends its id and nothing else is not mistaken for one that is called `id`."""
    body = {"via": "LLDP", "chassis": {"id": {"type": "local", "value": "bmc-7"}}, "port": {"id": {"value": "1"}}}
    (found,) = parse_lldpctl(json.dumps({"lldp": {"interface": {"eth0": body}}})).neighbours
    assert (found.chassis, found.ports) == ("bmc-7", ("1",))


def test_own_interfaces():
    """`lldpcli show interfaces` prints the MAC addresses of the device's own ports."""
    port = {"id": {"type": "mac", "value": "2a:7f:ad:00:00:01"}, "descr": "ens1f0"}
    body = {"status": "RX and TX", "chassis": {"node001": {"id": {"type": "mac", "value": "2a:7f:ad:00:00:01"}}}}
    text = json.dumps({"lldp": {"interface": [{"ens1f0": {**body, "port": port}}]}})
    report = parse_lldpctl(text)
    assert report.interfaces == {"ens1f0": "2a:7f:ad:00:00:01"}
    assert report.neighbours == ()


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("", "f:1"),
        ('{"lldp": {\n"interface"', "f:2"),
        ("[]", "f lldp"),
        ("{}", "f lldp"),
        ('{"lldp": 7}', "f lldp"),
        ('{"lldp": [{}, {}]}', "f lldp"),
        ('{"lldp": {"interface": {"e": 1}}}', "f lldp.interface.e"),
        ('{"lldp": {"interface": {"e": {"via": "LLDP"}}}}', "f lldp.interface.e"),
        ('{"lldp": {"interface": {"e": {"via": "LLDP", "chassis": {"a": 1}}}}}', "f lldp.interface.e.chassis.a"),
        (
            '{"lldp": {"interface": {"e": {"via": "LLDP", "chassis": {"a": {"id": {"value": ""}}}, "port": {}}}}}',
            "f lldp.interface.e.port",
        ),
        ("[" * 100_000, "f"),
        ("9" * 5000, "f"),
    ],
)
def test_what_is_not_understood_is_refused(text, where):
    """Never an empty answer: the line of broken JSON, else the element."""
    with pytest.raises(ParseError) as caught:
        parse_lldpctl(text, file="f")
    assert caught.value.where == where
    assert caught.value.remedy


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["lldp", "interface", "name", "chassis", "port", "id", "via", "value"]), inner
        )
    ),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None)
@given(name=st.sampled_from(sorted(TEXTS)), document=JSON, data=st.data())
def test_any_element_in_the_place_of_a_right_one(name, document, data):
    """Any part of a right document replaced by any other: understood or a ParseError, never anything else."""
    right = json.loads(TEXTS[name])
    here, key = right, "lldp"
    while isinstance(here[key], (dict, list)) and here[key] and data.draw(st.booleans()):
        here = here[key]
        key = data.draw(st.sampled_from(sorted(here) if isinstance(here, dict) else range(len(here))))
    here[key] = document
    for text in (json.dumps(right), json.dumps(right)[: data.draw(st.integers(0, 400))]):
        try:
            parse_lldpctl(text, file="f")
        except ParseError as error:
            refusal = error
        else:
            continue
        assert refusal.where.startswith("f")
