# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""libmemcached itself and `ringlb lookup --placement ketama`, for fresh keys and random servers."""
import ctypes
import subprocess
import sys

import pytest
from conftest import Pool, fresh_keys

LIBRARY = "libmemcached.so.11"
KETAMA_WEIGHTED = 16  # MEMCACHED_BEHAVIOR_KETAMA_WEIGHTED


class Memcached:
    def __init__(self, servers):
        self.lib = ctypes.CDLL(LIBRARY)
        self.lib.memcached_create.restype = ctypes.c_void_p
        self.lib.memcached_create.argtypes = [ctypes.c_void_p]
        self.lib.memcached_behavior_set.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_uint64]
        self.lib.memcached_server_add_with_weight.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint16,
                                                              ctypes.c_uint32]
        self.lib.memcached_generate_hash.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t]
        self.lib.memcached_generate_hash.restype = ctypes.c_uint32
        self.lib.memcached_free.argtypes = [ctypes.c_void_p]
        self.handle = self.lib.memcached_create(None)
        assert self.lib.memcached_behavior_set(self.handle, KETAMA_WEIGHTED, 1) == 0
        for host, port, weight in servers:
            assert self.lib.memcached_server_add_with_weight(self.handle, host.encode(), port, weight) == 0

    def server(self, key):
        return self.lib.memcached_generate_hash(self.handle, key.encode(), len(key))

    def close(self):
        self.lib.memcached_free(self.handle)


@pytest.mark.parametrize("count", [1, 2, 7, 30, 100])
def test_keys(tmp_path, rng, count):
    servers = [(f"10.{rng.randrange(256)}.{i}.{rng.randrange(256)}", rng.choice((11211, 11211, rng.randrange(1, 65536))),
                rng.choice((1, 2, 3, 17, 600))) for i in range(count)]
    keys = fresh_keys(rng, 1000)
    answers = Pool(tmp_path, [{"identity": f"{host}:{port}", "weight": weight} for host, port, weight in servers],
                   vnodes=1).by_key(keys, "ketama")
    memcached = Memcached(servers)
    real = [memcached.server(k) for k in keys]
    memcached.close()
    assert [int(a["backend"][1:]) - 1 for a in answers] == real


def test_101_end_the_original():
    """What is refused with 101 servers is what the library itself dies of."""
    done = subprocess.run(
        [sys.executable, "-c", "import sys; sys.path.insert(0, sys.argv[1]); from test_libmemcached import Memcached;"
         "Memcached([(f'10.0.0.{i}', 11211, 1) for i in range(int(sys.argv[2]))])", sys.path[0], "101"],
        capture_output=True, text=True, check=False)
    assert done.returncode != 0 and "MEMCACHED_CONTINUUM_SIZE" in done.stderr
