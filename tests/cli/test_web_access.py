"""`clusterctl web user` and `clusterctl web token`, as an operator types them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clusterctl.edges.web.accounts import AccountFile
from clusterctl.fleet.access import UserRole
from clusterctl.fleet.errors import UsageError
from tests.cli.site_of_three import run, write

PASSWORD = "a password of the test"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return write(tmp_path)


@pytest.fixture
def password(tmp_path: Path) -> str:
    file = tmp_path / "password"
    file.write_text(f"{PASSWORD}\n")
    file.chmod(0o600)
    return str(file)


def accounts(site: Path) -> AccountFile:
    return AccountFile(site / "state" / "web")


def test_a_user_is_added_listed_and_removed(site: Path, password: str) -> None:
    """The password never stands in what is printed."""
    added = run(site, "web", "user", "add", "ada", "--role", "operator", "--password-file", password, "--yes")
    assert added.return_value == 0
    found = accounts(site).check("ada", PASSWORD)
    assert found is not None
    assert found.role is UserRole.OPERATOR
    listed = run(site, "web", "user", "list", "--json")
    assert [(one["name"], one["role"]) for one in json.loads(listed.output)["users"]] == [("ada", "operator")]
    assert "ada" in run(site, "web", "user", "list").output
    assert run(site, "web", "user", "remove", "ada", "--yes").return_value == 0
    assert run(site, "web", "user", "list").output == "no users\n"
    assert PASSWORD not in added.output + listed.output


def test_a_new_password_replaces_the_old_one(site: Path, password: str, tmp_path: Path) -> None:
    run(site, "web", "user", "add", "ada", "--password-file", password, "--yes")
    (tmp_path / "new").write_text("another password\n")
    (tmp_path / "new").chmod(0o600)
    run(site, "web", "user", "passwd", "ada", "--password-file", str(tmp_path / "new"), "--yes")
    assert accounts(site).check("ada", PASSWORD) is None
    assert accounts(site).check("ada", "another password") is not None


def test_a_preview_changes_nothing(site: Path, password: str) -> None:
    shown = run(site, "web", "user", "add", "ada", "--password-file", password, "--dry-run")
    assert "add the user ada with the role viewer" in shown.output
    assert accounts(site).users() == ()


def test_without_a_terminal_the_password_comes_from_a_file(site: Path) -> None:
    with pytest.raises(UsageError) as refused:
        run(site, "web", "user", "add", "ada", "--yes")
    assert refused.value.where == "--password-file"


def test_a_password_file_that_others_may_read_is_refused(site: Path, password: str) -> None:
    Path(password).chmod(0o644)
    with pytest.raises(UsageError):
        run(site, "web", "user", "add", "ada", "--password-file", password, "--yes")


def test_a_token_is_printed_once(site: Path) -> None:
    """It works, and no list shows it."""
    made = run(site, "web", "token", "add", "ci", "--role", "operator", "--until", "30d", "--yes")
    secret = next(line for line in made.output.splitlines() if line.startswith("cctl_"))
    token = accounts(site).token(secret)
    assert token is not None
    assert (token.name, token.role) == ("ci", UserRole.OPERATOR)
    listed = run(site, "web", "token", "list", "--json").output
    assert secret not in listed
    assert token.digest not in listed
    assert "ci" in run(site, "web", "token", "list").output
    run(site, "web", "token", "remove", "ci", "--yes")
    assert accounts(site).token(secret) is None


@pytest.mark.parametrize("until", ["400d", "2020-01-01", "soon"])
def test_ends_of_tokens_that_are_refused(site: Path, until: str) -> None:
    with pytest.raises(UsageError):
        run(site, "web", "token", "add", "ci", "--until", until, "--yes")


@pytest.mark.parametrize(
    "words",
    [("user", "remove", "eve"), ("user", "passwd", "eve"), ("token", "remove", "eve"), ("user", "add", "Ada Lovelace")],
)
def test_wrong_names_are_refused(site: Path, words: tuple[str, ...], password: str) -> None:
    """Before the question, with what to do."""
    extra = ("--password-file", password) if words[1] in ("add", "passwd") else ()
    with pytest.raises(UsageError) as refused:
        run(site, "web", *words, *extra)
    assert refused.value.remedy
