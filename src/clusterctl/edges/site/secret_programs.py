"""Secrets that programs keep: sops (https://getsops.io), pass (https://www.passwordstore.org) and HashiCorp Vault.

A program gets no secret in its arguments. It is asked once for each secret and process: some secrets are needed for
every BMC. Its error output is not repeated, because it may quote what it decrypted.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from clusterctl.fleet.errors import ClusterctlError, UsageError
from clusterctl.ports import Deadline

SECONDS = 60.0
"""Also for a key service in the network, and for a person who unlocks a key."""
SOPS_VARIABLES = (
    *("SOPS_AGE_KEY", "SOPS_AGE_KEY_FILE", "SOPS_AGE_SSH_PRIVATE_KEY_FILE", "SOPS_GPG_EXEC", "XDG_CONFIG_HOME"),
    *("GNUPGHOME", "GPG_TTY", "VAULT_ADDR", "VAULT_TOKEN", "VAULT_CACERT", "AZURE_TENANT_ID", "AZURE_CLIENT_ID"),
    *("AWS_PROFILE", "AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"),
    *("AZURE_CLIENT_SECRET", "GOOGLE_APPLICATION_CREDENTIALS"),
)
"""Where sops finds its keys, by its documentation."""
PASS_VARIABLES = ("PASSWORD_STORE_DIR", "PASSWORD_STORE_GPG_OPTS", "GNUPGHOME", "GPG_TTY")

KV_VARIABLES = ("VAULT_ADDR", "VAULT_TOKEN", "VAULT_NAMESPACE", "VAULT_CACERT", "VAULT_CAPATH", "VAULT_CLIENT_CERT",
                "VAULT_CLIENT_KEY", "VAULT_TLS_SERVER_NAME", "VAULT_AGENT_ADDR")  # fmt: skip
"""Of Vault's documented ones: none of them leaves its certificate unverified."""


def from_sops(file: Path, key: str, field: str) -> str:
    """Return a secret of a file that sops encrypted: the value at `key`, or the whole text. Raise `UsageError`."""
    if not file.is_file():
        raise UsageError(f"{file} does not exist", where=field, remedy="name a file that sops encrypted")
    extract = ("--extract", "".join(f'["{name}"]' for name in key.split("."))) if key else ()
    return _asked(("sops", "--decrypt", *extract, str(file.resolve())), SOPS_VARIABLES, field).strip()


def from_pass(entry: str, field: str) -> str:
    """Return the password of an entry of pass: its first line. Raise `UsageError`."""
    return _asked(("pass", "show", entry), PASS_VARIABLES, field).split("\n", 1)[0].strip()


def from_kv(path: str, kv_field: str, field: str) -> str:
    """Return one field of an entry in the key/value store of HashiCorp Vault. Raise `UsageError`."""
    return _asked(("vault", "kv", "get", f"-field={kv_field}", path), KV_VARIABLES, field).strip()


@lru_cache(maxsize=256)
def _asked(argv: Sequence[str], variables: Sequence[str], field: str) -> str:
    """Return what a program prints. Raise `UsageError` where it fails or prints nothing."""
    from clusterctl.edges.processes import Surroundings, run  # noqa: PLC0415 — few sites need it

    surroundings = Surroundings(missing=f"install {argv[0]} on the controller", inherited=variables)
    by_hand = f"run it by hand as this user: {' '.join(argv[:2])} …"
    try:
        result = run(argv, Deadline.after(SECONDS), surroundings)
    except ClusterctlError as error:
        remedy = error.remedy or by_hand
        raise UsageError(f"{argv[0]} gave no secret: {error.message}", where=field, remedy=remedy) from None
    if result.exit_status or not result.stdout.strip():
        why = f"exit status {result.exit_status}" if result.exit_status else "it printed nothing"
        raise UsageError(f"{argv[0]} gave no secret: {why}", where=field, remedy=by_hand)
    return result.stdout
