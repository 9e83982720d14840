"""headers.py: what the public headers say that compiled programs depend on: the numbers of
enumerators, and where the fields of structs lie."""
import os
import pathlib
import re
import subprocess
import tempfile

COMPILER = os.environ.get("CC", "cc").split()


def preprocessed(include):
    """The declarations of all headers in include/rlx, with macros put in, and nothing of the system's."""
    names = sorted(p.name for p in (include / "rlx").glob("*.h"))
    source = "#define RLX_UNSTABLE\n" + "".join(f"#include <rlx/{name}>\n" for name in names)
    text = subprocess.run([*COMPILER, "-E", "-I", str(include), "-x", "c", "-"], input=source,
                          capture_output=True, text=True, check=True).stdout
    out, ours = [], False
    for line in text.splitlines():
        if marker := re.match(r'# \d+ "([^"]*)"', line):
            ours = pathlib.Path(marker[1]).parent == include / "rlx"
        elif ours:
            out.append(line)
    return source, "\n".join(out)


def split(text, separator):
    """The pieces between separators that stand outside of brackets."""
    pieces, depth = [""], 0
    for c in text:
        depth += (c in "({[") - (c in ")}]")
        if c == separator and depth == 0:
            pieces.append("")
        else:
            pieces[-1] += c
    return [p.strip() for p in pieces if p.strip()]


def fields_of(body):
    names = []
    for declaration in split(body, ";"):
        if pointer := re.search(r"\(\s*\*\s*(\w+)\s*\)", declaration):
            names.append(pointer[1])
            continue
        for declarator in split(declaration, ","):
            names.append(re.search(r"(\w+)\s*(?:\[[^]]*\]\s*)*$", declarator)[1])
    return names


def read(include):
    """{enumerator: number}, {struct: [(field, offset, bytes)]}, as the compiler lays them out. The last
    "field" of each struct is its end."""
    source, text = preprocessed(include)
    enumerators = [re.match(r"\w+", word)[0]
                   for body in re.findall(r"\benum\s+\w*\s*\{([^}]*)\}", text)
                   for word in split(body, ",")]
    structs = {name: fields_of(body) for body, name in
               re.findall(r"\btypedef\s+struct\s+\w+\s*\{(.*?)\}\s*(rlx_\w+)\s*;", text, flags=re.S)}
    lines = [f'printf("{name} %lld\\n", (long long){name});' for name in enumerators]
    for name, fields in structs.items():
        lines += [f'printf("{name} {field} %zu %zu\\n", offsetof({name}, {field}), '
                  f'sizeof((({name} *)0)->{field}));' for field in fields]
        lines.append(f'printf("{name} end %zu 0\\n", sizeof({name}));')
    program = (f"{source}#include <stddef.h>\n#include <stdio.h>\nint main(void)\n{{\n" +
               "\n".join(lines) + "\nreturn 0;\n}\n")
    with tempfile.TemporaryDirectory() as temp:
        path = pathlib.Path(temp) / "layout"
        subprocess.run([*COMPILER, "-I", str(include), "-x", "c", "-", "-o", str(path)],
                       input=program, text=True, check=True)
        printed = subprocess.run([path], capture_output=True, text=True, check=True).stdout
    numbers, layout = {}, {name: [] for name in structs}
    for words in map(str.split, printed.splitlines()):
        if len(words) == 2:
            numbers[words[0]] = int(words[1])
        else:
            layout[words[0]].append((words[1], int(words[2]), int(words[3])))
    return numbers, layout


def functions(include):
    """{function: its type}, without the names of its parameters."""
    text = " ".join(preprocessed(include)[1].split())
    text = re.sub(r"__attribute__\s*\(\(.*?\)\)\s*", "", text)
    return {name: f"{result.strip()} ({', '.join(map(type_of, split(parameters, ',')))})"
            for result, name, parameters in
            re.findall(r"((?:[\w*]+ )+\**)(rlx_\w+)\(([^{};]*)\);", text)
            if not result.startswith("typedef")}


def type_of(parameter):
    """A parameter without its name."""
    if "(" in parameter:
        return re.sub(r"\(\s*\*\s*\w+\s*\)", "(*)", parameter, count=1)
    return re.sub(r"(?<=[\s*])\w+((?:\[[^]]*\])*)$", r"\1", parameter).strip()
