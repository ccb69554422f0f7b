"""The roles that there are, which of them a site's nodes get, and whether that can work."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from clusterctl.edges.resources import resource
from clusterctl.edges.site.load import Site
from clusterctl.edges.site.textfile import read_text, read_yaml
from clusterctl.fleet.errors import EnvironmentBrokenError, ParseError, UsageError
from clusterctl.fleet.roles.problems import RoleProblem, unknown_names, unknown_role, wrong_choice, wrong_variables
from clusterctl.fleet.roles.selection import Group, GroupMember, RequestedRoles, recommended_section
from clusterctl.fleet.roles.specification import Roles
from clusterctl.formats.site.role_specs import Place, parse_placement, parse_role
from clusterctl.formats.site.yaml_document import PathKey

PLAYBOOK = "configure.yml"
GIVEN = frozenset({"ssh_access_nodes", "ssh_access_node_users"})
"""Variables that clusterctl itself knows, and gives to the roles where the site sets nothing else."""
NAMED = 3
"""So many nodes are named where a problem is some nodes' own."""


@cache
def shipped_roles() -> Roles:
    """Return all shipped roles, by name."""
    folder = resource("roles")
    file = folder / "placement.yml"
    try:
        places = parse_placement(read_text(file), str(file))
        found = {}
        for path in sorted(path for path in folder.iterdir() if path.is_dir()):
            specs = path / "meta" / "argument_specs.yml"
            found[path.name] = parse_role(path.name, read_text(specs), str(specs), places.get(path.name, Place()))
    except (UsageError, ParseError) as error:
        remedy = "install clusterctl again from a complete wheel"
        raise EnvironmentBrokenError(f"its roles cannot be read: {error}", where=str(folder), remedy=remedy) from None
    return found


@cache
def role_order() -> tuple[str, ...]:
    """Return the order in which `configure.yml` applies them."""
    file = resource("playbooks") / PLAYBOOK
    (play,) = read_yaml(file).data
    return tuple(play["vars"]["configure_order"])


def wanted(site: Site) -> RequestedRoles:
    """Return the site's roles and variables; what clusterctl itself knows is not in it."""
    chosen = site.settings.configure
    groups = tuple(
        Group(one.nodes, one.racks, one.skus, one.roles, one.without, one.variables) for one in chosen.groups
    )
    return RequestedRoles(chosen.roles, chosen.variables, groups)


def check_roles(site: Site) -> None:
    """Raise `UsageError` with every problem of the site's roles, each at its file, line and field."""
    if site.settings.configure.playbook != PLAYBOOK:
        return
    found = list(_problems(site, wanted(site), shipped_roles()))
    if not found:
        return
    first, *others = found
    more = "".join(f"\n{other.where}: {other.problem.text} ({other.problem.remedy})" for other in others)
    raise UsageError(first.problem.text + more, where=first.where, remedy=first.problem.remedy)


@dataclass(frozen=True, slots=True)
class _Located:
    problem: RoleProblem
    where: str


def _problems(site: Site, requested: RequestedRoles, roles: Roles) -> Iterator[_Located]:
    yield from _in_lists(site, requested, roles)
    yield from _in_groups(site, requested)
    given = GIVEN | site.settings.configure.secrets.keys()
    reported: set[RoleProblem] = set()
    for indices, names in _kinds_of_nodes(site, requested):
        for problem in wrong_choice(requested.of(indices), frozenset(given), roles):
            if problem in reported:
                continue
            reported.add(problem)
            text = problem.text + (f" (on {_some(names)})" if indices else "")
            yield _Located(
                RoleProblem(problem.about, text, problem.remedy), _where_role(site, requested, problem.about, indices)
            )


def _in_lists(site: Site, requested: RequestedRoles, roles: Roles) -> Iterator[_Located]:
    """Yield the problems of names and values, each with its place."""
    lists: list[tuple[PathKey, Iterable[str]]] = [(("configure", "roles"), requested.roles)]
    mappings: list[tuple[PathKey, Mapping[str, Any]]] = [(("configure", "variables"), requested.variables)]
    for index, group in enumerate(requested.groups):
        at: PathKey = ("configure", "groups", index)
        lists += [((*at, "roles"), group.roles), ((*at, "without"), group.without)]
        mappings.append(((*at, "variables"), group.variables))
    for path, names in lists:
        for number, name in enumerate(names):
            if problem := unknown_role(name, roles):
                yield _Located(problem, site.where(*path, number))
    for where, variables in mappings:
        for problem in wrong_variables(variables, roles):
            yield _Located(problem, site.where(*where, problem.about))
    for problem in unknown_names(site.settings.configure.secrets, roles):
        yield _Located(problem, site.where("configure", "secrets", problem.about))


def _in_groups(site: Site, requested: RequestedRoles) -> Iterator[_Located]:
    """Yield a problem for each group that no node can belong to."""
    known = _members(site)
    for index, group in enumerate(requested.groups):
        for field, names in (("nodes", group.nodes), ("racks", group.racks), ("skus", group.skus)):
            for number, name in enumerate(names):
                if name in known[field] or (field == "nodes" and fnmatch.filter(known[field], name)):
                    continue
                near = ", ".join(known[field][:NAMED])
                problem = RoleProblem(name, f"none of the site's {field} is {name!r}", f"they are {near} …")
                yield _Located(problem, site.where("configure", "groups", index, field, number))


def _members(site: Site) -> Mapping[str, Sequence[str]]:
    """Return what a group can name, by the group's field."""
    return {
        "nodes": [node.name for node in site.nodes],
        "racks": sorted({node.rack for node in site.nodes if node.rack}),
        "skus": sorted(sku.name for sku in site.skus),
    }


def _kinds_of_nodes(site: Site, requested: RequestedRoles) -> Iterator[tuple[tuple[int, ...], list[str]]]:
    """Yield the sets of groups that some node has, and these nodes; a node may be of any SKU of the site."""
    skus = [sku.name for sku in site.skus] if any(group.skus for group in requested.groups) else [""]
    kinds: dict[tuple[int, ...], list[str]] = {} if site.nodes else {(): []}
    for node in site.nodes:
        for sku in skus:
            indices = requested.choose(GroupMember(node.name, node.rack, sku)).groups
            kinds.setdefault(indices, []).append(node.name)
    yield from sorted(kinds.items())


def _where_role(site: Site, requested: RequestedRoles, role: str, indices: Iterable[int]) -> str:
    """Return the place where the role was chosen."""
    for index in indices:
        if role in requested.groups[index].roles:
            return site.where("configure", "groups", index, "roles", requested.groups[index].roles.index(role))
    if role in requested.roles:
        return site.where("configure", "roles", requested.roles.index(role))
    return site.where("configure", "roles")


def _some(names: list[str]) -> str:
    first = list(dict.fromkeys(names))
    more = len(first) - NAMED
    return ", ".join(first[:NAMED]) + (f" and {more} more" if more > 0 else "")


_TEMPLATE_NAME = "my-site"
_GITIGNORE = "secrets/*\n!secrets/README.md\nstate/\n"


def write_site(folder: Path, name: str = _TEMPLATE_NAME) -> tuple[Path, ...]:
    """Write a commented site called `name` into `folder` (new or empty); the files written."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError("is there already and not empty", where=str(folder), remedy="name a new directory")
    templates = resource("site")
    secrets = folder / "secrets"
    secrets.mkdir(parents=True)
    secrets.chmod(0o700)
    (folder / "limits").mkdir()
    (folder / "skus").mkdir()
    files = {
        folder / "site.yml": _site_file((templates / "site.yml").read_text(encoding="utf-8"), name),
        folder / "bmcs.csv": (templates / "bmcs.csv").read_text(encoding="utf-8"),
        folder / "wiring.csv": (templates / "wiring.csv").read_text(encoding="utf-8"),
        secrets / "README.md": (templates / "secrets.md").read_text(encoding="utf-8"),
        folder / ".gitignore": _GITIGNORE,
    }
    for file, text in files.items():
        file.write_text(text, encoding="utf-8")
    return tuple(files)


def _site_file(template: str, name: str) -> str:
    section = recommended_section(role_order(), shipped_roles(), GIVEN)
    return template.replace("# @CONFIGURE@\n", section).replace(f"name: {_TEMPLATE_NAME}\n", f"name: {name}\n", 1)
