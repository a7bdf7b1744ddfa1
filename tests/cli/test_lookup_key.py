# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""lookup --pool --key, and replicas, from a file: held against the pairs that were observed on the real systems."""
import ipaddress
import json
import os
import pathlib

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
VECTORS = pathlib.Path(os.environ.get("RINGLB_VECTORS", TOP / "tests/vectors"))


def sets(file):
    return [pytest.param(s, id=f"{file}-{name}")
            for name, s in json.loads((VECTORS / f"{file}.json").read_text())["sets"].items()]


def pool_of(servers, **keys):
    return {"name": "cache", **keys,
            "backends": [{"name": f"b{i}", "address": str(ipaddress.ip_address("10.9.0.0") + 1 + i),
                          **{k: v for k, v in s.items() if k != "name"}} for i, s in enumerate(servers)]}


def write(ringlb, config, pool):
    service = {"address": "192.0.2.10", "port": 443, "protocol": "tcp", "pool": pool["name"], "forward": "ipip"}
    if pool.get("placement") in ("nginx", "haproxy"):
        service["affinity"] = "source"
    return ringlb.write({**config, "pools": [pool], "services": [service]})


def ask(ringlb, file, keys, *options, status=0):
    done = ringlb("--json", "lookup", "--pool", "cache", "--file", file, "--from", "-", *options,
                  input="".join(f"{k}\n" for k in keys), status=status)
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("observed", sets("nginx"))
def test_nginx(ringlb, config, observed):
    """By key, and with the pool's own placement by source, through a service."""
    file = write(ringlb, config, pool_of(observed["servers"]))
    pairs = observed.get("key_to_server", [])
    answers = ask(ringlb, file, [k for k, _ in pairs], "--placement", "nginx")
    assert [a["identity"] for a in answers] == [server for _, server in pairs]
    assert [a["key"] for a in answers] == [k for k, _ in pairs]
    by_source(ringlb, config, observed, "nginx", [s["identity"] for s in observed["servers"]])


@pytest.mark.parametrize("observed", sets("haproxy_source"))
def test_haproxy(ringlb, config, observed):
    names = [s["name"] for s in observed["servers"]]
    by_source(ringlb, config, observed, "haproxy", names)
    # The same without ids: HAProxy numbers servers from 1.
    by_source(ringlb, config, {**observed, "servers": [{"weight": s["weight"]} for s in observed["servers"]]},
              "haproxy", names)
    file = write(ringlb, config, pool_of(observed["servers"]))
    answers = ask(ringlb, file, [k for k, _ in observed["source_to_server"]], "--placement", "haproxy")
    assert [names[int(a["backend"][1:])] for a in answers] == [server for _, server in observed["source_to_server"]]


def by_source(ringlb, config, observed, placement, names):
    pairs = observed.get("source_to_server", [])
    if not pairs:
        return
    file = write(ringlb, config, pool_of(observed["servers"], placement=placement))
    done = ringlb("--json", "lookup", "192.0.2.10:443/tcp", "--file", file, "--from", "-",
                  input="".join(f"{source}:4242\n" for source, _ in pairs))
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [names[int(a["backend"][1:])] for a in answers] == [server for _, server in pairs]


@pytest.mark.parametrize("observed", sets("ketama"))
def test_ketama(ringlb, config, observed):
    file = write(ringlb, config, pool_of(observed["servers"], vnodes=1))  # weights of 600: the pool's own ring must fit
    answers = ask(ringlb, file, [k for k, _ in observed["key_to_server"]], "--placement", "ketama")
    assert [a["identity"] for a in answers] == [server for _, server in observed["key_to_server"]]


def test_slots(ringlb, config):
    redis = json.loads((VECTORS / "ring_examples.json").read_text())["redis"]
    file = write(ringlb, config, pool_of([{}, {}, {}]))
    keys = [k["key"] for k in redis["keys"]]
    answers = ask(ringlb, file, keys, "--placement", "slots")
    assert [a["slot"] for a in answers] == [k["slot"] for k in redis["keys"]]
    assert [a["backend"] for a in answers] == ["b" + str("ABC".index(k["node"])) for k in redis["keys"]]
    one = ringlb.json("lookup", "--pool", "cache", "--key", "foo", "--placement", "slots", "--file", file)
    assert one["slot"] == 12182 and one["hash"] == "0xaf96" and one["backend"] == "b2"
    assert "slot      12182\n" in ringlb("lookup", "--pool", "cache", "--key", "foo", "--placement", "slots",
                                          "--file", file).stdout


def test_without_slot(ringlb, config):
    file = write(ringlb, config, pool_of([{}]))
    answer = ringlb.json("lookup", "--pool", "cache", "--key", "a key", "--file", file)
    assert "slot" not in answer
    assert answer["key"] == "a key" and answer["placement"] == "ring" and answer["replicas"] == ["b0"]


@pytest.mark.parametrize("placement", ["maglev", "rendezvous", "nginx", "haproxy"])
def test_any_placement_of_any_pool(ringlb, config, placement):
    """As if the pool had another one: the answer does not depend on the one it has."""
    keys = [f"192.0.2.{i}" for i in range(40)]
    servers = [{"weight": w, "identity": f"10.0.0.{w}:80"} for w in (1, 2, 3)]
    of_ring, of_other = pool_of(servers, vnodes=40), pool_of(servers, vnodes=40, placement=placement)
    for asked in ("ring", "maglev", "rendezvous", "nginx", "haproxy", "ketama", "slots", "modulo"):
        answers = ask(ringlb, write(ringlb, config, of_ring), keys, "--placement", asked)
        assert ask(ringlb, write(ringlb, config, of_other), keys, "--placement", asked) == answers
        assert len({a["backend"] for a in answers} - {None}) > 1


def test_101_servers(ringlb, config):
    file = write(ringlb, config, pool_of([{} for _ in range(101)]))
    done = ringlb("--json", "lookup", "--pool", "cache", "--key", "k", "--placement", "ketama", "--file", file, status=2)
    assert "101 servers: libmemcached takes 100 at most" in json.loads(done.stdout)["errors"][0]["message"]


def test_haproxy_key_is_an_address(ringlb, config):
    file = write(ringlb, config, pool_of([{"id": 1}], placement="haproxy"))
    answers = ask(ringlb, file, ["192.0.2.1", "2001:db8::1", "192.0.2.2"], status=2)
    assert [a.get("key") for a in answers if "key" in a] == ["192.0.2.1", "192.0.2.2"]
    assert answers[-1]["errors"][0]["where"] == "standard input:2"


@pytest.mark.parametrize("options, said", [
    (("--key", "k"), "needs --pool"),
    (("--pool", "cache"), "either --key or --from"),
    (("--pool", "cache", "--key", "k", "--from", "-"), "either --key or --from"),
    (("--pool", "cache", "--key", "k", "--established"), "says nothing about a key"),
    (("--pool", "cache", "--key", "k", "--replicas", "0"), "a number from 1"),
    (("--pool", "cash", "--key", "k"), 'no pool "cash"'),
    (("--pool", "cache", "--key", "k", "--placement", "rung"), "there are ring, maglev"),
])
def test_mistakes(ringlb, config, options, said):
    file = write(ringlb, config, pool_of([{}]))
    assert said in ringlb("lookup", *options, "--file", file, status=2).stderr


def test_replicas(ringlb, config):
    """Of keys and of flows: distinct, the owner first, and a longer list begins as a shorter one does."""
    servers = [{"zone": z} for z in "aabbc"] + [{}, {}]
    zone = {f"b{i}": s.get("zone") for i, s in enumerate(servers)}
    file = write(ringlb, config, pool_of(servers))
    keys = [f"k{i}" for i in range(50)]
    sources = [f"198.51.100.{i}:{40000 + i}" for i in range(50)]

    def many(*options):
        done = ringlb("--json", "lookup", "192.0.2.10:443/tcp", "--file", file, "--from", "-", *options,
                      input="\n".join(sources))
        return ask(ringlb, file, keys, *options) + [json.loads(line) for line in done.stdout.splitlines()]

    plain, nine = many(), many("--replicas", "9")
    assert len(plain) == 100
    for one, all_, three, zones in zip(plain, nine, many("--replicas", "3"),
                                       many("--replicas", "9", "--distinct-zones")):
        assert one["replicas"] == [one["backend"]] == all_["replicas"][:1]
        assert sorted(all_["replicas"]) == sorted(zone)
        assert three["replicas"] == all_["replicas"][:3]
        firsts = [next(b for b in all_["replicas"] if zone[b] == z) for z in ("a", "b", "c", None)]
        spread = sorted(firsts, key=all_["replicas"].index)
        assert zones["replicas"] == spread + [b for b in all_["replicas"] if b not in spread]


def test_identity_survives_a_rename(ringlb, config):
    """What is hashed is the identity: a rename with the same one moves nothing, one without moves its share."""
    backends = [{"name": f"b{i}", "address": f"10.9.0.{1 + i}"} for i in range(4)]
    keys = [f"k{i}" for i in range(500)]

    def owners(*changed, placement):
        file = write(ringlb, config, {"name": "cache", "backends": [*backends[:3], *changed]})
        return [a["address"] for a in ask(ringlb, file, keys, "--placement", placement)]

    for placement in ("ring", "maglev", "rendezvous", "nginx", "ketama"):
        before = owners(backends[3], placement=placement)
        renamed = {"name": "other", "address": "10.9.0.4"}
        assert owners({**renamed, "identity": "b3"}, placement=placement) == before
        assert owners(renamed, placement=placement) != before
