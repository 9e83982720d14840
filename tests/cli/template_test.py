#!/usr/bin/env python3
"""template_test.py: `rlx template`: conversations as text."""
import json
import subprocess
import sys

from world import FAILED, MISUSED, RLX, ROOT, need, rlx, run_tests

CHAT = {"messages": [{"role": "user", "content": "Hi <s>"}], "bos_token": "<s>", "x": "é\n"}
SOURCE = "{{ bos_token }}{% for m in messages %}\n[{{ m.role }}] {{ m.content }};{% endfor %}\n{{ x }}.\n"


def files(t):
    return t.write("t.jinja", SOURCE), t.write("chat.json", json.dumps(CHAT))


def test_text(t):
    template, chat = files(t)
    need(rlx("template", template, "--json", chat).out == "<s>[user] Hi <s>;é\n.", "the text")
    r = subprocess.run([RLX, "template", template, "--json", "-"], input=b"{}", capture_output=True,
                       check=True)
    need(r.stdout == b".", r.stdout)


def test_spans(t):
    template, chat = files(t)
    rows = [line.split("  ", 1) for line in
            rlx("template", template, "--json", chat, "--spans").out.splitlines()]
    need([(who, json.loads(text)) for who, text in rows] ==
         [("template", "<s>[user] "), ("data", "Hi <s>"), ("template", ";"), ("data", "é\n"),
          ("template", ".")], rows)


def test_source_and_time(t):
    template, chat = files(t)
    need(rlx("template", template, "--source").out == SOURCE, "its source")
    clock = t.write("clock.jinja", "{{ strftime_now('%Y-%m-%d') }}")
    need(rlx("template", clock, "--json", chat, "--now", "1753920000").out == "2025-07-31", "a date")
    need(rlx("template", clock, "--json", chat).out >= "2025-07-31", "today")


def test_failures(t):
    template, chat = files(t)
    bad = t.write("bad.jinja", "a\n{{ raise_exception('no ' ~ messages[0].role) }}")
    r = rlx("template", bad, "--json", chat, code=FAILED)
    need("template: line 2, column 19: no user" in r.err, r.err)
    r = rlx("template", t.write("open.jinja", "{% if x %}"), "--json", chat, code=FAILED)
    need("{% endif %} is missing" in r.err, r.err)
    r = rlx("template", template, "--json", template, code=FAILED)
    need("variables: byte" in r.err, r.err)
    r = rlx("template", template, "--json", "/nonexistent/file", code=FAILED)
    need("cannot open /nonexistent/file" in r.err, r.err)
    r = rlx("template", str(ROOT / "fuzz" / "corpus" / "tokenizer" / "0_gpt2.gguf"), "--source",
            code=FAILED)
    need("the file has no tokenizer.chat_template" in r.err, r.err)


def test_misuse(t):
    template, chat = files(t)
    rlx("template", code=MISUSED)
    rlx("template", template, code=MISUSED)
    rlx("template", template, "--json", chat, "--source", code=MISUSED)
    rlx("template", template, "--json", chat, "--spans", "--ids", code=MISUSED)
    rlx("template", template, "--json", chat, "--ids", code=MISUSED)


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
