#!/usr/bin/env python3
"""links_test.py: tools/check-links finds what points to nothing, and leaves alone what does not."""
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

BASE = {
    "docs/spec/rules.md": ("# Rules\n\n## 1. First\n\n### 1.2 Second\n\n| 7 | row |\n\n"
                           "## 10. Last\n\n1. one\n2. two\n"),
    "docs/page.md": "# A page\n\n## Two words, here\n",
    "src/ir/add.c": "int add(int a, int b)\n{\n    return a + b;\n}\n",
    "src/ir/add.h": "",
}
# Each row: files besides those above (path: text), and what must be said of them; None: nothing.
CASES = [
    ({}, None),
    # links
    ({"README.md": "[a](docs/page.md), [b](docs/page.md#two-words-here), [c](https://x.org/none.md)\n"},
     None),
    ({"README.md": "\n[a](docs/none.md)\n"}, "README.md:2: there is no docs/none.md"),
    ({"README.md": "[a](docs/page.md#three)\n"}, "has no heading #three"),
    ({"docs/a.md": "# A\n\n[here](#a), [not here](#b)\n"}, "a.md has no heading #b"),
    ({"README.md": "```\n[a](docs/none.md)\n```\n`[b](none.md)`\n"}, None),
    # sections, in any kind of file
    ({"src/ir/a.c": "/* rules.md 1.2, 10 */\n/* rules.md 1 to 10 and\n * rules.md\n * 1.2 */\n"}, None),
    ({"src/ir/a.c": "\n/* rules.md 1.3 */\n"}, "src/ir/a.c:2: rules.md has no section 1.3"),
    ({"src/ir/a.c": "/* rules.md 1.2, 11 */\n"}, "has no section 11"),
    ({"src/ir/a.c": "/* so it stands in rules.md\n * 7.1 */\n"}, "src/ir/a.c:1: rules.md has no section 7.1"),
    ({"src/ir/a.c": "/* rules.md 10, lines 1 and 2; rules.md 1, row 7; rules.md 10, line\n * 2 */\n"},
     None),
    ({"src/ir/a.c": "/* rules.md 10, lines 1 and 3 */\n"}, "rules.md 10 has no line 3"),
    ({"src/ir/a.c": "/* rules.md 10, row 1 */\n"}, "rules.md 10 has no row 1"),
    ({"kernels/a.rlk": "// other.md 1.2\n"}, "there is no document other.md"),
    ({"tools/a": "# rules.md section 1.2\n"}, 'say "rules.md 1.2", without the word "section"'),
    ({"tests/a.py": "# ops-core 1.2\n"}, 'say "ops-core.md"'),
    ({"docs/b.md": "# B\n\n## 1. One\n\nAs in section 1, and in section 1 (2.1).\n"},
     "docs/b.md:5: there is no section 2.1 here"),
    # paths
    ({"docs/b.md": "`src/ir/add.c`, `src/ir/add`, `src/ir/`, `src/ir/*.c`, `src/<folder>/add.{c,h}`\n"},
     None),
    ({"docs/b.md": "\n\n`src/ir/sub.c`\n"}, "docs/b.md:3: src/ir/sub.c is not in the tree"),
    ({"docs/b.md": "`src/ir/add.{c,def}`\n"}, "is not in the tree"),
    ({"docs/b.md": "`src/ad`\n"}, "src/ad is not in the tree"),
    ({"docs/b.md": "`page.md`, `docs/page.md`, `rules.md`\n"}, None),
    ({"docs/b.md": "`none.md`\n"}, "there is no none.md"),
    ({"CHANGELOG.md": "`src/ir/sub.c` is gone\n"}, None),
    ({"src/ir/README.md": "| file | what |\n| --- | --- |\n| `add` | `x` |\n| `add.c`, `add.h` | y |\n"},
     None),
    ({"src/ir/README.md": "| file | what |\n| --- | --- |\n| `add` | x |\n| `sub` | y |\n"},
     "src/ir/README.md:4: sub is not in src/ir/"),
    ({"src/ir/README.md": "| files | what |\n| --- | --- |\n| `sub.c` | y |\n"},
     "src/ir/README.md:3: sub.c is not in src/ir/"),
    # files that comments name
    ({"src/ir/shape/a.c": "/* a.c: as add.c, and src/none/b.c, and \"x.c\" */\n"},
     "src/ir/shape/a.c:1: x.c is not in src/ir/"),
    ({"src/ir/shape/a.c": "/* a.c: as add.c and\n * none/b.c, <stdio.h>, *.c */\nint x; // add.h\n"}, None),
    ({"src/ir/a.h": "\n/* sub.c */\n", "src/pass/sub.c": ""}, "src/ir/a.h:2: sub.c is not in src/ir/"),
    ({"src/backend/cpu/a.h": "/* b.c */\n", "src/backend/gpu/b.c": ""}, "b.c is not in src/backend/cpu/"),
    ({"cli/a.c": "/* b.c, b.h */\n", "cli/b.c": "", "cli/b.h": ""}, None),
    ({"tests/ir/a.c": "/* none.c */\n"}, None),
    # quotations
    ({"docs/b.md": "<!-- from src/ir/add.c -->\n```c\nint add(int a, int b)\n...\n    return a + b;\n```\n"},
     None),
    ({"docs/b.md": "1. x\n\n   <!-- from src/ir/add.c -->\n   ```c\n   return a + b;\n   ```\n"}, None),
    ({"docs/b.md": "\n<!-- from src/ir/add.c -->\n```c\n    return a - b;\n```\n"},
     "docs/b.md:2: src/ir/add.c says something else"),
    ({"docs/b.md": "<!-- from src/ir/add.c -->\n```c\n    return a + b;\n...\n{\n```\n"},
     "says something else"),
    ({"docs/b.md": "As in `src/ir/add.c`:\n\n```c\n    return a + b;\n```\n"}, None),
    ({"docs/b.md": "As in `src/ir/add.c`:\n\n```c\n    return a - b;\n```\n"},
     "docs/b.md:1: src/ir/add.c says something else"),
    ({"docs/b.md": "<!-- from src/ir/sub.c -->\n```c\nx\n```\n"}, "which is not in the tree"),
]


def passes(index, extra, want):
    with tempfile.TemporaryDirectory() as temp:
        for name, text in {**BASE, **extra}.items():
            path = pathlib.Path(temp) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        done = subprocess.run(["python3", str(ROOT / "tools/check-links"), temp], text=True,
                              capture_output=True, check=False)
    said = done.stdout + done.stderr
    if want is None:
        good = done.returncode == 0 and not said
    else:
        good = done.returncode == 1 and want in said
    if not good:
        print(f"failed: case {index}: wanted {want!r}, got status {done.returncode} and:\n{said}")
    return good


def main():
    results = [passes(index, *case) for index, case in enumerate(CASES)]
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed, 0 skipped")
    return 0 if all(results) else 1


sys.exit(main())
