"""Alarms of UFM replayed on a fabric with bad links, technicians who repair them, and a process that is killed."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from clusterctl.cabling.isolation import budget_of
from clusterctl.fleet.fabric.topology import Link
from tests.ufm.watch_world import Watched, repaired, sick, uplinks

PASS_MINUTES = 12.5
STORMS = 5
"""Passes in which the alarms come: an hour."""
OF_LINKS = (110, 112, 113, 329, 328, 702, 917, 918)
OF_PORTS = (115, 116, 112, 328)
"""Codes of healthy ports, too: congestion, a restarted host."""
NOISE = (64, 65, 66, 67, 331, 332, 336, 395, 517, 527, 603, 604, 908, 1500, 1502, 394, 907, 920, 1503)


def bad_links(site: Watched, count: int) -> list[Link]:
    """One uplink of each of the first leaves, to another spine each time."""
    by_leaf: dict[str, list[Link]] = {}
    for link in uplinks(site.world.fabric):
        by_leaf.setdefault(str(link.a.guid), []).append(link)
    return [links[2 * at % len(links)] for at, links in enumerate(by_leaf.values())][:count]


@dataclass
class Storm:
    """`alarms` come within an hour; the process is killed `kills` times on the way."""

    site: Watched
    bad: Sequence[Link]
    alarms: int
    kills: int
    most: int = 0

    def play(self) -> None:
        """Play until every link is repaired and proven, and no kill is left.

        A technician repairs a link once it is out and has its ticket, and closes the ticket.
        """
        world, chance, blows = self.site.world, random.Random(20260301), random.Random(self.kills)
        self.site.once()
        sick(world, list(self.bad))
        for number in range(400):
            if number < STORMS:
                self._alarms(chance, self.alarms // STORMS)
            if self.site.kills < self.kills:
                world.kill_at, world.kill_after = world.calls + blows.randint(1, 14), bool(self.site.kills % 2)
            result = self.site.after(PASS_MINUTES)
            self.most = max(self.most, len(world.disabled))
            self._repair()
            noted = all(ticket["notes"] and "Resolved" in ticket["notes"][-1] for ticket in world.tickets)
            if not world.sick and not result.out and self.site.kills == self.kills and noted:
                return
        raise AssertionError(f"{len(world.sick)} links are not repaired, or their tickets lack the last note")

    def _alarms(self, chance: random.Random, count: int) -> None:
        world = self.site.world
        healthy = [link for link in world.fabric.links if link not in self.bad]
        for _ in range(count):
            kind = chance.choice(("link", "port", "noise"))
            link = chance.choice(self.bad if kind == "link" else healthy)
            end = chance.choice((link.a, link.b))
            codes = {"link": OF_LINKS, "port": OF_PORTS, "noise": NOISE}[kind]
            name = "Grid" if kind == "noise" else f"{end.guid}_{end.number}"
            world.ufm.add_event(chance.choice(codes), name, world.clock.at, "as UFM words it")

    def _repair(self) -> None:
        world = self.site.world
        for link in self.bad:
            name = self._name(link)
            own = [ticket for ticket in world.tickets if name in ticket["body"]]
            if own and link.a in world.disabled and link in world.sick:
                repaired(world, link)
                own[0]["closed"] = True

    def _name(self, link: Link) -> str:
        a, b = (self.site.world.fabric.devices[end.guid].description for end in (link.a, link.b))
        return " – ".join(sorted((f"{a} port {link.a.number}", f"{b} port {link.b.number}")))

    def hold(self) -> None:
        """Each bad link was out once and is back, within the budget; one ticket each; no other port was touched."""
        world, once = self.site.world, {link.a: 1 for link in self.bad}
        assert len(world.ufm.events) == self.alarms
        assert self.most <= budget_of(len(world.fabric.links))
        assert Counter(port for port, disabled in world.set if disabled) == once
        assert Counter(port for port, disabled in world.set if not disabled) == once
        assert world.disabled == set()
        assert len({ticket["incident"] for ticket in world.tickets}) == len(world.tickets) == len(self.bad)
        assert all("Resolved" in ticket["notes"][-1] for ticket in world.tickets)
