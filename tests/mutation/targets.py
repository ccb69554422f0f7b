"""The modules that mutation tests judge: each with the tests that hold its promises, and its equivalent mutants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Target:
    """`equivalent`: names of mutants that change no result, with the reason.

    only  what pytest's `-k` is given: of a module with both databases SQLite's tests, which take a third of the time
    held  the wanted share was reached, and less is a failure; else survivors are listed only
    """

    path: str
    tests: tuple[str, ...]
    equivalent: Mapping[str, str] = field(default_factory=dict)
    held: bool = False
    only: str = ""

    @property
    def pytest_arguments(self) -> tuple[str, ...]:
        return (*self.tests, "-k", self.only) if self.only else self.tests

    @property
    def module(self) -> str:
        """The name under which the module is imported."""
        folders = self.path.removesuffix(".py").split("/")
        return ".".join(folders[1:])


FLEET = "src/clusterctl/fleet"
STEPS = "src/clusterctl/steps"
INSTALL = tuple(
    f"tests/steps/install/test_{name}.py"
    for name in ("install", "installer_answers", "rounds", "disk_proof", "reinstall", "findings", "adopt")
)
"""Not those with an emulated MAAS: they take minutes for each mutant."""
LIMITS = "burnin/clusterctl_burnin/limits"

TARGETS = (
    Target(
        f"{FLEET}/gate.py",
        ("tests/fleet/test_gate.py", "tests/fleet/test_deferred.py", "tests/fleet/test_waivers.py",
         "tests/fleet/test_revalidate.py"),
    ),
    Target(f"{FLEET}/stages.py", ("tests/fleet/test_stages.py::test_the_page_is_the_table", "tests/fleet/test_stages.py"), held=True),
    Target(f"{FLEET}/fold.py", ("tests/fleet/test_fold.py",)),
    Target(f"{FLEET}/settings/history.py", ("tests/fleet/test_settings_history.py",), held=True),
    Target(
        f"{FLEET}/fabric/history.py",
        ("tests/fleet/test_fabric_history.py",),
        {
            "changes: {key: type(before[key])(seen=False) for key in absent if before[key].seen}"
            " → {key: type(before[key])(seen=False) for key in absent}":
            "what is still gone has the same payload as before, and what equals the last payload is not written",
        },
        held=True,
    ),
    Target(f"{FLEET}/reporting/offenders.py", ("tests/fleet/test_offenders.py",), held=True),
    Target(
        f"{FLEET}/hardware/disk_contract.py",
        ("tests/fleet/test_disk_contract.py", "tests/fleet/test_disk_proof.py", "tests/fleet/test_root_disks.py"),
        held=True,
    ),
    Target(
        f"{STEPS}/retire.py",
        ("tests/steps/test_retire.py",),
        {
            "erasing_seen: other.seq <= erase.observed → other.seq < erase.observed": "no two events have one number",
            "_known_serials: node.inventory.drives if node.inventory is not None else None → node.inventory.drives if True else None":
            "a node without inventory has no network cards, and is refused before",
        },
        held=True,
    ),
    Target(
        f"{STEPS}/install/step.py",
        INSTALL,
        {f"module: [InstallTarget, Deadline] → [{one}]": "a type of annotations" for one in ("InstallTarget", "Deadline")},
    ),
    Target(
        f"{STEPS}/install/rounds.py",
        INSTALL,
        {
            "module: 0.2 → 1.2": "how soon it is noticed that the run was stopped; no result changes",
            "module: 3600.0 → 3601.0": "four seconds more of four hours",
        },
    ),
    *(Target(f"{STEPS}/install/{name}.py", INSTALL) for name in ("confirm", "findings", "job")),
    Target(f"{STEPS}/install/adopt.py", ("tests/steps/install/test_adopt.py", "tests/operations/test_adopt.py")),
    Target(
        f"{LIMITS}/firmware.py",
        ("tests/burnin/test_limits.py", "tests/burnin/test_site_firmware.py", "tests/burnin/test_transceiver_firmware.py"),
        held=True,
    ),
    Target(
        f"{LIMITS}/reading.py",
        ("tests/burnin/test_limits.py",),
        {
            "_File: True → False": "frozen: no code assigns to its fields",
            "module: [str, str] → [str]": "a type of annotations",
        },
    ),
    Target(
        "src/clusterctl/edges/journal/claims.py",
        ("tests/edges/journal/test_claims.py",),
        {
            "module: 253402300800 → 253402300801": "a second more of the year 10000",
            "take: 1 → 2": "tokens grow, by whatever number",
            "live: row['expires_at'] > now → row['expires_at'] >= now": "to a part of a microsecond",
            "count: table.c.expires_at > _now(connection) → table.c.expires_at >= _now(connection)": "likewise",
            "take: row['expires_at'] > now → row['expires_at'] >= now": "likewise",
            "owners: row['expires_at'] > now → row['expires_at'] >= now": "likewise",
            "take: table.c.since < now - FORGOTTEN_S → table.c.since <= now - FORGOTTEN_S": "likewise",
            "take: table.c.token < token → table.c.token <= token": "the newest token is that of a claim that is held",
            "release: 1 → 2": "tokens grow, by whatever number",
            "_last_token: 0 → 1": "likewise",
            "release: 0 → 1": "both are over",
            "renew: if not lost → if False": "the claims are read, and none of them is reported",
            "_bury: if dead → if True": "no run is none of the claims' runs",
        },
        held=True,
        only="not postgresql",
    ),
)  # fmt: skip
