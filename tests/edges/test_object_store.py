"""Presigned URLs: the signature is AWS's own, and the secret is nowhere in them."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime
from urllib.parse import parse_qs, urlsplit

import pytest

from clusterctl.edges.object_store import LONGEST_S, StoreKey, presigned

AT = datetime(2013, 5, 24, tzinfo=UTC)
KEY = StoreKey(access="AKIAIOSFODNN7EXAMPLE", secret="wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", region="us-east-1")


def test_the_documented_example_has_the_documented_signature() -> None:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-query-string-auth.html, its example calculation."""
    url = presigned("https://examplebucket.s3.amazonaws.com/test.txt", KEY, AT, 86400)
    assert url == (
        "https://examplebucket.s3.amazonaws.com/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256"
        "&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request"
        "&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host"
        "&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404"
    )


def test_a_port_and_an_odd_path_are_signed_as_they_are_asked() -> None:
    """The host header of a store on a port of its own has the port; a space is encoded once."""
    url = presigned("http://s3.example:9000/bucket/a b.bin", KEY, AT, 60)
    parts = urlsplit(url)
    assert (parts.netloc, parts.path) == ("s3.example:9000", "/bucket/a%20b.bin")
    assert presigned("http://s3.example:9000/bucket/a%20b.bin", KEY, AT, 60) == url


def test_it_holds_for_a_week_at_most() -> None:
    """S3 refuses longer ones."""
    url = presigned("https://s3.example/b/o", KEY, AT, 10 * LONGEST_S)
    assert parse_qs(urlsplit(url).query)["X-Amz-Expires"] == [str(LONGEST_S)]


def test_the_secret_is_shown_nowhere() -> None:
    """Not in the URL, not in the key's text, and it cannot be pickled."""
    assert KEY.secret not in presigned("https://s3.example/b/o", KEY, AT, 60)
    assert KEY.secret not in repr(KEY)
    with pytest.raises(TypeError):
        pickle.dumps(KEY)
