"""A profile put together from a vendor's parts: paths, behaviour, rendered resources and the wording of answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from clusterctl_lab.emulators.redfish.profile import BiosAttribute, Paths, RefusedError
from clusterctl_lab.emulators.redfish.resource import Resource, Tree, index
from clusterctl_lab.emulators.redfish.traits import Traits
from clusterctl_lab.emulators.redfish.view import LogRecord, View


class Wording(Protocol):
    """The vendor's wording of refusals and of success: a `Language`, or a module with both functions."""

    def refusal(self, refused: RefusedError) -> tuple[int, Resource]: ...
    def success(self) -> Resource: ...


class Section(Protocol):
    """A vendor's module that renders some of the resources."""

    def resources(self, view: View) -> Iterable[Resource]: ...


Rest = Callable[[Paths, Traits, View], Iterable[Resource]]
"""What is rendered by more than the view."""


@dataclass(frozen=True, slots=True)
class Assembled:
    """Meets `Profile`. Of two resources at one path the later one is served: `rest`, then `sections` in their order.

    login   the audit entry of a login, from its time, user and client
    form    what is done to each resource in the end
    """

    paths: Paths
    traits: Traits
    sections: tuple[Section, ...]
    rest: Rest
    wording: Wording
    login: Callable[[str, str, str], LogRecord]
    bios: Mapping[str, BiosAttribute]
    questions: Mapping[str, Callable[[View], Resource]] = field(default_factory=dict)
    form: Callable[[Resource], Resource] = lambda resource: resource

    def tree(self, view: View) -> Tree:
        found = [*self.rest(self.paths, self.traits, view)]
        for section in self.sections:
            found += section.resources(view)
        return {"/redfish": {"v1": f"{self.paths.root}/"}} | index(map(self.form, found))

    def refusal(self, refused: RefusedError) -> tuple[int, Resource]:
        return self.wording.refusal(refused)

    def success(self) -> Resource:
        return self.wording.success()

    def login_record(self, at: str, user: str, client: str) -> LogRecord:
        return self.login(at, user, client)
