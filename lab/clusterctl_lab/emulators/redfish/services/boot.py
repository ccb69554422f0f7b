"""The Boot object of a ComputerSystem: override and order (DMTF ComputerSystem schema; BootOption schema)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from clusterctl_lab.boot import BootOption, BootTarget, options
from clusterctl_lab.emulators.redfish.context import BmcContext, Writes
from clusterctl_lab.emulators.redfish.exchange import Answer, Request, only, required
from clusterctl_lab.emulators.redfish.profile import Problem, RefusedError
from clusterctl_lab.emulators.redfish.resource import Resource, counted, head, ref
from clusterctl_lab.emulators.redfish.traits import BootRules, Mode, Traits
from clusterctl_lab.emulators.redfish.view import View
from clusterctl_lab.state import MachineState

ENABLED = ("Disabled", "Once", "Continuous")
_TARGET, _ENABLED, _MODE = (f"BootSourceOverride{part}" for part in ("Target", "Enabled", "Mode"))
_URI, _ORDER = "HttpBootUri", "BootOrder"


class BootSettings:
    """PATCH of the Boot object, which is checked as a whole before anything changes.

    The world consumes a `Once` at the next boot. Stricter than iDRAC in one point: a target without
    `BootSourceOverrideEnabled` is refused while no override is in force, since what it should mean is not documented.
    """

    def __init__(self, context: BmcContext) -> None:
        self._context = context
        self.writes: Writes = {("PATCH", context.profile.paths.boot_patch): self._patch}

    def _patch(self, request: Request, traits: Traits) -> Answer:
        body = request.json()
        boot = required(body, "Boot", kind=dict)
        only(body, ("Boot",))
        only(boot, (_TARGET, _ENABLED, _MODE, _URI, _ORDER))
        order = self._order(boot)
        if set(boot) - {_ORDER}:
            _obey(boot, traits.boot)
            _override(self._context.state, boot)
        if order:
            self._context.state.boot_order = order
        return Answer(200, self._context.profile.success())

    def _order(self, boot: Mapping[str, Any]) -> tuple[str, ...]:
        """The order that is asked for, each option once; empty where none is."""
        if _ORDER not in boot:
            return ()
        wanted = required(boot, _ORDER, kind=list)
        known = sorted(option.reference for option in options(self._context.machine))
        if not all(isinstance(each, str) for each in wanted) or sorted(wanted) != known:
            raise RefusedError(Problem.VALUE_NOT_IN_LIST, str(wanted), _ORDER)
        return tuple(wanted)


def _obey(boot: Mapping[str, Any], rules: BootRules) -> None:
    """Refuses what this vendor refuses."""
    allowed = {_TARGET: rules.targets, _ENABLED: ENABLED, _MODE: rules.modes}
    for key, values in allowed.items():
        if key in boot and boot[key] not in values:
            raise RefusedError(Problem.VALUE_NOT_IN_LIST, str(boot[key]), key)
    if not isinstance(boot.get(_URI, ""), str):
        raise RefusedError(Problem.VALUE_NOT_IN_LIST, str(boot[_URI]), _URI)
    if rules.mode is Mode.READ_ONLY and _MODE in boot:
        raise RefusedError(Problem.PROPERTY_READ_ONLY, _MODE)
    needed = (_TARGET, _ENABLED, _MODE) if rules.whole else (_MODE,) if rules.mode is Mode.REQUIRED else ()
    for key in needed:
        if key not in boot:
            raise RefusedError(Problem.PROPERTY_MISSING, key)


def _override(state: MachineState, boot: Mapping[str, Any]) -> None:
    target = BootTarget(boot.get(_TARGET, state.boot_target.value))
    enabled = boot.get(_ENABLED)
    if enabled is None and target is not BootTarget.NONE and state.boot_target is BootTarget.NONE:
        raise RefusedError(Problem.PROPERTY_MISSING, _ENABLED)
    if enabled == "Disabled":
        target = BootTarget.NONE
    once = state.boot_once if enabled is None else enabled == "Once"
    state.boot_target, state.boot_once = target, once and target is not BootTarget.NONE
    state.boot_mode = boot.get(_MODE, state.boot_mode)
    state.boot_uri = boot.get(_URI, state.boot_uri) if target is BootTarget.UEFI_HTTP else ""


def boot_object(view: View, rules: BootRules, boot_options: str = "") -> Resource:
    """The override in force, and the order; `boot_options` is the path of the collection. `Once` reads Disabled again
    as soon as a boot has consumed it.
    """
    overridden = view.boot_target is not BootTarget.NONE
    enabled = ("Once" if view.boot_once else "Continuous") if overridden else "Disabled"
    order = [*view.boot_order] or [option.reference for option in options(view.machine)]
    return {
        **({"BootOptions": ref(boot_options), **counted(_ORDER, list(order))} if boot_options else {}),
        _ENABLED: enabled,
        _MODE: view.boot_mode,
        _TARGET: view.boot_target.value,
        f"{_TARGET}@Redfish.AllowableValues": list(rules.targets),
        **({_URI: view.boot_uri} if view.boot_uri else {}),
    }


def option_resource(collection: str, option: BootOption) -> Resource:
    """DMTF BootOption schema."""
    return {
        **head(f"{collection}/{option.reference}", "BootOption.v1_0_4.BootOption", "Uefi Boot Option"),
        "BootOptionEnabled": True,
        "BootOptionReference": option.reference,
        "DisplayName": option.name,
    }
