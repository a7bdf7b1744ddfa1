# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The laboratory of scripts/lab.sh for tests: made once a session, under a name of this process, removed at the end."""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
KEY = "00112233445566778899aabbccddeeff"
VIP4, VIP4B, VIP6, VIP6B = "192.0.2.10", "192.0.2.11", "2001:db8::10", "2001:db8::11"
CLIENT4, CLIENT6 = "10.77.0.100", "fd77::100"
TUNNEL_SOURCE = {"ipv4": "10.77.0.1", "ipv6": "fd77::1"}


def pytest_configure():
    def interrupt(*_):
        raise KeyboardInterrupt
    # So that being stopped removes the laboratory too.
    signal.signal(signal.SIGTERM, interrupt)
    signal.signal(signal.SIGHUP, interrupt)
    if os.geteuid() != 0:
        pytest.exit("tests/net needs root: it makes network namespaces", returncode=2)


def source(client, port):
    """As `ringlb lookup` takes it."""
    return f"[{client}]:{port}" if ":" in client else f"{client}:{port}"


def service_text(address, port, protocol="tcp"):
    return f"{source(address, port)}/{protocol}"


class Lab:
    def __init__(self, suffix, backends, two=False, far=False, mtu=1500):
        self.name = f"t{os.getpid()}{suffix}"
        self.dir = pathlib.Path("/run/ringlb-lab") / self.name
        self.backends = backends
        self.two = two
        self.far = far
        self.mtu = mtu  # the client's
        self.net = 1 if two else 0
        self.env = {**os.environ, "RINGLB_LAB": self.name}
        self.config_file = self.dir / "ringlb.yaml"

    def lab(self, *args):
        # In a session of its own when it removes: an interrupt at the terminal must not stop that.
        subprocess.run([TOP / "scripts/lab.sh", *args], env=self.env, check=True, stdout=subprocess.DEVNULL,
                       start_new_session=args[0] == "down")

    def up(self):
        self.lab("up", "--backends", str(self.backends), *(["--two"] if self.two else []),
                 *(["--far"] if self.far else []), "--mtu", str(self.mtu))

    def argv(self, host, argv):
        return [TOP / "scripts/lab.sh", "exec", host, *map(str, argv)]

    def run(self, host, *argv, check=True, **options):
        """Runs a command on a host; its output is text. check: the exit status wanted, True for 0, None for any."""
        done = subprocess.run(self.argv(host, argv), env=self.env, capture_output=True, text=True,
                              timeout=60, **options)
        if check is not None:
            wanted = 0 if check is True else check
            assert done.returncode == wanted, f"{argv}: exit {done.returncode}\n{done.stdout}{done.stderr}"
        return done

    @contextlib.contextmanager
    def process(self, host, *argv, **options):
        """A command in the background, ended at the latest with the block."""
        p = subprocess.Popen(self.argv(host, argv), env=self.env, text=True, stdout=subprocess.PIPE, **options)
        try:
            yield p
        finally:
            p.kill()
            p.communicate()

    def address(self, i, family=4):
        """Of backend i, from 1."""
        prefix = f"10.77.{self.net}." if family == 4 else ("fd77:1::" if self.two else "fd77::")
        return f"{prefix}{10 + i}"

    # ringlb

    def ringlb(self, *argv, host="lb", **options):
        return self.run(host, "ringlb", *argv, **options)

    def json(self, *argv, **options):
        return json.loads(self.ringlb("--json", *argv, **options).stdout)

    def write(self, config, file=None):
        file = file or self.config_file
        file.write_text(json.dumps(config, indent=1))  # YAML, as every JSON text
        return file

    def attach(self, config):
        return self.ringlb("attach", self.write(config))

    def lookups(self, service, sources, *options):
        """The answers of `lookup --from`, in the order of sources."""
        done = self.ringlb("--json", "lookup", service, "--from", "-", *options, input="\n".join(sources) + "\n")
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        assert len(answers) == len(sources)
        return answers

    def owners(self, service, sources, *options):
        return {s: a["backend"] for s, a in zip(sources, self.lookups(service, sources, *options))}

    def verdicts(self):
        return self.json("stats")["verdicts"]

    # Traffic

    def client(self, vip, port, *options):
        return ["client", TOP / "tests/lab/client.py", vip, port, *options]

    def connect(self, vip, port, ports, *options, check=True):
        """{source: the name that answered} of one flow from each source port; ports as text, "20000-20099"."""
        done = self.run(*self.client(vip, port, "--ports", ports, *options), check=check)
        return dict(line.split() for line in done.stdout.splitlines())

    @contextlib.contextmanager
    def traffic(self, vip, port, ports, *options):
        """Flows again and again for as long as the block lasts; yields a dictionary that is filled in at its end."""
        summary = {}
        with self.process(*self.client(vip, port, "--until-eof", "--ports", ports, *options),
                          stdin=subprocess.PIPE) as p:
            assert p.stdout.readline() == "ready\n"
            yield summary
            out, _ = p.communicate(timeout=30)
            summary.update(json.loads(out))

    # Between tests

    def reset(self):
        """Takes off whatever a test left, without the program that is tested."""
        for host in ["lb"] + ["far"] * self.far + [f"b{i}" for i in range(1, self.backends + 1)]:
            for directory in (self.dir / "bpf" / host, self.dir / host / "state", self.dir / host / "run"):
                for entry in directory.iterdir() if directory.exists() else ():
                    shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
                directory.mkdir(parents=True, exist_ok=True)
        self.run("lb", "ip", "neighbour", "flush", "nud", "all", "dev", "eth0")

    def decapsulate(self):
        """Backends take outer headers off that the balancer put on."""
        for i in range(1, self.backends + 1):
            self.ringlb("decap", "--from", *TUNNEL_SOURCE.values(), "eth0", host=f"b{i}")


@contextlib.contextmanager
def laboratory(*args, **kwargs):
    lab = Lab(*args, **kwargs)
    try:
        lab.up()
        yield lab
    finally:
        lab.lab("down")


@pytest.fixture(scope="session")
def lab_one():
    with laboratory("one", backends=4) as lab:
        yield lab


@pytest.fixture(scope="session")
def lab_two():
    with laboratory("two", backends=3, two=True) as lab:
        yield lab


@pytest.fixture
def lab(lab_one):
    """One-armed, nothing attached."""
    yield lab_one
    lab_one.reset()


@pytest.fixture
def two(lab_two):
    """A balancer between two networks, nothing attached."""
    yield lab_two
    lab_two.reset()


# Configurations: plain dictionaries, so that a test can change what it wants to.

def pool(lab, name="web", family=4, weights=(1, 2, 1), **keys):
    return {"name": name, "vnodes": 100, **keys,
            "backends": [{"name": f"b{i}", "address": lab.address(i, family), "weight": w}
                         for i, w in enumerate(weights, 1)]}


def service(address, port=80, protocol="tcp", to="web", forward="l2", **keys):
    return {"address": address, "port": port, "protocol": protocol, "pool": to, "forward": forward, **keys}


def configuration(pools, services, xdp="native", **keys):
    return {"interfaces": ["eth0"], "xdp": xdp, "hash_key": KEY, "tunnel_source": TUNNEL_SOURCE,
            "pools": pools, "services": services, **keys}
