#!/usr/bin/env python3
"""tokenize_test.py: `rlx tokenize`: text as tokens and ids, and back."""
import subprocess
import sys

from world import FAILED, MISUSED, RLX, ROOT, need, rlx, run_tests

# a b U+0120 ab U+0120ab 1 <s> - <x>: ids 0 to 8. A word of another kind would be an error.
VOCAB = str(ROOT / "fuzz" / "corpus" / "tokenizer" / "tokenizer.json")


def test_pieces(_):
    out = rlx("tokenize", VOCAB, "ab ab<x>1<s>").out
    rows = [line.split() for line in out.splitlines()]
    need([row[0] for row in rows] == ["3", "4", "8", "5", "6"], out)
    need(rows[1] == ["4", '"\u0120ab"'], out)
    need(rows[2] == ["8", '"<x>"', "user-defined"] and rows[4] == ["6", '"<s>"', "control"], out)


def test_ids_and_counts(t):
    need(rlx("tokenize", VOCAB, "--ids", "ab", "ab").out == "3 4\n", "words are joined by spaces")
    need(rlx("tokenize", VOCAB, "--count", "ab", "ab").out == "2\n", "a count")
    need(rlx("tokenize", VOCAB, "--ids", "").out == "\n", "no text has no ids")
    text = t.write("text.txt", "ab1" * 3000)
    need(rlx("tokenize", VOCAB, "--ids", "--file", text).out.split() == ["3", "5"] * 3000, "a file")
    from_stdin = subprocess.run([RLX, "tokenize", VOCAB, "--ids", "--file", "-"], input=b"ab a",
                                capture_output=True, check=True).stdout
    need(from_stdin == b"3 2 0\n", from_stdin)


def test_control_tokens_can_be_text(_):
    r = rlx("tokenize", VOCAB, "--no-parse", "<s>", code=FAILED)
    need("no token for byte 0x3c" in r.err, r.err)


def test_decode(_):
    need(rlx("tokenize", VOCAB, "--decode", "3", "4,8", "6").out == "ab ab<x><s>", "with specials")
    need(rlx("tokenize", VOCAB, "--decode", "--no-special", "3", "6", "0").out == "aba", "without")
    r = rlx("tokenize", VOCAB, "--decode", "77", code=FAILED)
    need("id 77: the vocabulary has 9 tokens" in r.err, r.err)
    r = rlx("tokenize", VOCAB, "--decode", "x", code=MISUSED)
    need('"x" is not an id' in r.err, r.err)


def test_what_it_is(_):
    out = rlx("tokenize", VOCAB).out
    need("kind     gpt2\n" in out and "tokens   9\n" in out and "merges   2\n" in out, out)


def test_misuse(_):
    rlx("tokenize", code=MISUSED)
    rlx("tokenize", VOCAB, "a", "--file", "b", code=MISUSED)
    rlx("tokenize", VOCAB, "--decode", "--ids", "1", code=MISUSED)
    r = rlx("tokenize", VOCAB, "--file", "/nonexistent/file", code=FAILED)
    need("cannot open /nonexistent/file" in r.err, r.err)
    r = rlx("tokenize", str(ROOT / "README.md"), "a", code=FAILED)
    need("neither GGUF nor a tokenizer.json" in r.err, r.err)


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
