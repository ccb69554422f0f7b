"""Presigned URLs of S3-compatible object stores (AWS Signature Version 4 in the query): the secret key stays here.

A node gets a URL by which it may read one object for some time, and no key.
https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-query-string-auth.html
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, field
from datetime import datetime
from functools import reduce
from urllib.parse import quote, urlencode, urlsplit

from clusterctl.fleet.secret import NeverPickled

ALGORITHM = "AWS4-HMAC-SHA256"
LONGEST_S = 604_800
"""Seven days: the longest time that a presigned URL may hold."""
_SERVICE = "s3"
_SCOPE_END = "aws4_request"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreKey(NeverPickled):
    """The account of an object store. `access` is its name, `secret` never leaves the controller."""

    access: str
    secret: str = field(repr=False)
    region: str


def presigned(url: str, key: StoreKey, at: datetime, seconds: int) -> str:
    """Return the object's URL, which reads it for so many seconds (7 days at most) from `at` (UTC) on."""
    parts = urlsplit(url)
    day, moment = at.strftime("%Y%m%d"), at.strftime("%Y%m%dT%H%M%SZ")
    scope = f"{day}/{key.region}/{_SERVICE}/{_SCOPE_END}"
    query = urlencode(
        {
            "X-Amz-Algorithm": ALGORITHM,
            "X-Amz-Credential": f"{key.access}/{scope}",
            "X-Amz-Date": moment,
            "X-Amz-Expires": str(min(seconds, LONGEST_S)),
            "X-Amz-SignedHeaders": "host",
        },
        quote_via=quote,
        safe="-_.~",
    )
    path = quote(parts.path, safe="/-_.~%")
    request = "\n".join(("GET", path, query, f"host:{parts.netloc}", "", "host", "UNSIGNED-PAYLOAD"))
    text = "\n".join((ALGORITHM, moment, scope, hashlib.sha256(request.encode()).hexdigest()))
    signing = reduce(_mac, (day, key.region, _SERVICE, _SCOPE_END), f"AWS4{key.secret}".encode())
    return f"{parts.scheme}://{parts.netloc}{path}?{query}&X-Amz-Signature={_mac(signing, text).hex()}"


def _mac(key: bytes, text: str) -> bytes:
    return hmac.digest(key, text.encode(), "sha256")
