#!/usr/bin/env python3
"""compare.py OLD.json NEW.json: what changed between two runs of `tools/bench --json FILE`.

Each line sets rlx's own figures side by side, and its ratios to the peer or limit: the latter is the
one to believe, for both sides of it were measured in the same minutes. Above 1 is faster."""
import json
import re
import sys

LOWER_IS_BETTER = {"ms", "us", "MB", ""}


def peer(name):
    """Without its version: "oneDNN 2.6.3, packed" is "oneDNN, packed"."""
    return re.sub(r" [0-9(][^ ,]*", "", name)


def load(path):
    with open(path, encoding="utf-8") as file:
        lines = json.load(file)["lines"]
    return {(line["case"], line["threads"], peer(line.get("against", ""))): line
            for line in lines}


def quotient(new, old):
    return new / old if old else None


def change(old, new, key):
    """NEW over OLD, turned so that more is better; None where there is nothing to divide."""
    if key not in old or key not in new:
        return None
    if key == "rlx" and new["unit"] in LOWER_IS_BETTER:
        old, new = new, old
    return quotient(new[key], old[key])


def text(value):
    return f"{value:.2f}" if value is not None else "-"


def main():
    if len(sys.argv) != 3:
        print("usage: compare.py OLD.json NEW.json", file=sys.stderr)
        return 2
    try:
        old, new = load(sys.argv[1]), load(sys.argv[2])
    except (OSError, ValueError, KeyError) as error:
        print(f"compare.py: {error}", file=sys.stderr)
        return 1
    row = "{:<53}  {:>2}  {:>10}  {:>10}  {:>8}  {:>10}  {:>10}  {:>8}".format
    print(row("case", "T", "rlx, old", "rlx, new", "new/old", "ratio, old", "ratio, new", "new/old"))
    for key in [*old, *(k for k in new if k not in old)]:
        a, b = old.get(key, {}), new.get(key, {})
        if not a or not b:
            print(row(key[0], key[1] or "", *["-"] * 6), " only in", "OLD" if a else "NEW")
            continue
        print(row(key[0], key[1] or "", f"{a['rlx']:.4g}", f"{b['rlx']:.4g}",
                  text(change(a, b, "rlx")), text(a.get("ratio")), text(b.get("ratio")),
                  text(change(a, b, "ratio"))))
    return 0


sys.exit(main())
