# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A real HAProxy and `ringlb lookup` name the same server by source, for fresh sources, random weights and ids."""
import pytest
from conftest import Pool, fresh_sources, get, running

SERVERS = range(1, 7)


def write_haproxy(directory, servers):
    conf = directory / "haproxy.cfg"
    lines = "".join(f"  server b{i} 127.0.0.1:{9000 + i} weight {s['weight']}" + (f" id {s['id']}" if "id" in s else "") + "\n"
                    for i, s in servers.items())
    blocks = "".join(f"frontend f{i}\n  bind 127.0.0.1:{9000 + i}\n"
                     f"  http-request return status 200 content-type text/plain string b{i}\n" for i in servers)
    conf.write_text(f"""
defaults
  mode http
  timeout connect 5s
  timeout client 10s
  timeout server 10s
listen web
  bind 127.0.0.1:8000
  balance source
  hash-type consistent
{lines}
{blocks}
""")
    return ["haproxy", "-db", "-f", conf]


def ids(rng, style):
    """By name; of no server, of all, or of some, the others being numbered around them."""
    given = dict(zip(SERVERS, rng.sample(range(1, 1 << 20), len(SERVERS)) if style == "all" else
                     rng.sample(range(1, 9), len(SERVERS))))
    return {i: {"id": given[i]} if style == "all" or (style == "some" and rng.random() < .5) else {} for i in SERVERS}


@pytest.mark.parametrize("style", ["none", "all", "some"])
def test_sources(tmp_path, rng, style):
    servers = {i: {"weight": rng.choice((1, 2, 3, 7, 40, 256)), **given} for i, given in ids(rng, style).items()}
    sources = fresh_sources(rng, 1000)
    pool = Pool(tmp_path, list(servers.values()), placement="haproxy")
    with running(write_haproxy(tmp_path, servers), 8000):
        real = [get("/", source=s) for s in sources]
    assert pool.by_source(sources) == real
    assert len(set(real)) > 2
