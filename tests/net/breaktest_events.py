# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
The changes of the break test: words of a script, made up at random or read, and what they make of the configuration.

  add NAME SERVER WEIGHT     remove NAME        weight NAME WEIGHT     readdress NAME SERVER
  drain NAME                 undrain NAME       maint NAME             recover NAME
  vnodes POOL COUNT          placement POOL PLACEMENT                  move SERVICE POOL
  rollback STEPS             settle             nothing

"live" in front: by `ringlb backend` instead of `apply`. Several with ";" between them follow each other at once.
"""
import copy
import json

from breaktest_traffic import PORT, SERVICES
from conftest import configuration, service

LIVE = ("add", "remove", "weight", "drain", "undrain", "maint", "recover")
KINDS = ("add", "add", "remove", "weight", "weight", "readdress", "drain", "undrain", "vnodes", "placement", "move",
         "rollback", "rollback", "settle", "nothing")
HARSH = ("maint", "recover")
MOST_STEPS = 4  # of a rollback
STATES = {"drain": "drain", "undrain": "up", "maint": "maint", "recover": "up"}


def first_configuration(lab, track, flows):
    """web with four of six servers, alt with the last two."""
    def backend(name, server, weight=1):
        return {"name": name, "address": lab.address(server), "weight": weight}
    pools = [
        {"name": "web", "vnodes": 100, "settle_after": "3s",
         "backends": [backend(f"w{i}", i, w) for i, w in enumerate((1, 2, 1, 2), 1)]},
        {"name": "alt", "vnodes": 60, "settle_after": "3s", "backends": [backend("a1", 7), backend("a2", 8)]}]
    services = [service(vip, PORT, to="alt" if name == "other" else "web", name=name, track=track,
                        forward="ipip" if ":" in vip else "l2") for name, vip in SERVICES.items()]
    return configuration(pools, services, flows=flows)


class World:
    """What is configured, and what can happen to it."""

    def __init__(self, lab, config):
        self.lab = lab
        self.config = config
        self.server_of = {lab.address(i): f"b{i}" for i in range(1, lab.backends + 1)}
        self.generations = {}

    def pool(self, name):
        return next(p for p in self.config["pools"] if p["name"] == name)

    def find(self, name):
        """(pool, backend)."""
        return next((p, b) for p in self.config["pools"] for b in p["backends"] if b["name"] == name)

    def backends(self, *states, pool=None):
        return [b["name"] for p in self.config["pools"] if pool in (None, p["name"])
                for b in p["backends"] if b.get("state", "up") in states]

    def servers(self):
        """Of web's six: (those that nobody uses, {leaving backend: its server})."""
        shown = [b for p in self.lab.json("show")["pools"] for b in p["backends"]]
        used = {self.server_of[b["address"]] for b in shown}
        return ([s for s in (f"b{i}" for i in range(1, 7)) if s not in used],
                {b["name"]: self.server_of[b["address"]] for b in shown if b["state"] == "leaving"})

    def address(self, server):
        return self.lab.address(int(server[1:]))

    # Making them up

    def random_event(self, rng, kinds):
        """Words of one that is possible now."""
        while True:
            kind = rng.choice(kinds)
            words = getattr(self, f"random_{kind}")(rng)
            if words is not None:
                words = [kind, *map(str, words)]
                return ["live", *words] if kind in LIVE and rng.random() < .4 else words

    def random_add(self, rng):
        """Somebody new, or one that is leaving and comes back."""
        free, leaving = self.servers()
        names = [f"w{i}" for i in range(1, 8) if f"w{i}" not in self.backends("up", "drain", "maint")]
        pairs = [(n, s) for s in free for n in names] + [(n, leaving[n]) for n in names if n in leaving]
        return (*rng.choice(pairs), rng.randint(1, 3)) if pairs else None

    def removable(self):
        """Taking one of these away leaves web with two."""
        up = self.backends("up", pool="web")
        return (up if len(up) > 2 else []) + self.backends("drain", pool="web")

    def random_remove(self, rng):
        return (rng.choice(self.removable()),) if self.removable() else None

    def random_weight(self, rng):
        name = rng.choice(self.backends("up", pool=rng.choice(("web", "web", "web", "alt"))))
        return name, rng.choice([w for w in (1, 2, 3, 4) if w != self.find(name)[1]["weight"]])

    def random_readdress(self, rng):
        servers, names = self.servers()[0], self.backends("up", pool="web")
        return (rng.choice(names), rng.choice(servers)) if servers else None

    def random_drain(self, rng):
        up = self.backends("up", pool="web")
        return (rng.choice(up),) if len(up) > 2 else None

    random_maint = random_drain

    def random_undrain(self, rng):
        return (rng.choice(self.backends("drain")),) if self.backends("drain") else None

    def random_recover(self, rng):
        return (rng.choice(self.backends("maint")),) if self.backends("maint") else None

    def random_vnodes(self, rng):
        pool = self.pool(rng.choice(("web", "web", "alt")))
        return pool["name"], rng.choice([n for n in (60, 80, 100, 140) if n != pool["vnodes"]])

    def random_placement(self, rng):
        now = self.pool("web").get("placement", "ring")
        return "web", rng.choice([p for p in ("ring", "maglev", "rendezvous") if p != now])

    def random_move(self, _):
        mover = next(s for s in self.config["services"] if s["name"] == "mover")
        return "mover", "alt" if mover["pool"] == "web" else "web"

    def random_rollback(self, rng):
        steps = [n for n in range(1, MOST_STEPS + 1) if max(self.generations) - n in self.generations]
        return (rng.choice(steps),) if steps else None

    def random_settle(self, _):
        return ()

    random_nothing = random_settle

    # What they do to the configuration

    def change(self, kind, *args):
        """The configuration after it."""
        after = self.config = copy.deepcopy(self.config)
        if kind == "add":
            self.pool("web")["backends"].append(
                {"name": args[0], "address": self.address(args[1]), "weight": int(args[2])})
        elif kind == "remove":
            pool, backend = self.find(args[0])
            pool["backends"].remove(backend)
        elif kind == "weight":
            self.find(args[0])[1]["weight"] = int(args[1])
        elif kind == "readdress":
            self.find(args[0])[1]["address"] = self.address(args[1])
        elif kind in STATES:
            self.find(args[0])[1]["state"] = STATES[kind]
        elif kind == "vnodes":
            self.pool(args[0])["vnodes"] = int(args[1])
        elif kind == "placement":
            self.pool(args[0])["placement"] = args[1]
        elif kind == "move":
            next(s for s in after["services"] if s["name"] == args[0])["pool"] = args[1]
        elif kind == "rollback":
            self.config = copy.deepcopy(self.generations[max(self.generations) - int(args[0])])
        else:
            assert kind in ("settle", "nothing"), f"no event {kind}"

    def command(self, live, kind, *args):
        """The command that makes it so, where the configuration is changed already."""
        if kind == "settle":
            return ["settle"]
        if kind == "rollback":
            return ["rollback", str(max(self.generations) - int(args[0]))]
        if not live:
            return ["apply", self.lab.write(self.config), "--discard-live"]
        if kind == "add":
            return ["backend", "add", "web", args[0], self.address(args[1]), "--weight", args[2]]
        pool = "alt" if args[0].startswith("a") else "web"
        if kind == "remove":
            return ["backend", "del", pool, args[0]]
        return ["backend", "set", pool, args[0], *(["--weight", args[1]] if kind == "weight" else
                                                  ["--state", STATES[kind]])]

    def execute(self, words):
        """Carries out one event; the JSON that the command printed."""
        live, words = words[0] == "live", words[words[0] == "live":]
        command = None
        if words[0] == "rollback":
            command = self.command(live, *words)
        self.change(*words)
        done = json.loads(self.lab.ringlb("--json", *(command or self.command(live, *words))).stdout)
        if "generation" in done:
            self.generations[done["generation"]["to"]] = self.config
        return done
