#!/usr/bin/env python3
"""checks_test.py: check-deps, check-symbols and op-census see what they are there to see."""
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

# Each row: files of a small tree (path: text), and what check-deps must say of it; None: nothing.
BASE = {"include/rlx/rlx.h": "#include <stddef.h>\n", "src/base/mem.h": '#include "rlx/rlx.h"\n',
        "src/ir/graph.h": '#include "base/mem.h"\n', "src/pass/pass.h": '#include "ir/graph.h"\n',
        "src/pass/dce.c": '#include "pass/pass.h"\n#include <stdio.h>\n',
        "src/backend/backend.h": "", "src/backend/cpu/cpu.h": "", "src/backend/null/null.h": "",
        "cli/cli.h": "#include <rlx/rlx.h>\n"}
DEPS = [
    ({}, None),
    ({"src/ir/a.c": '#include "pass/pass.h"\n'},
     'src/ir/a.c:1: includes "pass/pass.h": pass is above ir'),
    ({"src/ir/a.c": '\n  #  include   "../pass/pass.h"\n'}, "src/ir/a.c:2:"),
    ({"src/ir/t.def": '#include "pass/pass.h"\n'}, "src/ir/t.def:1:"),
    ({"src/import/a.c": '#include "pass/pass.h"\n'}, "import knows no passes"),
    ({"src/autodiff/a.c": '#include "pass/pass.h"\n'}, None),
    ({"src/pass/x.h": "", "src/autodiff/a.c": '#include "pass/x.h"\n'}, "neighbour"),
    ({"src/kernel/a.c": '#include "ir/graph.h"\n'}, "knows no graphs"),
    ({"src/backend/cpu/a.c": '#include "backend/backend.h"\n#include "cpu.h"\n'}, None),
    ({"src/backend/cpu/a.c": '#include "backend/null/null.h"\n'}, "never include one another"),
    ({"src/backend/registry.c": '#include "backend/cpu/cpu.h"\n'}, None),
    ({"src/llm/a.c": '#include "ir/graph.h"\n'}, "llm is built on include/rlx"),
    ({"src/llm/a.c": '#include "rlx/rlx.h"\n#include "base/mem.h"\n'}, None),
    ({"src/ir/a.c": '#include "nowhere.h"\n'}, "no such file"),
    ({"src/misc/a.c": ""}, "not in a folder of the ladder"),
    ({"cli/a.c": '#include "cli.h"\n#include <stdio.h>\n'}, None),
    ({"cli/a.c": '#include "base/mem.h"\n'}, "cli uses include/rlx only"),
    ({"cli/a.c": "#include <base/mem.h>\n"}, "cli uses include/rlx only"),
    ({"examples/a.c": '#include "../src/base/mem.h"\n'}, "examples uses include/rlx only"),
    ({"include/rlx/graph.h": '#include "base/mem.h"\n'}, "public headers only"),
    ({"src/ir/print.c": "", "src/plan/print.c": ""}, "print.c: in src/ir and src/plan"),
    ({"src/ir/print.h": "", "src/plan/print.h": ""}, None),
    ({f"src/ir/{i}.c": "" for i in range(59)}, None),
    ({f"src/ir/{i}.c": "" for i in range(60)}, "src/ir: 61 files, more than 60"),
]

API = ('#define RLX_API __attribute__((visibility("default")))\n'
       "/* RLX_API int rlx_in_a_comment(void); */\nRLX_API int rlx_a(void);\n")
A = "int rlx_a(void) { return 1; }\n"
INNER = ("static int b(void) { return 1; }\n"
         '__attribute__((visibility("hidden"))) int c(void) { return b(); }\n')
# Each row: the public header, the library's code, and what check-symbols must say.
SYMBOLS = [
    (API, A + INNER, None),
    (API, A + "int stray(void) { return 1; }\n", "shows stray: not an rlx_ name"),
    (API, A + "int rlx_b(void) { return 1; }\n", "shows rlx_b: not declared"),
    (API + "RLX_API int rlx_c(void);\n", A, "does not define rlx_c"),
]

TABLE = {"src/ir/ops.def": 'OP(add, binary, X, 2, 2, "a b", 0, "")\nOP(relu, unary, X, 1, 1, "x", 0, "")\n'}


def cases(count, kind="RLX_OP"):
    return "switch (op) {\n" + "".join(f"case {kind}_x{i}: break;\n" for i in range(count)) + "}\n"


# Each row: files beside the table, and what op-census --check must say.
CENSUS = [
    ({}, "the median op is named in 1 files", 0),
    ({f"src/pass/{i}.c": "RLX_OP_add, FAMILY_relu" for i in range(11)}, "in 12 files", 0),
    ({f"src/pass/{i}.c": "add relu" for i in range(12)}, "at most 12 files", 1),
    ({f"src/pass/{i}.c": "/* add\n * relu */ // RLX_OP_add" for i in range(12)}, "in 1 files", 0),
    ({"src/pass/a.c": "/* a\n * b */\n" + cases(9)}, "src/pass/a.c:3: a switch with 9 cases", 1),
    ({f"src/pass/{i}.c": "added prelu RLX_OP_relu_2" for i in range(12)}, "in 1 files", 0),
    ({f"src/graph/{i}/builders.c": "add relu" for i in range(12)}, "at most 12 files", 1),
    ({"src/pass/a.c": cases(8)}, "in 1 files", 0),
    ({"src/pass/a.c": "\n" + cases(9)}, "src/pass/a.c:2: a switch with 9 cases", 1),
    ({"src/pass/a.c": cases(9, "FAMILY")}, "src/pass/a.c:1: a switch with 9 cases", 1),
    ({"src/pass/a.c": cases(9, "COLOUR")}, "in 1 files", 0),
    ({"src/ir/shape/a.c": cases(9), "src/ir/eval/a.c": cases(9), "src/import/a.c": cases(9)},
     "in 1 files", 0),
]


def write(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def run(*command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def verdict(what, want, status, text):
    good = (status == 0 and not text) if want is None else (status == 1 and want in text)
    if not good:
        print(f"failed: {what}: wanted {want!r}, got status {status} and:\n{text}")
    return good


def symbols_case(index, header, code, want):
    with tempfile.TemporaryDirectory() as temp:
        root = pathlib.Path(temp)
        write(root, {"include/rlx/rlx.h": header, "a.c": code,
                     "tools/check-symbols": (ROOT / "tools/check-symbols").read_text()})
        for command in (["gcc", "-fPIC", "-c", "a.c", "-o", "a.o"],
                        ["objcopy", "--localize-hidden", "a.o"], ["ar", "rcs", "librlx.a", "a.o"],
                        ["gcc", "-shared", "a.o", "-o", "librlx.so"]):
            subprocess.run(command, cwd=root, check=True)
        status, text = run("python3", root / "tools/check-symbols", root)
        return verdict(f"check-symbols case {index}", want, status, text)


def main():
    results = []
    for index, (extra, want) in enumerate(DEPS):
        with tempfile.TemporaryDirectory() as temp:
            write(pathlib.Path(temp), {**BASE, **extra})
            status, text = run("python3", ROOT / "tools/check-deps", temp)
            results.append(verdict(f"check-deps case {index}", want, status, text))
    for index, (extra, want, wanted_status) in enumerate(CENSUS):
        with tempfile.TemporaryDirectory() as temp:
            write(pathlib.Path(temp), {**TABLE, **extra})
            status, text = run("python3", ROOT / "tools/op-census", "--check", "--root", temp)
            good = status == wanted_status and want in text
            if not good:
                print(f"failed: op-census case {index}: status {status} and:\n{text}")
            results.append(good)
    results += [symbols_case(i, *row) for i, row in enumerate(SYMBOLS)]
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed, 0 skipped")
    return 0 if all(results) else 1


sys.exit(main())
