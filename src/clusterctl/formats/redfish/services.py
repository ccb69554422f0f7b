"""A BMC's time servers, name servers and syslog target: what they are, and what sets them.

DMTF's ManagerNetworkProtocol (`NTP`), EthernetInterface (`StaticNameServers`, `DHCPv4.UseDNSServers`) and
EventDestination (`Syslog`). Where vendors have them elsewhere: Dell's attributes (`IPv4Static.1.DNS1`,
`SysLog.1.Server1`), HPE's DateTime (`StaticNTPServers`) and `RemoteSyslogServer`, Supermicro's Oem `Syslog`. Recorded
at all three; HPE's rule that DHCP must not manage the time servers: https://servermanagementportal.ext.hpe.com.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any, Literal

from clusterctl.fleet.bmc.services import Service, ServiceState, WantedServices
from clusterctl.fleet.errors import EdgeError, ParseError
from clusterctl.fleet.node import Serial
from clusterctl.fleet.peer_text import visible_line
from clusterctl.formats.redfish import system
from clusterctl.formats.redfish.machine import serial_of
from clusterctl.formats.redfish.tree import Answers, NotYetReadError, ReadRequest, RedfishTree, Resource

_NO_V4, _NO_V6 = str(IPv4Address(0)), str(IPv6Address(0))
_EMPTY = frozenset({"", _NO_V4, _NO_V6, "(null)", "null", "none"})
"""What BMCs write into slots of a list that hold nothing."""
Keys = tuple[str, ...]
Fields = Mapping[Keys, Any]
"""Values by their place in a resource."""


@dataclass(frozen=True, slots=True)
class ServiceSetting:
    """One resource that takes a part of a service. `bodies`: what sets it, the likeliest first."""

    service: Service
    path: str
    etag: str
    found: str
    right: bool
    bodies: tuple[Mapping[str, Any], ...]
    method: Literal["PATCH", "POST"] = "PATCH"


@dataclass(frozen=True, slots=True)
class ServicesControl:
    """The settings in the order in which they are made. `unreported`: why nothing of the BMC takes a service."""

    serial: Serial
    settings: tuple[ServiceSetting, ...]
    unreported: Mapping[Service, str]

    def states(self, wanted: WantedServices) -> tuple[ServiceState, ...]:
        """Return how the BMC stands to each wanted service."""
        return tuple(self._state(service, text) for service, text in wanted.texts.items())

    def _state(self, service: Service, wanted: str) -> ServiceState:
        own = [one for one in self.settings if one.service is service]
        if service in self.unreported or not own:
            reason = self.unreported.get(service, "the BMC reports nothing that takes it")
            return ServiceState(service=service, wanted=wanted, found=reason, right=None)
        found = "; ".join(dict.fromkeys(one.found for one in own))
        return ServiceState(service=service, wanted=wanted, found=found, right=all(one.right for one in own))


def services_reader(wanted: WantedServices) -> Callable[[Answers], ServicesControl | ReadRequest]:
    """Return the reader of these services. It raises `ParseError` or `EdgeError` where the machine is not reported."""

    def read(answers: Answers) -> ServicesControl | ReadRequest:
        tree = RedfishTree(answers)
        try:
            return _control(tree, wanted)
        except NotYetReadError:
            return ReadRequest(tuple(tree.wanted))

    return read


def _control(tree: RedfishTree, wanted: WantedServices) -> ServicesControl:
    host = system.host_system(tree)
    serial = serial_of(tree, host)
    manager = manager_of(tree, host)
    settings: list[ServiceSetting] = []
    unreported: dict[Service, str] = {}
    for service in wanted.texts:
        try:
            settings += _READERS[service](tree, manager, wanted)
        except (ParseError, EdgeError) as error:
            unreported[service] = f"{error.message} ({error.where})"
        except NotYetReadError:
            continue
    if tree.wanted:
        raise NotYetReadError
    return ServicesControl(serial, tuple(settings), unreported)


def manager_of(tree: RedfishTree, host: Resource) -> Resource:
    """Return the BMC of the host: the first of its managers, else of all managers that are BMCs."""
    linked = host.links("Links", "ManagedBy")
    if linked:
        return tree.get(linked[0])
    found = tree.members(tree.root, "Managers")
    if not found:
        raise ParseError("the BMC lists no manager", where=tree.root.where("Managers"))
    return next((one for one in found if one.term("ManagerType") == "BMC"), found[0])


def _clock(tree: RedfishTree, manager: Resource, wanted: WantedServices) -> list[ServiceSetting]:
    protocol = tree.follow(manager, "NetworkProtocol")
    if protocol.has("NTP"):
        fields: Fields = {("NTP", "ProtocolEnabled"): True, ("NTP", "NTPServers"): wanted.ntp}
        return [_setting(Service.CLOCK, protocol, fields)]
    if manager.link("Oem", "Hpe", "Links", "DateTimeService") is None:
        raise ParseError("the BMC reports no time servers", where=protocol.where("NTP"))
    times = tree.follow(manager, "Oem", "Hpe", "Links", "DateTimeService")
    by_dhcp = [(one, _by_dhcp(one, "UseNTPServers")) for one in _interfaces(tree, manager)]
    freed = [_setting(Service.CLOCK, interface, override) for interface, override in by_dhcp if override]
    return [*freed, _setting(Service.CLOCK, times, {("StaticNTPServers",): wanted.ntp})]


def _dns(tree: RedfishTree, manager: Resource, wanted: WantedServices) -> list[ServiceSetting]:
    settings = [
        _setting(Service.DNS, one, {("StaticNameServers",): wanted.dns, **_by_dhcp(one, "UseDNSServers")})
        for one in _interfaces(tree, manager)
        if one.value("StaticNameServers") is not None
    ]
    if settings:
        return settings
    attributes = _dell(tree, manager)
    if attributes is None:
        raise ParseError("no interface of the BMC takes name servers", where=manager.where("EthernetInterfaces"))
    return [_setting(Service.DNS, attributes, _dell_dns(wanted.dns))]


def _syslog(tree: RedfishTree, manager: Resource, wanted: WantedServices) -> list[ServiceSetting]:
    host, port = wanted.syslog, wanted.syslog_port
    attributes = _dell(tree, manager)
    if attributes is not None:
        values = {"SysLogEnable": "Enabled", "Server1": host, "Port": port}
        fields: Fields = {("Attributes", f"SysLog.1.{name}"): value for name, value in values.items()}
        return [_setting(Service.SYSLOG, attributes, fields)]
    if manager.link("Oem", "Supermicro", "Syslog") is not None:
        syslog = tree.follow(manager, "Oem", "Supermicro", "Syslog")
        fields = {("EnableSyslog",): True, ("SyslogServer",): host, ("SyslogPortNumber",): port}
        return [_setting(Service.SYSLOG, syslog, fields)]
    if manager.has("NetworkProtocol"):
        protocol = tree.follow(manager, "NetworkProtocol")
        if protocol.flag("Oem", "Hpe", "RemoteSyslogEnabled") is not None:
            values = {"RemoteSyslogEnabled": True, "RemoteSyslogServer": host, "RemoteSyslogPort": port}
            fields = {("Oem", "Hpe", name): value for name, value in values.items()}
            return [_setting(Service.SYSLOG, protocol, fields)]
    return [_subscription(tree, host, port)]


_READERS: Mapping[Service, Callable[[RedfishTree, Resource, WantedServices], list[ServiceSetting]]] = {
    Service.CLOCK: _clock,
    Service.DNS: _dns,
    Service.SYSLOG: _syslog,
}


def _subscription(tree: RedfishTree, host: str, port: int) -> ServiceSetting:
    """Return DMTF's way: a subscription of the event service whose destination is a syslog server."""
    events = tree.follow(tree.root, "EventService")
    destination = f"syslog://[{host}]:{port}" if ":" in host else f"syslog://{host}:{port}"
    present = [
        visible_line(one.text("Destination"), 100)
        for one in tree.members(events, "Subscriptions")
        if one.text("Protocol").startswith("Syslog")
    ]
    return ServiceSetting(
        Service.SYSLOG,
        str(events.link("Subscriptions")),
        "",
        f"subscriptions {', '.join(present) or 'none'}",
        destination in present,
        ({"Destination": destination, "Protocol": "SyslogUDP", "SubscriptionType": "Syslog", "Context": "clusterctl"},),
        "POST",
    )


def _interfaces(tree: RedfishTree, manager: Resource) -> tuple[Resource, ...]:
    """Return the BMC's own ports that have an address: no port to the host, and none that is not connected."""
    return tuple(one for one in tree.members(manager, "EthernetInterfaces") if _is_live(one))


def _is_live(interface: Resource) -> bool:
    if interface.has("Links", "HostInterface") or interface.flag("InterfaceEnabled") is False:
        return False
    listed = (*interface.each("IPv4Addresses"), *interface.each("IPv6Addresses"))
    return any(_is_reachable(one.text("Address")) for one in listed)


def _is_reachable(text: str) -> bool:
    try:
        address = ip_address(text)
    except ValueError:
        return False
    return not (address.is_unspecified or address.is_link_local or address.is_loopback)


def _by_dhcp(interface: Resource, name: str) -> Fields:
    """Return what ends that DHCP overrides the servers: nothing where it does not."""
    return {(family, name): False for family in ("DHCPv4", "DHCPv6") if interface.flag(family, name)}


def _dell(tree: RedfishTree, manager: Resource) -> Resource | None:
    """Return the attributes of Dell's BMC itself; None at others."""
    listed = manager.references("Links", "Oem", "Dell", "DellAttributes")
    own = next((path for path in listed if path.endswith(f"/{manager.id}")), None)
    return tree.get(own) if own is not None else None


def _dell_dns(servers: Sequence[str]) -> Fields:
    """Return Dell's attributes: two servers of each kind of address, and DHCP's are not taken."""
    found: dict[Keys, Any] = {}
    for kind, dhcp, empty in (("IPv4Static.1", "DNSFromDHCP", _NO_V4), ("IPv6Static.1", "DNSFromDHCP6", _NO_V6)):
        own = [one for one in servers if (":" in one) is (empty == _NO_V6)]
        if own:
            found["Attributes", f"{kind}.{dhcp}"] = "Disabled"
            for number, server in enumerate((*own, empty)[:2], start=1):
                found["Attributes", f"{kind}.DNS{number}"] = server
    return found


def _setting(service: Service, resource: Resource, fields: Fields) -> ServiceSetting:
    """Return the setting that makes these fields so."""
    present = {keys: resource.value(*keys) for keys in fields}
    bodies = [_nested(fields)]
    filled = {keys: _filled(value, present[keys]) for keys, value in fields.items()}
    if filled != dict(fields):
        bodies.append(_nested(filled))
    return ServiceSetting(
        service,
        resource.path,
        resource.text("@odata.etag"),
        ", ".join(f"{_name(keys)} {_words(value)}" for keys, value in present.items()),
        all(_alike(present[keys], value) for keys, value in fields.items()),
        tuple(bodies),
    )


def _name(keys: Keys) -> str:
    """Return a field's name without what only groups fields."""
    return ".".join(key for key in keys if key not in ("Attributes", "Oem"))


def _nested(fields: Fields) -> dict[str, Any]:
    body: dict[str, Any] = {}
    for keys, value in fields.items():
        inner = body
        for key in keys[:-1]:
            inner = inner.setdefault(key, {})
        inner[keys[-1]] = list(value) if isinstance(value, tuple) else value
    return body


def _filled(wanted: Any, present: Any) -> Any:
    """Return a list with all slots that the BMC has, for BMCs that change only the slots that they are given."""
    if not isinstance(wanted, tuple) or not isinstance(present, list):
        return wanted
    slots = [one if isinstance(one, str) else "" for one in present]
    found: list[str] = []
    for six in (False, True):
        own = [one for one in wanted if (":" in one) is six]
        places = [one for one in slots if (":" in one) is six]
        found += own
        found += [_NO_V6 if six else (_NO_V4 if one == _NO_V4 else "") for one in places[len(own) :]]
    return tuple(found)


def _alike(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, tuple):
        return isinstance(found, list) and _servers(found) == tuple(map(_plain, wanted))
    if isinstance(wanted, str):
        return isinstance(found, str) and _plain(found) == _plain(wanted)
    return type(found) is type(wanted) and bool(found == wanted)


def _servers(listed: Sequence[Any]) -> tuple[str, ...]:
    """Return the servers of a list without its empty slots."""
    plain = (_plain(one) for one in listed if isinstance(one, str))
    return tuple(one for one in plain if one not in _EMPTY)


def _plain(text: str) -> str:
    """Return an address in its short form, a name in lower case."""
    bare = text.strip().casefold().rstrip(".")
    try:
        return ip_address(bare).compressed
    except ValueError:
        return bare


def _words(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(visible_line(one, 80) for one in value[:8] if isinstance(one, str) and one) or "none"
    if isinstance(value, bool):
        return str(value).lower()
    return visible_line(str(value), 80) if value not in (None, "") else "none"
