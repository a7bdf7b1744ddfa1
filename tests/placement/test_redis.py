# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A real Redis Cluster and `ringlb lookup --placement slots`: the slots of keys, the ranges of nodes, a client."""
import contextlib
import subprocess

from conftest import Pool, fresh_keys, running

NODES = 7


def cli(*argv, lines=None):
    text = None if lines is None else "".join(line + "\n" for line in lines)
    done = subprocess.run(["redis-cli", *map(str, argv)], input=text, capture_output=True, text=True, timeout=60,
                          check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def quoted(key):
    return '"' + key.replace("\\", "\\\\").replace('"', '\\"') + '"'


@contextlib.contextmanager
def cluster(directory):
    ports = range(7001, 7001 + NODES)
    with contextlib.ExitStack() as stack:
        for port in ports:
            home = directory / str(port)
            home.mkdir()
            stack.enter_context(running(["redis-server", "--bind", "127.0.0.1", "--port", port, "--dir", home,
                                         "--cluster-enabled", "yes", "--save", "", "--logfile", home / "log"], port))
        cli("--cluster", "create", *(f"127.0.0.1:{p}" for p in ports), "--cluster-yes")
        yield ports


def tagged(rng, keys):
    """Half of them with braces somewhere, closed or not."""
    return [k if rng.random() < .5 else
            k[:len(k) // 3] + rng.choice(("{", "{}", "}{", "{{")) + k[len(k) // 3:2 * len(k) // 3] +
            rng.choice(("}", "}}", "")) + k[2 * len(k) // 3:] for k in keys]


def test_cluster(tmp_path, rng):
    keys = tagged(rng, fresh_keys(rng, 1000))
    pool = Pool(tmp_path, [{"identity": f"127.0.0.1:{7001 + i}"} for i in range(NODES)])
    answers = pool.by_key(keys, "slots")
    with cluster(tmp_path) as ports:
        slots = [int(line) for line in cli("-p", 7001, lines=[f"cluster keyslot {quoted(k)}" for k in keys]).split()]
        assert [a["slot"] for a in answers] == slots
        # Who serves a slot, as the cluster itself says: a key for each node, asked for with a client that follows.
        ranges = {}
        for line in cli("-p", 7001, "cluster", "nodes").splitlines():
            fields = line.split()
            first, last = map(int, fields[8].split("-"))
            ranges[fields[1].split("@")[0]] = range(first, last + 1)
        assert len(ranges) == NODES
        assert all(a["slot"] in ranges[a["identity"]] for a in answers)
        for port in ports:
            key = next(a["key"] for a in answers if a["identity"] == f"127.0.0.1:{port}")
            assert cli("-c", "-p", 7001, "set", key, "here").strip() == "OK"
            assert cli("-p", port, "get", key).strip() == "here"
