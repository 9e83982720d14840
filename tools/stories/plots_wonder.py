"""Plots with wonders: wishes, dragons, kings, riddles, clouds, and the moon."""
from . import phrases, places, things
from .tale import plot


@plot
def magic_wish(t):
    t.hero("town", "tale")
    t.draw(magic=things.MAGIC, found=["in the attic", "under an old tree", "at the bottom of a well",
                                      "on the beach", "in a dusty shop", "behind a waterfall"])
    t.opens()
    t.para()
    t.when()
    t.tell("{when}, {A} found a {magic} {found}. When {A.he} [touched it|rubbed it|picked it up], a "
           "[tiny|deep|soft] voice said, \"[You have one wish|I can grant you one wish|Wish for something, "
           "and it will be yours].\"")
    t.feel("A", "curious")
    wish, trouble, undo = t.pick([
        ("I wish that everything I touch turned into chocolate", "{A.his} bed, {A.own} shoes and even the "
         "cat's bowl turned into chocolate. {A} sat down on a chair, and it melted",
         "hug {A.own} mother without fear"),
        ("I wish that it were always my birthday", "There was a party every day. After a week, nobody "
         "wanted cake any more, and the friends were tired of bringing gifts", "have a plain quiet day"),
        ("I wish that I could fly", "{A.he} rose up and up, over the roofs, and could not come down. It "
         "was cold and lonely up there", "feel the ground under {A.own} feet"),
        ("I wish that I were as tall as a tree", "{A} grew and grew. {A.his} head broke through the roof, "
         "and {A.he} did not fit into any bed", "sit at the table with the others"),
        ("I wish that I never had to sleep", "The nights were long. Everybody else was asleep, and there "
         "was nobody to play with", "close {A.own} eyes and dream"),
        ("I wish that animals could talk", "All the dogs, cats and birds talked at the same time, day and "
         "night. The hens complained about their food, and the flies never stopped",
         "hear nothing but a simple bark"),
        ("I wish that there were no more rules", "Everyone did as they liked. The bus driver went "
         "fishing, and the baker ate all the bread", "know when school began"),
        ("I wish that it were summer for ever", "The sun shone every day. But the grass turned brown, and "
         "the river dried up", "hear the rain on the roof")])
    t.set(wish=wish, undo=undo)
    t.para()
    t.says("A", "{wish}!", "said")
    t.tell("[There was a flash of light|The air began to shine|Somewhere a bell rang|A warm wind blew], "
           "and [it came true|the wish was granted|so it was]. At first it was [fun|wonderful]. But then "
           "there was trouble. " + trouble + ".")
    t.feel("A", "sad")
    t.tell("All {A.he} wanted now was to {undo}.")
    t.para()
    t.tell("{A} {~ran} to where {A.he} had left the {magic}.")
    t.says("A", "[Please take my wish back|I do not want my wish any more|Please make everything as it "
           "was]!", "cried")
    t.tell("\"[Are you sure|Is that what you want|So soon]?\" [asked|said] the voice. {A} nodded. [In the "
           "blink of an eye|With a soft sigh|A moment later], everything was [as before|as it had been|plain "
           "and good again].")
    t.set(lesson=t.pick(["one should think well before wishing", "what one has is often better than what "
                         "one wishes for", "not every wish is a good one", "plain things can be the best of all"]))
    t.tell(t.pick(["{A} had learned that {lesson}.", "Now {A} understood that {lesson}.",
                   "From that day on, {A} knew that {lesson}."]))
    t.ends(share=0.4)


@plot
def small_dragon(t):
    t.hero("tale")
    t.draw(colour=["green", "red", "blue", "golden", "silver", "purple"])
    t.set(name=t.pick(["Ember", "Smoky", "Flick", "Ash", "Spark", "Blaze", "Puff", "Glim"]))
    t.role("D", t.vars["name"], "he" if t.vars["A"].gender == "she" else "she")
    t.tell(t.pick(["In a cave above the village lived a {colour} dragon called {name}.",
                   "Once upon a time, there was a young {colour} dragon called {name}.", "High on a mountain lived a "
                   "small {colour} dragon named {name}."]))
    t.focus = {t.vars["D"].gender: t.vars["D"]}  # the first sentence has named the dragon
    problem = t.pick(["fire", "afraid", "sneeze", "friend"])
    t.tell({"fire": "{D.he} could not breathe fire. When {D.he} tried, there was only a little "
            "[smoke|puff of steam|soap bubble].",
            "afraid": "{D.he} was afraid of heights. All the other dragons flew, but {D.he} always walked.",
            "sneeze": "Whenever {D.he} sneezed, {D.he} set something on fire: a bush, a fence, once even "
            "the mayor's hat.",
            "friend": "{D.he} only wanted a friend. But whenever {D.he} came to the village, everybody "
            "ran away and locked the doors."}[problem])
    t.para()
    if problem == "sneeze":
        t.weather = "snowy"
    t.when()
    t.tell("{when}, {A.intro} came up the mountain [to look for herbs|to look for a lost goat|to pick "
           "berries]. {A} did not run away.")
    t.says("A", "[Why are you sad|What is wrong|Are you crying]?", "asked")
    t.tell("The dragon [told the whole story|sighed and told everything|wiped away a hot tear and "
           "explained|was so surprised that the story came out at once].")
    t.says("A", t.pick(["Perhaps you only need some practice. I will help you.",
                        "I have an idea. Come with me.", "What is a trouble in one place may be a help in another. Come "
                        "along."]), "kind")
    t.para()
    t.tell({"fire": "{A} taught {name} to laugh from deep in the belly. They told jokes [all day|until "
            "evening]. At the best one, a bright flame came out!",
            "afraid": "They began with a low stone. {name} jumped and flapped. Then came a higher stone, "
            "and a higher one. On the tenth day, {name} flew around the tower!",
            "sneeze": "In the village, the winter was cold and all the wood was wet. {A} tickled the "
            "dragon's nose with a feather. Hatchoo! Now every stove in the village was burning.",
            "friend": "{A} sat on the dragon's back, and they came down to the market. \"This is my "
            "friend,\" said {A}. First one child came closer, and then another."}[problem])
    use = t.pick(["lamps", "bread", "snow", "ride"])
    t.tell({"lamps": "From then on, {name} lit the lamps of the village every evening.", "bread":
            "After that, the baker asked {name} every morning to heat the big oven.",
            "snow": "When snow blocked the road, {name} [melted it in no time|cleared the way].", "ride":
            "On Sundays, the children were allowed to ride on the dragon's back."}[use])
    t.tell("[Nobody was afraid any more|Now everybody liked the dragon|Soon the whole village was proud "
           "of its dragon]. [{A} and {name} were the best of friends|{name} was never lonely again].")
    t.feel("A", "happy")
    t.lesson("self" if t.chance(0.6) else "newfriends", 0.7)


@plot
def king_problem(t):
    t.hero("tale")
    ruler = t.pick(["king", "queen"])
    t.role("K", f"the {ruler}", "he" if ruler == "king" else "she")
    problem, tries, cure, words = t.pick([
        ("could not sleep", ["sang for hours", "brought a bed of feathers", "read from a very long book",
                             "cooked a bitter tea"], "opened the window, so that the sound of the river came in, and told a "
         "simple story about a sheep", "All you needed was some quiet"),
        ("could not laugh", ["stood on one hand", "told a hundred jokes", "danced with a bear",
                             "threw pies at the guards"], "slipped on a plum, fell into the fountain and came out with a fish "
         "in {A.own} hat", "Nobody can plan a good laugh"),
        ("was always bored", ["brought a golden toy", "built a tower of sugar", "showed a trick with eggs",
                              "sent for a flying carpet"], "asked for help with the weeds in the garden, and they worked until "
         "their hands were black", "Useful work is the best game"),
        ("was never content with the food", ["baked a cake with nine floors", "roasted a swan",
                                             "made a soup of roses", "brought fruit from the far south"], "led the way on a long walk over the "
         "hills, and then took out a piece of dry bread", "Hunger is the best cook"),
        ("had lost the golden crown", ["looked in the towers", "dug up the garden", "asked the stars",
                                       "searched every pocket in the land"], "looked carefully and pointed at the royal dog, who was "
         "asleep on the crown", "One must only look at what is near")])
    t.set(problem=problem, cure=cure, words=words)
    t.opens("[Once upon a time, there was|In a far country, there lived|Long ago, there was] a " + ruler +
            " who {problem}.")
    t.tell("[A reward was promised to anyone who could help|Messengers rode through the whole "
           "land|Everybody in the land heard about it|Letters were sent to all the towns]. [Many|Clever] "
           "people came.")
    first, second = t.rng.sample(tries, 2)
    t.tell(
        f"[One|A wise man|A famous doctor] {first}. [Another|A rich lady|A tall knight] {second}. [Nothing helped|It was no use|It was all in vain].")
    t.feel("K", "sad" if t.chance(0.5) else "angry")
    t.para()
    t.tell("Then {A.intro} came to the castle. [{A.he} was only a gardener's child|{A.he} had no gold and "
           "no fine clothes|The guards laughed at {A.own} old shoes].")
    t.says("K", "[What can you do that the others cannot|And you? What have you brought|Do you know a "
           "way]?", "asked")
    t.says("A", "[Let me try|I have brought nothing but an idea|I will do what I can].", "said")
    t.tell("{A} " + cure + ".")
    t.para()
    t.tell({"could not sleep": "Before the sheep had reached the gate, {K} was asleep.", "could not laugh":
            "There was a strange sound. {K} was laughing! And all the court laughed, too.",
            "was always bored": "\"That was the best day of my life!\" said {K}.",
            "was never content with the food": "{K} ate it to the last crumb and asked for more.",
            "had lost the golden crown": "For three days, nobody had looked there!"}[problem])
    t.says("A", "{words}.", "said")
    t.tell(t.pick(["{K} gave {A} a house with a garden.", "{A} did not want gold, only a "
                   "[pony|book|fiddle], and got it.", "{K} made {A} the first adviser of the land.",
                   "From then on, {A} was a guest at the castle every Sunday."]))
    t.lesson("self", 0.4)
    t.ends(share=0.4)


@plot
def moon_catcher(t):
    t.hero("town", "wood", "tale")
    t.elder() if t.chance(0.6) else t.friend("E")
    t.weather = "clear night"
    t.opens()
    if t.vars["E"].kind != "elder":
        t.meets("E")
    t.para()
    t.begins("night")
    t.tell("{then}, the moon was [big and round|so bright that every leaf had a shadow|hanging low over "
           "the trees]. {A} wanted to [have it|take it home|keep it in a box].")
    tries = t.rng.sample(["{A.he} climbed the highest hill, but the moon was still far away.",
                          "{A.he} jumped as high as {A.he} could. It was not high enough.", "{A.he} threw a rope at it. The "
                          "rope fell down on {A.own} head.",
                          "{A.he} built a tower of boxes, but the tower fell over.",
                          "{A.he} called the moon and asked it to come down. It did not answer.",
                          "{A.he} held out a long net, but it only caught a moth."], 2)
    t.tell(tries[0])
    t.tell(tries[1])
    t.feel("A", "sad" if t.chance(0.7) else "tired")
    t.para()
    t.says("E", "[What are you doing so late|Why are you not in bed|What are you looking at], {A}?",
           "asked")
    t.says("A", "[I want to catch the moon|I want the moon, but it is too far away|The moon will not come "
           "to me].", "sad")
    end = t.pick(["bucket", "share", "window", "draw"])
    if end == "bucket":
        t.tell("{E} filled a bucket with water and put it on the ground. There was the moon, round and "
               "white, in the bucket!")
        t.says("E", "[You may look at it as long as you like|Here it is, and it is all yours until "
               "morning].", "kind", "A")
        t.tell("{A} touched the water with one finger. The moon [shook|danced], and then it was whole "
               "again.")
    elif end == "share":
        t.says("E", "If you had the moon in a box, who would light the way for the "
               "[owls|ships|travellers]? It belongs to everyone.", "kind", "A")
        t.tell("{A} thought about it for a long time. Then {A.he} waved at the moon, and it seemed to "
               "smile.")
    elif end == "window":
        t.tell("{E} pulled {A}'s bed under the window.")
        t.says("E", "[You cannot keep it, but it can keep you company|Look, now it shines on your pillow].",
               "soft")
    else:
        t.tell("{E} gave {A} paper and chalk, and together they drew the biggest moon that they could.")
        t.says("E", "[This one will never go down|This moon will shine even when it rains].", "kind", "A")
    t.feel("A", "happy")
    t.tell(t.pick(phrases.ENDINGS["night"]))


@plot
def riddle_gate(t):
    t.hero("tale", "wood", trait="clever")
    t.role("G", t.pick(["the old troll", "the giant", "the sleepy dragon", "the stone lion",
                        "the grumpy goat", "the talking door"]), "he")
    riddles = [("What has teeth but cannot bite", "a comb"), ("What runs all day but never gets tired",
                                                              "a river"), ("What has a neck but no head", "a bottle"), ("What gets wetter the more it dries",
                                                                                                                        "a towel"),
               ("What has hands but cannot clap", "a clock"), ("What goes up when the rain comes down",
                                                               "an umbrella"), ("What is full of holes but holds water", "a sponge"), (
                                                                   "What can you catch but not throw", "a cold"),
               ("What has leaves but is not a tree", "a book"), ("What follows you all day but is afraid "
                                                                 "of the dark", "your shadow"), ("What has one eye but cannot see", "a needle"), (
                                                                     "What breaks when you say its name", "silence"),
               ("What has legs but never walks", "a table"), ("What is yours but is used more by others",
                                                              "your name"), ("What flies without wings", "time"), ("What has ears but hears nothing",
                                                                                                                   "a field of corn")]
    (q1, a1), (q2, a2), _ = t.rng.sample(riddles, 3)
    t.set(q1=q1, a1=a1, q2=q2, a2=a2)
    t.draw(goal=["the well with the healing water", "the market on the other side", "the valley of flowers",
                 "grandmother's house", "the singing tree", "the garden of golden apples"])
    t.opens()
    t.para()
    t.when()
    t.tell("{when}, {A} was on the way to {goal}. But at the [bridge|gate|narrow pass] sat {G}.")
    t.says("G", "[Nobody gets past me without an answer|Stop! First you must answer me|Only the clever "
           "may pass]. {q1}?", "said")
    t.tell(t.pick(["{A} looked at the sky and at the ground.", "{A} closed {A.own} eyes and thought.",
                   "{A} walked three times around a stone.", "{A} scratched {A.own} head."]))
    t.says("A", "[I know it|That is not hard|I think I have it]! It is {a1}.", "glad")
    t.para()
    t.says("G", "[Not bad|Hm, that is right|Well, well]. But here is [another one|a harder one]. {q2}?",
           "cross")
    hard = t.chance(0.5)
    if hard:
        t.tell("This one was difficult. {A} thought [until the sun moved|for a long time]. " + t.pick([
            "Then a bird sang, and suddenly the answer was there.", "Then {A.he} remembered what {A.own} "
            "grandmother liked to ask.", "Then {A.he} laughed."]))
    t.says("A", "It is {a2}!" if hard else "[That must be|It can only be] {a2}!", "cried")
    t.tell("{G} [grumbled|sighed|opened {G.own} mouth and shut it again]. It was right[ again|].")
    t.para()
    if t.chance(0.5):
        t.says("A", "Now I have one for you. What do you get if you let everybody pass?", "asked")
        t.tell("{G} thought and thought. \"I do not know,\" {G.he} said at last.")
        t.says("A", "Friends!", "glad")
        t.tell("From that day on, {G} [smiled at everyone who came by|told riddles only for fun].")
    else:
        t.tell("{G} stepped aside and let {A} pass. [On the way back, they told each other riddles until "
               "evening|And since it had been so much fun, {A} came back the next day with new riddles].")
        t.set(lesson=t.pick(["a good thought opens every gate", "it is worth the trouble to think twice",
                             "being clever is better than being strong"]))
        t.tell("So {A} found out that {lesson}.")


@plot
def little_cloud(t):
    t.world = "tale"
    t.hero("tale")
    t.set(cloud=t.pick(["Wisp", "Fluff", "Nimbo", "Puffin", "Drizzle", "Cotton", "Misty", "Pillow"]))
    t.tell(t.pick(["High in the sky lived a little cloud called {cloud}.", "Once there was a small white "
                   "cloud called {cloud}.", "There was once a cloud named {cloud} that was smaller than all the "
                   "others."]))
    t.tell(t.pick(["The big clouds laughed because {cloud} could not make any rain.",
                   "{cloud} did not like to work and only drifted around in the sun.", "{cloud} wanted to see the "
                   "world and sailed away on the wind.",
                   "{cloud} was afraid of thunder and kept away from the big clouds."]))
    t.para()
    t.weather = "warm"
    t.when()
    t.tell("{when}, {cloud} came to a [dry valley|brown field|dusty village]. It had not rained there "
           "[for months|for a whole summer|since spring|for a hundred days]. Below stood {A.intro} and "
           "looked up.")
    t.draw(animals=["goats", "cows", "sheep", "hens"])
    t.says("A", "[Please, little cloud, give us some rain|Dear cloud, our garden is dying|Our well is "
           "empty, and the {animals} are thirsty]!", "cried")
    t.tell("\"[I am too small|I have only a few drops|I do not know how],\" said {cloud}.")
    t.says("A", "[A few drops are better than none|Even one drop helps|You can try. That is enough].",
           "kind")
    t.para()
    way = t.pick(["sea", "help", "squeeze"])
    if way == "sea":
        t.tell("So {cloud} flew all the way to the sea and drank and drank. It grew big and grey and "
               "heavy. It was hard to fly back, but {cloud} did not give up.")
    elif way == "help":
        t.tell("{cloud} called all the small clouds it could find. They held on to each other until they "
               "were as big as a mountain.")
    else:
        t.tell("{cloud} thought of all the thirsty flowers and felt so sorry that it began to cry. And "
               "tears of a cloud are rain.")
    t.tell("{~then} [drop after drop fell|the first drop fell, and then a thousand more]. [The earth "
           "drank|The brown grass drank|Every leaf held out its hand]. [Children danced in the puddles|The "
           "frogs began to sing|Everybody ran out with pots and buckets].")
    t.tell("The next morning, the valley was [green|full of flowers|shining]. {A} waved at the sky.")
    t.says("A", "{~thanks} [Come back soon|You are the greatest cloud of all]!", "cried")
    t.tell("{cloud} was [very happy|a bit lighter now, and very happy|so happy that it turned pink in the "
           "evening sun].")
    t.lesson("self" if t.chance(0.5) else "kind", 0.5)


@plot
def clever_contest(t):
    t.hero("town", "tale")
    t.friend()
    t.draw(colour=["blue", "red", "green", "yellow"])
    t.opens()
    t.meets()
    t.para()
    fair = t.pick(["village fair", "autumn feast", "spring fair", "harvest feast"])
    t.set(fair=fair)
    kind = t.pick(["paint", "cake", "kite", "pumpkin"])
    t.tell("Soon it was time for the {fair}. There was a prize for the best " + ("picture" if kind == "paint" else
                                                                                 kind) + ".")
    t.tell({"paint": "{A} wanted to paint the sea. But when {A.he} opened the box, there was no {colour} "
            "paint left!", "cake": "{A} wanted to bake a cake. But the eggs were broken, and the shop was "
            "closed!",
            "kite": "{A} had a wonderful kite. But in the night, mice had eaten its tail!", "pumpkin":
            "{A} had grown a pumpkin. But it was the smallest of them all, no bigger than a fist!"}[kind])
    t.feel("A", "sad")
    t.says("B", "[You can still take part|Use what you have|It does not have to be like all the others].",
           "kind", "A")
    t.tell("{B} [helped {A} to think|sat down beside {A}].")
    t.para()
    t.tell({"paint": "{A} looked at the other colours. In the [evening, the sea could be golden|morning, "
            "the sea could be pink and white]. At night, it was [black and silver|dark, with a path of "
            "moonlight]. {A} began to paint.",
            "cake": "In the kitchen there were apples, nuts and honey. {A} baked them without any eggs. "
            "It did not look like a cake, but it smelled wonderful.",
            "kite": "{A} and {B} cut a hundred strips of old newspaper and made a new tail. It rustled "
            "like a wood in the wind.",
            "pumpkin": "{A} cut a tiny door and two windows into it and put a candle inside. Now it was a "
            "house for [a mouse|an elf|a beetle]."}[kind])
    t.tell("At the {fair}, people [stopped and looked|stood still and smiled|came from all sides]. "
           "[Nobody had seen anything like it|It was like nothing else at the {fair}|Even the judges were "
           "surprised].")
    if t.chance(0.6):
        t.tell("{A} won the [first prize|golden ribbon|big prize]!")
        t.feel("A", "proud")
    else:
        t.tell("{A} did not win the first prize. But the judges gave {A.him} a special ribbon for the "
               "best idea.")
        t.feel("A", "happy")
    t.says("A", "Half of it is yours, {B}. [Without you I would have stayed at home|You told me not to "
           "give up].", "glad")
    t.lesson("self" if t.chance(0.5) else "try", 0.6)
    t.ends(share=0.3)


@plot
def robot_friend(t):
    t.hero("town")
    t.elder()
    t.set(name=t.pick(["Bolt", "Tock", "Rivet", "Beep", "Cog", "Gizmo", "Clank", "Dot"]))
    t.draw(job=["water the plants", "sweep the floor", "wash the dishes", "feed the cat", "set the table",
                "carry the shopping"])
    t.opens()
    t.tell("{A} and {E} built a robot from [old pots, springs and a clock|a bucket, two lamps and some "
           "wire|tins, wheels and a radio]. They called it {name}.")
    t.para()
    t.when()
    t.tell("{when}, {A} told the robot to {job}. But {name} understood everything wrong. " + {
        "water the plants": "It watered the sofa, the carpet and {E}'s hat.", "sweep the floor":
        "It swept the toys, the shoes and the cat out of the door.", "wash the dishes":
        "It washed the books and hung them on the line.",
        "feed the cat": "It fed the cat's dinner to the piano.", "set the table": "It carried the table "
        "up to the roof and set it there for nine.", "carry the shopping": "It carried a policeman, a dog "
        "and a street lamp home."}[t.vars["job"]])
    t.says("E", "[What a mess|Oh dear|Heavens]! [Maybe we must take it apart again|This cannot go on].",
           "said")
    t.feel("A", "sad")
    t.para()
    t.says("A", "[Please wait|Give it one more chance]. Nobody has ever shown it how to do it. [I will "
           "teach it|I will explain it slowly].", "said")
    t.tell("{A} [took the robot by the hand|sat down with the robot] and showed it everything, [step by "
           "step|once, twice, ten times]. \"[I am learning|Thank you for your patience|Again, please],\" "
           "said {name}[ in its rusty voice|, and its lamps blinked].")
    t.tell("[On the third day|After a week|By Sunday], {name} could {job} without a single mistake[. It "
           "even whistled while it worked|].")
    t.para()
    t.says("E", "[You are a good teacher.|Who would have thought it?|I take it all back.]", "glad")
    t.feel("A", "proud")
    t.tell(t.pick(["At night, {name} told {A} stories about the stars.", "And on {A}'s birthday, the "
                   "robot baked a cake, all by itself.", "Soon all the neighbours wanted a robot like {name}.",
                   "{name} learned to play football, and it was a very good goalkeeper."]))
    t.lesson("patience", 0.6)


@plot
def star_wish(t):
    t.hero("town", "wood")
    t.friend("B")
    t.draw(gift=things.GIFTS)
    t.opens()
    t.meets()
    t.para()
    t.begins("night")
    t.weather = "clear night"
    t.tell("{then}, {A} sat " + ("at the window" if t.world == "town" else "in front of the door") +
           " and saw a star fall from the sky.")
    t.scene(0.5)
    t.says("A", "[A falling star! I may make a wish|Quick, a wish]!", "soft")
    t.tell("{A} could have wished for [a new toy|a mountain of sweets|a golden crown]. But {A.he} thought "
           "of {B}, who " + t.pick([
               "had been sad for days.", "had hurt a leg and could not run.", "had lost something dear.",
               "had never seen the sea.", "was going to move away."]) )
    t.says("A", "I wish that {B} will be happy.", "soft")
    t.para()
    t.next_day()
    t.tell("{then}, {A} [went to see|visited] {B}. [Nothing had changed|The wish had not come true "
           "yet|There was no smile yet]. So {A} [decided to help the star a little|thought that a star might "
           "need some help].")
    t.tell("{A.he} gave {B} {gift}, " + t.pick(["sang a silly song,",
                                                "told the funniest story {A.he} knew,", "brought some warm bread,", "made a crown of leaves,"]) +
           " and stayed [all day|until the evening].")
    t.tell("{~atlast}, {B} [laughed out loud|smiled for the first time in days].")
    t.says("B", "[You make me happy|I feel much better now]. {~thanks}", "glad")
    t.para()
    t.tell("[When {A} looked up at the sky that evening|That night], all the stars seemed to "
           "[wink|smile]. [So the wish had come true|The star had kept its word, with a little "
           "help|Sometimes a wish needs two hands|Somewhere, a star was very proud].")
    t.lesson("kind" if t.chance(0.5) else "friends", 0.6)
    t.ends("B", 0.3)


@plot
def brave_mail(t):
    t.hero("tale", "wood")
    t.friend("B")
    t.draw(thing=["a letter", "some medicine", "a warm blanket", "a basket of food", "a pot of soup"])
    t.opens()
    t.para()
    t.when()
    t.tell("{when}, somebody had to bring {thing} to {B.intro}, who was ill and lived on the other side "
           "of the [mountain|forest|river]. [The way was long|It was a long way|Nobody liked to go that way "
           "alone].")
    t.says("A", "[I will go|Let me do it|I can do it]!", "said")
    obstacles = {
        "a river without a bridge": ["{A.he} found a fallen tree and crept across.",
                                     "{A.he} waited for a turtle, and rode over on its back.", "{A.he} jumped from stone to stone."],
        "a dark tunnel": ["{A.he} sang loudly, and the echo sang along.", "{A.he} held a jar of "
                          "glow-worms and walked straight on.", "{A.he} felt the way along the wall."],
        "a field full of thorns": ["{A.he} tied bark around {A.own} feet and walked through.",
                                   "A bird showed {A.him} a narrow path.", "{A.he} went around it, although it took longer."],
        "a barking dog": ["{A.he} spoke softly to it, and it wagged its tail.", "{A.he} gave it half of "
                          "{A.own} bread, and it let {A.him} pass.", "{A.he} saw that it only wanted to play."],
        "a steep cliff": ["{A.he} climbed slowly and did not look down.",
                          "{A.he} made a rope out of long grass.", "A goat showed {A.him} where to put {A.own} feet."],
        "a thick fog": ["{A.he} followed the sound of a bell.", "{A.he} walked slowly and counted every "
                        "step.", "{A.he} waited until a light shone through."]}
    one, two = t.rng.sample(sorted(obstacles), 2)
    t.para()
    t.set(one=one, two=two)
    t.tell("First, {A} came to {one}. " + t.pick(obstacles[one]))
    t.maybe(0.5, "{A} [was cold and tired|had a stone in one shoe|wanted to turn back], but {A.he} thought "
            "of {B} and went on." if t.world == "tale" else "{A} [was cold and tired|wanted to turn back], "
            "but {A.he} thought of {B} and went on.")
    t.tell("Then there was {two}. " + t.pick(obstacles[two]))
    t.para()
    t.later("evening")
    t.tell("{then}, {A} knocked at the door[ at last|]. {B} [could hardly believe it|opened it slowly and "
           "stared].")
    t.says("B", "[You came all this way for me|All the way, and alone]! {~thanks}", "glad")
    t.tell("{A} stayed [until {B} was well again|the night, and they talked until the fire went out|for "
           "three days].")
    t.feel("A", "proud")
    t.lesson("brave" if t.chance(0.6) else "kind", 0.7)
    t.ends("B", 0.4)
