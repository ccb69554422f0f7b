"""`op=allocate`: constraints, and the first Ready machine that meets them."""

from __future__ import annotations

from multidict import MultiDict

from clusterctl_lab.emulators.maas.enrolment import ARCHITECTURE
from clusterctl_lab.emulators.maas.model import Node, Store
from clusterctl_lab.emulators.maas.refusal import RefusedError, bad_form
from clusterctl_lab.emulators.maas.status import Status

CONSTRAINTS = ("name", "system_id", "arch", "mem", "tags", "pool", "zone")
OPTIONS = ("op", "dry_run", "verbose", "comment", "agent_name")


def choose(store: Store, form: MultiDict[str]) -> Node:
    """Raises 400 for a bad constraint, 409 where no machine is free that meets them."""
    given = {name: form.getall(name) for name in CONSTRAINTS if name in form}
    for name in form:
        if name not in (*CONSTRAINTS, *OPTIONS):
            raise bad_form(**{name: "No such constraint."})
    _check(store, given)
    free = [node for node in store.nodes.values() if node.status is Status.READY and not node.owner]
    for node in free:
        if _meets(node, given):
            return node
    raise RefusedError(409, _none_available(given))


def _none_available(given: dict[str, list[str]]) -> str:
    """Return MAAS's message for constraints that no free machine meets."""
    if "system_id" in given:
        return f"No machine with system ID {given['system_id'][0]} available."
    if not given:
        return "No machine available."
    resolved = " ".join(
        f"{name}={float(values[0]) if name == 'mem' else ','.join(values)}" for name, values in given.items()
    )
    return f'No available machine matches constraints: {list(given.items())} (resolved to "{resolved}")'


def _check(store: Store, given: dict[str, list[str]]) -> None:
    if given.get("arch", [ARCHITECTURE])[0] not in (ARCHITECTURE, "amd64"):
        raise bad_form(arch="Architecture not recognised.")
    if not given.get("mem", ["0"])[0].replace(".", "", 1).isdigit():
        raise bad_form(mem="Invalid memory: number of MiB required.")
    for name in given.get("pool", []):
        if name not in store.pools:
            raise bad_form(pool=f"No such pool(s): {name}.")
    for name in given.get("zone", []):
        if name not in store.zones:
            raise bad_form(zone=f"No such zone(s): {name}.")
    unknown = sorted(set(_tags(given)) - store.tags.keys())
    if unknown:
        raise bad_form(tags=f"No such tag(s): {', '.join(repr(tag) for tag in unknown)}.")


def _meets(node: Node, given: dict[str, list[str]]) -> bool:
    memory = node.hardware.memory_mib if node.hardware else 0
    return (
        node.hostname in given.get("name", [node.hostname])
        and node.system_id in given.get("system_id", [node.system_id])
        and node.pool in given.get("pool", [node.pool])
        and node.zone in given.get("zone", [node.zone])
        and set(_tags(given)) <= set(node.tags)
        and memory >= float(given.get("mem", ["0"])[0])
    )


def _tags(given: dict[str, list[str]]) -> list[str]:
    return [tag.strip() for value in given.get("tags", []) for tag in value.split(",") if tag.strip()]
