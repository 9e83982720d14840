#!/usr/bin/env python3
"""devices_test.py: tests of a GPU that is not there are skipped, and say why; those of one that must be
there fail."""
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TESTS = pathlib.Path(os.environ.get("RLX_BUILD_DIR", ROOT / "build" / "release")) / "rlx-tests"
# No driver of Vulkan, and no library of WebGPU.
ABSENT = {"VK_ICD_FILENAMES": "/nonexistent", "VK_DRIVER_FILES": "/nonexistent",
          "RLX_WEBGPU_LIB": "/nonexistent/libwgpu_native.so"}


def run(filters, **env):
    """passed, failed, skipped, and what was printed"""
    command = [TESTS, *(word for part in filters for word in ("--filter", part))]
    done = subprocess.run(command, capture_output=True, text=True, check=False,
                          env={**os.environ, **ABSENT, **env})
    counts = re.search(r"^(\d+) passed, (\d+) failed, (\d+) skipped$", done.stdout, re.M)
    return *(map(int, counts.groups()) if counts else (0, 1, 0)), done.stdout + done.stderr


def main():
    results = []

    def check(what, good, text):
        results.append(good)
        if not good:
            print(f"failed: {what}:\n{text}")

    one = "session.compiling_is_logged@"
    _, failed, skipped, text = run(["@vulkan", "@webgpu"], RLX_REQUIRE_DEVICE="")
    check("tests of absent devices are skipped", not failed and skipped > 100, text)
    mute = re.sub(r"^skipped: \S+: no device \w+: .+\n", "", text, flags=re.M)
    check("each says why", "skipped:" not in mute, mute)
    for required, want in (("vulkan", (0, 1, 1)), ("vulkan webgpu", (0, 2, 0)), ("1", (0, 2, 0))):
        *counts, text = run([one], RLX_REQUIRE_DEVICE=required)
        check(f"RLX_REQUIRE_DEVICE={required}", tuple(counts) == want, text)
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed, 0 skipped")
    return 0 if all(results) else 1


sys.exit(main())
