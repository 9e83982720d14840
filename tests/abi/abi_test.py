#!/usr/bin/env python3
"""abi_test.py: programs that were compiled with earlier headers of this minor version still work.

abi_test.py           checks
abi_test.py --append  first puts new enumerators at the end of numbers.txt
"""
import pathlib
import sys

import headers

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
HERE = ROOT / "tests" / "abi"
NUMBERS = HERE / "numbers.txt"


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


def numbers_stay(now):
    """Every enumerator has the number it had when it came."""
    frozen, now = frozen_numbers(), counted(now[0])
    wrong = [f"{name} is {now.get(name, 'gone')}, not {number}" for name, number in frozen.items()
             if now.get(name) != number]
    return wrong + [f"{name} is not in tests/abi/numbers.txt: run tests/abi/abi_test.py --append"
                    for name in now if name not in frozen]


def main():
    if "--append" in sys.argv:
        append()
    now = headers.read(ROOT / "include")
    failed = 0
    for check in (numbers_stay,):
        wrong = check(now)
        failed += bool(wrong)
        for line in wrong:
            print(f"failed: {check.__name__.replace('_', ' ')}: {line}")
    print(f"{1 - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
