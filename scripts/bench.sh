#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# What it costs and how fast it is: builds what is missing and runs the benchmark. Root. --help says what it takes.
set -euo pipefail
root=$(dirname "$0")/..
make -s -C "$root" all build/tests/bench/bench build/tests/bench/traffic/traffic build/tests/net/pass.bpf.o
exec -a scripts/bench.sh /usr/bin/python3 "$root/tests/bench/run.py" "$@"
