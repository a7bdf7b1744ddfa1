#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A real server that answers with its name: HTTP over TCP, and UDP, on IPv4 and IPv6.

  GET /bytes/N -> N bytes, no name
  GET  -> "NAME\n"                          the connection stays open unless the client says Connection: close
  POST -> "NAME BYTES SHA256\n"             of the body, so that a client can check an upload
  UDP  -> "NAME " and the datagram, from the address it was sent to

Prints "ready" once every socket is bound, and nothing after that. The answer's header X-Client is the client's address
as the server sees it. Standard library only.
"""
import argparse
import asyncio
import hashlib
import os
import socket
import struct

BODY_LIMIT = 1 << 27
PIECE = bytes(range(256)) * 1024


async def read_request(reader):
    """One request as (method, path, headers, body), or None where the connection ended."""
    line = await reader.readline()
    if not line:
        return None
    method, path, _ = line.decode("latin-1").split(" ", 2)
    headers = {}
    while (line := (await reader.readline()).decode("latin-1").strip()):
        key, _, value = line.partition(":")
        headers[key.lower()] = value.strip()
    length = int(headers.get("content-length", 0))
    if length > BODY_LIMIT:
        raise ValueError("body too long")
    return method, path, headers, await reader.readexactly(length)


async def send_bytes(writer, length):
    writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n".encode())
    while length:
        piece = PIECE[:length]
        writer.write(piece)
        await writer.drain()
        length -= len(piece)


def tcp_handler(name):
    async def handle(reader, writer):
        client = writer.get_extra_info("peername")
        try:
            while (request := await read_request(reader)) is not None:
                method, path, headers, body = request
                if method == "GET" and path.startswith("/bytes/"):
                    await send_bytes(writer, int(path.rpartition("/")[2]))
                    continue
                text = name
                if method == "POST":
                    text += f" {len(body)} {hashlib.sha256(body).hexdigest()}"
                close = headers.get("connection", "").lower() == "close"
                writer.write((
                    "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
                    f"Content-Length: {len(text) + 1}\r\nX-Client: {client[0]} {client[1]}\r\n"
                    f"Connection: {'close' if close else 'keep-alive'}\r\n\r\n{text}\n").encode())
                await writer.drain()
                if close:
                    break
        except (OSError, ValueError, asyncio.IncompleteReadError):
            pass  # the client went away or does not speak HTTP: its own affair
        finally:
            writer.close()
    return handle


def udp_socket(family, port):
    """A socket that tells which address a datagram was sent to, because the answer must come from there."""
    s = socket.socket(family, socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    if family == socket.AF_INET6:
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, 1)
    else:
        s.setsockopt(socket.IPPROTO_IP, 8, 1)  # IP_PKTINFO, which Python 3.11 does not name
    s.bind(("", port))
    s.setblocking(False)
    return s


def reply_from(ancillary):
    """Control data for the answer, from that of the question; the interface is left to the routing table."""
    out = []
    for level, kind, data in ancillary:
        if level == socket.IPPROTO_IP and kind == 8:
            _, local, _ = struct.unpack("=I4s4s", data[:12])
            out.append((level, kind, struct.pack("=I4s4s", 0, local, bytes(4))))
        elif level == socket.IPPROTO_IPV6 and kind == socket.IPV6_PKTINFO:
            out.append((level, kind, data[:16] + struct.pack("=I", 0)))
    return out


def udp_readable(s, name):
    try:
        data, ancillary, _, peer = s.recvmsg(65535, 256)
        s.sendmsg([name.encode() + b" " + data], reply_from(ancillary), 0, peer)
    except OSError:
        pass  # as any datagram may be lost


async def serve(args):
    loop = asyncio.get_running_loop()
    servers = [await asyncio.start_server(tcp_handler(args.name), None, port, backlog=1024) for port in args.tcp]
    for port in args.udp:
        for family in (socket.AF_INET, socket.AF_INET6):
            s = udp_socket(family, port)
            loop.add_reader(s, udp_readable, s, args.name)
            servers.append(s)
    os.write(1, b"ready\n")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    await asyncio.Event().wait()


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("name")
    p.add_argument("--tcp", type=int, nargs="*", default=[])
    p.add_argument("--udp", type=int, nargs="*", default=[])
    try:
        asyncio.run(serve(p.parse_args()))
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
