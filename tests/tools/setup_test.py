#!/usr/bin/env python3
"""setup_test.py: tools/setup is silent when nothing is missing, and tells anyone but root what to
install."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
NOBODY = 65534


def commands_without(folder, *left_out):
    """A folder with every command of this machine but these; sudo is never there."""
    # The system's come first: others may be in folders that only we can read.
    for place in ["/usr/bin", "/bin", *os.environ["PATH"].split(os.pathsep)]:
        for path in pathlib.Path(place).glob("*"):
            link = folder / path.name
            if path.name not in (*left_out, "sudo") and not link.exists():
                link.symlink_to(path)
    return str(folder)


def setup(copy, path, group):
    drop = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    command = [*(drop if os.geteuid() == 0 else []), str(copy / "tools/setup"), group]
    done = subprocess.run(command, capture_output=True, text=True, check=False,
                          env={**os.environ, "PATH": path})
    return done.returncode, done.stdout + done.stderr


def main():
    if os.geteuid() == 0 and not shutil.which("setpriv"):
        print("there is no setpriv to be somebody else than root with")
        return 77
    results = []

    def check(what, good, got):
        results.append(good)
        if not good:
            print(f"failed: {what}: {got}")

    with tempfile.TemporaryDirectory() as temp:
        os.chmod(temp, 0o755)
        copy = pathlib.Path(temp)
        (copy / "tools").mkdir()
        shutil.copy(ROOT / "tools/setup", copy / "tools/setup")
        for name in ("all", "few", "bare"):
            (copy / name).mkdir()
        status, text = setup(copy, commands_without(copy / "all"), "build")
        check("silent when nothing is missing", status == 0 and not text, text)
        status, text = setup(copy, commands_without(copy / "few", "ninja"), "build")
        check("what is missing, and the command that installs it", status == 1 and
              "sudo apt-get install -y --no-install-recommends ninja-build" in text, text)
        status, text = setup(copy, commands_without(copy / "bare", "ninja", "apt-get"), "build")
        check("without apt-get, Debian's names", status == 1 and "ninja-build" in text and
              "its own package manager" in text, text)
        status, text = setup(copy, os.environ["PATH"], "everything")
        check("no such group", status == 2 and "usage: tools/setup" in text, text)
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed, 0 skipped")
    return 0 if all(results) else 1


sys.exit(main())
