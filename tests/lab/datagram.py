#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Sends server.py datagrams that don't fit into a packet. Needs scapy for --order.

  datagram.py ADDRESS PORT --size 8000 --ports 20000-20009    one from each source port: a line "SOURCE NAME" for each
  datagram.py ... --order 2,0,1                               in three fragments that this program sends in that order

A datagram of which no answer, or not the same bytes, came within --seconds is a failure: exit status 1.
"""
import argparse
import ipaddress
import socket
import sys

IPV6_HDRINCL = 36


def in_fragments(source, target, data, order):
    """The packets of one datagram in the order given."""
    from scapy.layers.inet import IP, UDP, fragment
    from scapy.layers.inet6 import IPv6, IPv6ExtHdrFragment, fragment6
    upper = UDP(sport=source[1], dport=target[1]) / data
    piece = -(-len(upper) // (8 * len(order))) * 8
    if ":" not in target[0]:
        parts = fragment(IP(bytes(IP(src=source[0], dst=target[0], id=source[1]) / upper)), piece)
    else:
        whole = IPv6(bytes(IPv6(src=source[0], dst=target[0]) / upper))  # the checksum is that of the whole
        whole = IPv6(src=source[0], dst=target[0]) / IPv6ExtHdrFragment(id=source[1]) / whole.payload
        parts = fragment6(whole, piece + len(IPv6()) + len(IPv6ExtHdrFragment()))
    assert len(parts) == len(order)
    return [bytes(parts[i]) for i in order]


def raw_socket(family):
    s = socket.socket(family, socket.SOCK_RAW, socket.IPPROTO_RAW)
    if family == socket.AF_INET6:
        s.setsockopt(socket.IPPROTO_IPV6, IPV6_HDRINCL, 1)
    return s


def ask(args, family, port):
    data = bytes((i + port) & 255 for i in range(args.size))
    with socket.socket(family, socket.SOCK_DGRAM) as s, raw_socket(family) as raw:
        s.bind((args.source or "", port))
        s.settimeout(args.seconds)
        s.connect((args.address, args.port))
        source = s.getsockname()[:2]
        if args.order:
            for packet in in_fragments(source, (args.address, args.port), data, args.order):
                raw.sendto(packet, (args.address, 0))
        else:
            s.send(data)
        name, _, got = s.recv(65535).partition(b" ")
    if got != data:
        raise ValueError("other bytes came back")
    print(f"[{source[0]}]:{port}" if ":" in source[0] else f"{source[0]}:{port}", name.decode())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("address")
    parser.add_argument("port", type=int)
    parser.add_argument("--size", type=int, default=8000)
    parser.add_argument("--ports", default="20000-20000")
    parser.add_argument("--order", type=lambda text: [int(i) for i in text.split(",")])
    parser.add_argument("--source")
    parser.add_argument("--seconds", type=float, default=20)
    args = parser.parse_args()
    family = socket.AF_INET6 if ipaddress.ip_address(args.address).version == 6 else socket.AF_INET
    first, last = map(int, args.ports.split("-"))
    status = 0
    for port in range(first, last + 1):
        try:
            ask(args, family, port)
        except (OSError, ValueError) as error:
            print(f"{port}: {error}", file=sys.stderr)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
