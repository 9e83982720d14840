#!/usr/bin/env python3
"""completion_test.py: bash, zsh and fish complete commands, flags and devices. A shell that is not
installed is left out."""
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FILES = {"bash": ROOT / "docs/completion/rlx.bash", "zsh": ROOT / "docs/completion/_rlx",
         "fish": ROOT / "docs/completion/rlx.fish"}
# What is on the line, and what must be offered for its last word.
CASES = [(["rlx", "ben"], "bench"), (["rlx", "help", "sel"], "selftest"),
         (["rlx", "plan", "--s"], "--svg"), (["rlx", "run", "--tra"], "--trace"),
         (["rlx", "run", "--device", "vul"], "vulkan")]
# zsh's own functions, as far as they are called: what they are given is what they would offer.
ZSH_STUBS = """
compset() { true }
_files() { true }
_describe() { print -l -- ${(P)2} }
_arguments() { print -l -- "$@" }
"""


def offered(shell, words):
    if shell == "bash":
        script = (f"source {FILES[shell]}; COMP_WORDS=({' '.join(words)}); "
                  f"COMP_CWORD={len(words) - 1}; _rlx; printf '%s\\n' \"${{COMPREPLY[@]}}\"")
        command = ["bash", "--norc", "-c", script]
    elif shell == "zsh":
        script = (f"{ZSH_STUBS}\nwords=({' '.join(words)}); CURRENT={len(words)}; "
                  f"source {FILES[shell]}")
        command = ["zsh", "-f", "-c", script]
    else:
        command = ["fish", "--no-config", "-c",
                   f"source {FILES[shell]}; complete -C '{' '.join(words)}'"]
    done = subprocess.run(command, capture_output=True, text=True, check=False,
                          env={**os.environ, "HOME": "/nonexistent"})
    return done.stdout, done.stderr


def main():
    passed = failed = skipped = 0
    for shell in FILES:
        if not shutil.which(shell):
            skipped += 1
            print(f"skipped: completion of {shell}: it is not installed")
            continue
        for words, want in CASES:
            out, err = offered(shell, words)
            good = want in out
            passed, failed = passed + good, failed + (not good)
            if not good:
                print(f"failed: {shell}: {' '.join(words)}: no {want} in {out!r} {err!r}")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


sys.exit(main())
