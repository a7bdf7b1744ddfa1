#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""breaktest_table.py MODE=FILE...: results of breaktest.py --json, of one script in several modes, as Markdown."""
import json
import sys

from breaktest import SHARES


def moved(row):
    """Percent of all connections in what moves, step by step."""
    return " + ".join(f"{100 * sum(SHARES[n] * share for n, share in s['planned'].items()):.1f}" for s in row["steps"])


def broken(row):
    if row["hit"]:
        return f"{row['hit_broken']} of its {row['hit']}, {row['broken']} others"
    return str(row["broken"])


def main():
    results = {}
    for argument in sys.argv[1:]:
        mode, _, file = argument.partition("=")
        with open(file, encoding="ascii") as f:
            results[mode] = json.load(f)
    print(f"| event | % moved | {' | '.join(results)} |")
    print(f"|---|---|{'---|' * len(results)}")
    for rows in zip(*(r["rows"] for r in results.values())):
        print(f"| `{rows[0]['event']}` | {moved(rows[0])} | {' | '.join(map(broken, rows))} |")
    for title, key in (("packets through the balancer", "packets"), ("of them lost or dropped", None),
                       ("new connections", "new"), ("of them not on the new ring", "astray")):
        values = [s[key] if key else s["lost"] + s["unsent"] + s["dropped"]
                  for s in (r["summary"] for r in results.values())]
        print(f"| *{title}* | | {' | '.join(map(str, values))} |")


if __name__ == "__main__":
    main()
