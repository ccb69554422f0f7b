"""All quirks by name, and the active quirks of one BMC. A new quirk is a member of `BmcQuirk` and an entry here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from clusterctl_lab.bmc_quirk import BmcQuirk
from clusterctl_lab.emulators.redfish.context import BmcContext
from clusterctl_lab.emulators.redfish.quirks import content
from clusterctl_lab.emulators.redfish.quirks.behaviour import Behaviour, Certificate, Quirk
from clusterctl_lab.emulators.redfish.traits import Etag, IfMatch, Lockout, Traits
from clusterctl_lab.machine import Machine

_QUIRKS = {
    BmcQuirk.REVERTS_BOOT: Quirk(
        "a boot override is answered with 200, and is gone at the next read, with the mode back at Legacy",
        "some Supermicro, reported by users of Ironic and sushy",
        behaviour=content.RevertsBoot,
    ),
    BmcQuirk.WEAK_ETAG: Quirk(
        "ETags are weak, and If-Match accepts them only without the W/",
        "RFC 9110 section 13.1.1; sushy; HPE iLO gives weak ones (recorded)",
        traits=lambda traits: replace(traits, etag=Etag.WEAK, if_match=IfMatch.HONOURED),
    ),
    BmcQuirk.IF_MATCH_REQUIRED: Quirk(
        "every PATCH needs If-Match with the present ETag: 428 without it, 412 with another",
        "DSP0266; DGX H100 and other AMI MegaRAC",
        traits=lambda traits: replace(traits, etag=Etag.STRONG, if_match=IfMatch.REQUIRED),
    ),
    BmcQuirk.IF_MATCH_REFUSED: Quirk(
        "412 to every request with If-Match, whatever it names",
        "clients whose last attempt is without If-Match (sushy): iDRAC9 of newer firmware",
        traits=lambda traits: replace(traits, if_match=IfMatch.REFUSED),
    ),
    BmcQuirk.REFUSES_IDENTITY: Quirk(
        "406 to Accept-Encoding: identity",
        "clients that ask again without the header after a 406 (sushy)",
        traits=lambda traits: replace(traits, refuses_identity=True),
    ),
    BmcQuirk.SPURIOUS_401: Quirk(
        "a 401 to right credentials, after every three to eight requests that are answered",
        "clients of HPE iLO that try up to five times (NVIDIA bare-metal-manager)",
        behaviour=content.Spurious401,
    ),
    BmcQuirk.LOCKS_OUT: Quirk(
        "after 3 wrong passwords no login works for 30 s",
        "recorded at Supermicro: AccountLockoutThreshold, AccountLockoutDuration",
        traits=lambda traits: replace(traits, lockout=Lockout(tries=3, seconds=30.0)),
    ),
    BmcQuirk.MUST_CHANGE_PASSWORD: Quirk(
        "403 to everything but accounts and sessions until the password is changed",
        "DSP0266, Password change required handling; GB200 as delivered",
        traits=lambda traits: replace(traits, must_change_password=True),
    ),
    BmcQuirk.SESSION_LIMIT: Quirk(
        "a second session is refused while one is open",
        "Dell RAC0218 (stmcginnis/gofish#75), with the smallest possible limit",
        traits=lambda traits: replace(traits, max_sessions=1),
    ),
    BmcQuirk.ENDS_SESSIONS: Quirk(
        "a session ends after 20 requests, whatever its time-out",
        "DSP0266 lets a service end sessions; not recorded",
        traits=lambda traits: replace(traits, session_requests=20),
    ),
    BmcQuirk.POST_BUSY: Quirk(
        "a PATCH of the system, its boot or its BIOS is refused while the machine is in POST",
        "HPE iLO: UnableToModifyDuringSystemPOST",
        traits=lambda traits: replace(traits, post_busy=True),
    ),
    BmcQuirk.ALREADY_IS_400: Quirk(
        "a reset to the present power state is a 400",
        "clients that count 400 and 409 as done (Ironic, sushy); Dell answers 409",
        traits=lambda traits: replace(traits, already=400),
    ),
    BmcQuirk.UNAVAILABLE: Quirk(
        "a 503 with Retry-After: 1, after every three to eight requests that are answered",
        "DSP0266, Status codes; Base registry, ServiceTemporarilyUnavailable",
        behaviour=content.Unavailable,
    ),
    BmcQuirk.SLOW: Quirk(
        "each answer takes 1 to 3 s; slow=0.05-0.3 gives another range, in seconds",
        "the sweep and inventory targets of this project: 50-300 ms and 1-3 s a request",
        behaviour=content.Slow,
    ),
    BmcQuirk.BROKEN_JSON: Quirk(
        "about one resource in eight is no JSON: it ends in the middle, with the right length",
        "not recorded: a truncated answer",
        behaviour=content.BrokenJson,
    ),
    BmcQuirk.MISSING_MEMBERS: Quirk(
        "about one resource in four lacks one of its properties, always the same one",
        "recorded: no Status at HPE's NICs, no DurableName at Dell's NVMe drives, no serial at GB200's system",
        behaviour=content.MissingMembers,
    ),
    BmcQuirk.WRONG_TYPES: Quirk(
        "about one resource in four has one property of a type that its schema does not allow, always the same one",
        "not recorded: null and other types where the DMTF schemas require one",
        behaviour=content.WrongTypes,
    ),
    BmcQuirk.REDIRECTS: Quirk(
        "about one resource in six is answered with 308 and the same path with a trailing slash",
        "DSP0266, Redfish-defined URIs: the form with a slash is the same resource; not recorded",
        behaviour=content.Redirects,
    ),
    BmcQuirk.CUTS_BODIES: Quirk(
        "a read ends in the middle of its body, after every three to eight complete ones",
        "not recorded: a web server that is killed while it answers",
        behaviour=content.CutsBodies,
    ),
    BmcQuirk.LOSES_ANSWERS: Quirk(
        "every change takes effect, and the connection is reset before the answer; logins and logouts are answered",
        "clients of HPE iLO, which resets connections; not recorded",
        behaviour=content.LosesAnswers,
    ),
    BmcQuirk.CLOSES_REUSED: Quirk(
        "the second request on a connection gets no answer",
        "HPE iLO (NVIDIA libredfish sends Connection: close)",
        traits=lambda traits: replace(traits, closes_reused=True),
    ),
    BmcQuirk.OTHER_CERTIFICATE: Quirk(
        "its certificate is for another address: a client that verifies it refuses the connection",
        "RFC 6125; reassigned addresses, boards that were swapped with their BMC",
        certificate=Certificate.OTHER,
    ),
    BmcQuirk.EXPIRED_CERTIFICATE: Quirk(
        "its certificate expired yesterday: a client that verifies it refuses the connection",
        "RFC 5280, section 4.1.2.5",
        certificate=Certificate.EXPIRED,
    ),
    BmcQuirk.NO_SESSIONS: Quirk(
        "405 to a login: user and password must come with each request",
        "openbmc/bmcweb#8; redhat-eets/glpi-helper-scripts#132",
        behaviour=content.NoSessions,
    ),
    BmcQuirk.FAILS_EXPAND: Quirk(
        "500 to each $expand, whatever the service root offers",
        "ibm-openbmc/bmcweb#962, which offers it for three places only",
        behaviour=content.FailsExpand,
    ),
    BmcQuirk.NO_UTF8: Quirk(
        "a text of the system that is Latin-1 and no UTF-8",
        "asset tags and FRU fields that were typed in another encoding",
        behaviour=content.NoUtf8,
    ),
    BmcQuirk.BLANK_FAILURE: Quirk(
        "FailurePredicted of each drive is an empty text",
        "drives behind controllers that do not report it",
        behaviour=content.BlankFailure,
    ),
}
QUIRKS: Mapping[BmcQuirk, Quirk] = MappingProxyType({quirk: _QUIRKS[quirk] for quirk in BmcQuirk})
"""In the order of `BmcQuirk`."""


class ActiveQuirks:
    """The quirks of one BMC at present; the memory of a quirk ends with the quirk."""

    def __init__(self, context: BmcContext) -> None:
        self._context = context
        self._active: dict[BmcQuirk, Behaviour] = {}

    def behaviours(self) -> tuple[Behaviour, ...]:
        """Return the behaviour of each quirk that the machine has now."""
        wanted = self._context.machine.bmc.quirks
        if wanted != self._active.keys():
            self._active = {
                quirk: self._active.get(quirk) or definition.behaviour(self._context, quirk)
                for quirk, definition in QUIRKS.items()
                if quirk in wanted
            }
        return tuple(self._active.values())

    def traits(self, traits: Traits) -> Traits:
        """Return the BMC's traits with the quirks that the machine has now."""
        for behaviour in self.behaviours():
            traits = QUIRKS[behaviour.quirk].traits(traits)
        return traits


def certificate_of(machine: Machine) -> Certificate:
    """Return the certificate that the machine's BMC presents."""
    shown = (QUIRKS[quirk].certificate for quirk in BmcQuirk if quirk in machine.bmc.quirks)
    return next((each for each in shown if each is not Certificate.OWN), Certificate.OWN)
