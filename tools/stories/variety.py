"""Phrases that can stand for each other, so that a plot's fixed sentences vary, too.

The first of a line may become any of the line; an entry has words around it where it would not fit
everywhere: "a small" can be "a little", but "a little louder" cannot be "a small louder"."""
import re

LINES = """
nobody / no one
everybody / everyone
began to / started to
very / really
a big / a large
a small / a little
looked at / gazed at / stared at
every day / each day
every morning / each morning
every evening / each evening
for a long time / for quite a while / for quite some time
beautiful / lovely / wonderful
strange / odd
afraid / scared / frightened
ill / sick
right away / straight away
once more / one more time
tried again / tried once more / had another try
began again / started again / started over
next to / beside / close to
under the / beneath the
under a / beneath a
ran away / ran off
shouted / yelled
jumped / leapt
did not know what / had no idea what
a moment later / the next moment / a second later
a little later / a bit later
not far away / close by / nearby
from that day on / from then on / ever since that day
side by side / together
smelled wonderful / smelled delicious
a piece of / a bit of
thought for a moment / thought a little / thought it over
took a deep breath / drew a deep breath
nodded / gave a nod
trembled / shook
said happily / said cheerfully / said merrily
said sadly / said unhappily / said in a small voice
said softly / said quietly / said in a low voice
came along / came by
came closer / came nearer / stepped closer
laughed out loud / laughed loudly
had never been happier / had never felt happier / was happier than ever
again and again / over and over / time after time
step by step / bit by bit
the next day / the day after
the next morning / the following morning
learned that / found out that / discovered that
understood that / saw that / knew that
were tired / were weary
silly / foolish
soon the / before long, the
soon there / before long, there
soon it / before long, it
as fast as / as quickly as
did not give up / would not give up
did not answer / said nothing
in the middle of / right in the middle of
warm and dry / dry and warm
cold and wet / wet and cold
gave it a drink of water / gave it some water
walked and talked / talked and walked
asked for more / wanted more
and soon / and before long
"""
OTHERS = {line.split(" / ")[0]: line.split(" / ") for line in LINES.strip().splitlines()}
FIRST = re.compile(r"\b(" + "|".join(sorted(OTHERS, key=len, reverse=True)) + r")\b(?! (?:sister|brother))",
    re.I)

# What people run together when they speak, before another word only: "as fast as I am" stays.
CONTRACTIONS = {
    "do not": "don't", "I will not": "I won't", "did not": "didn't", "cannot": "can't", "will not": "won't",
    "could not": "couldn't",
    "was not": "wasn't", "is not": "isn't", "I am": "I'm", "I will": "I'll", "we will": "we'll", "it is": "it's",
    "you are": "you're", "that is": "that's", "let us": "let's", "there is": "there's", "we are": "we're"}
LONG = re.compile(r"(?<!of )\b(" + "|".join(sorted(CONTRACTIONS, key=len, reverse=True)) + r")\b(?= [a-z])",
    re.I)


def vary(text, rng):
    """The text with some of its phrases exchanged."""
    return FIRST.sub(lambda m: like(m[0], rng.choice(OTHERS[m[0].lower()])), text)


def contract(speech):
    """"Do not worry" as it is spoken: "Don't worry"."""
    return LONG.sub(lambda m: like(m[0], CONTRACTIONS.get(m[0]) or CONTRACTIONS[m[0].lower()]), speech)


def like(old, new):
    """The new words with a capital if the old ones had one."""
    return new[0].upper() + new[1:] if old[0].isupper() else new
