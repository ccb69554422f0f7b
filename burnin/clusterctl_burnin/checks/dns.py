"""dns: every name server of the host answers, and has an address for each name that the site lists (`checks.names`).

Where the site lists none, the servers are asked for the host's own name, and any answer that they give willingly will
do, also that there is no such name: many sites keep their nodes' names in /etc/hosts only.
"""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl.fleet.finding import Finding, Verdict, not_applicable, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.formats.host.documents import NameAnswer, NameAnswers, parse_name_answers
from clusterctl_burnin.check import Area, Cause, Check, Expected
from clusterctl_burnin.probe import Probe, Readings, UnmeasuredError

NAMES = Probe("name_answers", ("resolve-names",), timeout=30.0)
_NAME = "dns"
_ANSWERED = frozenset({"address", "none", "nxdomain"})
_CODES = frozenset({*_ANSWERED, "formerr", "servfail", "notimp", "refused"})
_DEAD = (
    "check that the name server runs and that the node reaches it (route, firewall, port 53), or remove it from the "
    "host's resolv.conf (network.nameservers of site.yml)"
)
_UNKNOWN = "check that the name server has a record for the name, or correct checks.names in site.yml"
_NONE = "give the host name servers (network.nameservers of site.yml, or the installer's), then check /etc/resolv.conf"


def _judge(readings: Readings, _expected: Expected) -> Iterator[Finding]:
    report = parse_name_answers(readings.text(NAMES))
    if not report.servers:
        yield _no_server(report)
        return
    if not report.answers:
        raise UnmeasuredError("the node asked no name server")
    found = [finding for server in report.servers for finding in _server(server, report)]
    yield from found
    if not found:
        names = ", ".join(report.wanted) or "the host's own name"
        yield passed(_NAME, f"every name server answers for {names}", measured=", ".join(report.servers))


def _no_server(report: NameAnswers) -> Finding:
    if not report.wanted:
        return not_applicable(_NAME, "the host has no name server, and the site lists no names")
    cause = f"the host has no name server to ask for {', '.join(report.wanted)}"
    return Finding(
        check=_NAME,
        verdict=Verdict.FAIL,
        code=Code.NO_NAME_SERVER,
        cause=cause,
        measured="none",
        expected="at least one",
        remedy=_NONE,
    )


def _server(server: str, report: NameAnswers) -> Iterator[Finding]:
    answers = [answer for answer in report.answers if answer.server == server]
    mute = [answer for answer in answers if answer.outcome not in _CODES]
    if len(mute) == len(answers):
        outcome = mute[0].outcome if mute else "not asked"
        subject, cause = f"name server {server}", "the name server of the host does not answer"
        yield Finding(
            check=_NAME,
            verdict=Verdict.FAIL,
            code=Code.NAME_SERVER_MUTE,
            subject=subject,
            cause=cause,
            measured=outcome,
            expected="an answer",
            remedy=_DEAD,
            deterministic=False,
        )
        return
    yield from (_bad(answer) for answer in answers if not _good(answer, report))


def _good(answer: NameAnswer, report: NameAnswers) -> bool:
    return answer.outcome == "address" if report.wanted else answer.outcome in _ANSWERED


def _bad(answer: NameAnswer) -> Finding:
    cause = f"the name server has no address for {answer.name}"
    subject, remedy = f"name server {answer.server}", _UNKNOWN if answer.outcome in _ANSWERED else _DEAD
    return Finding(
        check=_NAME,
        verdict=Verdict.FAIL,
        code=Code.NAME_UNKNOWN if answer.outcome in _ANSWERED else Code.NAME_SERVER_MUTE,
        subject=subject,
        cause=cause,
        measured=answer.outcome,
        expected="an address",
        remedy=remedy,
        deterministic=False,
    )


CHECK = Check(_NAME, (NAMES,), _judge, area=Area.NETWORK, causes=(Cause("host_network"),))
