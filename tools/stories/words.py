"""How words change: past tense, -ing, third person, plurals, and a or an."""
import re

# Verbs that stories use and whose past tense does not end in -ed.
PAST = dict(pair.split(":") for pair in """
be:was become:became begin:began bend:bent bite:bit blow:blew break:broke bring:brought build:built
buy:bought catch:caught choose:chose come:came cut:cut dig:dug do:did draw:drew drink:drank drive:drove
eat:ate fall:fell feed:fed feel:felt fight:fought find:found fly:flew forget:forgot forgive:forgave
freeze:froze get:got give:gave go:went grow:grew hang:hung have:had hear:heard hide:hid hit:hit hold:held
hurt:hurt keep:kept know:knew lay:laid lead:led leave:left lend:lent let:let light:lit lose:lost
make:made mean:meant meet:met pay:paid put:put read:read ride:rode ring:rang rise:rose run:ran say:said
see:saw sell:sold send:sent set:set sew:sewed shake:shook shine:shone shoot:shot show:showed shut:shut
sing:sang sink:sank sit:sat sleep:slept slide:slid sling:slung speak:spoke spend:spent spin:spun
spread:spread stand:stood steal:stole stick:stuck sweep:swept swim:swam swing:swung take:took teach:taught
tear:tore tell:told think:thought throw:threw understand:understood wake:woke wear:wore weave:wove win:won
wind:wound write:wrote
""".split())

PLURAL = dict(pair.split(":") for pair in """
child:children mouse:mice goose:geese foot:feet tooth:teeth leaf:leaves loaf:loaves shelf:shelves wolf:wolves
knife:knives scarf:scarves sheep:sheep deer:deer fish:fish man:men woman:women half:halves elf:elves
potato:potatoes tomato:tomatoes
""".split())

SHORT = re.compile(r"[^aeiou]*[aeiou][^aeiouwxy]")  # hop, plan: the last letter doubles
VOWEL_SOUND = re.compile(r"(?!uni|use|usu|one\b|once\b|eu)[aeiou]|hour|honest", re.I)
ARTICLE = re.compile(r"\b([Aa])n?( \"?)(\w+)")
DETERMINER = re.compile(r"(?:an?|some|the|two|three|four|five|six|his|her) ")


def past(verb):
    if verb in PAST:
        return PAST[verb]
    if verb.endswith("e"):
        return verb + "d"
    if re.search(r"[^aeiou]y$", verb):
        return verb[:-1] + "ied"
    return verb + (verb[-1] if SHORT.fullmatch(verb) else "") + "ed"


def ing(verb):
    if verb.endswith("ie"):
        return verb[:-2] + "ying"
    if verb.endswith("e") and not verb.endswith("ee") and verb != "be":
        return verb[:-1] + "ing"
    return verb + (verb[-1] if SHORT.fullmatch(verb) or verb in ("forget", "begin") else "") + "ing"


def adds_es(word):
    """The form in -s of a verb or a noun that is regular."""
    if re.search(r"(s|x|z|ch|sh)$", word):
        return word + "es"
    if re.search(r"[^aeiou]y$", word):
        return word[:-1] + "ies"
    return word + "s"


def third(verb):
    return {"be": "is", "have": "has", "do": "does", "go": "goes"}.get(verb) or adds_es(verb)


def plural(noun):
    *before, last = noun.split(" ")
    return " ".join([*before, PLURAL.get(last) or adds_es(last)])


def bare(phrase):
    """The phrase without "a", "some" or a number before it."""
    return DETERMINER.sub("", phrase, count=1) if DETERMINER.match(phrase) else phrase


def is_many(phrase):
    """Whether one says "them" of a phrase such as "some nuts" or "three eggs"."""
    if re.match(r"(two|three|four|five|six) ", phrase):
        return True
    if not phrase.startswith("some "):
        return False
    return phrase.endswith("s") and not phrase.endswith("ss")


def on_first(change, phrase):
    """Changes the verb that a phrase such as "climb a tree" begins with."""
    verb, *rest = phrase.split(" ")
    return " ".join([change(verb), *rest])


# What {x.form} makes of a string x.
FORMS = {
    "a": lambda s: s if DETERMINER.match(s) else "a " + s,
    "the": lambda s: "the " + bare(s),
    "bare": bare,
    "s": plural,
    "ed": lambda s: on_first(past, s),
    "ing": lambda s: on_first(ing, s),
    "es": lambda s: on_first(third, s),
    "it": lambda s: "them" if is_many(s) else "it",
    "they": lambda s: "they" if is_many(s) else "it",
    "was": lambda s: "were" if is_many(s) else "was",
    "is": lambda s: "are" if is_many(s) else "is",
    "cap": lambda s: s[:1].upper() + s[1:],
}


def fix_articles(text):
    """Templates say "a"; before a vowel it becomes "an"."""
    return ARTICLE.sub(lambda m: m[1] + ("n" if VOWEL_SOUND.match(m[3]) else "") + m[2] + m[3], text)


def fix_capitals(text):
    """A capital where a sentence begins; after !" or ?" the words may be those of who speaks."""
    return re.sub(r'(^"?|[.!?] "?|\." "?)([a-z])', lambda m: m[1] + m[2].upper(), text)
