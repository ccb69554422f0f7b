"""Whatever passes through the redaction holds none of the secrets that it knows, in none of their usual forms."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from clusterctl.edges.ansible.transcript import redaction
from clusterctl.edges.redaction import MASK, SHORTEST, Redaction, forms

LETTERS = st.characters(blacklist_categories=["Cs"])
SECRETS = st.lists(st.text(LETTERS, min_size=SHORTEST, max_size=40), min_size=1, max_size=4)
FORMS = {
    "as it is": lambda secret: secret,
    "JSON": json.dumps,
    "JSON in Unicode": lambda secret: json.dumps(secret, ensure_ascii=False),
    "JSON in JSON": lambda secret: json.dumps({"password": secret}),
    "repr": repr,
    "URL": lambda secret: quote(secret, safe=""),
    "path": quote,
    "form": quote_plus,
    "OAuth": lambda secret: quote(quote(secret, safe=""), safe=""),
    "JSON as text in JSON": lambda secret: json.dumps(json.dumps(secret)),
}


SAME_EVERYWHERE = settings(deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
"""The same cases in each run, however busy the machine is."""


def pieces(text: str) -> list[str]:
    """What is left apart from the masks: the mask itself, and text across its edge, reveals nothing."""
    return text.split(MASK)


@SAME_EVERYWHERE
@given(SECRETS, st.text(LETTERS), st.text(LETTERS), st.sampled_from(sorted(FORMS)))
@example(['pass"w\\rd'], "", "", "JSON")
@example(["password", "password-longer"], "x", "y", "as it is")
@example(["line one\nline two"], "", "", "as it is")
def test_no_known_secret_is_left(secrets: list[str], before: str, after: str, form: str) -> None:
    """Any text around it, any other secrets next to it, secrets within secrets."""
    written = before + after.join(FORMS[form](secret) for secret in secrets) + after
    left = pieces(Redaction(secrets)(written))
    found = [secret for secret in secrets for piece in left if secret in piece or FORMS[form](secret) in piece]
    assert not found


@SAME_EVERYWHERE
@given(st.text(st.characters(codec="ascii"), min_size=9, max_size=40), st.binary(max_size=7), st.binary(max_size=7))
def test_no_secret_is_left_in_base64(secret: str, before: bytes, after: bytes) -> None:
    """At whatever offset it lies: what is decoded again does not hold it."""
    written = base64.b64encode(before + secret.encode() + after).decode()
    assert Redaction([secret])(written) != written


@SAME_EVERYWHERE
@given(st.binary(), st.text(LETTERS, min_size=SHORTEST, max_size=20))
def test_bytes_that_are_no_text(content: bytes, secret: str) -> None:
    """Are kept byte by byte around the secret, and unchanged where there is none."""
    redact = Redaction([secret])
    if secret.encode() not in content:
        assert redact.bytes(b"\xff" + content) in (b"\xff" + content, redact.bytes(b"\xff") + redact.bytes(content))
    assert secret.encode() not in b"|".join(redact.bytes(content + secret.encode()).split(MASK.encode()))


@SAME_EVERYWHERE
@given(st.text(LETTERS))
def test_without_secrets_nothing_changes(text: str) -> None:
    """Neither does a secret that is too short to be distinguished from the rest."""
    assert Redaction()(text) == Redaction(["", "abc"[: SHORTEST - 1]])(text) == text


def form_by_form(secrets: list[str], text: str) -> str:
    """The definition of redaction: each place of every form of every secret, and of its lines, is masked. Places
    that overlap are one, so that no part of a secret stays.
    """
    parts = {part for secret in secrets for part in (secret, *secret.splitlines()) if len(part) >= SHORTEST}
    known = {form for part in parts for form in forms(part)}
    places = sorted((at, at + len(form)) for form in known for at in range(len(text)) if text.startswith(form, at))
    shown, end = "", 0
    for begin, until in places:
        if begin >= end:
            shown += text[end:begin] + MASK
        end = max(end, until)
    return shown + text[end:]


FEW = st.text(st.sampled_from('ab\n"\\é😀\udc80'), max_size=12)
"""Of few characters, so that secrets overlap, repeat and lie within one another; none of them stands in the mask."""


@st.composite
def texts(draw: st.DrawFn) -> tuple[list[str], str]:
    """Secrets, and a text that holds forms of them, end to end or with something between."""
    secrets = draw(st.lists(FEW, min_size=1, max_size=8))
    written = st.sampled_from([form for secret in secrets for form in forms(secret)])
    return secrets, "".join(draw(st.lists(written | FEW, max_size=8)))


@SAME_EVERYWHERE
@given(texts())
def test_all_at_once_is_the_same_as_one_by_one(case: tuple[list[str], str]) -> None:
    """Whether the secrets were known from the start or learnt one after the other."""
    secrets, text = case
    learnt = Redaction()
    for secret in secrets:
        learnt.add([secret])
    assert Redaction(secrets)(text) == learnt(text) == form_by_form(secrets, text)


def test_secrets_may_be_added_later() -> None:
    """As they are read one after the other."""
    redact = Redaction(["first-secret"])
    redact.add(["second-secret"])
    assert redact("first-secret, second-secret") == f"{MASK}, {MASK}"
    assert "secret" not in repr(redact)


@pytest.mark.parametrize(
    ("variables", "hidden"),
    [
        ({"grafana_admin_password": "sesame-42"}, "sesame-42"),
        ({"registry": {"credentials": {"user": "puller-x"}}}, "puller-x"),
        ({"api_key": ["first-one", "second-one"]}, "second-one"),
        ({"door_secret": 123456}, "123456"),
        ({"tls_private_key": "-----BEGIN\nQUJDREVG\n-----END"}, "QUJDREVG"),
    ],
)
def test_variables_with_the_name_of_a_secret(variables, hidden) -> None:
    """Anywhere in nested values."""
    assert hidden not in redaction(variables, {})(f"fatal: {hidden} rejected")


def test_variables_given_by_reference_are_secret_whatever_their_name() -> None:
    """`configure.secrets` needs no descriptive names."""
    assert redaction({"a": "plain-value"}, {"b": "other-value"})("plain-value other-value") == f"plain-value {MASK}"
