"""What a BMC answered so far, and the way from resource to resource.

A `Tree` holds what was read so far. Looking at something that was not read yet notes its path and raises
`NotYetReadError`; whoever reads (an edge, a test) fetches the noted paths and asks again. So the knowledge of which
links lead to which parts lives in the parsers alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from clusterctl.fleet.errors import EdgeError, ParseError
from clusterctl.formats.redfish.expand import expansion
from clusterctl.formats.redfish.resource import ROOT, Answer, Answers, Resource, Unreadable, normal

__all__ = ["ROOT", "Answer", "Answers", "NotYetReadError", "Resource", "Tree", "Unreadable", "Wanted", "normal"]

S = TypeVar("S")
T = TypeVar("T")
Wish = Callable[[str], bool]
_MAX_PAGES = 1000


@dataclass(frozen=True, slots=True)
class Wanted:
    """Paths that must be read before the question can be answered; never empty."""

    paths: tuple[str, ...]


class NotYetReadError(Exception):
    """Inside this package only: a path that was noted in `Tree.wanted` is not in the tree yet."""


@dataclass(slots=True)
class Tree:
    """What was read so far; `wanted` collects what is still missing, `notes` what was left out on the way, in words."""

    answers: Answers
    wanted: dict[str, None] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def root(self) -> Resource:
        return self.get(ROOT)

    def get(self, path: str) -> Resource:
        """The resource; `EdgeError` where the BMC would not give it, `NotYetReadError` where nobody asked yet."""
        answer = self.answers.get(path)
        if answer is None:
            self.wanted[path] = None
            raise NotYetReadError(path)
        if isinstance(answer, Unreadable):
            raise EdgeError(f"could not be read: {answer.reason}", where=path)
        return Resource(path, answer)

    def follow(self, resource: Resource, *keys: str) -> Resource:
        """The resource that a field links to; a missing link is a `ParseError`."""
        target = resource.link(*keys)
        if target is None:
            raise ParseError("the link is missing", where=resource.where(*keys))
        return self.get(target)

    def members(self, resource: Resource, *keys: str, only: Wish | None = None) -> tuple[Resource, ...]:
        """Every member of a linked collection, page by page; never fewer than the collection claims to have.

        Where the BMC says that it can, it sends them with the collection (`$expand`): one request instead of many.
        Members that it left out of its answer nevertheless are asked for one by one. `only` those whose path is wished.
        """
        target = resource.link(*keys)
        if target is None:
            raise ParseError("the link is missing", where=resource.where(*keys))
        if query := expansion(self.answers, target):
            try:
                return self._members(target + query, only, expanded=True)
            except (ParseError, EdgeError):
                pass  # it promises more than it can do: the plain collection decides
        return self._members(target, only, expanded=False)

    def _members(self, path: str, only: Wish | None, *, expanded: bool) -> tuple[Resource, ...]:
        page = first = self.get(path)
        items: list[Resource] = []
        for _ in range(_MAX_PAGES):
            if not page.has("Members"):
                raise ParseError("the collection has no members field", where=page.where("Members"))
            items += [item for item in page.each("Members") if item.link()]
            following = page.text("Members@odata.nextLink")
            if not following:
                break
            page = self.get(normal(following, page.where("Members@odata.nextLink")))
        else:
            raise ParseError("the collection's pages never end", where=first.path)
        count, listed = first.whole("Members@odata.count"), len({item.link() for item in items})
        if count is not None and count != listed:  # pages may overlap, as a recorded DGX's do
            raise ParseError(f"the collection counts {count} members but lists {listed}", where=first.path)
        carried = {target: item for item in items if (target := item.link()) and (only is None or only(target))}
        if not expanded:
            return self.all(carried)
        return self._collect(carried.items(), self._member)

    def _member(self, listed: tuple[str, Resource]) -> Resource:
        """As the collection carried it; a mere link, or what lacks fields that all have, is read by itself."""
        path, item = listed
        return Resource(path, item.body) if item.has("Id") and item.has("Name") else self.get(path)

    def all(self, paths: Iterable[str]) -> tuple[Resource, ...]:
        """Many resources, each once; all that are missing are noted before `NotYetReadError` is raised."""
        return self._collect(dict.fromkeys(paths), self.get)

    def gather(
        self, resources: Iterable[Resource], *keys: str, only: Wish | None = None
    ) -> tuple[tuple[Resource, ...], ...]:
        """The members that each of the resources links to, in the same order; as `members` and `all`."""
        return self._collect(resources, lambda resource: self.members(resource, *keys, only=only))

    def _collect(self, items: Iterable[S], read: Callable[[S], T]) -> tuple[T, ...]:
        found = []
        complete = True
        for item in items:
            try:
                found.append(read(item))
            except NotYetReadError:
                complete = False
        if not complete:
            raise NotYetReadError
        return tuple(found)
