"""One story while it is told: its cast, time, weather and who has what, and the text so far.

Plots call tell() and says(); the tale picks words, keeps pronouns clear and refuses what cannot be,
such as giving away what one does not have."""
import re

from . import people, phrases, places, things, words
from .template import expand, parse
from .variety import contract, vary

TIMES = ["morning", "afternoon", "evening", "night"]
LATER = {"afternoon": ["that afternoon", "in the afternoon", "after lunch"],
         "evening": ["that evening", "in the evening", "as the sun went down", "when the sun was low"],
         "night": ["that night", "when it was dark", "after the stars had come out", "late that night"]}
NEXT_DAY = ["The next day", "The next morning", "Early the next morning", "On the following day",
    "A day later"]


# A character at the beginning of a sentence; who that is may be clear enough for "he" or "she".
SUBJECT = re.compile(r"(?:^\[?|[.!?] \[?|\|)\{[A-Z]\}(?= (?:\[|(?!and |the )[a-z]))")

# The first sentence of direct speech, and the others.
SENTENCES = re.compile(r"(.+?(?<!Mr)(?<!Mrs)[.!?])(?: (.+))?$")


class Fault(Exception):
    """A plot has told something that cannot be."""


class Tale:
    def __init__(self, rng):
        self.rng = rng
        self.vars = {}
        self.cast = []
        self.paragraphs = [[]]
        self.used = set()
        self.focus = {}     # whom "he" and "she" mean at this point
        self.quoting = False
        self.owners = {}    # thing: who has it
        self.time = rng.choice(TIMES[:2])
        self.weather = rng.choice(["sunny", "windy", "cloudy", "warm", "sunny"])
        self.world = None
        self.casual = rng.random() < 0.6  # people in this story say "don't"

    # ---- choices -----------------------------------------------------------------------------

    def chance(self, share):
        return self.rng.random() < share

    def pick(self, choices):
        """One of the choices, preferably one that this story does not have yet."""
        for _ in range(4):
            choice = self.rng.choice(choices)
            if str(choice) not in self.used:
                break
        self.used.add(str(choice))
        return choice

    def set(self, **values):
        self.vars.update(values)
        return self

    def draw(self, **lists):
        """Sets each variable to an entry of its list; variables of one list differ."""
        for name, choices in lists.items():
            self.vars[name] = self.pick(choices)
        return self

    # ---- cast --------------------------------------------------------------------------------

    def join(self, key, character):
        self.vars[key] = character
        self.cast.append(character)
        return character

    def names_taken(self):
        return {c.label for c in self.cast}

    def hero(self, *worlds, trait=None, kinds=None):
        """The main character, A: a child in town, an animal in the wood, a child in an old tale."""
        self.world = self.rng.choice(worlds or ("town", "town", "wood"))
        return self.join("A", self.somebody(trait, kinds))

    def friend(self, key="B", trait=None, kinds=None):
        """Mostly of the other gender, so that "he" and "she" tell the two apart."""
        genders = {c.gender for c in self.cast}
        other = None
        if len(genders) == 1 and self.chance(0.8):
            other = "he" if "she" in genders else "she"
        return self.join(key, self.somebody(trait, kinds, other))

    def somebody(self, trait=None, kinds=None, gender=None):
        gender = gender or self.rng.choice(["he", "she"])
        trait = trait or self.rng.choice(people.GOOD)
        if self.world == "wood":
            taken = {c.kind for c in self.cast}
            kind = self.rng.choice([k for k in kinds or people.ANIMALS if k not in taken])
            names = people.PETS_HER if gender == "she" else people.PETS_HIM
        else:
            kind = "girl" if gender == "she" else "boy"
            names = people.GIRLS if gender == "she" else people.BOYS
        name = self.rng.choice([n for n in names if n not in self.names_taken()])
        return people.Character(name, gender, kind, self.world, trait, self.rng.randint(4, 9))

    def elder(self, key="E"):
        """Somebody of the hero's family."""
        gender = self.rng.choice(["he", "she"])
        return self.join(key, people.Character(self.rng.choice(people.FAMILY[gender]), gender, "elder",
                                               self.world))

    def helper(self, key="H"):
        label = self.pick(people.HELPERS[self.world])
        return self.join(key, people.Character(label, "she" if label in people.WOMEN else "he", "helper",
                                               self.world))

    def neighbour(self, key="N"):
        label = self.pick(people.NEIGHBOURS)
        return self.join(key, people.Character(label, "she" if label.startswith("M") and label[1] in "ri"
                                               and not label.startswith("Mr.") else "he", "neighbour",
                                               self.world))

    def role(self, key, label, gender=None):
        """Somebody known by what they are: "the king"."""
        return self.join(key, people.Character(label, gender or self.rng.choice(["he", "she"]), "role",
                                               self.world))

    # ---- references --------------------------------------------------------------------------

    def look_up(self, name, form):
        if name.startswith("~"):
            return self.expand(self.pick(phrases.LISTS[name[1:]]))
        if name not in self.vars:
            raise Fault(f"{{{name}}} stands for nothing in this story")
        value = self.vars[name]
        if isinstance(value, people.Character):
            return self.character(value, form)
        if isinstance(value, places.Place):
            return value.name if not form else value.at
        return self.expand(words.FORMS[form](value) if form else value)

    def character(self, who, form):
        if form in ("he", "him", "his"):
            if self.focus.get(who.gender) is who:
                return who.pronoun(form)
            return self.refer(who) + ("'s" if form == "his" else "")
        if form in ("own", "self"):
            return who.pronoun(form)
        if form == "name":
            return who.label.removeprefix("the ")
        if form == "intro":
            who.met = True
            self.focus[who.gender] = who
            return self.introduction(who)
        return str(getattr(who, form)) if form else self.refer(who)

    def refer(self, who):
        """A name, or now and then "the girl" or "the little fox" where that is clear."""
        if self.quoting:
            return who.label
        self.focus[who.gender] = who
        if who.met and sum(c.kind == who.kind for c in self.cast) == 1:
            if who.world == "wood" and self.chance(0.12):
                return f"the {self.rng.choice(['little ', ''])}{who.kind}"
            if who.kind in ("boy", "girl") and self.chance(0.05):
                return f"the {who.kind}"
        return who.label

    def introduction(self, who):
        look = self.rng.choice(people.LOOKS)
        adjective = self.rng.choice([look, who.trait, who.trait, f"{look} and {who.trait}"])
        return f"a {adjective} {who.kind} [named|called] {who.label}"

    # ---- telling -----------------------------------------------------------------------------

    def expand(self, text):
        return expand(parse(text), self.rng, self.look_up)

    def tell(self, text):
        """Adds one or more sentences."""
        text = SUBJECT.sub(lambda m: m[0][:-1] + ".he}" if self.chance(0.6) else m[0], text)
        said = self.expand(text).strip()
        while "[" in said or "{" in said:  # entries of lists may be templates
            said = self.expand(said).strip()
        if said:
            self.add(words.FORMS["cap"](said))

    def maybe(self, share, text):
        if self.chance(share):
            self.tell(text)

    def para(self):
        """A new paragraph; pronouns start afresh."""
        if self.paragraphs[-1]:
            self.paragraphs.append([])
            self.focus = {}

    def feel(self, key, feeling):
        self.set(X=self.vars[key])
        self.tell(self.pick(phrases.FEEL[feeling]))

    def says(self, key, line, mood="said", to=None):
        """Adds direct speech with who says it before, between or after the sentences."""
        who = self.vars[key]
        self.quoting = True
        line = words.FORMS["cap"](self.expand(line).strip())
        self.quoting = False
        if self.casual:
            line = contract(line)
        self.set(X=who, L=self.vars.get(to))
        verbs = [v for v in phrases.SAY[mood] if to or "{L}" not in v]
        beats = [b for b in phrases.BEATS[mood] if to or "{L}" not in b]
        asks = SENTENCES.match(line)[1].endswith("?")
        verb = self.rng.choice(phrases.SAY["said"] if mood == "asked" and not asks else verbs)
        if mood == "said" and asks:
            verb = "asked"
        elif mood == "said" and self.paragraphs[-1] and '?"' in self.paragraphs[-1][-1]:
            verb = self.rng.choice(phrases.SAY["answered"])
        style = self.rng.random()
        if style < 0.2:
            self.tell(self.rng.choice(beats))
            self.add(f'"{line}"')
        elif style < 0.4:
            self.tell("{X} " + verb + ",")
            self.add(f'"{line}"')
        else:
            self.add(self.tagged(who, line, verb))

    def tagged(self, who, line, verb):
        """"Look," said Tom. "A fox!" """
        first, rest = SENTENCES.match(line).groups()
        if first.endswith("."):
            first = first[:-1] + ","
        known = self.focus.get(who.gender) is who
        simple = " " not in verb
        name = who.pronoun("he") if known and self.chance(0.5) else self.refer(who)
        verb = self.expand(verb)
        tag = f"{verb} {name}" if simple and name not in ("he", "she") else f"{name} {verb}"
        return f'"{first}" {tag}.' + (f' "{rest}"' if rest else "")

    def add(self, text):
        self.paragraphs[-1].append(text)

    # ---- time and place ----------------------------------------------------------------------

    def when(self):
        """Sets {when}: "one sunny morning"."""
        first = self.weather if self.weather not in ("clear night",) else "quiet"
        self.set(when=self.pick([f"one {first} {self.time}", f"one {self.time}",
            f"on a {first} {self.time}",
                                 f"one {first} day" if self.time in TIMES[:2] else f"one {self.time}"]))

    def later(self, time):
        """Moves on within the day and sets {then}."""
        if TIMES.index(time) <= TIMES.index(self.time):
            raise Fault(f"it is {self.time}; {time} is not later")
        self.time = time
        self.set(then=self.pick(LATER[time]))

    def begins(self, time):
        """The story begins at this time: sets {then} to "one evening"."""
        self.time = time
        clear = self.weather in ("sunny", "clear night")
        self.set(then=self.pick([f"one {time}", f"late one {time}", f"one quiet {time}",
                                 f"one {'clear' if clear else self.weather} {time}"]))

    def next_day(self):
        self.time = "morning"
        self.set(then=self.pick(NEXT_DAY))

    def place(self, key="place", where=None):
        taken = [v for v in self.vars.values() if isinstance(v, places.Place)]
        choices = [p for p in places.PLACES[self.world] if p not in taken and
                   (where is None or any(w in p.at for w in where))]
        self.vars[key] = self.pick(choices)
        return self.vars[key]

    def scene(self, share=0.6):
        """Perhaps a sentence about the weather, or about what there is to see."""
        if not self.chance(share):
            return
        place = self.vars.get("place")
        if place and self.chance(0.5):
            one, two = self.rng.sample(place.seen, 2)
            self.set(X=self.vars["A"], one=one, two=two)
            self.tell(self.pick(["{X} saw {one} and {two}.", "{X} looked at {one} and {two}.",
                                 "{X} looked around and saw {one}.", "{X} could see {one} and {two}.",
                                 "[First|There] {X} saw {one}, and then {two}."]))
        else:
            night = self.time == "night" and self.weather in ("sunny", "warm", "clear night", "cloudy")
            self.tell(self.pick(phrases.WEATHER["clear night" if night else self.weather]))

    # ---- who has what ------------------------------------------------------------------------

    def gets(self, key, thing):
        self.owners[thing] = self.vars[key]

    def has(self, key, thing):
        return self.owners.get(thing) is self.vars[key]

    def loses(self, key, thing):
        if not self.has(key, thing):
            raise Fault(f"{self.vars[key].label} does not have the {thing}")
        del self.owners[thing]

    def gives(self, key, to, thing):
        self.loses(key, thing)
        self.gets(to, thing)

    # ---- beginning and end -------------------------------------------------------------------

    def opens(self, text=None):
        """Introduces A: where A lives, what A likes."""
        hobbies = {"town": things.HOBBIES_TOWN, "wood": things.HOBBIES_WOOD, "tale": things.HOBBIES_TALE}
        who = self.vars["A"]
        self.set(X=who, hobby=self.pick(hobbies[self.world]), hobby2=self.pick(hobbies[self.world]),
                 home=self.pick(places.HOMES if self.world == "town" else places.LANDS),
                 years=["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"][who.age])
        self.tell(text or self.pick(OPENINGS[self.world]))
        who.met = True

    def meets(self, key="B"):
        """Introduces a friend of A."""
        self.tell(self.pick([
            f"[{{A.his}} best friend was|{{A.he}} had a friend,] {{{key}.intro}}.",
            f"{{A.he}} often played with {{{key}.intro}}.",
            f"Next door lived {{{key}.intro}}." if self.world == "town" else
            f"Not far away lived {{{key}.intro}}.",
            f"{{A.he}} and {{{key}.intro}} did everything together."]))

    def lesson(self, name, share=0.75):
        """Perhaps says what A has learned."""
        if self.chance(share):
            self.set(lesson=self.pick(phrases.LESSONS[name]))
            self.tell(self.pick(phrases.LESSON_FRAMES))

    def ends(self, pair=None, share=0.65):
        """Perhaps closes with a sentence that fits any story; pair: A and B are friends now."""
        if not self.chance(share):
            return
        kinds = ["any"] + (["two"] * 2 if pair else [])
        if self.time in ("evening", "night"):
            kinds.append("night")
        elif "place" in self.vars:
            kinds.append("out")
        self.tell(self.pick(phrases.ENDINGS[self.rng.choice(kinds)]))

    # ---- the text ----------------------------------------------------------------------------

    def text(self):
        whole = [" ".join(p) for p in self.paragraphs if p]
        return "\n\n".join(words.fix_capitals(words.fix_articles(vary(p, self.rng))) for p in whole)


OPENINGS = {
    "town": phrases.lines("""
        [Once upon a time, there was|Once there was|There was once|There once was] {A.intro}. {A.he} lived in {home}.
        [Once upon a time, there was|Once there was|There was once] {A.intro} who [loved|liked] to {hobby}.
        {A} was a {A.trait} {A.kind} [who|of {years} who] lived in {home}.
        {A} was {years} years old and [loved|liked] to {hobby}.
        {A} was a {years}-year-old {A.kind} who [loved|liked] to {hobby} and {hobby2}.
        In {home} lived {A.intro}. {A.he} was {years} years old.
        {A} [loved|liked] to {hobby}. {A.he} was {years} years old and lived in {home}.
        A {A.kind} named {A} lived in {home}. Every day, {A.he} {hobby.ed}.
        [Everybody|Everyone] in [town|the street|the village] knew {A}. {A.he} was a {A.trait} {A.kind} who [loved|liked] to {hobby}.
        [This is a story about|Here is a story about] {A.intro}. What {A.he} liked best was to {hobby}.
        {A} lived in {home} with {A.own} [family|big family|whole family]."""),
    "wood": phrases.lines("""
        [Once upon a time, there was|Once there was|There was once] {A.intro} who lived in a {A.home}.
        {A} was a {A.trait} {A.kind} with {A.look}. {A.he} [loved|liked] to {hobby}.
        In a {A.home} lived {A.intro}. {A.he} had {A.look}.
        [Deep in the forest|Far away in a green valley|Not far from here|In a quiet corner of the woods] lived {A.intro}.
        A {A.kind} named {A} lived in a {A.home}. {A.he} could {A.skill}.
        {A} the {A.kind} [loved|liked] to {hobby} [all day long|every day|when the weather was fine|with all {A.own} heart].
        [All the animals knew {A}|Everybody in the woods knew {A}], the {A.kind} with {A.look}. {A.he} could {A.skill}.
        {A} was {A.intro2}. {A.his} home was a {A.home}.
        There [once was|was once] {A.intro}. {A.he} {hobby.ed} every day."""),
    "tale": phrases.lines("""
        Long ago, in {home}, [there lived|lived] {A.intro}.
        [Once upon a time|A long time ago|Many years ago], there was {A.intro} who lived in {home}.
        In {home} lived {A.intro}. {A.he} [loved|liked] to {hobby}.
        In the old days, {A.intro} lived in {home}. Every day, {A.he} {hobby.ed}.
        [Far away, in {home}|In {home}, far from here], lived {A.intro}. {A.he} was poor but [{A.trait}|cheerful|happy]."""),
}

PLOTS = []


def plot(function):
    PLOTS.append(function)
    return function
