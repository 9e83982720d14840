#!/usr/bin/env python3
"""harness_test.py: rlx-tests counts alike in one process and in several, and goes on when a test takes
its process down."""
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TESTS = pathlib.Path(os.environ.get("RLX_BUILD_DIR", ROOT / "build" / "release")) / "rlx-tests"


def run(jobs, **env):
    done = subprocess.run([TESTS, "--jobs", str(jobs), "--filter", "harness.", "--filter", "str."],
                          capture_output=True, text=True, check=False, env={**os.environ, **env})
    counts = re.search(r"^(\d+) passed, (\d+) failed, 0 skipped\n\Z", done.stdout, re.M)
    return done.returncode, tuple(map(int, counts.groups())) if counts else None, done.stdout


def main():
    results = []

    def check(what, good, text):
        results.append(good)
        if not good:
            print(f"failed: {what}:\n{text}")

    status, alone, text = run(1)
    check("one process", status == 0 and alone and alone[0] > 10 and alone[1] == 0, text)
    status, several, text = run(3)
    check("as many in three", status == 0 and several == alone, text)
    status, crashed, text = run(3, RLX_TEST_CRASH="1")
    check("one that crashes is named and counted, and all others run",
          status == 1 and alone and crashed == (alone[0] - 1, 1) and
          "crashed: harness.ends_its_process_when_asked" in text, text)
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed, 0 skipped")
    return 0 if all(results) else 1


sys.exit(main())
