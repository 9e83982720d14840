#!/usr/bin/env python3
"""format_test.py: tools/format --check names what clang-format would change, and changes nothing."""
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
GOOD = "int add(int a, int b)\n{\n    return a + b;\n}\n"
BAD = "int add(int a,int b) {\n  return a+b; }\n"
SKIP_STATUS = 77


def run(tree, *flags):
    done = subprocess.run([str(tree / "tools/format"), *flags], capture_output=True, text=True,
                          check=False)
    return done.returncode, done.stdout + done.stderr


def main():
    with tempfile.TemporaryDirectory() as temp:
        tree = pathlib.Path(temp)
        for folder in ("tools", "src/ir", "src/graph"):
            (tree / folder).mkdir(parents=True)
        shutil.copy(ROOT / "tools/format", tree / "tools/format")
        shutil.copy(ROOT / ".clang-format", tree / ".clang-format")
        source = tree / "src/ir/add.c"
        source.write_text(GOOD)
        (tree / "src/graph/builders.c").write_text(BAD)  # generated: not looked at
        status, text = run(tree, "--check")
        if status == SKIP_STATUS:
            print(text, end="")
            return SKIP_STATUS
        results = [("good code passes", status == 0)]
        source.write_text(BAD)
        status, text = run(tree, "--check")
        results.append(("bad code is named", status not in (0, SKIP_STATUS) and
                        "src/ir/add.c:1:" in text))
        results.append(("and left alone", source.read_text() == BAD))
        status, text = run(tree)
        results.append(("it is mended", status == 0 and source.read_text() == GOOD))
        results.append(("generated code is not", (tree / "src/graph/builders.c").read_text() == BAD))
    for name, good in results:
        if not good:
            print(f"failed: {name}: status {status}\n{text}")
    passed = sum(good for _, good in results)
    print(f"{passed} passed, {len(results) - passed} failed, 0 skipped")
    return 0 if passed == len(results) else 1


sys.exit(main())
