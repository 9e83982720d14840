#!/usr/bin/env python3
"""stories_test.py: tools/gen-stories writes the same good stories every time, and tools/get-text cleans books."""
import contextlib
import importlib.machinery
import importlib.util
import io
import os
import pathlib
import random
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tools"))
from stories import check, make, tale, template, words  # noqa: E402

LOADER = importlib.machinery.SourceFileLoader("get_text", str(ROOT / "tools" / "get-text"))
get_text = importlib.util.module_from_spec(importlib.util.spec_from_loader("get_text", LOADER))
LOADER.exec_module(get_text)

SEPARATOR = "<|endoftext|>"


def generate(folder, *options):
    out = pathlib.Path(folder) / "out.txt"
    subprocess.run([sys.executable, "-B", ROOT / "tools" / "gen-stories", "--out", out, *map(str, options)],
        check=True,
                   stdout=subprocess.DEVNULL)
    return out.read_text(encoding="utf-8")


def same_seed_writes_the_same():
    with tempfile.TemporaryDirectory() as folder:
        one = generate(folder, "--bytes", 40000, "--seed", 7)
        assert generate(folder, "--bytes", 40000, "--seed", 7) == one
        assert generate(folder, "--bytes", 40000, "--seed", 8) != one
        assert one.startswith(generate(folder, "--bytes", 10000, "--seed", 7))


def file_is_stories_and_separators():
    with tempfile.TemporaryDirectory() as folder:
        text = generate(folder, "--bytes", 20000, "--separator", "===")
        assert text.endswith("\n===\n") and len(text.encode()) >= 20000
        for story in text.split("\n===\n")[:-1]:
            assert story == story.strip() and not check.faults(story), story


def thousands_of_stories_have_no_faults():
    stories = [make.story(11, index) for index in range(2500)]
    for index, story in enumerate(stories):
        assert not check.faults(story), (index, check.faults(story))
        assert len(story.split()) in make.WORDS, (index, len(story.split()))
    assert len(set(stories)) == len(stories)
    assert len({word for story in stories for word in story.split()}) > 1500


def every_plot_tells_well():
    assert len(tale.PLOTS) >= 25
    for plot in tale.PLOTS:
        for seed in range(15):
            story = make.tell(plot, random.Random(seed))
            assert not check.faults(story), (plot.__name__, seed, check.faults(story))


def faults_are_found():
    good = 'Tom had an apple.\n\n"Look, a fox!" said Mia. "It is red." Tom nodded.'
    assert not check.faults(good)
    for old, new in [("an apple", "a apple"), ("a fox", "an fox"), ("had an", "had had an"), ("Tom nodded.",
            "Tom Tom nodded."),
                     ('said Mia. "It', "said Mia. It"), ("Tom nodded.", "Tom nodded"), ("an apple",
                     "an [apple|pear]"),
                     ("apple", "{fruit}"), ("nodded.", "nodded.."), ("Tom nodded", "tom nodded"), ('"It is',
                     '"it is'), ("red.", "red"),
                     (" had", "  had"), ("Tom had", "tom had")]:
        assert old in good and check.faults(good.replace(old, new)), (old, new)


def words_change_as_they_should():
    for form, pairs in {
            "ed": "stop:stopped open:opened cry:cried play:played dance:danced go:went dig:dug fix:fixed "
            "snow:snowed visit:visited",
            "ing": "run:running make:making lie:lying see:seeing sit:sitting play:playing open:opening",
            "es": "wash:washes fly:flies have:has go:goes play:plays", "s": "fox:foxes mouse:mice "
            "berry:berries toy:toys leaf:leaves"}.items():
        for one, other in (pair.split(":") for pair in pairs.split()):
            assert words.FORMS[form](one) == other, (form, one, words.FORMS[form](one))
    assert words.FORMS["ed"]("make paper boats") == "made paper boats"
    assert words.FORMS["the"]("some nuts") == "the nuts" and words.FORMS["it"]("some nuts") == "them"
    assert words.fix_articles("A apple, a unicorn, an hour, a old owl, a one") == "An apple, a unicorn, an hour, an old owl, a one"


def raises(kind, call):
    try:
        call()
    except kind:
        return
    raise AssertionError(f"no {kind.__name__}")


def what_cannot_be_is_refused():
    for bad in ["[a|b", "{a", "a]", "a}"]:
        raises(ValueError, lambda bad=bad: template.parse(bad))
    story = tale.Tale(random.Random(1))
    story.hero("town")
    story.friend()
    raises(tale.Fault, lambda: story.tell("{nobody} came."))
    raises(tale.Fault, lambda: story.gives("A", "B", "kite"))
    story.gets("A", "kite")
    story.gives("A", "B", "kite")
    assert story.has("B", "kite") and not story.has("A", "kite")
    story.later("evening")
    raises(tale.Fault, lambda: story.later("afternoon"))


def pronouns_are_clear():
    story = tale.Tale(random.Random(1))
    story.world = "town"
    for key, label in [("A", "Tom"), ("B", "Ben")]:
        story.role(key, label, "he")
    story.tell("{A} saw {B}, and {A.he} smiled at {B.him}, but {B.he} hid {B.own} face.")
    assert story.text() == "Tom saw Ben, and Tom smiled at Ben, but he hid his face.", story.text()


BOOK = """[A Book by Somebody 1900]

FIRST STORY

%s It was a VERY
long--and _good_--day.

    Indented verse
    is left out

SKIP THIS

Nobody reads this. %s

THE LAST ONE

'Well!' said Ann, 'it isn't late.'

'No,' said Bob.

%s
"""


def books_are_cleaned():
    filler = "He went on. " * 60
    pages = get_text.documents(BOOK % (filler, filler, filler), [("SKIP THIS", "THE LAST ONE")])
    assert len(pages) == 2, pages
    assert pages[0][0].endswith("It was a very long - and good - day."), pages[0]
    assert pages[1][:2] == ['"Well!" said Ann, "it isn\'t late."', '"No," said Bob.'], pages[1]
    raises(get_text.Trouble, lambda: get_text.documents(BOOK, [("NOT THERE", "THE LAST ONE")]))
    corpus = "Another book\n  A CHRISTMAS CAROL  notes  STAVE I:  MARLEY'S GHOST  " + filler + "\nMore"
    assert get_text.carol(corpus) == [[filler.strip()]]
    raises(get_text.Trouble, lambda: get_text.carol("Another book"))


def failures_are_explained_and_packages_kept():
    with tempfile.TemporaryDirectory() as folder:
        cache, npm = pathlib.Path(folder) / "cache", pathlib.Path(folder) / "npm"
        path = os.environ["PATH"]
        try:
            os.environ["PATH"] = folder
            raises(get_text.Trouble, lambda: get_text.package(get_text.npm, ("some", "1.0"), cache))
            npm.write_text("#!/bin/sh\necho 'no such package' >&2\nexit 1\n")
            npm.chmod(0o755)
            try:
                get_text.package(get_text.npm, ("some", "1.0"), cache)
                raise AssertionError("a failed download was taken for one")
            except get_text.Trouble as trouble:
                assert "some 1.0: no such package" in str(trouble), trouble
            assert not list(cache.iterdir())
            npm.write_text('#!/bin/sh\necho data > "$4/some.tgz"\n')
            kept = get_text.package(get_text.npm, ("some", "1.0"), cache)
            npm.write_text("#!/bin/sh\nexit 1\n")
            assert get_text.package(get_text.npm, ("some", "1.0"), cache) == kept
            raises(get_text.Trouble, lambda: get_text.member(kept, "book.txt"))
        finally:
            os.environ["PATH"] = path


TESTS = [same_seed_writes_the_same, file_is_stories_and_separators, thousands_of_stories_have_no_faults,
         every_plot_tells_well, faults_are_found, words_change_as_they_should, what_cannot_be_is_refused,
         pronouns_are_clear, books_are_cleaned, failures_are_explained_and_packages_kept]


def main():
    failed = 0
    for test in TESTS:
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                test()
        except Exception as error:  # a test that fails must not hide the others
            failed += 1
            print(f"failed: {test.__name__}: {type(error).__name__}: {error}")
    print(f"{len(TESTS) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


sys.exit(main())
