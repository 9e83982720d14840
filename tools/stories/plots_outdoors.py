"""Plots out of doors: learning, growing, building, getting lost, weather, journeys."""
from . import people, places, things
from .tale import plot


@plot
def learn_skill(t):
    t.hero("town", "wood")
    t.elder() if t.chance(0.5) else t.friend("E")
    if t.world == "wood":
        flies = t.vars["A"].kind in people.FLYING
        skill, first, trouble = t.pick([
            ("fly over the lake" if flies else "swim across the pond", "flapped and splashed",
             "landed in the mud"),
            ("climb the tall rock", "climbed a little way up", "slid down again"),
            ("build a nest out of twigs" if flies else "build a little hut", "put twig on twig",
             "saw everything fall down"),
            ("whistle on a blade of grass", "blew as hard as possible", "heard nothing but air"),
            ("walk across the fallen log", "took three small steps", "fell into the soft moss")])
    else:
        skill, first, trouble = t.pick([
            ("ride a bicycle", "sat up and pushed the pedals", "fell into a bush"), ("swim",
                                                                                     "kicked and splashed", "swallowed a lot of water"),
            ("tie a bow", "crossed the ends and pulled", "got a big knot"), ("whistle",
                                                                             "blew as hard as possible", "heard nothing but air"),
            ("skate on the ice", "slid a little way", "landed on the cold ice"), ("play the {music}",
                                                                                  "played the first notes", "frightened the cat"),
            ("juggle with three apples", "threw them all into the air", "got one on the nose"), (
                "skip stones over the water", "threw the first stone", "saw it sink"),
            ("knit a scarf", "made the first row", "ended up with a tangle of wool"), (
                "row the little boat", "pulled at the oars", "went round in circles")])
    if "ice" in skill:
        t.weather = "snowy"
    t.draw(music=things.MUSIC)
    t.set(skill=skill, first=first, trouble=trouble)
    t.opens()
    if t.vars["E"].kind != "elder":
        t.meets("E")
    t.para()
    t.tell("{A} wanted to [learn how to {skill}|{skill}]. [All the others could do it already|It looked "
           "so easy when others did it|{A.he} had dreamed of it for weeks|{E} did it every day, and it "
           "looked like fun].")
    t.when()
    t.tell("{when}, {A} tried. {A.he} {first}, but {A.he} {trouble}. {A.he} tried again, and again {A.he} "
           "{trouble}.")
    t.feel("A", "sad" if t.chance(0.5) else "angry")
    t.says("A", "[I will never learn it|I give up|It is no use|I cannot do it]!", "cross" if t.chance(0.5) else
           "sad")
    t.para()
    t.says("E", t.pick(["Do you think that I could do it on the first day? It took me a whole summer.",
                        "You are better than you were this morning. [Try it once more|Try again].",
                        "Do not look at what went wrong. Look at what went right.",
                        "Go slowly, and do one thing after the other.",
                        "Not yet, but soon. Every try counts."]), "kind", "A")
    t.tell("So {A} practised [every day|each morning|before breakfast and after lunch]. " + t.pick([
        "On Monday it was a little better. On Tuesday it was worse.",
        "Some days went well, and some did not.",
        "{A.he} got a few bumps, "
        "but {A.he} did not stop.",
        "It rained, and it was "
        "hot, but {A.he} went "
        "on."]))
    t.tell("[And then, one day|After two weeks|One evening|At last, on a quiet morning], it worked! {A} "
           "could {skill}!")
    t.says("A", "[Look! Look at me|Did you see that|I can do it]!" if t.chance(0.8) else "{~hooray}",
           "cried")
    t.tell("{E} [clapped and cheered|laughed for joy|hugged {A}].")
    t.feel("A", "proud")
    t.lesson("practice")
    t.ends(share=0.3)


@plot
def rescue(t):
    t.hero("town", "wood")
    t.friend()
    t.draw(animal=things.CREATURES)
    where, fail, done = t.pick([
        ("sitting high up in a tree", "{A} tried to climb up, but the lowest branch was too high.",
         "They pushed a cart under the tree, stood on it and reached the branch."),
        ("stuck in a deep hole", "{A} lay down and stretched out one arm, but the hole was too deep.",
         "They put a long branch into the hole, and step by step the little one came up."),
        ("standing on a stone in the middle of the river", "{A} wanted to wade across, but the water was "
         "too fast.", "They laid an old plank from the bank to the stone, and the little one walked over."),
        ("caught in a thorny bush", "{A} pulled at the branches, but the thorns were sharp.",
         "They wrapped a thick blanket around the thorns and bent them aside."),
        ("shut in an old shed", "{A} pushed at the door, but it did not move.", "They found a loose board "
         "at the back and made a gap that was just wide enough."),
        ("on a piece of ice on the lake", "{A} called it, but it was too afraid to move.",
         "They pushed a ladder over the ice, and {B} crept to the end and took it in both arms."),
        ("stuck in the mud", "{A} pulled, but the mud was like glue.", "They put dry straw on the mud, "
         "and then they pulled together. Plop!")])
    t.set(where=where)
    if "tree" in where:
        t.set(animal="kitten")
    t.opens()
    t.para()
    if "ice" in where:
        t.weather = "snowy"
    t.when()
    t.tell("{when}, {A} and {B.intro} heard a [small cry|weak voice|sad sound]. [They followed it|They "
           "stopped and listened]. It was {animal.a}, and it was {where}!")
    t.says("B", "{~ohno} [How did it get there?|Poor little thing!|We must help it!]", "cried")
    t.tell(fail)
    if t.chance(0.4):
        t.tell("{B} [called for help|ran to get help], but [nobody was near|nobody heard].")
    t.feel("A", "sad")
    t.para()
    t.says("A", "{~idea}", "said")
    t.tell(done)
    t.tell("[At last, the|The] {animal} was [cold and wet|safe|free|shaking, but not hurt|dirty, but "
           "safe]. {B} [dried it with a scarf|held it gently|gave it a drink of water] until it [was "
           "warm|stopped shaking|closed its eyes].")
    t.para()
    t.tell(t.pick(["Soon its mother came and called, and the {animal} ran to her.",
                   "They found its family not far away, and nobody had ever seen such a happy family.",
                   "It looked back once, as if to say thank you, and was gone.", "From that day on, the "
                   "{animal} followed them everywhere.", "An hour later it was jumping about as if "
                   "nothing had happened."]))
    t.feel("A", "happy" if t.chance(0.5) else "proud")
    t.lesson("team" if t.chance(0.5) else "kind")
    t.ends("B", 0.3)


@plot
def plant_seed(t):
    t.hero()
    t.elder() if t.world == "wood" or t.chance(0.5) else t.neighbour("E")
    t.draw(plant=["sunflower", "bean", "pumpkin", "tulip", "strawberry", "tomato", "rose", "melon", "poppy",
                  "daisy"])
    fruit = {"bean": "long green beans", "pumpkin": "three round pumpkins", "strawberry": "sweet red strawberries",
             "tomato": "shiny red tomatoes",
             "melon": "two big yellow melons"}.get(t.vars["plant"])
    t.opens()
    t.para()
    t.when()
    t.tell("{when}, {E} gave {A} a [small|tiny|brown] seed.")
    t.says("A", "[What is it|What will it be|What is inside]?", "asked")
    t.says("E", "[Plant it and see|Give it water and time|It is a secret. Plant it, and it will tell you].",
           "said")
    t.tell("{A} [made a hole with one finger|dug a little hole] and put the seed into the [dark|soft] "
           "earth. {A.he} watered it every day.")
    t.para()
    t.tell("[A week passed|Days went by]. Nothing happened. {A} [looked every morning|even sang to "
           "it|wanted to dig it up again].")
    t.says("A", "[Why is it so slow|Has it forgotten to grow|Is it asleep], {E}?", "asked")
    t.says("E", "[Under the ground it is busy|A seed cannot be hurried|Wait a little longer. Roots come "
           "first].", "kind", "A")
    trouble = t.pick(["frost", "snails", "dry", None])
    t.tell("Then, one morning, there was a [green tip|tiny green leaf|thin green stem]!")
    if trouble == "frost":
        t.tell("But a cold night came. {A} put [a jar|an old pot|a box] over the little plant, and it "
               "lived.")
    elif trouble == "snails":
        t.tell("But hungry snails came. {A} carried them, one by one, to the other side of the wall.")
    elif trouble == "dry":
        t.tell("But no rain fell for weeks. {A} carried water from the [well|river|stream] until {A.own} "
               "arms ached.")
    t.para()
    t.tell("The plant [grew and grew|grew taller every day], and in summer " +
           (f"[it had|there were] {fruit}!" if fruit else "it was {plant.a}, the "
            "[brightest|tallest|prettiest] far and wide!"))
    t.feel("A", "proud")
    if fruit and t.chance(0.6):
        t.tell("{A} shared with [all the neighbours|everybody who came by|{E}] and [kept|saved] one seed "
               "for the next spring.")
    else:
        t.tell("In autumn, {A} [found a hundred new seeds and gave them to friends|gave a seed to a "
               "younger friend]. \"Plant it and see,\" said {A}.")
    t.lesson("patience")


@plot
def lost_way(t):
    t.hero("town", "wood", "tale")
    t.helper()
    t.draw(lure=["a blue butterfly", "a strange bird", "the sound of music", *t.pick([["a rolling ball",
                                                                                       "a little grey dog", "a man with balloons"]]
                                                                                     if t.world == "town" else [["a trail of berries", "a white rabbit", "a row of mushrooms",
                                                                                                                 "a shiny beetle"]])])
    t.opens()
    t.place(where=["market", "zoo", "station", "square", "harbour", "forest", "swamp", "mountain", "valley",
                   "village", "castle", "meadow"])
    t.para()
    t.when()
    t.tell("{when}, {A} was {place.at}. {A.he} [saw|noticed] {lure} and followed it [to the left and to "
           "the right|further and further|without looking back]." if t.vars["lure"] != "the sound of music" else
           "{when}, {A} was {place.at}. {A.he} heard the sound of music and followed it further and "
           "further.")
    t.tell("When {A.he} stopped, [everything looked strange|nothing looked familiar|{A.he} did not know "
           "the way back].")
    t.feel("A", "scared")
    t.scene(0.3)
    t.tell("{A} [called|shouted], but [only the wind answered|nobody came|nobody heard].")
    t.para()
    way = t.pick(["helper", "sign", "stars"])
    if way == "helper":
        t.tell("{~later}, {H} came along[ and stopped|].")
        t.says("H", "[Are you lost, little one|Where do you belong|What are you doing here all alone]?",
               "asked")
        t.says("A", "[I want to go home, and I do not know the way|I cannot find my way home].", "sad")
        t.says("H", t.pick(["What can you hear at home? The river? Then we must walk down the hill.",
                            "What is near your home? A tall tower? I know it well. Come with me.",
                            "Stay calm and hold my hand. We will ask until somebody knows.",
                            "I am going the same way. Two walk better than one."]), "kind", "A")
        t.tell("They walked and talked, and the way did not seem long.")
    elif way == "sign":
        t.tell("Then {A.he} remembered what {A.own} mother had said: \"If you are lost, follow the "
               "water.\" {A} listened. There was a [brook|stream]! {A.he} walked beside it, past [stones and "
               "bushes|fields and fences].")
    else:
        t.later("evening")
        t.tell("{then}, the first star came out. {A} knew that star. It always stood above {A.own} home. "
               "Step by step, {A.he} followed it.")
    t.tell("{~atlast}, {A} saw [the lights of home|the old tree in front of {A.own} door].")
    t.says("A", "[There it is|I am home|I know this place]!", "cried")
    t.para()
    t.tell("[At home, there was warm soup and a long hug|Everybody had been looking for {A.him}, and "
           "there were many hugs|{A.his} family came running and hugged {A.him} tight].")
    t.tell("[After that, {A} always looked back to remember the way|From then on, {A} never ran off "
           "alone|The next time, {A} took a friend along].")
    t.lesson("careful", 0.5)
    t.ends(share=0.3)


@plot
def move_heavy(t):
    t.hero("town", "wood", "tale")
    t.friend()
    t.friend("C")
    t.friend("D")
    t.draw(thing=things.HEAVY)
    t.opens()
    t.para()
    t.when()
    t.tell("{when}, there was a {thing} in the middle of the [road|path]. Nobody could get past.")
    t.tell("{A} pushed. {A.he} pushed [with both hands|with all {A.own} might]. The {thing} did not move.")
    t.says("A", "[I need help|This is too heavy for me|Alone I cannot do it]!", "said")
    t.tell("{B.intro} came along, and they pushed {~together}. The {thing} [did not move|only creaked]. "
           "Then {C.intro} came. They pushed and pulled. [Still nothing|It moved as much as a finger and "
           "rolled back|Not even three were enough].")
    t.para()
    t.tell("Last of all came {D.intro}.")
    t.says("C", "[You are too small to help|What can you do|Go away, you will only get hurt]" + "!",
           "cross")
    t.says("D", "[Let me try|I may be small, but I have eyes|Wait]! [There is a stone under it|Something "
           "is stuck under it|A root is holding it]!", "said")
    t.tell("{D} [crept under the {thing}|lay down on the ground] and [took it away|pulled it out|pushed "
           "it aside].")
    t.says("A", "Now! One, two, three!", "cried")
    t.tell("[Crack|Rumble|Creak]! The {thing} [began to move|rolled to the side], and the way was free.")
    t.para()
    t.says("C", "[I was wrong|I am sorry]. [Without you we would still be pushing|You were the biggest "
           "help of all].", "soft")
    t.tell("They all [sat down and shared some bread|danced around|laughed and shook hands].")
    t.lesson("team" if t.chance(0.6) else "self", 0.9)
    t.ends(share=0.3)


@plot
def build_something(t):
    t.hero("town", "wood")
    t.friend()
    thing, parts, danger = t.pick([("sand castle", "wet sand, sticks and shells", "a big wave"), (
        "tree house", "old boards, ropes and nails", "a strong wind"),
                                   ("raft", "logs and long ropes", "a sharp rock"), ("snow fort",
                                                                                     "round snowballs and blocks of ice", "the warm sun"),
                                   ("little dam", "stones, mud and sticks", "a rush of water"), ("hut",
                                                                                                 "branches, moss and leaves", "a sudden storm"),
                                   ("tower", "flat stones", "a jumping goat"), ("bridge",
                                                                                "planks and long sticks", "a flood")])
    t.set(thing=thing, parts=parts, danger=danger)
    t.weather = "snowy" if thing == "snow fort" else t.weather
    t.opens()
    t.meets()
    t.para()
    t.when()
    t.tell("{when}, {A} and {B} began to build a {thing}. They used {parts}. {A} [carried|brought] "
           "[everything|the heavy things], and {B} put everything in its place.")
    t.maybe(0.6, "They worked [without a break|until their hands were dirty|and sang]. The {thing} was "
            "[beautiful|nearly ready|as high as {A}].")
    t.tell("{~suddenly}, {danger} came, and the {thing} fell apart!")
    t.feel("A", "sad" if t.chance(0.6) else "angry")
    t.para()
    mood = t.pick(["quit", "learn"])
    if mood == "quit":
        t.says("A", "[All that work for nothing|I do not want to build any more|It is all over]!", "sad")
        t.says("B", "[Now we know how to do it better|We still have our hands|The second one is always "
               "better]. [Come on|Let us begin again].", "kind", "A")
    else:
        t.says("B", "[Why did it break|What did we do wrong]?", "asked")
        t.tell("{A} looked at the pieces [carefully|closely|again and again].")
        t.says("A", "[It was too thin|It was too weak on one side|It needs a stronger bottom]. This time "
               "we will be smarter.", "said")
    t.tell("They started again. They chose a [better|safer] place, and they made everything [wider and "
           "stronger|twice as thick].")
    t.tell("Before evening, {danger} came back. The {thing} [shook|trembled], but it stood!")
    t.says("A", "{~hooray}", "cried")
    t.para()
    t.tell("They [sat down in front of it|put a flag on top|gave it a name] and [ate some plums|watched "
           "the sun go down|felt like a king and a queen]." if t.vars["A"].gender != t.vars["B"].gender else
           "They [sat down in front of it|put a flag on top|gave it a name] and [ate some plums|watched "
           "the sun go down|felt like giants].")
    t.lesson("practice" if t.chance(0.5) else "team")
    t.ends("B", 0.3)


@plot
def treasure_map(t):
    t.hero("town", "tale")
    t.friend()
    t.draw(treasure=things.TREASURE, found=["in an old book", "in a bottle on the beach",
                                            "under a loose board", "behind a picture", "in a dusty trunk", "in the pocket of an old coat"])
    t.draw(c1=["twenty steps from the big tree", "over the little bridge", "past the stone with two holes",
               "to the left of the old well"],
           c2=["up the hill", "through the gap in the hedge", "along the wall with the ivy",
               "as far as the broken fence"],
           c3=["under the flat stone", "below the old bench", "at the foot of the windmill",
               "between the three birches"])
    t.opens()
    t.meets()
    t.para()
    t.when()
    t.tell("{when}, {A} found a map {found}. It was [yellow with age|old and torn|painted on thin "
           "leather|drawn with black ink], and there was a [red|big] [cross|star|ring] [on it|in one corner].")
    t.says("A", "[A treasure map|It must be a treasure|Look at this]! [We must find it|Let us go and "
           "look].", "cried")
    t.says("B", "{~ofcourse} [I will bring a shovel|Maybe it is gold|I have always wanted to find one].",
           "glad")
    t.para()
    t.tell("They went {c1}, then {c2}, [just as the map said|step by step]. " + t.pick([
        "Once they turned the map upside down and had to walk all the way back.", "A dog barked at them, "
        "but it only wanted to play.",
        "It began to rain, but "
        "they did not stop.",
        "{B} fell into a ditch "
        "and came out laughing."]))
    t.tell("The [place|spot] was {c3}. They [dug and dug|dug until their arms hurt|took turns with the "
           "shovel|moved the stones and dug]. {~suddenly}, the shovel hit [wood|something hard]!")
    t.tell("It was a [rusty|small iron|wooden] box. In it was {treasure}.")
    t.para()
    ending = t.pick(["glad", "note", "elder"])
    if ending == "glad":
        t.says("B", "[It is not gold|There is no gold], but it is [beautiful|better than gold]!", "glad")
        t.tell("They [took turns keeping it|put it on a shelf where everyone could see it|showed it to "
               "everybody].")
    elif ending == "note":
        t.tell("There was also a note: \"[Whoever finds this may keep it, but must leave something for "
               "the next one|I was nine when I hid this. I hope that you are a child, too|To the finder: be "
               "happy, as I was].\"")
        t.tell("They [put a letter and two marbles into the box|wrote a note of their own] and hid it "
               "again.")
    else:
        t.elder()
        t.tell("At home, {E} [looked at it for a long time|began to smile].")
        t.says("E", "[I hid this when I was as old as you|This was mine when I was a child]. [I had "
               "forgotten it|I thought that nobody would ever find it].", "soft")
    t.feel("A", "happy")
    t.lesson("friends", 0.4)
    t.ends("B", 0.3)


@plot
def kite_in_tree(t):
    t.hero("town")
    t.friend()
    t.weather = "windy"
    t.draw(colour=things.COLOURS)
    t.opens()
    t.meets()
    t.place(where=["park", "beach", "hill", "garden", "orchard"])
    t.para()
    t.when()
    t.tell("{when}, {A} and {B} met {place.at}.")
    t.scene(0.5)
    t.tell("They had a {colour} kite[, and the wind was just right|]. It [rose higher than the "
           "houses|danced in the sky|pulled like a wild horse]. But then [the string broke|the wind "
           "turned|{B} let go for one moment], and the kite got stuck in a tall tree.")
    t.feel("A", "sad")
    tries = t.rng.sample(["They threw a shoe at it. Now the shoe was in the tree, too.",
                          "They shook the tree. Only leaves came down.", "{B} climbed on {A}'s shoulders, but it was still "
                          "too high.",
                          "{A} shouted at the wind, but the wind only laughed.", "They poked at it with a "
                          "stick, but the stick was too short."], 2)
    t.tell(tries[0])
    t.tell(tries[1])
    t.para()
    t.role("H", t.pick(["a window cleaner", "a firefighter", "an old carpenter", "a man with a ladder",
                        "a tall gardener"]), "he")
    t.tell("{H} came along [and looked up|and stopped].")
    label = t.vars["H"].label.split(" ", 1)[1]
    t.vars["H"].label = "the man" if "man" in label else f"the {label}"
    t.says("B", "Could you help us, please?", "asked")
    t.says("H", t.pick(["That is an easy one.", "When I was a boy, my kite sat in that very tree.",
                        "Step back, and hold your hats.", "For a kite, I always have time."]), "glad")
    t.tell("[Up he went|He put up his ladder and climbed]. A moment later, the kite was back in {A}'s hands" +
           (", and so was the shoe." if "shoe" in tries[0] + tries[1] else "."))
    t.says("A", "{~thanks}", "glad")
    t.tell("[It had a small hole, but that was easy to mend|The kite had lost its tail, so {B} tied on a "
           "scarf|They tied a stronger string to it]. Soon it was flying again, [far away from the "
           "trees|over the open field|high and free].")
    t.lesson("team", 0.5)
    t.ends("B", 0.4)


@plot
def snow_day(t):
    t.hero("town", "wood")
    t.friend()
    t.weather = "snowy"
    t.opens()
    t.meets()
    t.para()
    t.next_day()
    t.set(when=t.pick(["one cold morning", "one winter morning", "on the first day of winter",
                       "when {A} woke up one day"]))
    t.tell("{when}, everything was white. [It had snowed all night|The first snow had come].")
    t.says("A", "[Come out|Wake up], {B}! [It is snowing|Look at the snow]!", "cried")
    t.tell("They [rolled three big balls|rolled the snow until their hands were red|worked all morning] "
           "and [made|built] a [big |round |fat |]snowman. It had [a carrot|a pine cone|a stick] for a nose, "
           "[two nuts|two buttons|two black stones] for eyes and [a pot|a basket|an old hat] on its head.")
    t.says("B", "[He looks cold|I think he is sad|He looks lonely|He has nobody to talk to].", "soft")
    t.para()
    end = t.pick(["friend", "melt", "gift"])
    if end == "friend":
        t.tell("So they made a second one, with a [long scarf|crown of twigs]. Now the two could [look at "
               "each other|talk] all night.")
        t.tell("The next morning, the two snowmen stood closer together than before. [Or so it seemed to "
               "{A}|Nobody knew why].")
    elif end == "melt":
        t.tell("{A} put {A.own} scarf around the neck of the snowman. But a few days later, the sun came "
               "out. The snowman got smaller and smaller, until only the scarf lay there.")
        t.feel("A", "sad")
        t.says("B", "[He has only gone into the river and the clouds. Next winter he will come back|He is "
               "water now, and he will feed the flowers].", "kind", "A")
        t.tell("In spring, [the first flower grew in that very place|there were snowdrops in that very "
               "place].")
    else:
        t.tell("{A} gave the snowman {A.own} warm scarf. In the night, a hungry little bird came and [sat "
               "in the scarf to keep warm|found some crumbs there]. [In the morning, it|The next day, it] "
               "[sang for them|sat there and sang|sang its best song].")
    t.feel("A", "happy")
    t.lesson("kind", 0.3)
    t.ends("B", 0.5)


@plot
def paper_boat(t):
    t.hero("town", "wood")
    t.friend()
    t.draw(colour=things.COLOURS)
    t.opens()
    t.para()
    t.when()
    t.set(boat=t.pick(["paper boat", "boat of bark", "little wooden boat", "nutshell boat"]))
    t.tell("{when}, {A} made a {boat} with a {colour} sail. {A.he} wrote [a message|a few words] on the "
           "sail: \"[Hello, whoever you are|Tell me who you are|I want to see the world].\"")
    t.tell("[Then {A.he}|{A}] [set it on|put it into|gave it to] the water. The boat [rocked|turned "
           "around twice] and sailed away, [under the bridge|past the reeds] and out of sight.")
    t.says("A", "[Good luck|Come back and tell me everything|Have a good journey]!", "cried")
    t.para()
    t.tell("The boat sailed [for a day and a night|all day long|on and on|past fields and villages]. " +
           " ".join(t.rng.sample([
               "A duck thought that it was her chick and swam beside it.", "A frog took a ride and jumped off "
               "again.", "It got stuck behind a stone, until a fish gave it a push.",
               "Heavy rain fell, but it did not sink.", "A dragonfly rested on the mast.",
               "At night, the moon showed it the way."], 2)))
    t.tell("Far down the river, {B.intro} was [fishing|washing carrots|sitting on the bank and feeling "
           "lonely]. {B.he} saw the {colour} sail and fished the boat out.")
    t.para()
    t.tell("[Some days later|A week later], there was a knock at {A.his} door. There stood {B}, with the "
           "boat [in both hands|under one arm].")
    t.says("B", "[I read your message|I have walked up the river to find you]. [Hello to you, too|I "
           "wanted to see who writes to strangers].", "said")
    t.feel("A", "happy")
    t.tell("They [built|made] a [second boat|new and bigger boat|sister for the boat] {~together}[, and "
           "in the morning two boats sailed down the river|].")
    t.lesson("newfriends")
    t.ends("B", 0.4)


@plot
def lighthouse(t):
    t.hero("tale", "town")
    t.elder()
    t.weather = "foggy"
    t.opens("{A} lived in a [white|tall|old] lighthouse on a rock by the sea. {A.his} family looked after "
            "the great lamp.")
    t.tell("[Every evening|When it grew dark], {E} lit the lamp so that ships could [find their way|see "
           "the rocks]. {A} [liked to help|loved to polish the glass|knew every ship by name].")
    t.para()
    t.begins("evening")
    t.tell("{then}, {E} [fell and hurt a foot|had to go to town and could not come back in time|was ill "
           "and lay in bed]. A [thick|grey|cold] fog [came in from the sea|rolled over the water|hid the sea "
           "and the sky]. [It was getting dark|Soon it was dark].")
    t.tell("{~suddenly}, {A} heard a [horn|bell] far out in the fog. A ship was [coming straight "
           "at|sailing towards|very close to] the rocks!")
    t.feel("A", "scared")
    t.says("A", "[I must light the lamp|Somebody has to warn them|There is nobody but me]!", "said")
    t.para()
    t.tell("{A} climbed [two hundred steps|all the stairs] without stopping. The [door was stuck|matches "
           "were wet|wind blew out the flame]. " + t.pick(["{A.he} tried again and again.",
                                                           "{A.his} hands shook, but {A.he} did not give up.", "Once, twice, three times {A.he} tried."]))
    t.tell("{~atlast}, the lamp [burned|shone], bright and yellow. {A} also [rang the big bell|blew the "
           "old horn] as loudly as {A.he} could.")
    t.tell("[The ship turned slowly, very slowly, and|Just in time, the ship turned and|The captain saw "
           "the light, and the ship] [passed the rocks|sailed into the safe bay].")
    t.para()
    t.tell("The next morning, the captain came [with his whole crew|in a small boat].")
    t.set(captain=t.pick(["\"Who lit the lamp?\" the captain asked. \"You have saved us all.\"",
                          "\"We owe you our lives,\" said the captain."]))
    t.tell("{captain}")
    t.tell("The captain gave {A} [a brass telescope|a silver whistle|a real sailor's cap|a shell from the "
           "other end of the world].")
    t.says("E", "[I am so proud of you|You are a real lighthouse keeper now].", "kind", "A")
    t.lesson("brave")


@plot
def camping(t):
    t.hero("town")
    t.elder()
    t.draw(noise=["crack", "hoo, hoo", "rustle, rustle", "snap", "splash"], animal=[
        "a hedgehog with a leaf on its back", "an owl with huge eyes", "a fat frog", "a deer with her fawn",
        "a curious badger", "a rabbit with a carrot"])
    t.opens()
    t.place(where=["river", "hill", "orchard", "pond", "garden", "beach"])
    t.para()
    t.begins("evening")
    t.tell("{then}, {A} and {E} put up a tent {place.at}. They [made a small fire|cooked soup over the "
           "fire|ate bread and cheese] and [told stories|sang songs|looked for the first star].")
    t.scene(0.4)
    t.later("night")
    t.tell("{then}, {A} lay awake. [The ground was hard|Everything smelled of grass and smoke|The wind "
           "moved the tent|It was warm under the blanket]. Then {A.he} heard something: {noise}!")
    t.feel("A", "scared")
    t.says("A", "[{E}, are you awake|Did you hear that|What was that]?", "soft")
    t.says("E", "[Let us have a look|Bring the lantern. We will be very quiet|The night has its own "
           "people. Let us say hello].", "soft")
    t.para()
    t.tell("They [opened the tent a little|looked out|put their heads out of the tent]. In the [light of "
           "the moon|light of the lantern] stood {animal}! It [looked at them|blinked|sniffed the air|stood "
           "still for a moment] and [went on its way|walked off into the dark|was gone].")
    t.says("A", "[It was only looking for its supper|It is more beautiful than in my book|It was not a "
           "monster at all]!", "glad")
    t.feel("A", "calm")
    t.tell("[They lay on their backs and looked up|They sat outside a little longer|Before they went back "
           "to bed, they looked up]. [A star fell|The sky was full of stars], and {A} made a wish[, but "
           "{A.he} did not tell it|].")
    t.lesson("brave", 0.5)
    t.ends(share=0.5)
