"""Faults that no story may have, and numbers about many stories."""
import collections
import re

from .words import fix_articles

# What a rule finds is quoted in the message.
RULES = [
    ("a word doubled", re.compile(r"\b(?!(?:that|no|tap|thump|hop|knock|drip|very)\b)([A-Za-z]+) \1\b")),
    ("something that was to be filled in", re.compile(r"[\[\]{}|~_]")),
    ("spaces or marks that do not belong", re.compile(r"  | [.,!?;:]|\.\.|,\.|[!?]\.|\.,|[.!?,][a-z]|,,")),
    ("a sentence that begins small", re.compile(r'(?:^|[.!?] |\." )"?[a-z]')),
    ("a speaker after a full stop", re.compile(r'\."? (?:Said|asked|cried|whispered)\b')),
    ("two sentences without a mark", re.compile(r"[a-z] (?:He|She|They|It|The|Then|So|But|When|From|Now|In|On|At) ")),
    ("a capital in the middle", re.compile(r"\b(?:a|an|the) [A-Z](?!other|ld)[a-z]*ed\b")),
]


def faults(story):
    """What is wrong with a story: a list of sentences."""
    found = [f"{name}: {match[0]!r} in {around(story, match)!r}" for name, rule in RULES
             for paragraph in story.split("\n\n") for match in [rule.search(paragraph)] if match]
    if fix_articles(story) != story:
        found.append("a for an, or an for a")
    for paragraph in story.split("\n\n"):
        if paragraph.count('"') % 2:
            found.append(f"a quotation mark is missing: {paragraph!r}")
        if not re.search(r'[.!?]"?$', paragraph):
            found.append(f"does not end as a sentence does: {paragraph!r}")
        for speech in re.findall(r'"([^"]*)"', paragraph):
            if not re.search(r"[.,!?]$", speech) or not speech[:1].isupper():
                found.append(f"speech without a mark or a capital: {speech!r}")
    return found


def around(story, match):
    at = story.find(match[0])
    return story[max(0, at - 30):at + len(match[0]) + 30]


def numbers(stories):
    stories = [story.strip() for story in stories if story.strip()]
    words = collections.Counter()
    grams, total = set(), 0
    sentences = collections.Counter()
    for story in stories:
        tokens = re.findall(r"[a-z']+", story.lower())
        words.update(tokens)
        sentences.update(re.split(r'(?<=[.!?"]) (?=[A-Z"])', story.replace("\n\n", " ")))
        for at in range(len(tokens) - 7):
            grams.add(hash(tuple(tokens[at:at + 8])))
            total += 1
    count, used = len(stories), sum(words.values())
    return "\n".join([
        f"stories            {count}, {100 * len(set(stories)) / count:.2f} % distinct",
        f"words per story    {used / count:.1f}",
        f"vocabulary         {len(words)} words, {sum(n >= 10 for n in words.values())} of them 10 times or more",
        f"distinct 8-grams   {100 * len(grams) / max(total, 1):.1f} % of {total}",
        f"distinct sentences {100 * len(sentences) / sum(sentences.values()):.1f} % of {sum(sentences.values())}"])
