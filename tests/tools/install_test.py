#!/usr/bin/env python3
"""install_test.py: an installed rlx serves programs built elsewhere, with and without CMake, and knows
nothing of the checkout it was built in."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("RLX_BUILD_DIR", ROOT / "build" / "release"))
EXAMPLE = ROOT / "examples" / "hello_matmul.c"


def run(*command, **env):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False,
                          env={**os.environ, **env})
    if done.returncode != 0:
        raise AssertionError(f"{command[0]} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def knows_nothing_of_the_checkout(prefix, _):
    for path in prefix.rglob("*"):
        if path.is_file() and str(ROOT).encode() in path.read_bytes():
            raise AssertionError(f"{path.relative_to(prefix)} has the path of the checkout in it")


def the_command_works(prefix, _):
    assert "null" in run(prefix / "bin" / "rlx", "devices")


def found_by_cmake(prefix, temp):
    build = temp / "consumer"
    run("cmake", "-S", ROOT / "cmake/consumer", "-B", build, "-G", "Ninja",
        f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", build)
    run("ctest", "--test-dir", build)


def other_versions_are_refused(prefix, temp):
    """The minor version counts below 1.0, the major one from there on."""
    header = (ROOT / "include/rlx/base.h").read_text()
    version = int(re.search(r"^#define RLX_VERSION (\d+)", header, flags=re.M)[1])
    major, minor = version // 10000, version // 100 % 100
    name = f"{major}.{minor}" if major == 0 else f"{major}"
    library = next(prefix.rglob(f"librlx.so.{name}"))
    assert f"[librlx.so.{name}]" in run("readelf", "-d", library)
    (temp / "asks").mkdir()
    (temp / "asks/CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.22)\nproject(asks LANGUAGES C)\n"
        "find_package(rlx ${wanted} QUIET)\nif(NOT rlx_FOUND EQUAL expected)\n"
        "  message(FATAL_ERROR \"${wanted}: found is ${rlx_FOUND}\")\nendif()\n")
    for wanted, expected in [(f"{major}.{minor}", 1), (f"{major}.{minor + 1}", 0),
                             (f"{major + 1}.{minor}", 0), (f"{major}.{minor - 1}", int(major > 0))]:
        run("cmake", "-S", temp / "asks", "-B", temp / f"asks-{wanted}",
            f"-DCMAKE_PREFIX_PATH={prefix}", f"-Dwanted={wanted}", f"-Dexpected={expected}")


def found_by_pkg_config(prefix, temp):
    if not shutil.which("pkg-config"):
        return "there is no pkg-config"
    where = next(prefix.rglob("rlx.pc")).parent
    for static in ([], ["--static"]):
        flags = run("pkg-config", *static, "--cflags", "--libs", "rlx",
                    PKG_CONFIG_PATH=str(where)).split()
        if static:
            flags = [f for f in flags if f != "-lrlx"] + ["-l:librlx.a", "-lm", "-lpthread", "-ldl"]
        run("gcc", EXAMPLE, "-o", temp / "hello", *flags)
        run(temp / "hello", LD_LIBRARY_PATH=str(where.parent))
    return None


def a_folder_of_another_project(_, temp):
    (temp / "project").mkdir()
    (temp / "project/CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.22)\nproject(hello LANGUAGES C)\n"
        f"add_subdirectory({ROOT} rlx)\nadd_executable(hello {EXAMPLE})\n"
        "target_link_libraries(hello PRIVATE rlx::rlx_static)\n"
        "if(TARGET rlx-tests)\n  message(FATAL_ERROR \"tests of rlx\")\nendif()\n")
    run("cmake", "-S", temp / "project", "-B", temp / "project/build", "-G", "Ninja")
    run("ninja", "-n", "-C", temp / "project/build", "hello")


def can_be_moved(prefix, temp):
    moved = temp / "moved"
    shutil.copytree(prefix, moved, symlinks=True)
    the_command_works(moved, temp)


def main():
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    with tempfile.TemporaryDirectory() as folder:
        temp = pathlib.Path(folder)
        run("cmake", "--install", BUILD, "--prefix", temp / "prefix")
        for check in (knows_nothing_of_the_checkout, the_command_works, found_by_cmake,
                      other_versions_are_refused, found_by_pkg_config, a_folder_of_another_project, can_be_moved):
            name = check.__name__.replace("_", " ")
            try:
                why = check(temp / "prefix", temp)
                counts["skipped" if why else "passed"] += 1
                if why:
                    print(f"skipped: {name}: {why}")
            except AssertionError as error:
                counts["failed"] += 1
                print(f"failed: {name}: {error}")
    print(", ".join(f"{n} {what}" for what, n in counts.items()))
    return 1 if counts["failed"] else 0


sys.exit(main())
