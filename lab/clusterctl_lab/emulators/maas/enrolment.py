"""Creating and changing machines: the rules of MAAS's form, with MAAS's messages."""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Mapping

from multidict import MultiDict

from clusterctl_lab.emulators.maas.model import Interface, Node, Store
from clusterctl_lab.emulators.maas.refusal import RefusedError

ARCHITECTURE = "amd64/generic"
REQUIRED = "This field is required."
POWER_FIELDS = {"power_address": True, "power_user": True, "power_pass": True, "node_id": False}
CHOICE = "Select a valid choice. {} is not one of the available choices."
PLAIN_FIELDS = ("description", "pool", "zone")
_MAC = re.compile(r"([0-9a-f]{2}:){5}[0-9a-f]{2}")
_POWER = "power_parameters"


def create(store: Store, fields: MultiDict[str]) -> Node:
    """A new machine. Raises 400 naming every field that is wrong; 500 for a power address that is a URL."""
    errors: dict[str, list[str]] = {}
    macs = _macs(store, fields, errors)
    architecture = _architecture(fields.get("architecture", ""), errors)
    parameters = _power(fields, errors)
    if fields.get("power_type") and errors.keys() & {"mac_addresses"}:
        errors["power_type"] = ["Can't set power type to redfish without network interfaces"]
        errors.pop(_POWER, None)
    hostname = _hostname(store, fields.get("hostname", ""), None, errors)
    if fields.get("domain", "maas") != "maas":
        errors["domain"] = [f"Unable to find domain {fields['domain']}"]
    if errors:
        raise RefusedError(400, errors)
    if "power_address" in parameters:
        _check_address(parameters["power_address"])
    system_id = store.new_system_id()
    interfaces = [
        Interface(store.next_id("interface"), f"eth{number}", mac, store.next_id("link"))
        for number, mac in enumerate(macs)
    ]
    node = Node(
        system_id=system_id,
        hostname=hostname or f"machine-{system_id}",
        architecture=architecture,
        power_type=fields.get("power_type", ""),
        power_parameters=parameters,
        interfaces=interfaces,
        description=fields.get("description", ""),
    )
    store.nodes[system_id] = node
    return node


def update(store: Store, node: Node, fields: MultiDict[str]) -> None:
    """Update the given fields; fields that MAAS does not know are ignored."""
    errors: dict[str, list[str]] = {}
    for name, known in (("pool", store.pools), ("zone", store.zones)):
        if name in fields and fields[name] not in known:
            errors[name] = [CHOICE.format("That choice")]
    hostname = _hostname(store, fields["hostname"], node, errors) if "hostname" in fields else node.hostname
    parameters = _power(fields, errors) if "power_type" in fields else _changed(node, fields, errors)
    if errors:
        raise RefusedError(400, errors)
    if "power_address" in parameters:
        _check_address(parameters["power_address"])
    node.hostname = hostname
    node.power_type = fields.get("power_type", node.power_type)
    node.power_parameters = parameters
    node.description = fields.get("description", node.description)
    node.pool = fields.get("pool", node.pool)
    node.zone = fields.get("zone", node.zone)


def _macs(store: Store, fields: MultiDict[str], errors: dict[str, list[str]]) -> list[str]:
    macs = [mac.lower() for mac in fields.getall("mac_addresses", [])]
    if not macs:
        errors["mac_addresses"] = [REQUIRED]
    for mac in macs:
        if not _MAC.fullmatch(mac):
            errors["mac_addresses"] = [f"'{mac}' is not a valid MAC address."]
        elif (owner := store.by_mac(mac)) is not None:
            errors["mac_addresses"] = [f"MAC address {mac} already in use on {owner.hostname}."]
    return macs


def _architecture(given: str, errors: dict[str, list[str]]) -> str:
    if not given:
        errors["architecture"] = [REQUIRED]
    elif given not in (ARCHITECTURE, ARCHITECTURE.partition("/")[0]):
        errors["architecture"] = [f"'{given}' is not a valid architecture.  It should be one of: '{ARCHITECTURE}'."]
    return ARCHITECTURE


def _power(fields: MultiDict[str], errors: dict[str, list[str]]) -> dict[str, str]:
    """Return the power parameters, given one by one or as one JSON string."""
    kind = fields.get("power_type", "")
    if kind not in ("", "redfish", "manual"):
        errors["power_type"] = [CHOICE.format(kind)]
    if kind != "redfish":
        return {}
    given = _given(fields)
    unknown = sorted(given.keys() - POWER_FIELDS.keys())
    if unknown:
        errors[_POWER] = [f"Unknown parameter(s): {', '.join(unknown)}."]
    elif any(required and not given.get(name) for name, required in POWER_FIELDS.items()):
        errors[_POWER] = [REQUIRED]
    return {name: given.get(name, "") for name in POWER_FIELDS}


def _changed(node: Node, fields: MultiDict[str], errors: dict[str, list[str]]) -> dict[str, str]:
    """Return the changed parameters. Without a power type, only the given parameters change (recorded: a PUT of the
    password alone, and all machines' power parameters afterwards).
    """
    if not node.power_parameters:
        return {}
    given = _given(fields)
    unknown = sorted(given.keys() - POWER_FIELDS.keys())
    if unknown:
        errors[_POWER] = [f"Unknown parameter(s): {', '.join(unknown)}."]
    return {name: given.get(name, kept) for name, kept in node.power_parameters.items()}


def _given(fields: MultiDict[str]) -> dict[str, str]:
    prefix = f"{_POWER}_"
    given = {name.removeprefix(prefix): value for name, value in fields.items() if name.startswith(prefix)}
    return {**given, **_parsed(fields.get(_POWER, "{}"))}


def _parsed(text: str) -> Mapping[str, str]:
    try:
        return {str(name): str(value) for name, value in dict(json.loads(text)).items()}
    except (ValueError, TypeError) as error:
        raise RefusedError(400, {_POWER: ["Failed to parse JSON power_parameters"]}) from error


def _hostname(store: Store, given: str, node: Node | None, errors: dict[str, list[str]]) -> str:
    if "_" in given:
        errors["hostname"] = [f"Host label cannot contain underscore: '{given}'."]
    elif given and not re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?", given):
        errors["hostname"] = [f"Invalid hostname: '{given}'."]
    elif given and store.by_hostname(given) not in (None, node):
        errors["hostname"] = ["Node with this Hostname already exists."]
    return given


def _check_address(address: str) -> None:
    """Refuse a URL: MAAS 3.4 fails on it with netaddr's own message; recorded."""
    if "/" in address:
        raise RefusedError(
            500, "IPAddress() does not support netmasks or subnet prefixes! See documentation for details."
        )
    host = address.rsplit(":", 1)[0] if address.count(":") == 1 else address.strip("[]")
    try:
        ipaddress.ip_address(host)
    except ValueError as error:
        raise RefusedError(400, {"power_parameters": [f"{host} is not a valid IP address."]}) from error
