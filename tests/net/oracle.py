# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The ring's public rule once more, written from its description alone: what the program says is held against it."""
import bisect
import itertools

MASK = (1 << 64) - 1
P1, P2, P3, P4, P5 = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63,
                      0x27D4EB2F165667C5)


def rotl(x, n):
    return ((x << n) | (x >> (64 - n))) & MASK


def xxh64(data):
    """XXH64 with seed 0 of fewer than 32 bytes."""
    assert len(data) < 32
    h = P5 + len(data)
    while len(data) >= 8:
        k = rotl(int.from_bytes(data[:8], "little") * P2 & MASK, 31) * P1 & MASK
        h = (rotl(h ^ k, 27) * P1 + P4) & MASK
        data = data[8:]
    if len(data) >= 4:
        h = (rotl(h ^ (int.from_bytes(data[:4], "little") * P1 & MASK), 23) * P2 + P3) & MASK
        data = data[4:]
    for byte in data:
        h = rotl(h ^ (byte * P5 & MASK), 11) * P1 & MASK
    h = (h ^ h >> 33) * P2 & MASK
    h = (h ^ h >> 29) * P3 & MASK
    return h ^ h >> 32


class Ring:
    """Of a pool of a configuration, as a dictionary."""

    def __init__(self, pool):
        points = sorted((xxh64(f"{b.get('identity', b['name'])}#{i}".encode()) >> 32, b.get("identity", b["name"]), b["name"])
                        for b in pool["backends"] if b.get("state", "up") == "up"
                        for i in range(b.get("points", pool["vnodes"] * b.get("weight", 1))))
        # Of equal positions the first identity owns.
        first = [next(same) for _, same in itertools.groupby(points, key=lambda p: p[0])]
        self.positions = [p[0] for p in first]
        self.names = [p[2] for p in first]

    def owner(self, position):
        return self.names[bisect.bisect_left(self.positions, position) % len(self.names)]

    def moved(self, other):
        """{(from, to): share} of the hash space whose owner differs, exactly."""
        out = {}
        start = 0
        for end in sorted({*self.positions, *other.positions, (1 << 32) - 1}):
            pair = self.owner(end), other.owner(end)
            if pair[0] != pair[1]:
                out[pair] = out.get(pair, 0) + end + 1 - start
            start = end + 1
        return {pair: length / (1 << 32) for pair, length in out.items()}
