"""The file of users and tokens: who can read it, and what it does not hold."""

from __future__ import annotations

import stat
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from clusterctl.edges.web.accounts import AccountFile
from clusterctl.fleet.access import UserRole
from clusterctl.fleet.errors import EnvironmentBrokenError, UsageError
from tests.web.browser import MADE, PASSWORD, QUICK

LATER = datetime(2027, 1, 1, tzinfo=UTC)


@pytest.fixture
def file(tmp_path: Path) -> AccountFile:
    return AccountFile(tmp_path / "web", QUICK)


def test_nothing_in_the_file_opens_the_page(file: AccountFile) -> None:
    """It holds digests, and only its owner may read it."""
    file.add_user("ada", UserRole.ADMIN, PASSWORD, MADE)
    secret = file.add_token("ci", UserRole.VIEWER, "root", MADE, LATER)
    text = file.file.read_text()
    assert PASSWORD not in text
    assert secret not in text
    assert "$argon2id$" in text
    assert stat.S_IMODE(file.file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.folder.stat().st_mode) == 0o700
    assert PASSWORD not in repr(file.users())
    assert "argon2" not in repr(file.users())


def test_a_password_is_checked(file: AccountFile) -> None:
    file.add_user("ada", UserRole.ADMIN, PASSWORD, MADE)
    found = file.check("ada", PASSWORD)
    assert found is not None
    assert (found.name, found.role) == ("ada", UserRole.ADMIN)
    assert file.check("ada", PASSWORD.upper()) is None
    assert file.check("", "") is None


def test_the_strength_of_the_site_s_digests(tmp_path: Path) -> None:
    """At least what RFC 9106 recommends where memory is scarce: 64 MiB, 3 passes, 4 lanes."""
    hasher = AccountFile(tmp_path).hasher
    assert (hasher.memory_cost, hasher.time_cost, hasher.parallelism) >= (65536, 3, 4)


@pytest.mark.parametrize("password", ["", "eleven char", "x" * 257])
def test_passwords_that_are_refused(file: AccountFile, password: str) -> None:
    """Too short or too long; the error does not repeat it."""
    with pytest.raises(UsageError) as refused:
        file.add_user("ada", UserRole.ADMIN, password, MADE)
    assert not password or password not in str(refused.value)
    assert file.users() == ()


@pytest.mark.parametrize("name", ["", "Ada", "a b", "oidc:ada", "../x", "a" * 33, "<script>"])
def test_names_that_are_refused(file: AccountFile, name: str) -> None:
    """A local user cannot have the name of one of the provider or of a token."""
    with pytest.raises(UsageError):
        file.add_user(name, UserRole.ADMIN, PASSWORD, MADE)


def test_a_name_is_there_once(file: AccountFile) -> None:
    file.add_user("ada", UserRole.ADMIN, PASSWORD, MADE)
    with pytest.raises(UsageError):
        file.add_user("ada", UserRole.VIEWER, PASSWORD, MADE)
    for change in (file.remove_user, file.remove_token):
        with pytest.raises(UsageError):
            change("eve")
    assert [user.role for user in file.users()] == [UserRole.ADMIN]


def test_a_file_that_others_may_read_is_refused(file: AccountFile) -> None:
    file.add_user("ada", UserRole.ADMIN, PASSWORD, MADE)
    file.file.chmod(0o644)
    with pytest.raises(UsageError) as refused:
        AccountFile(file.folder, QUICK).users()
    assert "others may read it" in refused.value.message


@pytest.mark.parametrize("text", ["{", "[]", '{"version": 1, "users": [{"name": "x"}]}', '{"version": 2}'])
def test_a_damaged_file_lets_no_user_in(file: AccountFile, text: str) -> None:
    """It is an error, never an empty list: an empty list would be taken for a site without users."""
    file.add_user("ada", UserRole.ADMIN, PASSWORD, MADE)
    file.file.write_text(text)
    with pytest.raises(EnvironmentBrokenError):
        file.check("ada", PASSWORD)


def test_changes_of_two_commands_do_not_lose_each_other(file: AccountFile) -> None:
    """Eight at once; all are there."""
    start = threading.Barrier(8)

    def add(number: int) -> None:
        start.wait()
        AccountFile(file.folder, QUICK).add_token(f"t{number}", UserRole.VIEWER, "root", MADE, MADE + timedelta(days=1))

    threads = [threading.Thread(target=add, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(token.name for token in file.tokens()) == [f"t{number}" for number in range(8)]
