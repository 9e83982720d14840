#!/usr/bin/env python3
"""bench_test.py: tools/bench gives a line for every case, says why a peer is missing, and
bench/compare.py reads what it writes. How fast anything is does not matter here."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("RLX_BUILD_DIR", ROOT / "build" / "release"))
RUN = ["--rounds", "1", "--ms", "1", "--threads", "1", "--build", BUILD]


def run(*command, **env):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False,
                          stdin=subprocess.DEVNULL, env={**os.environ, **env}, timeout=300)
    return done.returncode, done.stdout, done.stderr


def bench(folder, *arguments, **env):
    """The lines it writes, by case: the last one of each."""
    path = pathlib.Path(folder) / "lines.json"
    status, out, err = run(ROOT / "tools" / "bench", *RUN, "--json", path, *arguments, **env)
    assert status == 0, f"status {status}: {out}{err}"
    return {line["case"]: line for line in json.loads(path.read_text())["lines"]}, out


def limits_are_judged():
    with tempfile.TemporaryDirectory() as folder:
        lines, out = bench(folder, "overhead")
    assert len(lines) == 3, lines
    for case, line in lines.items():
        assert line["rlx"] > 0 and line["wanted"] == 1, line
        assert abs(line["ratio"] - line["other"] / line["rlx"]) < 1e-6 * line["ratio"], line
        assert case in out
    assert "3 of 3 ratios met" in out or "missed" in out, out


def a_missing_library_is_said():
    with tempfile.TemporaryDirectory() as folder:
        for library in ("libdnnl.so.2", "libopenblas.so.0"):
            (pathlib.Path(folder) / library).write_text("not a library")
        lines, out = bench(folder, "conv", LD_LIBRARY_PATH=folder)
    (line,) = lines.values()
    assert "libdnnl.so.2" in line["missing"] and "ratio" not in line, line
    assert line["rlx"] > 0, line
    assert "skipped: " in out, out


def a_missing_module_is_said():
    # -S leaves out every folder in which modules are installed.
    status, out, err = run(sys.executable, "-I", "-S", ROOT / "bench" / "ort.py", "bert")
    assert status == 0, err
    assert "tools/setup bench" in json.loads(out)["missing"], out


def compare_divides():
    old = {"case": "a", "threads": 1, "unit": "GB/s", "rlx": 2.0, "ratio": 0.5}
    new = {**old, "rlx": 3.0, "ratio": 0.25}
    slow = {"case": "b", "threads": 2, "unit": "ms", "rlx": 4.0}
    with tempfile.TemporaryDirectory() as folder:
        paths = [pathlib.Path(folder) / name for name in ("old.json", "new.json")]
        for path, first, ms in zip(paths, (old, new), (4.0, 1.0)):
            path.write_text(json.dumps({"lines": [first, {**slow, "rlx": ms}]}))
        status, out, err = run(ROOT / "bench" / "compare.py", *paths)
        assert status == 0, err
        rows = [line.split() for line in out.splitlines()]
        assert rows[1] == ["a", "1", "2", "3", "1.50", "0.50", "0.25", "0.50"], rows
        assert rows[2] == ["b", "2", "4", "1", "4.00", "-", "-", "-"], rows
        paths[1].write_text("{")
        assert run(ROOT / "bench" / "compare.py", *paths)[0] == 1
    assert run(ROOT / "bench" / "compare.py", "one")[0] == 2


def bad_arguments_are_refused():
    for arguments, part in ((["nothing"], "no benchmark nothing"), (["--threads", "x"], "numbers"),
                            (["--rounds", "0"], "1 or more")):
        status, _, err = run(ROOT / "tools" / "bench", *arguments)
        assert status == 2 and part in err, (arguments, status, err)
    status, _, err = run(BUILD / "bench" / "conv", "--ms", "0")
    assert status == 1 and "--ms" in err, (status, err)
    status, _, err = run(BUILD / "bench" / "network", "nothing")
    assert status == 1 and "no network nothing" in err, (status, err)


TESTS = [limits_are_judged, a_missing_library_is_said, a_missing_module_is_said, compare_divides,
         bad_arguments_are_refused]


def main():
    failed = 0
    for test in TESTS:
        try:
            test()
        except AssertionError as error:
            failed += 1
            print(f"failed: {test.__name__}: {error}")
    print(f"{len(TESTS) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


sys.exit(main())
