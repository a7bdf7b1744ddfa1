# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Snapshots as user/snapshot.h describes them, of an instance that does not exist: at second t of its life."""
import hashlib
import math

VERDICTS = {
    "forwarded": ("sent to a backend", ""),
    "passed_no_service": ("for no service: left to the host, untouched", ""),
    "passed_not_ip": ("neither IPv4 nor IPv6 (ARP and the like): left to the host", ""),
    "dropped_malformed": ("for a service address, but truncated or self-contradictory",
                          "look at the sender or at a faulty link; trace shows samples"),
    "dropped_no_backend": ("the service's pool has no backend to give flows to",
                           "add a backend, or bring one back up"),
    "dropped_no_neighbour": ("the next hop of the backend has no link-layer address yet",
                             "check the route to the backend, and that its next hop answers ARP"),
}
FLOW_EVENTS = {
    "opened": "openings remembered", "established": "openings that became established",
    "refused_full": "flows not remembered: no free entry", "lost_backend": "packets of flows whose backend went down",
}


def backend(name, address, weight, **more):
    return {"name": name, "identity": name, "address": address, "weight": weight, "zone": None, "state": "up",
            "health": "up", "points": 400 * weight, "share": 0.0, "last_old_packet": None,
            "safe_to_remove_in": None, "cut": False, **more}


def ring(pool, slots=720):
    """Owners of evenly spaced positions, from points placed much as the real ones are."""
    points = sorted((int.from_bytes(hashlib.sha256(f"{b['name']}#{i}".encode()).digest()[:4], "big"), n)
                    for n, b in enumerate(pool["backends"]) for i in range(b["points"] // 8))
    owners, at = [], 0
    for slot in range(slots):
        position = slot * 2**32 // slots
        while at < len(points) and points[at][0] < position:
            at += 1
        owners.append(points[at % len(points)][1] if points else -1)
    moved = [int(pool["moved"] > 0 and (slot * 7919) % slots < slots * pool["moved"]) for slot in range(slots)]
    return {"pool": pool["name"], "owners": owners, "moved": moved}


def pool(name, backends, **more):
    p = {"name": name, "placement": "ring", "vnodes": 400, "points": sum(b["points"] for b in backends), "moved": 0.0,
         "settles_in": 0, "settle_after": 900, "backends": backends, **more}
    for i, b in enumerate(backends):
        if b["points"]:
            b["share"] = b["points"] / p["points"] * (1 + 0.03 * math.sin(7 * i + 1))
    total = sum(b["share"] for b in backends)
    for b in backends:
        b["share"] = round(b["share"] / total, 12) if total else 0.0
    return p


def service(name, address, port, pool_name, **more):
    return {"name": name, "address": address, "port": port, "protocol": "tcp", "pool": pool_name, "forward": "ipip",
            "affinity": "flow", "track": "moved", "ready": True, "moved": 0.0, **more}


def pools(t, troubles):
    web = [backend(f"web-{i}", f"10.0.0.{10 + i}", 2 if i == 3 else 1, zone="ab"[i % 2]) for i in range(1, 7)]
    api = [backend(f"api-{i}", f"fd00::{i}", 1) for i in range(1, 4)]
    moved = {}
    if troubles:
        web[1].update(health="down", points=0)
        web[4].update(state="drain", points=0, last_old_packet=int(240 + t), safe_to_remove_in=max(0, int(660 - t)))
        moved = {"moved": 0.0312, "settles_in": max(0, int(660 - t))}
    return [pool("web", web, **moved), pool("api", api)]


def health(all_pools, t):
    listed = []
    for p in all_pools:
        for b in p["backends"]:
            down = b["health"] == "down"
            listed.append({
                "pool": p["name"], "name": b["name"], "identity": b["identity"], "address": b["address"],
                "status": b["health"], "waiting": False, "since": 97 + t if down else 86400 + t, "checked": 0.7,
                "latency": 1.0 if down else 0.0012,
                "reason": "timeout after 1 s: connected, no answer" if down else "status 200",
                "ups": 4, "downs": 5 if down else 4, "held": False, "use": "cut" if down else "used",
                "factor": 1.0})
    return {"pools": [{"name": p["name"], "checked": True,
                       "takers": sum(b["state"] == "up" for b in p["backends"]),
                       "healthy": sum(b["state"] == "up" and b["health"] == "up" for b in p["backends"]),
                       "all_down": False, "panic": False, "slow_start": 0} for p in all_pools], "backends": listed}


def stats(all_pools, all_services, t):
    def packets(rate, seed):
        return int(rate * (100000 + t) + rate * 2.5 * math.sin(t / 4 + seed))

    backends = []
    for p in all_pools:
        for i, b in enumerate(p["backends"]):
            n = packets(620000 * b["share"], i)
            backends.append({"pool": p["name"], "name": b["name"], "identity": b["identity"],
                             "address": b["address"], "packets": n, "bytes": 870 * n,
                             "flows": 12 if b["state"] == "drain" else int(150 * b["share"]), "state": b["state"]})
    services = []
    for i, s in enumerate(all_services):
        n = packets((410000, 180000, 30000)[i % 3], i)
        services.append({"name": s["name"], "packets": n, "bytes": 870 * n, "flows": 55 * (i + 1)})
    counts = [packets(620000, 0), packets(900, 1), packets(3, 2), 17, 0, 4]
    return {"services": services, "backends": backends,
            "flow_table": {"used": 5130, "openings": 212, "capacity": 163840, "opening_capacity": 40960},
            "flow_events": {"opened": packets(40, 3), "established": packets(39, 3), "refused_full": 0,
                            "lost_backend": 12},
            "verdicts": dict(zip(VERDICTS, counts))}


def history():
    summaries = ["attach", "pool web: web-5 added at 10.0.0.15, weight 1", "pool web: web-6 added (and 1 more)",
                 "service api: added", "pool web: web-3 weight 1 -> 2", "rollback to 4",
                 "pool web: web-3 weight 1 -> 2", "pool web: web-5 up -> drain"]
    return [{"generation": n + 1, "time": f"2026-03-0{n + 1}T10:4{n}:00Z",
             "digest": hashlib.sha256(text.encode() + bytes([n])).hexdigest()[:32], "summary": text,
             "active": n + 1 == len(summaries), "recorded": True} for n, text in enumerate(summaries)]


def snapshot(t=0.0, troubles=True):
    all_pools = pools(t, troubles)
    all_services = [service("www", "192.0.2.10", 443, "web", moved=all_pools[0]["moved"]),
                    service("www6", "2001:db8::10", 443, "web", moved=all_pools[0]["moved"]),
                    service("api", "192.0.2.11", 8443, "api", affinity="source")]
    generations = history()
    return {
        "time": "2026-03-08T12:00:00Z", "timestamp": 1772971200 + t, "clock_ms": int(1000 * t) + 5000, "interval": 1.0,
        "instance": "default", "build": {"version": "0.1.0", "abi": 1, "program": "0.1.0"}, "attached": True,
        "show": {"instance": "default", "generation": 8, "revision": 341, "digest": generations[-1]["digest"],
                 "effective_digest": hashlib.sha256(b"effective").hexdigest()[:32],
                 "file": "/etc/ringlb/ringlb.yaml",
                 "drift": ["live: pool web: web-5 up -> drain", "file: pool web: web-5 would be up again"]
                 if troubles else [],
                 "interfaces": [{"name": "eth0", "mode": "native"}, {"name": "eth1", "mode": "native"}],
                 "pools": all_pools, "services": all_services},
        "stats": stats(all_pools, all_services, t), "history": generations, "health": health(all_pools, t),
        "ready": {s["name"]: {"ready": True, "reason": "5 of 5 backends of web are healthy, quorum 1"}
                  for s in all_services},
        "memory": {"locked": 46137344, "tables": 1048576, "flows": 10485760, "backends": 4194304},
        "unresolved": [], "rings": [ring(p) for p in all_pools],
        "commits": {"bounds": [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
                    "counts": [3, 21, 180, 102, 30, 4, 1, 0, 0, 0, 0], "sum": 9.8, "failed": 0},
        "meanings": {"verdicts": {n: {"meaning": m, "remedy": r} for n, (m, r) in VERDICTS.items()},
                     "flow_events": {n: {"meaning": m} for n, m in FLOW_EVENTS.items()}},
    }
