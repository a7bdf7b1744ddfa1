# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The program from outside, without privileges: nothing here is attached."""
import json
import os
import pathlib
import subprocess

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = TOP / os.environ.get("BUILD", "build") / "ringlb"
KEY = "00112233445566778899aabbccddeeff"


class Ringlb:
    def __init__(self, tmp_path):
        self.dir = tmp_path
        clean = {k: v for k, v in os.environ.items() if not k.startswith("RINGLB_")}
        self.env = {**clean, "RINGLB_BPFFS": str(tmp_path / "bpf"), "RINGLB_STATE_DIR": str(tmp_path / "state"),
                    "RINGLB_RUN_DIR": str(tmp_path / "run"), "LC_ALL": "C.UTF-8"}

    def __call__(self, *argv, status=0, **options):
        """Runs it and holds the exit status against the one wanted (None: any)."""
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        done = subprocess.run([PROGRAM, *argv], env=self.env, text=True, timeout=30, check=False, **options)
        assert status is None or done.returncode == status, f"{argv}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def json(self, *argv, **options):
        done = self("--json", *argv, **options)
        assert not done.stderr
        return json.loads(done.stdout)

    def write(self, config, name="ringlb.yaml"):
        file = self.dir / name
        file.write_text(json.dumps(config))  # YAML, as every JSON text
        return file


@pytest.fixture(name="ringlb")
def ringlb_fixture(tmp_path):
    return Ringlb(tmp_path)


@pytest.fixture(name="config")
def config_fixture():
    backends = [{"name": "a", "address": "10.0.0.11"}, {"name": "b", "address": "10.0.0.12", "weight": 2},
                {"name": "c", "address": "fd00::13", "identity": "c#1"}]
    services = [{"name": "www", "address": "192.0.2.10", "port": 443, "protocol": "tcp"},
                {"address": "192.0.2.10", "port": "any", "protocol": "tcp"},
                {"name": "dns", "address": "192.0.2.10", "port": 53, "protocol": "udp"},
                {"name": "six", "address": "2001:db8::10", "port": 80, "protocol": "tcp"},
                {"name": "sixth", "address": "2001:db8::10", "port": 53, "protocol": "udp"}]
    return {"interfaces": ["eth0"], "hash_key": KEY, "tunnel_source": {"ipv4": "10.0.0.1", "ipv6": "fd00::1"},
            "pools": [{"name": "web", "vnodes": 40, "backends": backends}],
            "services": [{**s, "pool": "web", "forward": "ipip"} for s in services]}
