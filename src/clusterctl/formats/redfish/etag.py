"""Which `If-Match` a PATCH goes out with: what BMCs want differs, and so does what they call an ETag (DSP0266 §6.5)."""

from __future__ import annotations

ANY = "*"
_WEAK = "W/"


def rungs(etag: str, status: int = 0) -> tuple[str, ...]:
    """What to send for a resource that has this `etag` (empty: none), the best first; the empty one is no header.

    A weak ETag is followed by its strong form: some BMCs give the one and compare with the other. `ANY` comes last and
    only to a BMC that demands a header (`status` 428, or 412 without an ETag): it waives the protection.
    """
    if not etag:
        return ("", ANY) if status in (412, 428) else ("",)
    strong = (etag.removeprefix(_WEAK),) if etag.startswith(_WEAK) else ()
    return (etag, *strong, "", *((ANY,) if status == 428 else ()))
