"""Objects of NetBox that are not as documented become conflicts, and stop no other."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterctl.fleet.errors import ParseError
from clusterctl.formats.netbox.records import (
    read_address,
    read_cable,
    read_device,
    read_far_end,
    read_interface,
    read_list,
)
from clusterctl.formats.netbox.values import choice, number, related
from tests.netbox.worlds import cable, device, end, interface

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
READERS = (read_device, read_interface, read_address, read_cable, read_far_end)
SAMPLE = {
    **cable(1, [end(interface(1, device(1, "n1"), "eth0"))], []),
    **device(1, "n1", oob="10.0.0.1/24"),
    **interface(1, device(1, "n1"), "eth0", mac="02:00:00:00:00:01"),
    "address": "10.0.0.1/24",
    "assigned_object_type": "dcim.interface",
    "assigned_object_id": 1,
}


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.__name__)
@given(name=st.sampled_from(sorted(SAMPLE)), value=JSON)
def test_no_value_breaks_a_reader(reader: Any, name: str, value: object) -> None:
    """A field with any value gives a record or a conflict."""
    found, conflicts = read_list([{**SAMPLE, name: value}, SAMPLE], reader, "thing", "dcim/things")
    assert len(found) + len(conflicts) == 2
    assert found


@pytest.mark.parametrize("item", [None, 1, "text", [], {}, {"id": 0}, {"id": True}, {"id": "1"}])
def test_what_is_no_object_is_named(item: object) -> None:
    """The conflict names the place in the list, where there is no id."""
    found, (conflict,) = read_list([item], read_device, "device", "dcim/devices")
    assert (found, conflict.subject, conflict.path) == ([], "device 1 of the list", "dcim/devices/")


def test_an_object_with_an_id_is_named_by_it() -> None:
    """The conflict has the address of the object."""
    _, (conflict,) = read_list([{"id": 7, "name": 5}], read_device, "device", "dcim/devices")
    assert (conflict.subject, conflict.path, conflict.text) == (
        "device 7",
        "dcim/devices/7/",
        "not understood: name is no text",
    )


def test_text_of_netbox_is_one_visible_line() -> None:
    """Control characters of a name do not reach a terminal, and long text is refused."""
    assert read_device(device(1, "n1\x1b[31m\n")).name == "n1\\x1b[31m"
    with pytest.raises(ParseError):
        read_device(device(1, "n" * 201))


def test_both_forms_of_choices_and_numbers() -> None:
    """Choices are objects or plain values; decimals are numbers or text (GraphQL)."""
    assert (choice({"a": {"value": "x", "label": "X"}}, "a"), choice({"a": "x"}, "a"), choice({"a": None}, "a")) == (
        "x",
        "x",
        "",
    )
    assert (number({"a": "25.0"}, "a"), number({"a": 25}, "a"), number({"a": None}, "a")) == (25.0, 25.0, None)
    assert related({"a": None}, "a") is None


@pytest.mark.parametrize(
    ("length", "unit", "metres"), [(10, "ft", 3.048), (150, "cm", 1.5), (2, "m", 2.0), (1, "km", None)]
)
def test_lengths_are_metres(length: float, unit: str, metres: float | None) -> None:
    """A plan has metres, below a kilometre."""
    assert read_cable(cable(1, [], [], length=length, unit=unit)).length_m == metres
