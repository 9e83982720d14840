"""The template language of the plots.

  [a|b|c]     one of these; they nest, and one may be empty
  {x}         what x stands for in this story: a character or a string
  {x.form}    a form of it: {A.he}, {toy.a}, {act.ing}; words.FORMS and people.Character have them
  {~list}     an entry of the list of that name in phrases.LISTS, preferably one not used yet

A template is parsed once: to a tuple of strings, of Choice and of Reference."""
import collections
import functools

Choice = collections.namedtuple("Choice", "options")
Reference = collections.namedtuple("Reference", "name form")


@functools.lru_cache(maxsize=None)
def parse(text):
    parts, end = parse_until(text, 0, "")
    assert end == len(text)
    return parts


def parse_until(text, at, stops):
    """The parts of text from `at` to one of the stops, and where that is."""
    parts, start = [], at
    while at < len(text) and text[at] not in stops:
        if text[at] not in "[{":
            if text[at] in "]}":
                raise ValueError(f"a stray {text[at]} in: {text}")
            at += 1
            continue
        parts.append(text[start:at])
        part, at = parse_choice(text, at) if text[at] == "[" else parse_reference(text, at)
        parts.append(part)
        start = at
    if stops and at == len(text):
        raise ValueError(f"a bracket is not closed in: {text}")
    parts.append(text[start:at])
    return tuple(part for part in parts if part), at


def parse_choice(text, at):
    options = []
    while text[at] != "]":
        option, at = parse_until(text, at + 1, "|]")
        options.append(option)
    return Choice(tuple(options)), at + 1


def parse_reference(text, at):
    end = text.find("}", at)
    if end < 0:
        raise ValueError(f"a brace is not closed in: {text}")
    name, _, form = text[at + 1:end].partition(".")
    return Reference(name, form), end + 1


def expand(parts, rng, look_up):
    """The text of parsed parts; look_up(name, form) answers references, from left to right."""
    out = []
    for part in parts:
        if isinstance(part, str):
            out.append(part)
        elif isinstance(part, Choice):
            out.append(expand(rng.choice(part.options), rng, look_up))
        else:
            out.append(look_up(part.name, part.form))
    return "".join(out)
