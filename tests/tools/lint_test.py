#!/usr/bin/env python3
"""lint_test.py: tools/lint reports what clang-tidy finds, and looks again only at what has changed."""
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

# Stands in for clang-tidy: writes down which file it was given, and finds the word "wrong".
TIDY = """#!/bin/sh
if [ "$1" = --version ]; then echo "version 1"; exit; fi
for last; do :; done
case "$*" in *-clang-analyzer*) how=quick ;; *) how=whole ;; esac
echo "$how $(basename "$last")" >>seen
echo "7 warnings generated." >&2
if grep -n wrong "$last"; then exit 1; fi
"""
CMAKE = """#!/bin/sh
mkdir -p build/lint
cat commands.json >build/lint/compile_commands.json
"""
TREE = {
    ".clang-tidy": "Checks: all\n",
    "src/a.c": '#include <stdio.h>\n#include "b.h"\n',
    "src/b.h": '# include "rlx/rlx.h"\n',
    "src/graph/builders.c": "wrong\n",
    "cli/c.c": "int c;\n",
    "examples/none.h": "wrong\n",
    "include/rlx/rlx.h": "\n",
}
BOTH = ["a.c", "c.c"]


class Small:
    """A small tree with tools/lint in it."""

    def __init__(self, root):
        self.root = pathlib.Path(root).resolve()
        for name, text in TREE.items():
            self.write(name, text)
        self.write("tools/lint", (ROOT / "tools/lint").read_text())
        for name, text in (("bin/clang-tidy", TIDY), ("bin/cmake", CMAKE)):
            self.write(name, text)
            (self.root / name).chmod(0o755)
        self.flags("-O1")

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def flags(self, flags):
        self.write("commands.json", f'[{{"file": "{self.root}/src/a.c", "command": "cc {flags}"}}]')

    def lint(self, *args):
        """Status, output, and the files that were looked at."""
        self.write("seen", "")
        path = f"{self.root / 'bin'}:{os.environ['PATH']}"
        done = subprocess.run([sys.executable, "tools/lint", *args], cwd=self.root, text=True,
                              capture_output=True, check=False, env={**os.environ, "PATH": path})
        seen = sorted((self.root / "seen").read_text().splitlines())
        return done.returncode, done.stdout + done.stderr, seen


def whole(*names):
    return [f"whole {name}" for name in names]


def main():
    results = []

    def expect(what, got, status, seen, text):
        good = got[0] == status and got[2] == seen and text in got[1]
        if not good:
            print(f"failed: {what}: wanted {(status, text, seen)}, got {got}")
        results.append(good)

    with tempfile.TemporaryDirectory() as temp:
        t = Small(temp)
        expect("first", t.lint(), 0, whole(*BOTH), "findings: 2, unchanged since they were last looked at: 0")
        expect("again", t.lint(), 0, [], "findings: 2, unchanged since they were last looked at: 2")
        expect("the quick half is known too", t.lint("--quick"), 0, [], "at: 2")
        t.write("include/rlx/rlx.h", "int changed;\n")
        expect("a header of a header", t.lint("--quick"), 0, ["quick a.c"], "at: 1")
        expect("quickly, again", t.lint("--quick"), 0, [], "at: 2")
        expect("quick is not whole", t.lint(), 0, whole("a.c"), "at: 1")
        t.flags("-O2")
        expect("flags", t.lint(), 0, whole("a.c"), "")
        t.write(".clang-tidy", "Checks: none\n")
        expect("configuration", t.lint(), 0, whole(*BOTH), "")
        t.write("cli/c.c", "int wrong;\n")
        expect("a finding", t.lint(), 1, whole("c.c"), "1:int wrong;")
        expect("a finding is found again", t.lint(), 1, whole("c.c"), "1 of 2 files have findings")
        expect("one file", t.lint("src/a.c"), 0, [], "findings: 1,")
        expect("one file, with a finding", t.lint("cli/c.c"), 1, whole("c.c"), "1 of 1 files")
        t.write("cli/c.c", "int right;\n")
        expect("mended", t.lint(), 0, whole("c.c"), "findings: 2,")
        t.write("bin/cmake", "#!/bin/sh\necho no such preset; exit 1\n")
        expect("no configuration", t.lint(), 1, [], "lint: cmake failed:\nno such preset")
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed, 0 skipped")
    return 0 if all(results) else 1


sys.exit(main())
