#!/usr/bin/env python3
"""abi_test.py: programs that were compiled with earlier headers still work with this library.

tests/abi/v<major>_<minor> has the headers of a version as they were when it came. Those of versions
that this library serves (src/base/version.h) are compared with the headers of today, and caller.c is
compiled with them and run. docs/install.md says how the next version is frozen.

abi_test.py           checks; the library is that of $RLX_BUILD_DIR
abi_test.py --append  first puts new enumerators at the end of numbers.txt
abi_test.py --freeze  first copies the stable headers to the folder of their version
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import headers

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("RLX_BUILD_DIR", ROOT / "build" / "release"))
HERE = ROOT / "tests" / "abi"
NUMBERS = HERE / "numbers.txt"
# Headers that promise nothing.
UNSTABLE = "#ifndef RLX_UNSTABLE\n#error"


def version_of(include):
    text = (include / "rlx" / "base.h").read_text()
    number = int(re.search(r"^#define RLX_VERSION (\d+)", text, flags=re.M)[1])
    return number // 10000, number // 100 % 100


def frozen_versions():
    """The folders of headers of versions that this library serves."""
    major, minor = version_of(ROOT / "include")
    for folder in sorted(HERE.glob("v*_*")):
        was = version_of(folder)
        if was == (major, minor) or (major > 0 and was[0] == major and was[1] < minor):
            yield folder


def frozen_numbers():
    rows = [line.split() for line in NUMBERS.read_text().splitlines() if not line.startswith("#")]
    return {name: int(number) for name, number in rows}


def counted(numbers):
    """All but those that say how many there are, which grow."""
    return {name: n for name, n in numbers.items() if not name.endswith("_count")}


def append():
    known = frozen_numbers()
    with NUMBERS.open("a") as out:
        out.writelines(f"{name} {number}\n"
                       for name, number in counted(headers.read(ROOT / "include")[0]).items()
                       if name not in known)


def stable_headers():
    return [p for p in sorted((ROOT / "include/rlx").glob("*.h")) if UNSTABLE not in p.read_text()]


def this_folder():
    major, minor = version_of(ROOT / "include")
    return HERE / f"v{major}_{minor}" / "rlx"


def freeze():
    this_folder().mkdir(parents=True, exist_ok=True)
    for header in stable_headers():
        shutil.copy(header, this_folder())


def numbers_stay():
    """Every enumerator has the number it had when it came."""
    frozen, now = frozen_numbers(), counted(headers.read(ROOT / "include")[0])
    wrong = [f"{name} is {now.get(name, 'gone')}, not {number}" for name, number in frozen.items()
             if now.get(name) != number]
    return wrong + [f"{name} is not in tests/abi/numbers.txt: run tests/abi/abi_test.py --append"
                    for name in now if name not in frozen]


def compare_struct(name, was, now):
    """Fields stay where they are; only structs with a size grow, and past their end, as a program may
    leave anything in the padding of what it knows."""
    if not now:
        return [f"{name} is gone"]
    at = {field: (offset, size) for field, offset, size in now}
    end, known = was[-1][1], {field for field, _, _ in was}
    wrong = [f"{name}.{field} is at {at.get(field, ('gone',))}, not {(offset, size)}"
             for field, offset, size in was[:-1] if at.get(field) != (offset, size)]
    if was[0][0] != "size" and now[-1][1] != end:
        wrong.append(f"{name} has no size and has {now[-1][1]} bytes, not {end}")
    return wrong + [f"{name}.{field} is at {offset}, within the {end} bytes that programs know"
                    for field, offset, _ in now[:-1] if field not in known and offset < end]


def structs_stay():
    now = headers.read(ROOT / "include")[1]
    return [f"{folder.name}: {line}" for folder in frozen_versions()
            for name, fields in headers.read(folder)[1].items()
            for line in compare_struct(name, fields, now.get(name))]


def descriptions_have_sizes():
    """Whatever is called a description, of what is wanted or of what there is, can grow."""
    return [f"{name} does not begin with size"
            for name, fields in headers.read(ROOT / "include")[1].items()
            if name.endswith(("_desc", "_info")) and fields[0][0] != "size"]


def functions_stay():
    """Every function is declared with the same words."""
    now = headers.functions(ROOT / "include")
    return [f"{folder.name}: {name} was\n    {was}\nand is\n    {now.get(name, 'gone')}"
            for folder in frozen_versions()
            for name, was in headers.functions(folder).items() if now.get(name) != was]


def callers_run():
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        temp = pathlib.Path(folder)
        for include in frozen_versions():
            program = temp / f"caller-{include.name}"
            done = subprocess.run([*headers.COMPILER, "-std=c11", f"-I{include}",
                                   str(HERE / "caller.c"), "-o", str(program), f"-L{BUILD}",
                                   f"-Wl,-rpath,{BUILD}", "-lrlx", "-lm"],
                                  capture_output=True, text=True, check=False)
            if done.returncode == 0:
                done = subprocess.run([program, temp / "weights.gguf"], capture_output=True,
                                      text=True, check=False)
            if done.returncode != 0:
                wrong.append(f"{include.name}: {done.stdout}{done.stderr}")
    return wrong


def this_version_is_frozen():
    """Every stable header has a copy that programs can be held against."""
    return [f"{this_folder().relative_to(ROOT)} has no {header.name}: run abi_test.py --freeze"
            for header in stable_headers() if not (this_folder() / header.name).exists()]


def main():
    if "--append" in sys.argv:
        append()
    if "--freeze" in sys.argv:
        freeze()
    checks = (numbers_stay, this_version_is_frozen, descriptions_have_sizes, structs_stay,
              functions_stay, callers_run)
    failed = 0
    for check in checks:
        wrong = check()
        failed += bool(wrong)
        for line in wrong:
            print(f"failed: {check.__name__.replace('_', ' ')}: {line}")
    print(f"{len(checks) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
