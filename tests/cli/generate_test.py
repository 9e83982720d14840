#!/usr/bin/env python3
"""generate_test.py: `rlx generate` and `rlx chat`: what they write, why they end, what they refuse."""
import json
import os
import sys

from world import FAILED, MISUSED, ROOT, need, rlx, run_tests

MODEL = str(ROOT / "models" / "stories.gguf")
BEGIN = "Once upon a time"


def test_text(t):
    plain = rlx("generate", MODEL, "-p", BEGIN, "-n", "30", "--quiet").out
    need(plain.startswith(BEGIN + ","), plain)
    need(rlx("generate", MODEL, "-p", BEGIN, "-n", "30", "--quiet", "--chunk", "2").out == plain, "chunks of 2")
    need(rlx("generate", MODEL, "-p", BEGIN, "-n", "30", "--quiet", "--threads", "1").out == plain, "one thread")
    need(rlx("generate", MODEL, "-p", BEGIN, "-n", "30", "--quiet", "--seed", "8").out != plain, "another seed")
    told = rlx("generate", MODEL, "--file", t.write("p.txt", BEGIN), "-n", "30", "--quiet", "--no-echo").out
    need(BEGIN + told == plain, told)
    need(rlx("generate", MODEL, "--file", "-", "-n", "30", "--quiet", stdin=BEGIN.encode()).out == plain, "stdin")
    need(len(rlx("generate", MODEL, "-n", "5", "--quiet").out) > 3, "an empty prompt begins a text")


def test_ends(t):
    r = rlx("generate", MODEL, "-p", BEGIN, "--json", "--temp", "0").json()
    need(r["end"] == "eos" and r["tokens"] > 50 and r["text"].count("\n") > 1, r)
    long = rlx("generate", MODEL, "-p", BEGIN, "--json", "--temp", "0", "--ignore-eos").json()
    need(long["end"] == "length" and long["text"].startswith(r["text"]), long["end"])
    need(long["tokens"] + long["prompt_tokens"] == 256, "the context is full")
    word = r["text"].split()[6]
    cut = rlx("generate", MODEL, "-p", BEGIN, "--json", "--temp", "0", "--stop", word, "--stop", "zzz").json()
    need(cut["end"] == "stop" and cut["text"] == r["text"][:r["text"].index(word)], cut)
    need(rlx("generate", MODEL, "-p", BEGIN, "--json", "-n", "3").json()["tokens"] == 3, "three tokens")
    guessed = rlx("generate", MODEL, "-p", BEGIN, "--json", "--temp", "0", "--guess", "5", "--cache", "f32").json()
    need(guessed["text"] == rlx("generate", MODEL, "-p", BEGIN, "--json", "--temp", "0", "--cache",
                                "f32").json()["text"], "guesses change nothing")


def test_grammar(t):
    gbnf = t.write("g.gbnf", 'root ::= "<" [a-z]+ ("," [a-z]+)? ">"')
    for seed in ("1", "2", "3"):
        text = rlx("generate", MODEL, "-p", BEGIN, "--grammar", gbnf, "--temp", "2", "--seed", seed, "-n", "60",
                   "--json").json()["text"]
        need(text[0] == "<" and set(text[1:]) <= set("abcdefghijklmnopqrstuvwxyz,>"), text)
    schema = t.write("s.json", json.dumps({"type": "object", "properties": {"n": {"enum": [1, 2]}}, "required": ["n"]}))
    need(json.loads(rlx("generate", MODEL, "-p", BEGIN, "--json-schema", schema, "--json").json()["text"])["n"] in (1, 2),
         "JSON")
    r = rlx("generate", MODEL, "--grammar", t.write("bad.gbnf", "root ::= ("), code=FAILED)
    need("line 1" in r.err, r.err)
    rlx("generate", MODEL, "--grammar", gbnf, "--json-schema", schema, code=MISUSED)


def test_chat(t):
    says = b"Tell me a story.\n/undo\n/history\n/system Be brief.\n/history\n/nothing\n/quit\nnever read\n"
    r = rlx("chat", MODEL, "-n", "5", stdin=says, notes=True)
    need("system: Be brief." in r.out and "user:" not in r.out, r.out)
    need("there is no /nothing" in r.err and "ChatML" in r.err, r.err)
    out = t.path / "talk.json"
    rlx("chat", MODEL, "-n", "5", stdin=f"Hello\\\nthere\n/save {out}\n".encode(), notes=True)
    talk = json.loads(out.read_text())
    need([m["role"] for m in talk] == ["user", "assistant"] and talk[0]["content"] == "Hello\nthere", talk)
    rlx("chat", MODEL, "--think", "--no-think", code=MISUSED)
    r = rlx("chat", code=MISUSED, env={**os.environ, "RLX_MODEL": ""}) if not (
        ROOT / "build" / "models").exists() else None
    need(r is None or "tools/setup models" in r.err, r)


def test_refusals(t):
    need("--list" in rlx("help", "generate").out, "help")
    need(any(line.startswith("qwen3 ") for line in rlx("generate", "--list").out.splitlines()), "the list")
    for flags, said in ((["--temp", "x"], "--temp takes a number"), (["--cache", "q9"], "--cache must be"),
                        (["--prompt", "a", "--file", "b"], "not both"), (["--mirostat", "1"], "--mirostat takes 2"),
                        (["--lora", "a=b"], "--lora takes a file")):
        r = rlx("generate", MODEL, *flags, code=MISUSED)
        need(said in r.err, r.err)
    for flags, said in ((["--top-p", "2"], "top_p"), (["--lora", "no.gguf"], "no.gguf"),
                        (["--file", "no.txt"], "no.txt"), (["--guess", "40"], "guesses"),
                        (["-p", "word " * 400], "room for 256"), (["--device", "gpu"], "did you mean vulkan")):
        r = rlx("generate", MODEL, *flags, code=FAILED)
        need(said in r.err, r.err)
    rlx("generate", code=MISUSED)
    with open(MODEL, "rb") as file:
        data = file.read()
    for size in (0, 10, 1000, len(data) - 100):
        rlx("generate", t.write(f"cut{size}.gguf", data[:size]), "-p", "a", code=FAILED)


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
