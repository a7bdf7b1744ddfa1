# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Clients that are slow, many, greedy or mad: the listener stays within its bounds and goes on answering."""
import random
import select
import socket
import threading
import time

import pytest

from sample import snapshot

CONNECTIONS = 128  # LISTENER_CONNECTIONS
REQUEST = b"GET /api/v1/history HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.fixture(autouse=True)
def fed(listener):
    assert listener.feed(snapshot())


def closed(s, seconds):
    """Whether the other side closes within a time; what comes before is read and thrown away."""
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        if not select.select([s], [], [], left)[0]:
            return False
        try:
            if not s.recv(65536):
                return True
        except OSError:
            return True
    return False


def answers(listener, source="127.0.0.2"):
    with listener.connect(source) as s:
        s.sendall(REQUEST)
        return s.recv(4096).startswith(b"HTTP/1.1 200 OK")


def slow_request(s):
    """A byte now and then; how long until it is closed."""
    start = time.monotonic()
    s.sendall(b"GET / HTTP/1.1\r\nX: ")
    while time.monotonic() - start < 15:
        try:
            s.sendall(b"x")
        except OSError:
            break
        if closed(s, 0.3):
            break
    return time.monotonic() - start


def test_time_is_bounded(listener):
    """Neither a byte now and then nor silence after an answer buys time. And what is old says nothing about now."""
    with listener.connect() as slow, listener.connect() as idle:
        idle.sendall(REQUEST)
        assert 9 < slow_request(slow) < 12
        assert closed(idle, 1)
    status, _, body = listener.get("/ready/www")
    assert status == 503 and body.startswith(b"not known: nothing was heard of what runs for 1")
    assert listener.feed(snapshot(1)) and listener.get("/ready/www")[0] == 200


def test_huge_headers(listener):
    before = listener.memory()
    for head in (b"X: " + b"a" * 1_000_000, b"X: y\r\n" * 100_000, b"X" * 1_000_000):
        with listener.connect() as s:
            try:
                s.sendall(b"GET / HTTP/1.1\r\n" + head + b"\r\n\r\n")
            except OSError:
                pass
            assert closed(s, 5)
    with listener.connect() as s:
        s.sendall(b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n")
        assert closed(s, 5)
    assert answers(listener) and listener.memory() - before < 8 << 20


def test_bodies_are_not_read(listener):
    with listener.connect() as s:
        s.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n")
        assert s.recv(4096).startswith(b"HTTP/1.1 405")
        assert closed(s, 5)
    with listener.connect() as s:
        s.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nfffff\r\n" + b"x" * 70000)
        assert closed(s, 12)


def test_pipelining(listener):
    """As many answers as requests, in order, however they come in."""
    count = 300
    with listener.connect() as s:
        threading.Thread(target=s.sendall, args=(REQUEST * count,)).start()
        got = b""
        while got.count(b"\n]\n") < count:
            data = s.recv(65536)
            assert data, got.count(b"\n]\n")
            got += data
        assert got.count(b"HTTP/1.1 200 OK") == count


def test_reader_that_does_not_read(listener):
    """Answers wait in the sockets' buffers at most, not in memory."""
    before, s = listener.memory(), listener.connect()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.setblocking(False)
    sent, deadline = 0, time.monotonic() + 3
    while time.monotonic() < deadline:
        try:
            sent += s.send(b"GET /api/v1/status HTTP/1.1\r\nHost: x\r\n\r\n" * 100)
        except BlockingIOError:
            select.select([], [s], [], 0.1)
    assert answers(listener) and listener.memory() - before < 8 << 20
    s.close()


def test_many_connections(listener):
    """All places of one address taken by connections that say nothing: others get theirs."""
    idle = []
    for _ in range(3 * CONNECTIONS):
        try:
            idle.append(listener.connect())
        except OSError:
            break
    assert listener.connections() <= CONNECTIONS + 16
    assert answers(listener, "127.0.0.2")
    # From many addresses: now it takes as long as silence is borne when places are scarce.
    for i in range(2 * CONNECTIONS):
        s = socket.socket()
        s.setblocking(False)
        s.bind((f"127.0.1.{i % 250 + 1}", 0))
        s.connect_ex((listener.address, listener.port))
        idle.append(s)
    assert listener.connections() <= CONNECTIONS + 16
    assert answers(listener, "127.0.0.3")  # a refused SYN is sent again after 1, 3, 7, 15 s: no limit of its own
    for s in idle:
        s.close()
    assert answers(listener, "127.0.0.1")


def test_idle_costs_nothing(listener):
    idle = [listener.connect() for _ in range(20)]
    before = listener.cpu()
    time.sleep(2)
    assert listener.cpu() - before < 0.1
    for s in idle:
        s.close()


def test_flood(listener):
    """Several clients as fast as they can, while snapshots come in: one with patience is answered."""
    stop, counts = threading.Event(), [0] * 4

    def flood(n):
        while not stop.is_set():
            try:
                with listener.connect(f"127.0.2.{n + 1}") as s:
                    for _ in range(50):
                        s.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
                        counts[n] += len(s.recv(65536)) > 0
            except OSError:
                pass

    threads = [threading.Thread(target=flood, args=(n,)) for n in range(len(counts))]
    for t in threads:
        t.start()
    try:
        before = listener.memory()
        for t in range(1, 4):
            assert listener.feed(snapshot(t)) and answers(listener)
            time.sleep(0.5)
        assert listener.memory() - before < 16 << 20
    finally:
        stop.set()
        for t in threads:
            t.join()
    assert min(counts) > 0


WORDS = [b"GET", b"HEAD", b"POST", b" ", b"/", b"/metrics", b"/ready/%", b"%00", b"%zz", b"?a=b&&=", b"HTTP/1.1",
         b"HTTP/1.0", b"HTTP/9.9", b"\r\n", b"\n", b"\r", b"\r\n\r\n", b":", b"Host: x", b"Accept: */*;q=",
         b"application/openmetrics-text;version=", b"Content-Length: ", b"-1", b"18446744073709551616",
         b"Transfer-Encoding: chunked", b"Connection: close", b"Connection: upgrade", b"Expect: 100-continue",
         b"Cookie: a=b; c", b"\0", b"\xff\xfe", b"0\r\n\r\n", b"\t", b"\"", b"a" * 300, b",;=" * 50]


def noise(rng):
    request = b"".join(rng.choice(WORDS) for _ in range(rng.randrange(1, 40)))
    if rng.random() < 0.5:
        request = b"GET /metrics HTTP/1.1\r\nAccept: " + request + b"\r\n\r\n"
    return bytes(rng.randrange(256) if rng.random() < 0.01 else b for b in request)


def fuzz(listener, rounds, seed):
    rng, before = random.Random(seed), listener.memory()
    for i in range(rounds):
        with listener.connect(f"127.0.3.{i % 200 + 1}") as s:
            try:
                for _ in range(rng.randrange(1, 4)):
                    s.sendall(noise(rng))
                if rng.random() < 0.7:
                    s.shutdown(socket.SHUT_WR)
                    s.settimeout(0.2)
                    while s.recv(65536):
                        pass
            except OSError:
                pass
    assert listener.process.poll() is None
    assert answers(listener) and listener.memory() - before < 16 << 20


def test_fuzz(listener):
    fuzz(listener, 800, 1)


@pytest.mark.full
def test_fuzz_long(listener):
    seed = random.randrange(2**32)
    print("seed", seed)
    fuzz(listener, 30000, seed)
