# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A real nginx and `ringlb lookup` name the same server, by key and by source, for fresh keys and random weights."""
import http.client
import urllib.parse

import pytest
from conftest import Pool, fresh_keys, fresh_sources, get, running

SERVERS = [9001, 9002, 9003, 9004, 9005]


def write_nginx(directory, servers, hashed):
    conf = directory / "nginx.conf"
    temp = "".join(f"{kind}_temp_path {directory}/{kind};\n" for kind in
                   ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    upstream = "".join(f"server 127.0.0.1:{port} weight={weight};\n" for port, weight in servers)
    blocks = "".join(f"server {{ listen 127.0.0.1:{port}; return 200 127.0.0.1:{port}; }}\n" for port, _ in servers)
    conf.write_text(f"""
user root;
pid {directory}/pid;
daemon off;
master_process off;
error_log stderr;
events {{ }}
http {{
access_log off;
{temp}
upstream servers.example {{ hash {hashed} consistent; {upstream} }}
server {{ listen 127.0.0.1:8000; location / {{ proxy_pass http://servers.example; }} }}
{blocks}
}}
""")
    return ["nginx", "-p", directory, "-c", conf, "-e", "stderr"]


@pytest.fixture(name="servers")
def servers_fixture(rng):
    return [(port, rng.randrange(1, 6)) for port in SERVERS]


def backends(servers):
    return [{"identity": f"127.0.0.1:{port}", "weight": weight} for port, weight in servers]


def test_keys(tmp_path, rng, servers):
    keys = fresh_keys(rng, 1000)
    answers = Pool(tmp_path, backends(servers)).by_key(keys, "nginx")
    with running(write_nginx(tmp_path, servers, "$arg_k"), 8000):
        client = http.client.HTTPConnection("127.0.0.1", 8000, timeout=10)
        real = [get("/?k=" + urllib.parse.quote(k, safe=":._-"), connection=client) for k in keys]
        client.close()
    assert [a["identity"] for a in answers] == real
    assert len(set(real)) == len(servers)


def test_sources(tmp_path, rng, servers):
    sources = fresh_sources(rng, 1000)
    pool = Pool(tmp_path, backends(servers), placement="nginx")
    identity = {f"b{i}": b["identity"] for i, b in enumerate(backends(servers), 1)}
    with running(write_nginx(tmp_path, servers, "$binary_remote_addr"), 8000):
        real = [get("/", source=s) for s in sources]
    assert [identity[b] for b in pool.by_source(sources)] == real
    assert len(set(real)) == len(servers)
