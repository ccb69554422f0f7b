"""Lists and objects of NetBox's REST API, as JSON values.

pynetbox makes the requests. Its records are not used: they ask again for each object whose field is missing. Pages are
asked for by offset, several at a time, ordered by id; its own paging follows the address that NetBox's answer names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from types import TracebackType
from typing import Any, Self

from pynetbox.core.query import Request

from clusterctl.edges.netbox.session import BoundedSession, NetboxAnswer, NetboxConnection, NetboxRefusedError
from clusterctl.fleet.errors import ConflictError, ParseError
from clusterctl.fleet.peer_text import visible_line
from clusterctl.ports import Deadline

PAGE = 1000
"""NetBox's MAX_PAGE_SIZE; it silently gives fewer where the site has set less."""
AT_ONCE = 4
"""Pages that are asked for together."""
MAX_OBJECTS = 500_000
"""Objects of one list."""
BATCH = 100
"""Ids in one request: more would make the address longer than proxies take (8 KiB)."""
PRECONDITION_FAILED = 412
READINGS = 2
"""How often a list is read that has changed meanwhile."""
Filters = Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class NetboxListing:
    """What to list: `dcim/devices`, the filters, and the fields to ask for.

    NetBox ignores filters that it does not know, and answers with all objects: readers check what they get.
    """

    page: str
    filters: Filters
    fields: str


class NetboxApi:
    """Reads and writes. One deadline and one budget of bytes are for all of it."""

    def __init__(self, connection: NetboxConnection, deadline: Deadline) -> None:
        self._connection = connection
        self._session = BoundedSession(connection, deadline)
        self._pool = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="netbox")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Wait for the running requests, and close the connections."""
        self._pool.shutdown(cancel_futures=True)
        self._session.close()

    @property
    def url(self) -> str:
        return self._connection.url

    def version(self) -> str:
        """Return NetBox's version, `4.6.8`. Raise `ParseError` where something else answers there."""
        body = next(self._request("status").get(), None)
        version = body.get("netbox-version") if isinstance(body, dict) else None
        if not isinstance(version, str):
            remedy = "check netbox.url: the address of NetBox's first page, without /api"
            raise ParseError("what answers is no NetBox", where=self.url, remedy=remedy)
        return visible_line(version, 40)

    def read_all(self, listing: NetboxListing) -> list[Any]:
        """Return all objects of a list, each once, in the order of their ids.

        Raise `ConflictError` where the list changes each time while it is read.
        """
        for _ in range(READINGS):
            found = self._read(listing)
            if found is not None:
                return found
        remedy = "run the command again while nothing is changed in NetBox"
        raise ConflictError(f"{listing.page} changes while it is read", where=self.url, remedy=remedy)

    def read_by(self, listing: NetboxListing, name: str, values: Sequence[int]) -> list[Any]:
        """Return the objects whose filter `name` has one of many values: a request for each hundred of them."""
        batches = [values[at : at + BATCH] for at in range(0, len(values), BATCH)]
        listings = [
            NetboxListing(page=listing.page, filters={**listing.filters, name: list(batch)}, fields=listing.fields)
            for batch in batches
        ]
        return list(chain.from_iterable(self._together(listings)))

    def look(self, page: str, id_: int) -> tuple[Mapping[str, Any], str]:
        """Return one object, and its ETag: empty before NetBox 4.6."""
        session = _Conditional(self._session)
        return self._object(self._request(page, key=id_, http_session=session).get(), page), session.etag

    def change(self, page: str, id_: int, body: Mapping[str, Any], etag: str) -> Mapping[str, Any]:
        """Change fields of one object, and return it; only as long as it has this ETag.

        Raise `ConflictError` where it was changed meanwhile, `OutcomeUnknownError` where the answer was lost.
        """
        session = _Conditional(self._session, etag)
        try:
            answer = self._request(page, key=id_, http_session=session).patch(dict(body))
        except NetboxRefusedError as error:
            if error.status != PRECONDITION_FAILED:
                raise
            remedy = "run the command again: it compares again"
            raise ConflictError("was changed in NetBox meanwhile", where=error.where, remedy=remedy) from None
        return self._object([answer], page)

    def create(self, page: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Create one object, and return it. Raise `OutcomeUnknownError` where the answer was lost."""
        return self._object([self._request(page).post(dict(body))], page)

    def create_all(self, page: str, bodies: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """Create objects by one request, all of them or none, and return them in this order. Raises as `create`."""
        made = self._request(page).post([dict(body) for body in bodies])
        if not isinstance(made, list) or len(made) != len(bodies):
            raise ParseError(f"NetBox's answer is no list of {len(bodies)} objects of {page}", where=self.url)
        return [self._object([one], page) for one in made]

    def _object(self, answers: Iterable[Any], page: str) -> Mapping[str, Any]:
        found = next(iter(answers), None)
        if not isinstance(found, dict):
            raise ParseError(f"NetBox's answer is no object of {page}", where=self.url)
        return found

    def _together(self, listings: Iterable[NetboxListing]) -> Iterator[list[Any]]:
        """Yield the first pages of several lists, and read the rest of those that have more."""
        waiting = [(listing, self._pool.submit(self._page, listing, 0)) for listing in listings]
        for listing, future in waiting:
            items, number = future.result()
            yield items if number == len(items) else self.read_all(listing)

    def _read(self, listing: NetboxListing) -> list[Any] | None:
        """Return the list as of one reading; None where it changed meanwhile."""
        first, number = self._page(listing, 0)
        if number > MAX_OBJECTS:
            raise ParseError(f"NetBox has more than {MAX_OBJECTS} objects in {listing.page}", where=self.url)
        if number <= len(first):
            return first
        if not first:
            raise ParseError(f"NetBox counts {number} objects in {listing.page}, and sends none", where=self.url)
        offsets = range(len(first), number, len(first))
        futures = [self._pool.submit(self._page, listing, offset) for offset in offsets]
        pages = [future.result() for future in futures]
        items = list(chain(first, *(page for page, _ in pages)))
        changed = any(count != number for _, count in pages) or len(items) != number or _repeats(items)
        return None if changed else items

    def _page(self, listing: NetboxListing, offset: int) -> tuple[list[Any], int]:
        """Return the objects of one page, and how many the list has."""
        filters = {**listing.filters, "fields": listing.fields, "ordering": "id"}
        request = self._request(listing.page, filters=filters, limit=PAGE, offset=offset)
        try:
            items = list(request.get())
            number = request.count
        except (KeyError, TypeError) as error:
            raise ParseError(f"NetBox's answer is no list of {listing.page}", where=self.url) from error
        if not all(isinstance(item, dict) for item in items):
            raise ParseError(f"NetBox's list of {listing.page} holds what is no object", where=self.url)
        if isinstance(number, bool) or not isinstance(number, int) or number < 0:
            raise ParseError(f"NetBox's list of {listing.page} has no count", where=self.url)
        return items, number

    def _request(self, page: str, **options: Any) -> Request:
        common = {"http_session": self._session, "token": self._connection.token}
        return Request(f"{self.url}/api/{page}/", **{**common, **options})


class _Conditional:
    """The session for one object: notes the ETag of what is read, and changes only what still has it."""

    def __init__(self, session: BoundedSession, etag: str = "") -> None:
        self._session = session
        self.etag = etag

    def get(self, url: str, **options: Any) -> NetboxAnswer:
        answer = self._session.get(url, **options)
        self.etag = answer.headers.get("etag", "")
        return answer

    def patch(self, url: str, *, headers: Mapping[str, str], **options: Any) -> NetboxAnswer:
        condition = {"If-Match": self.etag} if self.etag else {}
        return self._session.patch(url, headers={**headers, **condition}, **options)


def _repeats(items: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether an object is in the list twice."""
    ids = [item["id"] for item in items if isinstance(item.get("id"), int)]
    return len(set(ids)) < len(ids)
