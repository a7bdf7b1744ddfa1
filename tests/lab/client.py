#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Clients for server.py. Standard library only.

  client.py ADDRESS PORT --ports 20000-20999    one flow from each source port: a line "SOURCE NAME" for each, in order
  client.py ADDRESS PORT --count 1000           the same from ports that the kernel chooses
  client.py ADDRESS PORT --ports ... --until-eof   again and again until standard input ends; prints "ready" after the
                                                first answer, at the end one line of JSON:
                                                {"ok": N, "failed": N, "names": {NAME: N}, "failures": ["SOURCE: why"]}
With --keep each flow is one connection that asks again and again, and a failed one stays failed. SOURCE is as `ringlb
lookup` takes it. Exit status 1 when a flow failed.
"""
import argparse
import asyncio
import hashlib
import ipaddress
import json
import os
import socket
import struct
import sys

REQUEST = b"GET / HTTP/1.1\r\nHost: lab\r\n\r\n"
FAILURES_SHOWN = 20


class Failure(Exception):
    pass


def source_text(s):
    host, port = s.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def new_socket(args, port):
    family = socket.AF_INET6 if ipaddress.ip_address(args.address).version == 6 else socket.AF_INET
    s = socket.socket(family, socket.SOCK_DGRAM if args.udp else socket.SOCK_STREAM)
    s.setblocking(False)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if not args.udp:
        # Closing with a reset leaves no TIME_WAIT, so the same source port can be used again at once.
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    if port or args.source:
        s.bind((args.source or "", port))
    return s


async def read_answer(s):
    """The body of one HTTP answer."""
    loop = asyncio.get_running_loop()
    data = b""
    while b"\r\n\r\n" not in data:
        if not (piece := await loop.sock_recv(s, 65536)):
            raise Failure("closed before an answer")
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    length = next(int(h.split(b":")[1]) for h in head.split(b"\r\n") if h.lower().startswith(b"content-length:"))
    while len(body) < length:
        if not (piece := await loop.sock_recv(s, 65536)):
            raise Failure("closed within an answer")
        body += piece
    return body.decode().strip()


async def ask_tcp(s, args):
    """The name of the server that answered, after checking its answer to an upload."""
    loop = asyncio.get_running_loop()
    if not args.post:
        await loop.sock_sendall(s, REQUEST)
        return await read_answer(s)
    body = os.urandom(args.post)
    await loop.sock_sendall(s, f"POST / HTTP/1.1\r\nHost: lab\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
    name, length, digest = (await read_answer(s)).split()
    if int(length) != len(body) or digest != hashlib.sha256(body).hexdigest():
        raise Failure("the server got other bytes")
    return name


async def ask_udp(s, _):
    loop = asyncio.get_running_loop()
    cookie = os.urandom(8).hex().encode()
    await loop.sock_sendall(s, cookie)
    while True:
        name, _, echo = (await loop.sock_recv(s, 65536)).partition(b" ")
        if echo == cookie:
            return name.decode()


async def within(args, step):
    try:
        return await asyncio.wait_for(step, args.timeout)
    except asyncio.TimeoutError:
        raise Failure("timed out") from None
    except OSError as e:
        raise Failure(e.strerror or str(e)) from None


async def flow(args, port, answered):
    """One flow; answered(source, name) for each answer. Raises Failure, the source in its text."""
    where = f"port {port}"
    try:
        with new_socket(args, port) as s:
            await within(args, asyncio.get_running_loop().sock_connect(s, (args.address, args.port)))
            where = source_text(s)
            while True:
                answered(where, await within(args, (ask_udp if args.udp else ask_tcp)(s, args)))
                if not args.keep or args.stop.is_set():
                    break
                try:
                    await asyncio.wait_for(args.stop.wait(), args.pause)
                except asyncio.TimeoutError:
                    pass
    except (Failure, OSError, ValueError) as e:
        raise Failure(f"{where}: {e}") from None


async def once(args):
    """Every port once, printed in order."""
    results = [None] * len(args.ports)
    todo = iter(range(len(args.ports)))

    async def worker():
        for i in todo:
            def answered(source, name, i=i):
                results[i] = f"{source} {name}"
            try:
                await flow(args, args.ports[i], answered)
            except Failure as e:
                results[i] = None
                print(f"client: {e}", file=sys.stderr)
    await asyncio.gather(*(worker() for _ in range(args.parallel)))
    for line in filter(None, results):
        print(line)
    return 0 if all(results) else 1


async def until_eof(args):
    """Every port again and again; a summary at the end of standard input."""
    names, failures, total = {}, [], {"ok": 0, "failed": 0}

    def answered(_, name):
        if not total["ok"]:
            print("ready", flush=True)
        total["ok"] += 1
        names[name] = names.get(name, 0) + 1

    async def worker(ports):
        while ports and not args.stop.is_set():
            for port in list(ports):
                if args.stop.is_set():
                    break
                try:
                    await flow(args, port, answered)
                except Failure as e:
                    total["failed"] += 1
                    failures.append(str(e))
                    if args.keep:
                        ports.remove(port)
                if not args.keep and args.pause:
                    await asyncio.sleep(args.pause)

    asyncio.get_running_loop().add_reader(0, lambda: os.read(0, 4096) or args.stop.set())
    workers = len(args.ports) if args.keep else args.parallel
    await asyncio.gather(*(worker(args.ports[i::workers]) for i in range(workers)), args.stop.wait())
    print(json.dumps({**total, "names": names, "failures": failures[:FAILURES_SHOWN]}))
    return 1 if total["failed"] else 0


def port_list(text):
    """"20000-20999" or "20000,20007", or both."""
    out = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        out += range(int(first), int(last or first) + 1)
    return out


async def run(args):
    args.stop = asyncio.Event()
    return await (until_eof(args) if args.until_eof else once(args))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("address")
    p.add_argument("port", type=int)
    p.add_argument("--ports", type=port_list, help="source ports, one flow each")
    p.add_argument("--count", type=int, default=1, help="flows, where --ports is not given")
    p.add_argument("--source", help="source address")
    p.add_argument("--udp", action="store_true")
    p.add_argument("--post", type=int, metavar="BYTES", help="upload so many bytes, and check what the server got")
    p.add_argument("--parallel", type=int, default=16)
    p.add_argument("--timeout", type=float, default=5, help="of each step, in seconds")
    p.add_argument("--pause", type=float, default=0, help="seconds between a worker's flows, or a connection's requests")
    p.add_argument("--until-eof", action="store_true")
    p.add_argument("--keep", action="store_true", help="with --until-eof: keep connections open, and ask on them")
    args = p.parse_args()
    args.ports = args.ports or [0] * args.count
    args.parallel = min(args.parallel, len(args.ports))
    if args.keep and not args.until_eof:
        p.error("--keep goes with --until-eof")
    sys.exit(asyncio.run(run(args)))


if __name__ == "__main__":
    main()
