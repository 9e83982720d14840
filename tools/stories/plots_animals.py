"""Plots about animals: storms, winter, tricks, promises, and creatures that children care for."""
from . import people, places, things
from .tale import plot

SHELTERS = ["hollow tree", "dry cave", "old barn", "hut without a door", "gap between two rocks",
            "shed full of hay"]


@plot
def storm_shelter(t):
    t.hero("wood")
    t.friend()
    t.friend("C")
    t.draw(shelter=SHELTERS)
    t.opens()
    t.para()
    t.when()
    t.tell("{when}, the sky turned [black|dark grey]. [Thunder rolled|The wind began to howl|The first "
           "heavy drops fell]. {A} {~ran} to a {shelter}. It was [warm and dry|small but dry] inside.")
    t.weather = "rainy"
    t.tell("[Knock, knock|Tap, tap]! There stood {B.intro}, [wet from head to tail|shaking with cold].")
    t.says("B", "[May I come in|Is there room for one more]?", "asked")
    t.says("A", "[It is not very big, but come in|Come in, quickly|Of course. I will move over].", "kind",
           "B")
    t.para()
    t.tell("Soon there was [another knock|a second knock]. It was {C.intro}.")
    t.says("B", "[There is no more room|We are full already|Now it is too tight]!", "cross")
    t.says("A", "[A minute ago, you were the one outside|If we all breathe in, there is room|We can sit "
           "closer, and it will be warmer, too].", "said")
    t.tell("{B} was [quiet for a moment|a little ashamed]. Then {B.he} moved to the side, and {C} came in.")
    t.tell("They [sat close {~together}|moved close] and [kept each other warm|shared one blanket of "
           "leaves|listened to the storm]. " + t.pick(["{C} had some nuts and gave each of them the same.",
                                                       "{B} told a story about a mouse who sailed the sea.",
                                                       "{A} hummed a tune, and the "
                                                       "others joined in.",
                                                       "They made up a song about the "
                                                       "thunder, and it was not "
                                                       "frightening any more."]))
    t.para()
    t.tell("[When the storm was over|At last, the rain stopped, and|When they looked out again], [a "
           "rainbow stood over the woods|the air smelled fresh and clean|the sky was blue, and every leaf "
           "shone].")
    t.says("C", "{~thanks}", "glad")
    t.feel("A", "happy")
    t.lesson("share" if t.chance(0.4) else "kind", 0.7)
    t.ends("B", 0.3)


@plot
def winter_store(t):
    t.hero("wood", kinds=["squirrel", "mouse", "hedgehog", "mole", "beaver", "badger", "rabbit", "raccoon"])
    t.friend(kinds=["frog", "fox", "robin", "sparrow", "otter", "duck", "monkey", "goat"])
    t.draw(store=["nuts", "acorns", "dried berries", "seeds", "corn", "sweet roots", "apples"])
    t.opens()
    t.tell("[All summer|All through the autumn], {A} gathered {store} for the winter. {B.intro} [lay in "
           "the sun|danced and sang|played all day].")
    t.says("B", "[Why do you work so hard|Come and play! Why do you carry all that]?", "asked")
    t.says("A", "[Winter is coming|Snow will cover everything|One day it will be cold]. You should get "
           "ready, too.", "said")
    t.says("B", "[There is plenty of time|The sun will always shine|I will do it tomorrow]!", "glad")
    t.para()
    t.weather = "snowy"
    t.tell("One night, the snow came[. It snowed for three days|]. {B} looked everywhere for food, but "
           "[the ground was frozen|there was nothing left].")
    t.scene(0.5)
    t.tell("[Hungry and cold|With an empty belly], {B} knocked at {A.his} door.")
    t.says("B", "[I was foolish|You were right, and I did not listen]. [Could you give me a little|May I "
           "warm myself for a moment]?", "sad")
    t.para()
    if t.chance(0.85):
        t.says("A", "[Come in. There is enough for two|Sit by the fire and eat].", "kind", "B")
        t.tell("{A} gave {B} a bowl of {store}. " + t.pick(["In the long evenings, {B} sang all the "
                                                            "summer songs, and the winter passed quickly.", "To say thank you, {B} swept the floor and "
                                                            "told stories every night.",
                                                            "{B} taught {A} to dance, and they "
                                                            "danced until the snow melted."]))
    else:
        t.says("A", "I have little, but half of it is yours.", "kind", "B")
        t.tell("They ate only one small bowl a day, and so it lasted until spring.")
    t.tell("[When spring came|The next summer], {B} [was the first to gather {store}|worked side by side "
           "with {A}, and sang while they worked].")
    t.lesson("work" if t.chance(0.6) else "kind", 0.7)
    t.ends("B", 0.3)


@plot
def clever_escape(t):
    t.world = "wood"
    t.join("A", t.somebody(trait="clever", kinds=["mouse", "frog", "rabbit", "duck", "squirrel", "hedgehog",
                                                  "lamb", "robin"]))
    hunter = t.pick(["wolf", "hawk", "big snake", "wildcat", "fox"])
    t.role("W", f"the {hunter}", "he")
    t.set(hunter=hunter)
    t.opens()
    t.place()
    t.para()
    t.when()
    t.tell("{when}, {A} was {place.at}. {~suddenly}, a {hunter} jumped out from behind a [tree|rock|bush] "
           "and [held {A} fast|stood in the way].")
    t.says("W", "[I will eat you for lunch|You look like a good breakfast|Now I have you, and I am "
           "hungry]!", "cross")
    t.feel("A", "scared")
    t.tell("But {A.he} [thought quickly|kept a clear head|did not show it].")
    t.para()
    trick = t.pick(["thin", "song", "moon", "wash", "count"])
    if trick == "thin":
        t.says("A", "[Look how thin I am|I am only skin and bones]! Over there, behind the hill, there is "
               "a whole [cheese|ham|fish] as big as a wheel. [Shall I show you|I can show you the way]" + ".",
               "said")
        t.tell("{W} let go and [ran over the hill|looked over the hill]. At once, {A} was gone.")
    elif trick == "song":
        t.says("A", "Before you eat me, let me hear your [famous voice|wonderful song]. [They say that "
               "nobody howls like you|Everyone talks about it].", "said")
        t.tell("{W} was flattered. {W.he} closed {W.own} eyes, lifted {W.own} head and [howled|sang]. "
               "When {W.he} opened {W.own} eyes, {A} was far away.")
    elif trick == "moon":
        t.says("A", "I am so small. But look into the pond! There lies a round yellow cheese.", "said")
        t.tell("It was only the picture of the pale moon in the water. {W} leaned over, further and "
               "further. Splash! {A} laughed and {~ran} home.")
    elif trick == "wash":
        t.says("A", "Do you eat with dirty paws? A real king washes first.", "said")
        t.tell("{W} did not want to look foolish. {W.he} went to the water to wash. In that moment, {A} "
               "slipped [into a hole|under the roots].")
    else:
        t.says("A", "My brothers and sisters are fatter than I am. Close your eyes and count to ten, and "
               "I will call them.", "said")
        t.tell("{W} counted. \"One, two, three, four, six, five!\" When {W.he} came to ten, nobody was "
               "there.")
    t.para()
    t.tell("{A} [told everybody about it|sat safe at home and laughed]. {W} went home [hungry|with an "
           "empty belly] and [never came back|felt very foolish].")
    t.feel("A", "proud")
    t.set(lesson=t.pick(["a clear head is better than sharp teeth", "it is wise to think before being "
                         "afraid", "those who are small must be clever", "words can be stronger than claws"]))
    t.tell(t.pick(["{A} knew now that {lesson}.", "And so everybody learned that {lesson}.",
                   "Since then, they say in the woods that {lesson}."]))


@plot
def favour_returned(t):
    t.hero("town", "tale")
    t.set(kind=t.pick(["fish", "bird", "mouse", "bee", "frog", "ant", "fox", "swan", "turtle"]))
    k = t.vars["kind"]
    t.draw(colour=["silver", "golden", "white", "green", "little", "old"])
    trap = {"fish": "had been left on the sand by the waves", "bird": "was caught in a net", "mouse": "had fallen into a milk jug",
            "bee": "was struggling in a puddle",
            "frog": "was sitting on the hot road far from any water", "ant": "had fallen into a stream",
            "fox": "had a thorn in its paw", "swan": "had a string around its foot",
            "turtle": "was lying on its back"}[k]
    need, helped = {
        "fish": ("{A} dropped {A.own} mother's ring into the deep water", "brought it up from the bottom"),
        "bird": ("{A} lost the way in a thick forest", "flew ahead from tree to tree and showed the way "
                 "home"),
        "mouse": ("{A} got tangled in an old fishing net", "bit through the ropes one after the other"),
        "bee": ("a rude man wanted to take away {A.his} basket", "buzzed around his nose until he ran away"),
        "frog": ("{A.his} hat blew into the middle of the pond", "jumped from leaf to leaf and pushed it "
                 "to the bank"),
        "ant": ("{A} spilled a bag of tiny seeds in the grass", "came with a hundred friends and picked "
                "up every one of them"),
        "fox": ("{A} lost the key of the house in the snow", "sniffed here and there and dug it out"),
        "swan": ("{A.his} boat lost its oars on the wide lake", "took the rope and pulled the boat to the "
                 "shore"),
        "turtle": ("{A} fell into the river and could not swim", "came up from below and carried {A.him} "
                   "to the bank")}[k]
    freed = {"fish": "carried it back to the water", "bird": "opened the net", "mouse": "took it out and dried it",
             "bee": "lifted it out with a leaf", "frog": "carried it to the pond",
             "ant": "held out a blade of grass", "fox": "pulled out the thorn", "swan": "cut the string",
             "turtle": "turned it over"}[k]
    t.set(trap=trap, freed=freed)
    t.opens()
    t.para()
    t.when()
    t.tell("{when}, {A} was on the way home when {A.he} saw a {colour} {kind} that {trap}.")
    t.tell("\"[Please help me|Help]!\" it cried. \"[I will not forget it|One day I will help you].\"")
    t.tell("{A} was [very|quite] surprised that it could speak, but {A.he} [did not wait|bent down]. "
           "{A.he} {freed}.")
    t.maybe(0.5, "A [man|rich man|boy] who saw it laughed. \"How could a {kind} ever help anybody?\" [he "
            "asked|he said].")
    t.para()
    t.tell("[Weeks passed|Summer came and went|A month later it was forgotten]. Then, one day, " + need +
           ".")
    t.feel("A", "sad" if k not in ("turtle", "mouse", "bird", "bee") else "scared")
    t.says("A", "[What shall I do now?|If only somebody could help me!|Nobody can help me now.]", "sad")
    t.tell("\"[I can|But I can|Let me]!\" said a voice. It was the {colour} {kind}! It " + helped + ".")
    t.says("A", "{~thanks}", "glad")
    t.tell("\"[You helped me first|I gave you my word],\" said the {kind}[, and then it was gone|].")
    t.lesson("kind", 0.9)
    t.ends(share=0.4)


@plot
def hurt_bird(t):
    t.hero("town")
    t.elder() if t.chance(0.6) else t.friend("E")
    t.draw(bird=["sparrow", "robin", "swallow", "blackbird", "young owl", "pigeon", "duckling", "crow"])
    t.set(name=t.pick(["Feather", "Sky", "Chip", "Sunny", "Tweet", "Wings", "Berry", "Snow"]))
    t.opens()
    if t.vars["E"].kind != "elder":
        t.meets("E")
    t.para()
    t.when()
    t.tell("{when}, {A} found a {bird} [in the grass|under a window|below a tree|beside the path]. [One "
           "of its wings was hurt|A wing hung down], and it could not fly[| any more].")
    t.says("A", "[Poor thing|Do not be afraid|I will look after you]" + ".", "soft")
    t.tell("{A} carried it home in {A.own} [cap|scarf|two hands]. {E} [found a box|made a soft nest of "
           "wool in a box] and put a bowl of water beside it.")
    t.says("E", "[It needs rest and quiet|You must feed it every two hours|It is a wild bird. When it is "
           "well, you must let it go].", "kind", "A")
    t.para()
    t.tell("{A} called the bird {name}. {A.he} [fed it with worms and crumbs|brought it insects and "
           "seeds] and {~quietly} talked to it[ every evening|]. Day by day, {name} [grew stronger|moved the "
           "wing a little more|sang a little louder].")
    t.tell("[After three weeks|One sunny morning|When spring came], {name} flapped both wings and flew "
           "[around the room|from the chair to the lamp].")
    t.says("E", "[It is time|You know what that means|Now it wants to go home], {A}.", "soft")
    t.feel("A", "sad")
    t.tell("But {A} opened the window[ wide|]. {name} sat [on the window sill|on {A.own} hand] for a "
           "moment and looked back. Then it [flew|rose] [up into the sky|high over the roofs|into the "
           "morning air].")
    t.para()
    t.tell(t.pick(["Every morning after that, a bird sang in front of {A.his} window.",
                   "The next spring, {name} came back and built a nest under the roof.", "Sometimes a small grey "
                   "feather lay on the window sill.",
                   "In summer, {name} came to visit, and three young birds came along."]))
    t.feel("A", "happy")
    t.lesson("kind", 0.5)


@plot
def little_one_brave(t):
    t.hero("wood", kinds=list(people.SMALL))
    t.friend(kinds=list(people.BIG))
    t.draw(treat=["a pot of honey", "some ripe pears", "a big pie", "the best berries of the year"])
    t.opens()
    t.tell("{A} was [the smallest of all the animals|smaller than all the others|so small that {A.he} "
           "could hide behind a leaf]. [The others often said that {A.he} was too little|Nobody ever asked "
           "{A.him} for help|At games, {A.he} was always chosen last].")
    t.para()
    t.when()
    problem = t.pick(["key", "thorn", "bell", "hole"])
    t.tell("{when}, there was great trouble. " + {
        "key": "The door to the winter store was locked, and the key had fallen into a crack in the rock.",
        "thorn": "{B.intro} had a deep thorn in one foot and could not walk.",
        "bell": "The bell that warned of floods was stuck, and its rope was broken. The water was rising!",
        "hole": "A baby rabbit had crawled into a narrow pipe and could not turn around."}[problem])
    t.tell({"key": "{B.intro} tried to move the rock. It was no use.", "thorn": "Everybody tried to pull "
            "it out, but their paws were too big.",
            "bell": "{B.intro} shook the tower. The bell did not ring.", "hole": "{B.intro} called into "
            "it, but that only made the little one cry."}[problem])
    t.says("A", "[Let me try|I can do it|Let me go]!", "said")
    t.says("B", "[You? You are so small!|How could you do what we cannot?|But you are the smallest of us "
           "all!]", "said")
    t.para()
    t.tell("{A} did not [answer|listen]. {A.he} " + {
        "key": "slipped into the crack, down into the dark, and came back with the key.",
        "thorn": "took hold of the thorn, pulled with all {A.own} might, and out it came!",
        "bell": "went up the tower, step by step, and jumped onto the bell until it rang loud and clear.",
        "hole": "crept into the pipe, talked to the little one and led it out backwards."}[problem])
    t.tell("[Everybody cheered|There was a great cheer|For a moment it was quiet, and then everybody "
           "cheered].")
    t.says("B", "[We should have asked you first|We were wrong|Today, you were the biggest of us]. "
           "{~thanks}", "kind", "A")
    t.tell("That evening, {A} got the best seat at the table and {treat}.")
    t.feel("A", "proud")
    t.lesson("self", 0.9)


@plot
def greedy_feast(t):
    t.hero("wood", "town")
    t.friend()
    t.draw(food=["blackberries", "cherries", "honey", "plums", "cookies", "strawberries", "pancakes",
                 "apples", "nuts"] if t.world == "town" else ["blackberries", "cherries", "honey", "plums",
                                                              "strawberries", "raspberries", "pears", "nuts"])
    t.set(of="was" if t.vars["food"] == "honey" else "were", it="it" if t.vars["food"] == "honey" else
          "them")
    t.opens()
    t.meets()
    t.para()
    t.when()
    t.tell("{when}, {A} found [a whole basket of|a great heap of] {food}. They were [sweet and fresh|good "
           "and sweet]." if t.vars["food"] != "honey" else
           "{when}, {A} found [a big pot|a whole jar] of honey. It was golden and sweet.")
    t.says("B", "[May I have some, too|Can we share|Will you leave some for the others]?", "asked")
    t.says("A", "[No, they are all mine|I found them, so I will eat them|Go and find your own]!" if t.vars[
        "of"] == "were" else "[No, it is all mine|I found it, so I will eat it|Go and find your own]!",
           "cross")
    t.tell("{A} ate and ate. {B} [went away|walked off with a sad face]. {A} [did not stop|could not "
           "stop] until [there was nothing left|the last bit was gone].")
    t.para()
    t.tell("{~then} {A.his} belly began to hurt. It was as round as a drum, and {A.he} [lay on the ground "
           "and groaned|could not even sit up].")
    if t.world == "wood" and t.chance(0.4):
        t.tell("{A} wanted to go home, but {A.he} was too fat to get through the door!")
    t.tell("Who would help now? {~later}, {B} came by [with a cup of mint tea|and heard the groans].")
    t.says("B", "[Drink this, and lie still|I will stay until it is better|Let me help you].", "kind", "A")
    t.feel("A", "sorry")
    t.says("A", "I was greedy, and you are still kind to me. [I am sorry|Next time, you shall have the "
           "biggest part].", "soft")
    t.para()
    t.tell("[A week later|When {A} was well again|The next day], {A.he} found some more {food}. " + (
        "This time, {A.he} gave half to {B}" if t.chance(0.5) else "This time, {A.he} called everyone, "
        "and they had a little feast") + ".")
    t.lesson("greed")
    t.ends("B", 0.35)


@plot
def log_bridge(t):
    t.hero("wood", trait=t.pick(["stubborn", "proud"]))
    t.friend(trait=t.pick(["stubborn", "proud"]))
    t.set(bridge=t.pick(["narrow log over a stream", "rope bridge over a deep valley",
                         "row of stones in the river", "small plank over the ditch"]))
    t.set(short=t.vars["bridge"].split(" over ")[0].split(" in ")[0])
    t.opens()
    t.para()
    t.when()
    t.tell("{when}, {A} wanted to cross a {bridge}. Right in the middle, {A.he} met {B.intro}, who came "
           "from the other side. [There was not enough room to pass|There was room for one, but not for "
           "two|It was too narrow for two].")
    t.says("A", "[Go back! I was here first|Let me pass|Out of my way]!", "cross")
    t.says("B", "[No, you go back|I never go back|Why should I? You go back]!", "cross")
    t.tell("They [stood nose to nose|stamped and shouted|glared at each other] [for an hour|until noon]. "
           "Neither of them would move.")
    t.para()
    end = t.pick(["fall", "wise", "yield"])
    if end == "fall":
        t.tell("[They pushed|Both took a step forward]. [Splash|Plop]! Both of them fell down and landed "
               "in the [cold water|mud].")
        t.tell("When they had crawled out, they looked at each other. {A} had [weeds on one ear|mud on "
               "{A.own} nose], and {B} looked no better. They [began to laugh|could not help laughing].")
        t.says("B", "We were both foolish. [Next time, you first|Next time, we take turns].", "glad")
    elif end == "wise":
        t.role("H", t.pick(["an old turtle", "a small snail", "a wise owl", "a young duck"]), "she")
        t.tell("{H} watched them[ and shook her head|].")
        t.vars["H"].label = "the " + t.vars["H"].label.split(" ", 1)[1]
        t.says("H", "If one of you lies down, the other can climb over. [Then both win|It takes strength "
               "to be kind].", "said")
        t.tell("{A} thought about it. Then {A.he} lay down, and {B} {~quietly} climbed over. [In a "
               "moment, both|A moment later, both] were across.")
        t.says("B", "{~thanks}", "soft")
    else:
        t.tell("Then {A} saw that {B} [was shaking|was carrying a heavy bag|had tired eyes].")
        t.says("A", "[You have a heavy load|You look tired]. I will go back, and you come first.", "kind",
               "B")
        t.tell("{B} [was so surprised that {B.he} almost fell|did not know what to say]. On the bank, "
               "{B.he} waited and helped {A} across.")
    t.para()
    t.tell("[After that, they always greeted each other at the {short}.|From then on, whoever met there "
           "let the other go first.|Later, they put up a sign: \"Friends take turns.\"]")
    t.set(lesson=t.pick(["giving way is not the same as losing", "a kind word opens every way",
                         "being stubborn helps nobody", "whoever gives way first is the wiser one"]))
    t.tell(t.pick(["{A} had learned that {lesson}.", "And both of them knew now that {lesson}.",
                   "So they found out that {lesson}."]))


@plot
def night_noise(t):
    t.hero("wood")
    t.friend()
    t.draw(sound=["a deep moan", "a strange whistling", "a loud banging", "a low humming", "a scary howl",
                  "a slow creaking"])
    cause = t.pick([("the wind in a hollow tree", "the tree"), ("a bucket that swung from a branch",
                                                                "the bucket"), ("a loose shutter on an empty hut", "the hut"),
                    ("a little frog who sat in an empty jar and sang", "the frog"), (
                        "an old bear with a toothache", "the bear"), ("a bottle between two stones",
                                                                      "the bottle"),
                    ("a lost calf calling for its mother", "the calf")])
    t.set(cause=cause[0], short=cause[1])
    t.opens()
    t.meets()
    t.para()
    t.begins("night")
    t.weather = "clear night"
    t.tell("{then}, all the animals heard {sound}. It came from the [dark wood|valley|old quarry|other "
           "side of the hill|swamp].")
    t.says("B", "[It is a giant|It must be a ghost|A monster! It has come to eat us]!", "cried")
    t.tell("{B} [hid under a root|ran in a circle|put both paws over {B.own} eyes]. {A} was afraid, too. "
           "But {A.he} [wanted to know|was also curious].")
    t.scene(0.4)
    t.says("A", "[I will go and look|If we do not look, we will never know]. [Who comes with me|Will you "
           "come with me]?", "said")
    t.para()
    t.tell("{B} did not want to stay alone. So they went {~together}, {~quietly}, from tree to tree. The "
           "noise [came closer|grew louder].")
    t.tell("{A} took a deep breath and looked around the last tree. It was [only|nothing but] {cause}!")
    end = {"the tree": "They stuffed the hole with moss, and all was quiet.", "the bucket": "They took it down, and all was quiet.",
           "the hut": "They tied it with a vine, and all was quiet.",
           "the frog": "\"Did you like my song?\" asked the frog. They laughed and said that it was a "
           "very loud one.", "the bear": "{A} fetched some herbs for the tooth, and soon the bear smiled.",
           "the bottle": "They took it away, and the wind had to be silent.", "the calf":
           "They led it through the dark until it found its mother."}[cause[1]]
    t.tell(end)
    t.para()
    t.says("B", "[And I was afraid of that|Next time I will look first|How silly we were]!", "glad")
    t.feel("A", "calm")
    t.lesson("brave")
    t.ends("B", 0.4)
