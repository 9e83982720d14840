#!/usr/bin/env python3
"""quotes_test.py: tools/check-quotes finds what a reader could not type, and leaves alone the rest."""
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

HELP = """@run
Run a graph
usage: rlx run FILE

Run a graph.

flags:
  --input NAME=VALUE       a value
  --external-data follow   files anywhere
  --json                   one object
  -D NAME=TEXT             a constant
  --help                   this text

examples:
  rlx run model.rlx --json
  rlx run model.rlx --json \\
      --input x=1
"""
# Stands in for the command: a graph is good unless it says "wrong", a kernel unless it says "bad".
RLX = """#!/bin/sh
case $1 in
help) cat "$0.help" ;;
print) if grep -q wrong "$2"; then echo "3:1: that is wrong" >&2; exit 1; fi ;;
kernel) if grep -q bad "$2"; then echo "$2:1: that is bad" >&2; exit 1; fi ;;
esac
"""
BASE = {"include/rlx/rlx.h": "RLX_API int rlx_model_load(rlx_model *m);\n",
        "examples/mlp.rlx": "", "Makefile": "all:\n\ncheck:\n"}
# Each row: README.md and what must be said of it; None: nothing.
CASES = [
    ("", None),
    # command lines
    ("```\n$ rlx run a.rlx --json\nrlx run: cannot run a.rlx\n```\n`rlx run --json`, `rlx help run`\n", None),
    ("```\nrlx run examples/mlp.rlx --input x=1 -D a=b     with --nothing else\n```\n", None),
    ("```\nrlx run a.rlx --json | grep --count x\nRLX_A=1 build/x/rlx run a --input x\n```\n", None),
    ("```\nrlx run a.rlx \\\n    --external-data follow\n```\n", None),
    ("`rlx COMMAND`, `rlx 1`, `rlx run FILE [--json | --input NAME=VALUE]`, `rlx run --input`\n", None),
    ("```\nrlx walk a.rlx\n```\n", "README.md:2: rlx has no command 'walk'"),
    ("\n`rlx walk`\n", "README.md:2: rlx has no command 'walk'"),
    ("`rlx help walk`\n", "rlx has no command 'walk'"),
    ("```\n$ rlx run a.rlx --jsn\n```\n", "README.md:2: rlx run has no flag --jsn"),
    ("```\nA=1 rlx run a.rlx --jsn\n```\n", "rlx run has no flag --jsn"),
    ("```\nrlx run a.rlx \\\n    --jsn\n```\n", "README.md:2: rlx run has no flag --jsn"),
    ("as `rlx run a.rlx\n--jsn` does\n", "README.md:1: rlx run has no flag --jsn"),
    ("`rlx run FILE [--json | --jsn]`\n", "rlx run has no flag --jsn"),
    ("`rlx run -E a`\n", "rlx run has no flag -E"),
    ("```\nrlx run --external-data\n```\n", "rlx run --external-data takes a value"),
    ("```\nrlx run a.rlx --input --json\n```\n", "rlx run --input takes a value"),
    ("```\nrlx run a.rlx --input     with a value\n```\n", "rlx run --input takes a value"),
    ("```\nrlx run examples/cnn.rlx\n```\n", "examples/cnn.rlx is not in the tree"),
    ("```\nrlx run examples/NAME.rlx\n```\n", None),
    # graphs and kernels
    ("```\nrlx 1\ngraph () {}\n```\n```\nkernel a() {}\n```\n", None),
    ("\n```\nrlx 1\ngraph (wrong) {}\n```\n", "README.md:3: 3:1: that is wrong"),
    ("```\nrlx 1\ngraph (wrong, ...) {}\n```\n", None),
    ("```\nuse \"lib/grid\"\nkernel bad() {}\n```\n", "README.md:2: this:1: that is bad"),
    ("```\nkernel bad() { ... }\n```\n", None),
    # names
    ("```c\nrlx_model_load(m);\n```\n`rlx_model`, `rlx_model_*`, `rlx/model.h`\n", None),
    ("```c\n\nrlx_model_open(m);\n```\n", "README.md:3: rlx_model_open is not declared"),
    ("`rlx_models`\n", "README.md:1: rlx_models is not declared"),
    ("`rlx_graph_*`\n", "rlx_graph_ is not declared"),
    ("rlx_nothing, in no backticks\n", None),
    # make
    ("`make check`, `make`\n```\nSAN=1 make\nmake JOBS=2 check\n```\n", None),
    ("`make chek`\n", "make has no target chek"),
    ("```\nmake JOBS=2 chek\n```\n", "README.md:2: make has no target chek"),
]


def said_of(files, help_text):
    """The exit status of check-quotes on a small tree, and what it printed."""
    with tempfile.TemporaryDirectory() as temp:
        root = pathlib.Path(temp)
        for name, text in {**BASE, **files, "rlx": RLX, "rlx.help": help_text}.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        (root / "rlx").chmod(0o755)
        done = subprocess.run([str(ROOT / "tools/check-quotes"), str(root / "rlx"), temp], text=True,
                              capture_output=True, check=False)
        return done.returncode, done.stdout + done.stderr


def passes(what, files, want, help_text=HELP):
    status, said = said_of(files, help_text)
    good = (status == 0 and not said) if want is None else (status == 1 and want in said)
    if not good:
        print(f"failed: {what}: wanted {want!r}, got status {status} and:\n{said}")
    return good


def main():
    results = [passes(f"case {i}", {"README.md": text}, want) for i, (text, want) in enumerate(CASES)]
    results += [
        passes("what was", {"CHANGELOG.md": "`rlx walk`\n"}, None),
        passes("another page", {"docs/a/b.md": "`rlx walk`\n"}, "docs/a/b.md:1: rlx has no command"),
        passes("inner names", {"src/README.md": "`rlx_inner`\n"}, None),
        passes("help", {}, "rlx help run: rlx run has no flag --jsn",
               HELP.replace("rlx --json \\", "rlx --jsn \\")),
    ]
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed, 0 skipped")
    return 0 if all(results) else 1


sys.exit(main())
