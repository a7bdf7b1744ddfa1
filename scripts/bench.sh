#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# What a packet costs: builds what is missing and runs the benchmark. Root. --help says what it takes.
set -euo pipefail
root=$(dirname "$0")/..
make -s -C "$root" all build/tests/bench/bench
exec -a scripts/bench.sh "$root/build/tests/bench/bench" "$@"
