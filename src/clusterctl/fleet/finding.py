"""Verdicts, findings, reports: what was observed, judged."""

from __future__ import annotations

import enum
import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Generic, NewType, TypeVar

from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.peer_text import MAX_LINE, visible, visible_line
from clusterctl.fleet.quantity import Bound, Quantity

Digest = NewType("Digest", str)
T = TypeVar("T")


class Verdict(enum.Enum):
    """Ordered by how much it keeps a node from gold; unmeasured outranks WARN, so it is never healthy."""

    NOT_APPLICABLE = "not_applicable"
    PASS = "pass"  # noqa: S105 — a verdict, not a password
    WARN = "warn"
    INCONCLUSIVE = "inconclusive"
    FAIL = "fail"

    @property
    def rank(self) -> int:
        return _RANKS[self]

    @property
    def admits(self) -> bool:
        """True where a node may go to gold with it."""
        return self in (Verdict.PASS, Verdict.WARN, Verdict.NOT_APPLICABLE)


_RANKS = {verdict: rank for rank, verdict in enumerate(Verdict)}


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the worst of many; INCONCLUSIVE for none, or for none that is applicable."""
    applicable = [v for v in verdicts if v is not Verdict.NOT_APPLICABLE]
    return max(applicable, key=lambda v: v.rank, default=Verdict.INCONCLUSIVE)


SIMULATED_BMC = ("Oem", "Clusterctl", "Simulated")
SIMULATED_HOST = "/etc/clusterctl/simulated"
SIMULATED_HTTP = "Clusterctl-Simulated"


class Origin(enum.Enum):
    """Where evidence comes from. Simulated evidence never makes a real site's node gold.

    Evidence is simulated when the site (`simulated: true` in site.yml) or the peer that it came from declares it.
    A simulated peer carries a marker:

    BMC           `Oem.Clusterctl.Simulated: true` in the Redfish service root (SIMULATED_BMC)
    host          the file /etc/clusterctl/simulated (SIMULATED_HOST)
    HTTP service  the response header `Clusterctl-Simulated: true` (SIMULATED_HTTP), as for MAAS

    The output of a program on the controller and the transcript of a play carry no marker: the site alone decides.
    """

    REAL = "real"
    SIMULATED = "simulated"

    def of_peer(self, *, simulated: bool) -> Origin:
        """Return the origin of evidence from a peer: the site's (`self`), unless the peer is marked as simulated."""
        return Origin.SIMULATED if simulated else self


@dataclass(frozen=True, slots=True)
class Evidence:
    """What was run, where, when, and what came back, raw.

    `source` is the command or request (`nvidia-smi -q -x`, `GET /redfish/v1/Systems`); `where` the host, BMC or
    service it was asked of; `content` its output, secrets already redacted by the edge.
    """

    source: str
    where: str
    at: datetime
    origin: Origin
    content: bytes
    _digest: Digest | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def digest(self) -> Digest:
        """SHA-256 over all fields: equal evidence is stored once. Computed once, since many nodes may share it."""
        if self._digest is None:
            object.__setattr__(self, "_digest", self._computed())
        return self._digest  # type: ignore[return-value]  # set above

    def _computed(self) -> Digest:
        from hashlib import sha256  # noqa: PLC0415 - it loads OpenSSL, 3.5 MiB, which commands without evidence spare

        head = f"{self.source}\x00{self.where}\x00{self.at.isoformat()}\x00{self.origin.value}"
        return Digest(sha256(head.encode() + b"\0" + self.content).hexdigest())


@dataclass(frozen=True, slots=True)
class Observed(Generic[T]):
    """A value and the evidence that it rests on; what every port returns."""

    value: T
    evidence: tuple[Evidence, ...] = ()


MAX_CAUSE = 4000
_PEER_TEXTS = ("subject", "cause", "measured", "expected", "remedy", "serial", "where")
_KEYS = ("root", "fault")
"""Of several parts in lines; they are compared, and not shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One judged observation.

    check        name of the check that judged (`gpu_count`, `cable`, `install`)
    code         the diagnosis; decisions depend on it, never on `cause` or `remedy`
    subject      the part: `gpu 3`, `mlx5_2`, `node`; with `serial` where it is known
    cause        one plain sentence: what is wrong (or what was seen, when it passed)
    measured, expected   a quantity and the bound that it is held against, or a word (`down`, `up`); None where none is
    remedy       one imperative sentence for a technician; empty when it passed
    root         check name and subject (`key`) of the finding that this one is a consequence of; empty for a root
    fault        identifies what several findings have in common (a tool that hangs, a cable between two nodes, an entry
                 of a log); empty where it is this finding's own
    deterministic  False where a re-run may come out otherwise: then one confirming run precedes a quarantine
    limits       digest of the limits it was judged by; empty where none apply
    where        the resource, file or address that it was seen at; empty where check and subject name it
    settled_by   the later step that measures the same on the host, where this one could not; empty where none does
    """

    check: str
    verdict: Verdict
    code: Code
    subject: str = "node"
    cause: str = ""
    measured: Quantity | str | None = None
    expected: Bound | str | None = None
    remedy: str = ""
    serial: str = ""
    root: str = ""
    fault: str = ""
    deterministic: bool = True
    limits: str = ""
    evidence: tuple[Digest, ...] = ()
    settled_by: str = ""
    where: str = ""

    def __post_init__(self) -> None:
        """Make what peers report visible: a serial, a message or a value may hold any text."""
        texts = f"{self.subject}{self.cause}{self.remedy}{self.serial}{self.where}{self.root}{self.fault}"
        if isinstance(self.measured, str):
            texts += self.measured
        if isinstance(self.expected, str):
            texts += self.expected
        if not _is_plain(texts):  # nearly never, and fleets have hundreds of thousands
            self._escape()

    def _escape(self) -> None:
        for name in _PEER_TEXTS:
            value = getattr(self, name)
            if isinstance(value, str) and not _is_plain(value):
                object.__setattr__(self, name, visible_line(value, MAX_CAUSE))
        for name in _KEYS:
            object.__setattr__(self, name, visible(getattr(self, name)))

    def __reduce__(self) -> tuple[Callable[..., Finding], tuple[object, ...]]:
        """Pickle the values only: a fleet's findings pass between processes, and dataclasses pickle slowly."""
        return _restored, _values(self)

    def judged_by(self, limits: str, evidence: tuple[Digest, ...]) -> Finding:
        """Return the finding with the digest of its limits, and with `evidence` where it names none of its own.

        Unlike `replace`, it does not look at the texts again, which are visible already.
        """
        made = _restored(*_values(self))
        object.__setattr__(made, "limits", limits)
        object.__setattr__(made, "evidence", self.evidence or evidence)
        return made

    @property
    def figures(self) -> str:
        """Return what was measured and expected, as text; empty where nothing is expected."""
        if self.expected is None:
            return ""
        return f"measured {self.measured}, expected {self.expected}" if self.measured else f"expected {self.expected}"

    @property
    def key(self) -> str:
        return f"{self.check}:{self.subject}"


_FIELDS = tuple(field.name for field in fields(Finding))
_values: Callable[[Finding], tuple[object, ...]] = operator.attrgetter(*_FIELDS)


def _restored(*values: object) -> Finding:
    """Return the finding with these values of its fields, whose texts are visible already."""
    made = object.__new__(Finding)
    for name, value in zip(_FIELDS, values, strict=True):
        object.__setattr__(made, name, value)
    return made


def _is_plain(text: str) -> bool:
    return text.isascii() and text.isprintable() and len(text) <= MAX_LINE


def passed(
    check: str,
    cause: str,
    *,
    subject: str = "node",
    measured: Quantity | str | None = None,
    expected: Bound | str | None = None,
    serial: str = "",
) -> Finding:
    """Return the finding of a check that found nothing wrong; `cause` is what it found."""
    return Finding(
        check=check,
        verdict=Verdict.PASS,
        code=Code.PASSED,
        subject=subject,
        cause=cause,
        measured=measured,
        expected=expected,
        serial=serial,
    )


def not_applicable(check: str, cause: str) -> Finding:
    """Return the finding of a check that does not apply to the node; `cause` is why."""
    return Finding(check=check, verdict=Verdict.NOT_APPLICABLE, code=Code.NOT_APPLICABLE, cause=cause)


@dataclass(frozen=True, slots=True)
class Report:
    """All findings of one step (or suite) on one node."""

    step: str
    suite: str
    findings: tuple[Finding, ...] = ()
    origins: frozenset[Origin] = field(default_factory=frozenset)

    @property
    def verdict(self) -> Verdict:
        return worst(f.verdict for f in self.findings)

    @property
    def checks(self) -> frozenset[str]:
        return frozenset(f.check for f in self.findings)

    def roots(self) -> tuple[Finding, ...]:
        """Return the findings that keep the node back and are no consequence of another, worst first."""
        bad = [f for f in self.findings if not f.verdict.admits and not f.root]
        return tuple(sorted(bad, key=lambda f: -f.verdict.rank))
