"""Clock, name servers and syslog target of BMCs, as real ones report them and as a BMC over TLS takes them."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import pytest

from clusterctl.edges.redfish import RedfishBmcs
from clusterctl.edges.redfish.write import RefusedError
from clusterctl.fleet.bmc.services import Service, WantedServices
from clusterctl.fleet.errors import EdgeError
from clusterctl.fleet.node import Serial
from clusterctl.formats.redfish.services import ServicesControl, services_reader
from clusterctl.ports import BmcAddress, Deadline
from tests.edges.redfish.replay import Bmc, Handler, merge
from tests.edges.redfish.trees import Tree, ask, recorded, small
from tests.faulty import status

SERIAL = Serial("EX00042")
MANAGER = "/redfish/v1/Managers/1"
PROTOCOL, PORT = f"{MANAGER}/NetworkProtocol", f"{MANAGER}/EthernetInterfaces/1"
EVENTS = "/redfish/v1/EventService"
SUBSCRIPTIONS = f"{EVENTS}/Subscriptions"
WANTED = WantedServices(ntp=("10.0.0.1", "ntp2.example"), dns=("10.0.0.2", "fd00::2"), syslog="10.0.0.3")


def listed(path: str, *members: str) -> dict[str, Any]:
    return {"@odata.id": path, "Members": [{"@odata.id": f"{path}/{one}"} for one in members]}


def with_services(tree: Tree) -> Tree:
    """Give a tree a manager with the services as DMTF has them, off and elsewhere."""
    tree["/redfish/v1"] |= {"Managers": {"@odata.id": "/redfish/v1/Managers"}, "EventService": {"@odata.id": EVENTS}}
    tree["/redfish/v1/Managers"] = listed("/redfish/v1/Managers", "1")
    tree[MANAGER] = {
        "@odata.id": MANAGER,
        "Id": "1",
        "Name": "BMC",
        "ManagerType": "BMC",
        "NetworkProtocol": {"@odata.id": PROTOCOL},
        "EthernetInterfaces": {"@odata.id": f"{MANAGER}/EthernetInterfaces"},
    }
    tree[PROTOCOL] = {"@odata.id": PROTOCOL, "NTP": {"ProtocolEnabled": False, "NTPServers": [None, "localhost"]}}
    tree[f"{MANAGER}/EthernetInterfaces"] = listed(f"{MANAGER}/EthernetInterfaces", "1", "usb0")
    tree[PORT] = {
        "@odata.id": PORT,
        "Id": "1",
        "Name": "eth0",
        "DHCPv4": {"DHCPEnabled": True, "UseDNSServers": True},
        "IPv4Addresses": [{"Address": "10.9.0.7"}],
        "StaticNameServers": ["0.0.0.0", "::"],
        "NameServers": ["10.9.0.1"],
    }
    tree[f"{MANAGER}/EthernetInterfaces/usb0"] = {
        "@odata.id": f"{MANAGER}/EthernetInterfaces/usb0",
        "Id": "usb0",
        "Name": "usb0",
        "IPv4Addresses": [{"Address": "169.254.3.254"}],
        "StaticNameServers": [],
    }
    tree[EVENTS] = {"@odata.id": EVENTS, "Subscriptions": {"@odata.id": SUBSCRIPTIONS}}
    tree[SUBSCRIPTIONS] = listed(SUBSCRIPTIONS)
    return tree


def takes_subscriptions(server: Bmc) -> None:
    """Let the event service take what is posted to it."""

    def manner(handler: Handler) -> bool:
        if handler.command != "POST" or handler.path != SUBSCRIPTIONS:
            return False
        number = str(len(server.tree[SUBSCRIPTIONS]["Members"]) + 1)
        server.tree[f"{SUBSCRIPTIONS}/{number}"] = {"Id": number, "Name": "log", **body_of(handler)}
        server.tree[SUBSCRIPTIONS]["Members"].append({"@odata.id": f"{SUBSCRIPTIONS}/{number}"})
        handler.reply(201, {})
        return True

    server.manner = manner


def body_of(_handler: Handler) -> Mapping[str, Any]:
    return {"Destination": "syslog://10.0.0.3:514", "Protocol": "SyslogUDP"}


def obey(tree: Tree, control: ServicesControl) -> None:
    """Do to the tree what the settings ask for."""
    for setting in control.settings:
        if setting.method == "PATCH":
            merge(tree[setting.path], copy.deepcopy(dict(setting.bodies[0])))


@pytest.mark.parametrize("vendor", ["dell", "hpe", "supermicro"])
def test_recorded_bmcs_take_each_service(vendor: str) -> None:
    """A Dell, an HPE and a Supermicro name a place for each service; once that is set, each is as wanted."""
    tree = recorded(vendor)
    before = ask(services_reader(WANTED), tree)
    assert {one.service: one.right for one in before.states(WANTED)} == dict.fromkeys(Service, False)
    obey(tree, before)
    after = ask(services_reader(WANTED), tree)
    assert {one.service: one.right for one in after.states(WANTED)} == dict.fromkeys(Service, True)


def test_what_dhcp_overrides_is_not_as_wanted() -> None:
    """Name servers that stand there and are not used, since DHCP's are, are wrong."""
    tree = with_services(small())
    tree[PORT]["StaticNameServers"] = ["10.0.0.2", "FD00:0::2", "::"]
    (state,) = ask(services_reader(WantedServices(dns=WANTED.dns)), tree).states(WantedServices(dns=WANTED.dns))
    assert (state.right, "DHCPv4.UseDNSServers true" in state.found) == (False, True)
    tree[PORT]["DHCPv4"]["UseDNSServers"] = False
    (state,) = ask(services_reader(WantedServices(dns=WANTED.dns)), tree).states(WantedServices(dns=WANTED.dns))
    assert state.right


def test_a_bmc_without_a_service_is_not_measured() -> None:
    """What nothing of the BMC takes is neither right nor wrong, and keeps no other service back."""
    tree = with_services(small())
    del tree[PROTOCOL]["NTP"]
    states = {one.service: one.right for one in ask(services_reader(WANTED), tree).states(WANTED)}
    assert states == {Service.CLOCK: None, Service.DNS: False, Service.SYSLOG: False}


def test_all_services_are_set_and_read_back(bmcs: RedfishBmcs, served: tuple[Bmc, BmcAddress]) -> None:
    """What differs is set; a second order sends nothing."""
    server, address = served
    with_services(server.tree)
    takes_subscriptions(server)
    deadline = Deadline.after(60)
    with bmcs.open_services(address, deadline) as bmc:
        done = bmc.set_services(WANTED, SERIAL, deadline).value
        assert [one.right for one in done] == [True, True, True]
        count = len(server.patched)
        bmc.set_services(WANTED, SERIAL, deadline)
    assert {path for path, _ in server.patched} == {PROTOCOL, PORT}
    assert (len(server.patched), len(server.tree[SUBSCRIPTIONS]["Members"])) == (count, 1)


def test_a_refused_service_keeps_the_others_not_back(bmcs: RedfishBmcs, served: tuple[Bmc, BmcAddress]) -> None:
    """A BMC that takes no time servers still gets its name servers; the refusal is reported."""
    server, address = served
    with_services(server.tree)
    server.faults["PATCH", PROTOCOL] = [status(405)] * 8
    deadline = Deadline.after(60)
    wanted = WantedServices(ntp=WANTED.ntp, dns=WANTED.dns)
    with bmcs.open_services(address, deadline) as bmc, pytest.raises(RefusedError, match="clock"):
        bmc.set_services(wanted, SERIAL, deadline)
    assert server.tree[PORT]["StaticNameServers"] == list(WANTED.dns)


def test_another_machine_is_not_set(bmcs: RedfishBmcs, served: tuple[Bmc, BmcAddress]) -> None:
    """The serial is read before anything is sent."""
    server, address = served
    with_services(server.tree)
    deadline = Deadline.after(60)
    with bmcs.open_services(address, deadline) as bmc:
        with pytest.raises(EdgeError, match="EX00042"):
            bmc.services(WANTED, Serial("OTHER"), deadline)
        with pytest.raises(EdgeError, match="EX00042"):
            bmc.set_services(WANTED, Serial("OTHER"), deadline)
    assert server.patched == []
