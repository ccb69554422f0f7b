"""What a BMC answered so far, and the way from resource to resource.

A `RedfishTree` holds what was read so far. Looking at something that was not read yet notes its path and raises
`NotYetReadError`; the caller (an edge, a test) reads the noted paths and tries again. So the knowledge of which
links lead to which parts lives in the parsers alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any, TypeVar

from clusterctl.fleet.errors import BusyError, EdgeError, ParseError, PrivilegeError
from clusterctl.fleet.node import Unread
from clusterctl.fleet.peer_text import visible_line

ROOT = "/redfish/v1"
_PATH = re.compile(r"/redfish/v1(/[!-~]*)?")
_LONGEST_PATH = 2000
_AUTHORITY = re.compile(r"https?://[^/]*", re.IGNORECASE)
MOST = 2**63
"""No number of a machine is larger; infinity and NaN are none."""
TERMS = {
    term.casefold(): term
    for term in (
        *("Absent", "Enabled", "Disabled", "On", "Off", "OK", "Warning", "Critical"),
        *("CPU", "GPU", "Accelerator", "Ethernet", "InfiniBand", "Temperature", "Intake"),
        *("Blade", "Component", "Drawer", "Enclosure", "Module", "Other", "Rack", "RackMount", "Shelf", "Sled"),
        *("StandAlone", "Zone"),
    )
}
"""The enumerated values of Redfish that decide something, by their lower case: some BMCs write them otherwise."""


class GarbledError(ParseError):
    """The BMC gives a field of another type than Redfish's, a link that is none, or fewer members than it counts."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """The BMC did not give this resource; `reason` as text (`HTTP 404`).

    lacks  the privilege that the account lacks (DSP0266, Redfish privileges); empty where that is not the reason
    busy   the BMC answered that it is busy, as long as it was waited for
    """

    reason: str
    lacks: str = ""
    busy: bool = False

    def error(self, where: str) -> EdgeError:
        """Return the error for a reader that cannot do without the resource."""
        message = f"could not be read: {self.reason}"
        if self.lacks:
            return PrivilegeError(message, where=where, remedy=f"give the account the privilege {self.lacks}")
        return BusyError(message, where=where) if self.busy else EdgeError(message, where=where)


Answer = Mapping[str, Any] | Unreadable
"""What came back for one path: the JSON object, or why there is none."""

Answers = Mapping[str, Answer]
"""By path, as `normal` writes it."""


def normal(path: str, where: str) -> str:
    """Return the path without fragment and trailing slash.

    Of an absolute URL the path counts: only the BMC itself is ever asked. Raise `GarbledError` where the path leads out
    of the Redfish service.
    """
    bare = _AUTHORITY.sub("", path.split("#", 1)[0], count=1).replace("//", "/").rstrip("/")
    if len(bare) > _LONGEST_PATH:
        raise GarbledError(f"a link of more than {_LONGEST_PATH} characters", where=where)
    if not _PATH.fullmatch(bare) or ".." in bare or "\\" in bare:
        raise GarbledError(f"link {path!r} leads out of the Redfish service", where=where)
    return bare


@dataclass(frozen=True, slots=True)
class Resource:
    """One resource (or an object inside one). Getters treat null and absent alike.

    A field of another type than asked for is a `ParseError` that names resource and field.
    """

    path: str
    body: Mapping[str, Any]

    @property
    def id(self) -> str:
        """The last part of the path: unlike the field `Id` it cannot be missing."""
        return self.path.rsplit("/", 1)[-1]

    @property
    def absent(self) -> bool:
        """An empty socket, bay or slot that the BMC lists nevertheless."""
        return self.term("Status", "State") == "Absent"

    def where(self, *keys: str) -> str:
        return f"{self.path} {'.'.join(keys)}".strip()

    def value(self, *keys: str) -> Any:
        """Return the raw value below `keys`; None where it, or an object on the way, is null or absent."""
        here: Any = self.body
        for depth, key in enumerate(keys):
            if here is None:
                return None
            if not isinstance(here, Mapping):
                raise self._mistyped(keys[:depth], "an object", here)
            here = here.get(key)
        return here

    def text(self, *keys: str) -> str:
        """Return a string without the padding that some vendors add; empty where absent."""
        found = self.value(*keys)
        if found is None:
            return ""
        if not isinstance(found, str):
            raise self._mistyped(keys, "text", found)
        found = found.strip()
        return found if found.isprintable() and len(found) <= MAX_TEXT else visible_line(found, MAX_TEXT)

    def term(self, *keys: str) -> str:
        """Return an enumerated value in the spelling of Redfish, whatever its letter case."""
        found = self.text(*keys)
        return TERMS.get(found.casefold(), found)

    def number(self, *keys: str) -> float | None:
        found = self.value(*keys)
        if found is None:
            return None
        if isinstance(found, bool) or not isinstance(found, int | float) or not -MOST <= found <= MOST:
            raise self._mistyped(keys, "a number", found)
        return found

    def whole(self, *keys: str) -> int | None:
        found = self.number(*keys)
        if found is None:
            return None
        if found < 0 or found != int(found):
            raise self._mistyped(keys, "a whole number", found)
        return int(found)

    def flag(self, *keys: str) -> bool | None:
        found = self.value(*keys)
        if found is not None and not isinstance(found, bool):
            raise self._mistyped(keys, "true or false", found)
        return found

    def texts(self, *keys: str) -> tuple[str, ...]:
        """Return a list of strings; empty where absent."""
        found = self._list(keys)
        if not all(isinstance(item, str) for item in found):
            raise self._mistyped(keys, "a list of text", found)
        return tuple(found)

    def each(self, *keys: str) -> tuple[Resource, ...]:
        """Return the objects of a list inside this resource."""
        pointer = f"{self.path}#/{'/'.join(keys)}"
        items = self._list(keys)
        if not all(isinstance(item, Mapping) for item in items):
            raise self._mistyped(keys, "a list of objects", items)
        return tuple(Resource(f"{pointer}/{index}", item) for index, item in enumerate(items))

    def link(self, *keys: str) -> str | None:
        """Return the path that an `{"@odata.id": …}` points to; None where there is no such link."""
        found = self.value(*keys)
        if found is None or found == {}:  # HPE writes an empty object for no link
            return None
        target = found.get("@odata.id") if isinstance(found, Mapping) else None
        if not isinstance(target, str):
            raise self._mistyped(keys, "a link", found)
        return normal(target, self.where(*keys))

    def links(self, *keys: str) -> tuple[str, ...]:
        """Return the paths that a list of links points to, each once; never fewer than its `@odata.count`."""
        paths = self.references(*keys)
        count = self.whole(*keys[:-1], f"{keys[-1]}@odata.count")
        if count is not None and count not in (len(paths), len(set(paths))):
            raise GarbledError(f"it counts {count} links but lists {len(paths)}", where=self.where(*keys))
        return tuple(dict.fromkeys(paths))

    def references(self, *keys: str) -> list[str]:
        """Return the paths that a list of links points to, as they are; empty where absent."""
        found = [item.link() for item in self.each(*keys)]
        return [path for path in found if path]

    def has(self, *keys: str) -> bool:
        return self.value(*keys) not in (None, {})

    def _list(self, keys: tuple[str, ...]) -> list[Any]:
        found = self.value(*keys)
        if found is None:
            return []
        if not isinstance(found, list):
            raise self._mistyped(keys, "a list", found)
        return found

    def _mistyped(self, keys: tuple[str, ...], expected: str, found: object) -> GarbledError:
        return GarbledError(f"expected {expected}, found {type(found).__name__}", where=self.where(*keys))


@dataclass(slots=True)
class _Collection:
    """The members that a collection's pages list, by path, from its `first` page to the `last`; `read`: the pages."""

    first: Resource
    last: Resource
    members: dict[str, Resource] = field(default_factory=dict)
    read: set[str] = field(default_factory=set)

    def add(self, page: Resource) -> bool:
        """Add a page; return whether it repeats listed members or itself only, and yet links to another page."""
        if not page.has("Members"):
            raise GarbledError("the collection has no members field", where=page.where("Members"))
        listed = {target: item for item in page.each("Members") if (target := item.link())}
        repeats = page.path in self.read if not self.members else listed.keys() <= self.members.keys()
        self.read.add(page.path)
        self.last = page
        self.members |= listed
        return repeats and page.has("Members@odata.nextLink")

    def miscounted(self) -> ParseError | None:
        """Return the error where members are missing by the collection's own count.

        A member that is listed twice counts once: it does not make up for one that is missing. Pages may overlap, as
        those of a recorded DGX; and a collection may have grown between its first page and its last.
        """
        counts = [n for page in (self.first, self.last) if (n := page.whole("Members@odata.count")) is not None]
        listed = len(self.members)
        if not counts or listed in counts or (self.first is not self.last and listed >= min(counts)):
            return None
        return GarbledError(f"the collection counts {counts[0]} members but lists {listed}", where=self.first.path)

    @property
    def short(self) -> bool:
        """Whether the first page counts more members than the pages list."""
        return (self.first.whole("Members@odata.count") or 0) > len(self.members)


EXPANDED = "?$expand="
MAX_TEXT = 4000
"""Characters of one text of a resource."""
_REFUSALS = 2


def expansion(answers: Answers, path: str) -> str:
    """Return the query that asks for a collection with its members in it; empty where the BMC does not offer that.

    Offers: ServiceRoot, `ProtocolFeaturesSupported.ExpandQuery` (DSP0266, "Expand"). A BMC that refused two such
    queries is asked no new one.
    """
    root = answers.get(ROOT)
    if root is None or isinstance(root, Unreadable):
        return ""
    try:
        sign = _sign(Resource(ROOT, root))
    except ParseError:
        return ""
    query = f"{EXPANDED}{sign}"
    if not sign or (path + query not in answers and _refused(answers) >= _REFUSALS):
        return ""
    return query


def _refused(answers: Answers) -> int:
    """Return the number of expansions that the BMC refused."""
    return sum(EXPANDED in asked and isinstance(answer, Unreadable) for asked, answer in answers.items())


def _sign(root: Resource) -> str:
    keys = ("ProtocolFeaturesSupported", "ExpandQuery")
    levels = "($levels=1)" if root.flag(*keys, "Levels") else ""
    if root.flag(*keys, "NoLinks"):
        return f".{levels}"
    return f"*{levels}" if root.flag(*keys, "ExpandAll") else ""


S = TypeVar("S")
T = TypeVar("T")
Wish = Callable[[str], bool]
_MAX_PAGES = 1000


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """Paths that must be read before the question can be answered; never empty."""

    paths: tuple[str, ...]


class NotYetReadError(Exception):
    """Inside this package only: a path that was noted in `Tree.wanted` is not in the tree yet."""


@dataclass(slots=True)
class RedfishTree:
    """What was read so far.

    wanted  paths that are still missing
    notes   what was left out on the way, as text
    kind    the field of the inventory that is read now
    unread  what the BMC lists but does not give, or garbles, by kind and place
    """

    answers: Answers
    wanted: dict[str, None] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    kind: str = ""
    unread: dict[tuple[str, str], Unread] = field(default_factory=dict)

    @property
    def root(self) -> Resource:
        return self.get(ROOT)

    def get(self, path: str) -> Resource:
        """Return the resource; `EdgeError` where the BMC refused it, `NotYetReadError` before it is requested."""
        answer = self.answers.get(path)
        if answer is None:
            self.wanted[path] = None
            raise NotYetReadError(path)
        if isinstance(answer, Unreadable):
            raise answer.error(path)
        return Resource(path, answer)

    def attempt(self, read: Callable[[], T]) -> T | None:
        """Return what `read` returns; None where the BMC does not give or garbles it, which is kept in `unread`."""
        try:
            return read()
        except (ParseError, EdgeError) as error:
            self.leave_out(error)
            return None

    def kept(self, items: Iterable[S], read: Callable[[S], T | None]) -> tuple[T, ...]:
        """Return what `read` returns of each item, without None and without garbled items, which `unread` names."""
        found = self._collect(items, lambda item: self.attempt(partial(read, item)))
        return tuple(one for one in found if one is not None)

    def leave_out(self, error: ParseError | EdgeError) -> None:
        """Keep in `unread` what the error is about."""
        self.unread.setdefault((self.kind, error.where), Unread(self.kind, error.where, error.message))

    def forgive(self, paths: Iterable[str]) -> None:
        """Take out of `unread` what other resources have given."""
        for path in paths:
            self.unread.pop((self.kind, path), None)

    def incomplete(self) -> bool:
        """Return whether anything of the current kind could not be read."""
        return any(kind == self.kind for kind, _ in self.unread)

    def follow(self, resource: Resource, *keys: str) -> Resource:
        """Return the resource that a field links to; a missing link is a `ParseError`."""
        target = resource.link(*keys)
        if target is None:
            raise ParseError("the link is missing", where=resource.where(*keys))
        return self.get(target)

    def members(
        self, resource: Resource, *keys: str, only: Wish | None = None, whole: bool = True
    ) -> tuple[Resource, ...]:
        """Return every member of a linked collection, page by page; never fewer than the collection counts.

        A BMC that offers it sends them with the collection (`$expand`): one request instead of many. Members that its
        answer lacks are requested one by one. `only`: those with a wished path. Not `whole`: what cannot be read is
        left out and kept in `unread`.
        """
        target = resource.link(*keys)
        if target is None:
            raise ParseError("the link is missing", where=resource.where(*keys))
        if query := expansion(self.answers, target):
            try:
                return self._collect(self._listed(target + query, only, whole=True).items(), self._member)
            except (ParseError, EdgeError):
                pass  # the BMC offers what it cannot do: the plain collection decides
        listed = self._listed(target, only, whole=whole)
        return self.all(listed) if whole else self.readable(listed)

    def _listed(self, path: str, only: Wish | None, *, whole: bool) -> dict[str, Resource]:
        """Return the wished members as the collection carries them, by path."""
        found = self._collection(path, whole=whole)
        if EXPANDED in path and not found.first.has("Members@odata.count"):
            raise ParseError("the collection with its members in it has no count", where=found.first.path)
        error = found.miscounted()
        if error is not None and whole:
            raise error
        if error is not None and found.short:
            self.leave_out(error)
        return {target: item for target, item in found.members.items() if only is None or only(target)}

    def _collection(self, path: str, *, whole: bool) -> _Collection:
        """Return the pages of a collection. Some BMCs link the last page to one that was read already."""
        first = self.get(path)
        found = _Collection(first, first)
        for page in self._pages(first, whole=whole):
            if found.add(page):
                if found.miscounted() is not None:
                    raise GarbledError("the collection's pages never end", where=first.path)
                break
        return found

    def _pages(self, first: Resource, *, whole: bool) -> Iterator[Resource]:
        page: Resource | None = first
        for _ in range(_MAX_PAGES):
            if page is None:
                return
            yield page
            following = page.text("Members@odata.nextLink")
            if not following:
                return
            further = partial(self.get, normal(following, page.where("Members@odata.nextLink")))
            page = further() if whole else self.attempt(further)
        raise GarbledError("the collection's pages never end", where=first.path)

    def _member(self, listed: tuple[str, Resource]) -> Resource:
        """Return a member as the collection carries it; one without the fields that all have is read by itself."""
        path, item = listed
        return Resource(path, item.body) if item.has("Id") and item.has("Name") else self.get(path)

    def all(self, paths: Iterable[str]) -> tuple[Resource, ...]:
        """Return resources, each once. All that are missing are noted before `NotYetReadError` is raised."""
        return self._collect(dict.fromkeys(paths), self.get)

    def readable(self, paths: Iterable[str]) -> tuple[Resource, ...]:
        """Return those of the resources that can be read; the others are kept in `unread`."""
        found = self._collect(dict.fromkeys(paths), lambda path: self.attempt(partial(self.get, path)))
        return tuple(one for one in found if one is not None)

    def readable_members(self, resources: Iterable[Resource], *keys: str) -> tuple[tuple[Resource, ...], ...]:
        """Return the members that each of the resources links to, in the same order, as far as they can be read."""

        def read(resource: Resource) -> tuple[Resource, ...]:
            return self.attempt(partial(self.members, resource, *keys, whole=False)) or ()

        return self._collect(resources, read)

    def readable_links(self, resources: Iterable[Resource], *keys: str) -> tuple[Resource, ...]:
        """Return the resources that a field of each of the resources links to, as far as they can be read."""
        return self.readable(path for one in resources if (path := one.link(*keys)))

    def present(self, resources: Iterable[Resource], *keys: str) -> list[Resource]:
        """Return the members of the resources' collections, each once, as far as they can be read; no absent ones."""
        holders = [one for one in resources if one.has(*keys)]
        listed = {item.path: item for item in chain.from_iterable(self.readable_members(holders, *keys))}
        return list(self.kept(listed.values(), lambda item: None if item.absent else item))

    def gather(
        self, resources: Iterable[Resource], *keys: str, only: Wish | None = None
    ) -> tuple[tuple[Resource, ...], ...]:
        """Return the members that each of the resources links to, in the same order; as `members` and `all`."""
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
