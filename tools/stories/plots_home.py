"""Plots at home: things lost and broken, bedtime, food, chores, birthdays."""
from . import phrases, places, things
from .tale import plot


@plot
def lost_thing(t):
    t.hero()
    t.friend() if t.chance(0.4) else t.elder("B")
    t.draw(thing=things.SMALL_THINGS if t.chance(0.5) else things.TOYS, colour=things.COLOURS)
    t.draw(s1=places.SPOTS[t.world]).draw(s2=places.SPOTS[t.world]).draw(s3=places.SPOTS[t.world])
    t.gets("A", "thing")
    t.opens()
    if t.vars["B"].kind != "elder":
        t.meets()
    t.tell("{A.his} [favourite|dearest] thing was a [|{~small} ]{colour} {thing}.")
    t.maybe(0.5, "{A.he} [took it everywhere|never went anywhere without it|had got it from {B}].")
    t.para()
    t.when()
    t.loses("A", "thing")
    t.tell("{when}, the {thing} was [gone|missing|nowhere to be found]. "
           "{A} {~looked} {s1}[, but it was not there|. Nothing]. {A.he} {~looked} {s2}. [It was not "
           "there either|Nothing|No {thing}].")
    t.feel("A", "sad")
    t.says("B", "[What is the matter|Why do you look so sad|What are you looking for], {A}?", "asked")
    t.says("A", "{~ohno} I have lost my {thing}[|. I have looked everywhere].", "sad")
    ways = t.pick(["remember", "search", "animal"])
    t.para()
    if ways == "remember":
        t.says("B", "[Let us think|Think hard]. When did you last have it?", "kind", "A")
        t.tell("{A} [thought and thought|closed {A.own} eyes and thought]. [Then|Suddenly] {A.he} "
               "remembered: "
               "[yesterday|that morning] {A.he} had [played|been|taken a nap] {s3}!")
        t.tell("{A} {~ran} to look, and there it was[|, safe and sound].")
    elif ways == "search":
        t.says("B", "{~dontworry} [Four eyes see more than two|We will find it together].", "kind", "A")
        t.tell("They {~looked} [high and low|in every corner|everywhere] {~together}. {~atlast}, {B} "
               "looked {s3}.")
        t.says("B", "[Here it is|I see something {colour}|Look what I have found]!", "cried")
    else:
        t.draw(pet=["cat", "magpie", "puppy", "crow", "mouse"] if t.world == "town" else ["magpie", "crow",
                                                                                          "young weasel", "jay"])
        t.tell("{~suddenly}, they heard a [funny|strange|small] noise. They looked around. There, {s3}, "
               "sat a {pet}, and it was "
               "playing with the {thing}!")
        t.maybe(0.6, "[It gave the {thing} back when {B} offered it a bit of [cheese|bread|cake]|It let "
                "go of the {thing} and {~ran} away].")
    t.gets("A", "thing")
    t.says("A", "{~thanks}", "glad")
    t.feel("A", "happy")
    t.tell("[From then on, {A} always put the {thing} [in a safe place|back in its box|where it belonged] "
           "at night|"
           "That night, the {thing} lay safely beside {A.him}|{A} held the {thing} tight all day|"
           "{A} tied the {thing} to a string so that it could not get lost again].")
    t.ends()


@plot
def broken_thing(t):
    t.hero("town")
    t.elder()
    t.draw(thing=things.BREAKABLE)
    t.opens()
    t.para()
    t.when()
    t.tell("{when}, {A} was [playing with a ball|dancing|chasing the cat|running|jumping from chair to "
           "chair] in the [kitchen|living room|hall]. "
           "{E} had [said many times|told {A.him}] not to do that in the house. "
           "[Crash|Bang|Smash]! The {thing} [fell down|tipped over|fell to the floor] and broke[| into "
           "pieces].")
    t.feel("A", "scared" if t.chance(0.4) else "sorry")
    lied = t.chance(0.45)
    t.para()
    if lied:
        t.draw(hide=places.SPOTS["town"][:8])
        t.tell("{A} [hid the pieces|pushed the pieces] {hide}. When {E} asked about the {thing}, {A} "
               "[shook {A.own} head|looked at the floor].")
        t.says("A", "[It was the cat|I did not do it|I do not know|Maybe the wind did it].", "soft")
        t.tell("But all [day|afternoon] {A.he} [could not eat or play|had a bad feeling in {A.own} "
               "stomach|felt worse and worse].")
        t.later("evening")
        t.tell("{then}, {A} [went to|came to|sat down next to] {E}.")
    else:
        t.tell("For a moment, {A} thought of [hiding|running away|hiding the pieces]. But then {A.he} "
               "[took a deep breath and ]went to {E}.")
    t.says("A", "I [broke|am the one who broke] the {thing}. I am [very|so|really] sorry.", "sad")
    t.tell("{E} [was quiet for a moment|looked at the pieces|took {A}'s hand].")
    t.says("E", "[I am sad about the {thing}, but|The {thing} is only a thing, and] I am [glad|proud] "
           "that you told me[ the truth|]. [|It was brave.]", "kind", "A")
    t.para()
    if t.chance(0.6):
        t.tell("[Then they|Together they|That same day, they] " + t.pick([
            "found all the pieces and glued them together", "swept up the pieces together",
            "mended it with glue, and one could hardly see the cracks",
            "went to the shop, and {A} paid for a new one with {A.own} pocket money"]) + ".")
    t.feel("A", "calm" if lied else "happy")
    t.lesson("honest", 0.9)
    t.ends(share=0.35)


@plot
def dark_room(t):
    t.hero()
    t.elder()
    t.draw(sound=["a soft scratching", "a tap at the window", "a long creak", "a low whistle",
                  "a strange rattle", "a slow thump"])
    t.opens()
    t.tell("But {A.he} was afraid of [the dark|the night|dark corners].")
    t.para()
    t.begins("night")
    t.weather = "clear night"
    t.tell("{then}, {A} lay in bed[ and could not sleep|]. [{sound.cap} came from|There was {sound} in] "
           "[the corner|the hall|the next room].")
    t.feel("A", "scared")
    t.says("A", "[{E}! Come quickly! There is [a monster|something] in the dark!|{E}, are you there? I "
           "heard something!]", "cried")
    t.tell("{E} came with a [candle|lamp|lantern|small light][ and opened the door|].")
    cause = t.pick([("a branch that the wind was moving", "The tree is only saying good night."),
                    ("a little moth that wanted to reach the light", "It is more afraid than you are."),
                    ("a mouse with a crumb of bread", "It is only having its dinner."),
                    ("an old coat on a hook", "See, it has no teeth at all."),
                    ("a loose board", "The house is only stretching, like a sleepy cat."),
                    ("the rain dripping into a bucket", "The rain is playing the drum for us.")])
    t.set(cause=cause[0], words=cause[1])
    t.says("E", "[Let us look together|Let us find out what it is|Come, we will see].", "kind", "A")
    t.tell("[Hand in hand|Side by side|On tiptoe], they went to [look|see|find out]. It was only {cause}!")
    t.says("E", "{words}", "glad")
    t.para()
    t.feel("A", "calm")
    t.tell(t.pick(["{E} hung a little [star|lamp|paper moon] above the bed[, and it glowed all night|].",
                   "{A} laughed and told the dark good night.",
                   "After that, {A} made up a friendly story for every sound in the night.",
                   "{E} showed {A.him} the stars, and together they counted [twenty|a hundred|as many as "
                   "they could]."]))
    t.lesson("brave", 0.5)
    t.tell(t.pick(phrases.ENDINGS["night"]))


@plot
def new_food(t):
    t.hero("town")
    t.elder()
    t.draw(food=things.NEW_FOOD, liked=things.CAKES)
    t.opens()
    t.tell("{A.he} [only ever wanted to eat {liked}|did not like to try new food|always said no to new "
           "things on {A.own} plate].")
    t.para()
    t.later("evening")
    t.tell("[One day|Last Monday|One Friday], {E} [cooked|made] {food} for dinner[|. It smelled of butter "
           "and herbs|. Steam rose from the pot].")
    t.says("A", "[Yuck! I do not want it!|I do not like that!|It looks strange. I will not eat it.]",
           "cross")
    t.says("E", "[How do you know? You have never tried it|One bite is enough. If you do not like it, you "
           "may stop|Just taste it, for me].", "kind", "A")
    t.tell("{A} [looked at the plate|poked at it with a fork|pressed {A.own} lips together]. " + t.pick([
        "The food looked back and said nothing.", "It was [green|orange|brown|soft] and {~very} strange.",
        "{A.his} stomach [rumbled|growled] loudly.", "The cat under the table licked its lips."]))
    t.para()
    way = t.pick(["game", "helper", "hungry"])
    if way == "game":
        t.says("E", "Let us pretend that we are [explorers|pirates|giants|dragons]. This is what they eat.",
               "glad")
        t.tell("{A} giggled[ and closed {A.own} eyes|]. {A.he} took one tiny bite.")
    elif way == "helper":
        t.tell("[The next time|A few days later], {A} helped to cook. {A.he} [washed|peeled|cut] and "
               "stirred, and it was fun. Then {A.he} tasted what {A.he} had made.")
    else:
        t.tell("Outside it grew dark, and {A} got hungrier and hungrier. At last {A.he} took [one small "
               "bite|a very small spoonful].")
    if t.chance(0.85):
        t.tell("[{A.his} eyes grew wide|{A} chewed slowly|{A} stopped|{A} blinked]. It was [warm and "
               "sweet|soft and good|delicious|really tasty]!")
        t.says("A", "[May I have some more|Can we have this tomorrow too|Is there any more], {E}?", "asked")
        t.tell("{E} [laughed and filled the plate again|winked|smiled and passed the bowl].")
    else:
        t.tell("It was not {A.own} favourite, but it was not so bad either.")
        t.says("E", "I am proud that you tried.", "kind", "A")
        t.feel("A", "proud")
    t.lesson("try", 0.8)
    t.ends(share=0.4)


@plot
def baking(t):
    t.hero("town", "tale")
    t.elder()
    t.draw(cake=things.CAKES)
    t.opens()
    t.para()
    t.when()
    reason = t.pick(["It was {E}'s birthday, and {A} wanted to bake {cake}.", "{A} wanted to bake {cake} "
                     "for the [village fair|school fair|summer party].",
                     "{A} decided to surprise {E} with {cake}.", "Guests were coming, and {A} offered to "
                     "bake {cake}."])
    t.tell("{when}, there was a lot to do. " + reason)
    t.tell("{A.he} [mixed|stirred] [flour, eggs and butter|milk, eggs and flour|butter, flour and nuts] in "
           "a [big|yellow|wooden|deep] bowl. " +
           t.pick(["Flour flew everywhere, even onto {A.own} nose.", "{A.he} hummed a song while {A.he} "
                   "worked.", "It was hard work to stir it all."]))
    t.para()
    mistake = t.pick(["salt", "burn", "cat", "egg"])
    if mistake == "salt":
        t.tell("{~atlast} it was ready. {A} took a bite and [made a face|coughed|spat it out]. {A.he} had "
               "used salt instead of sugar!")
    elif mistake == "burn":
        t.tell("While it was in the oven, {A} [went out to play|fell asleep on the sofa|read a book] and "
               "forgot the time. Black smoke came out of the oven. Everything was burnt!")
    elif mistake == "cat":
        t.tell("{A} put it on the window sill to cool. When {A.he} came back, [the dog|a goat|a hungry "
               "cat|a flock of birds] had eaten nearly all of it!")
    else:
        t.tell("Then {A.he} tripped over [the cat|a stool|{A.own} own feet], and the bowl fell to the "
               "floor. What a mess!")
    t.feel("A", "sad")
    t.says("E", "[What happened here|Oh, what a smell|What a mess]! {~dontworry} [Every cook makes "
           "mistakes|My first cake was as hard as a stone]. [Shall we try again together?|Let us try again "
           "together.|Come, we will do it together.]", "kind", "A")
    t.tell("They [washed the bowl|cleaned the kitchen|put on their aprons] and [began again|took new eggs "
           "and new flour|made a new start]. {A} [read every step out loud|tasted everything first|watched "
           "the clock], and {E} helped. " +
           t.pick(["Soon the whole house smelled [sweet|wonderful].",
                   "This time it came out golden and soft.", "An hour later, it was perfect."]))
    t.para()
    t.tell("[Everybody had a piece|They each ate two pieces|There was not a crumb left|Everyone asked for "
           "more]. " )
    t.says("E", "[I have never eaten better {cake}|This is even better than mine|I want some more of "
           "that]!", "glad")
    t.feel("A", "proud")
    t.lesson("practice", 0.7)


@plot
def messy_room(t):
    t.hero("town")
    t.elder()
    t.draw(toy=things.TOYS, event=["the school trip", "the big game", "a picnic by the lake",
                                   "the puppet show", "a boat ride", "the fair"])
    t.draw(spot=["under a heap of socks", "beneath three old newspapers", "behind a pile of boxes",
                 "under a blanket full of crumbs"])
    t.set(need=t.pick(["shoes", "ticket", "cap", "swimming things", "rucksack"]))
    they = t.vars["need"] in ("shoes", "swimming things")
    t.set(was="were" if they else "was", they="they" if they else "it", them="them" if they else "it")
    t.opens()
    t.tell("{A} never tidied {A.own} room. [There were toys on the bed, books on the floor and socks on "
           "the lamp|"
           "One could hardly see the floor|Even the cat was afraid to go in|Clothes, toys and paper lay "
           "everywhere].")
    t.says("E", "[Please tidy your room|You should clean up|Put your things away], {A}.", "kind", "A")
    t.says("A", "[Later|Tomorrow|Not now|I will do it next week].", "said")
    t.para()
    t.next_day()
    t.tell("{then}, it was time for {event}. But {A.his} {need} {was} [gone|missing|nowhere]! {A} [threw "
           "things left and right|looked under everything|turned the whole room upside down]. [A {toy} flew "
           "through the air|The mess grew even bigger|The heap on the floor grew higher].")
    if t.chance(0.5):
        t.tell("[The others had to leave without {A.him}|The bus left without {A.him}|When {A.he} was "
               "ready, it was too late].")
        t.feel("A", "sad")
        t.tell("So {A} rolled up {A.own} sleeves and cleaned the [whole|entire] room. {spot.cap}, {A.he} "
               "found the {need}, and also [a lost {toy}|two coins and a {toy}|the {toy} {A.he} had missed "
               "for a year].")
        t.says("E", "[What a change|How nice it looks|I can see the floor again]! [Next time you will be "
               "ready|We will go again next week].", "glad")
    else:
        t.says("E", "We will look together, but then you must help to clean.", "kind", "A")
        t.tell("They [put the books on the shelf and the toys into the box|picked up every sock, every "
               "book and every toy|filled two boxes and a basket]. {spot.cap} {was} the {need}! They {~ran} "
               "out of the door and came just in time.")
    t.para()
    t.tell("[Since then|From that day on|After that], {A} tidied {A.own} room every "
           "[evening|Saturday|Sunday]. [It took only ten minutes|It was almost a game|There was even space "
           "to dance].")
    t.lesson("work", 0.4)
    t.ends(share=0.3)


@plot
def surprise_party(t):
    t.hero()
    t.friend()
    t.friend("C")
    t.draw(gift=things.GIFTS, cake=things.CAKES)
    t.opens()
    t.tell("{A.his} best friends were {B.intro} and {C.intro}.")
    t.para()
    t.tell("It was {A}'s birthday. {A.he} jumped out of bed. But [at breakfast, nobody said a word about "
           "it|nobody came to the door|nobody seemed to remember].")
    t.tell("{A} went to see {B}.")
    t.says("A", "[Do you know what day it is|Isn't today a special day]?", "asked")
    t.says("B", "[It is Tuesday, I think|Hm, a sunny day|I am sorry, I am very busy|No idea. I must go "
           "now].", "said")
    t.tell("{B.he} {~ran} away. {C} [had no time either|only shook {C.own} head|closed the window when "
           "{A} came by].")
    t.feel("A", "lonely" if t.chance(0.5) else "sad")
    t.tell("{A} [walked alone|sat alone|wandered about alone] until [the sun was low|the shadows were "
           "long].")
    t.para()
    t.later("evening")
    t.tell("{then}, {A} came home[ with slow steps|]. [Everything was dark and [quiet|still]|There was no "
           "light in the window]. {A.he} [opened the door|pushed the door open|reached for the door].")
    t.says("B", "Surprise! Happy birthday!", "cried")
    t.tell("[Lights went on everywhere|Twenty candles were lit|Somebody began to sing|People jumped out "
           "from behind every chair]. There were [balloons|paper flowers|coloured flags] and a "
           "[big|round|tall] plate of {cake}, and all {A.own} friends were there. "
           "{C} [gave {A}|handed {A}] {gift}.")
    t.says("C", "[We only pretended to forget|It was so hard to keep the secret|Did you really think that "
           "we forgot]!", "glad")
    t.feel("A", "happy")
    t.tell("They [sang and danced|ate and laughed|played games] [until late|until the moon was high|all "
           "evening].")
    t.lesson("friends", 0.4)


@plot
def lost_tooth(t):
    t.hero("town")
    t.elder()
    t.draw(food=things.FOOD, gift=["a shiny coin", "a silver star", "a tiny letter", "a new toothbrush",
                                   "a little bell", "a small round stone"])
    t.opens()
    t.para()
    t.when()
    t.tell("{when}, {A.his} front tooth began to wobble. {A.he} [pushed it with {A.own} tongue|wiggled it "
           "all day|showed it to everybody]. It [moved|moved a little more each time|went this way and "
           "that], but it did not [fall out|want to come out].")
    t.maybe(0.7, "{A} tried [to bite an apple|to pull it with a string|to chew a hard crust]. [It did not "
            "help|Nothing happened|The tooth stayed where it was].")
    t.says("A", "[Will it hurt|Will it ever come out|What if it never comes out]?", "asked")
    t.says("E", "[A tooth falls when it is ready|Wait and see|Be patient. It knows its own time].", "kind",
           "A")
    t.para()
    t.later("evening")
    t.tell("{then}, {A} was eating {food} when {A.he} [felt something hard|heard a tiny click|stopped "
           "chewing]. The tooth had come out!")
    if t.chance(0.4):
        t.tell("But it [slipped from {A.own} fingers|bounced off the table|rolled across the floor] and "
               "[disappeared|was gone]. {A} and {E} crawled about on the floor until they found it [under "
               "the stove|beside the cat|in a shoe].")
    t.says("A", "[Look at my smile|There is a window in my mouth|Now I can whistle]!", "glad")
    t.tell("At night, {A} put the tooth under the pillow. In the morning, it was gone, and {gift} lay in "
           "its place.")
    t.feel("A", "happy" if t.chance(0.6) else "proud")
    t.tell("[Soon a new tooth began to grow|{A} smiled so that everybody could see the gap|{A} could "
           "hardly wait for the next one|{A} told the whole class about it].")
    t.lesson("patience", 0.3)


@plot
def new_baby(t):
    t.hero("town")
    t.elder()
    t.set(baby=t.pick(["sister", "brother"]))
    t.set(b_his="her" if t.vars["baby"] == "sister" else "his", b_he="she" if t.vars["baby"] == "sister" else
          "he",
          b_him="her" if t.vars["baby"] == "sister" else "him")
    t.draw(song=["a funny song", "a song about a frog", "a soft song", "a song without words"], toy=things.TOYS)
    t.opens()
    t.para()
    t.tell("[One day|In spring|On a Sunday|One evening], a baby {baby} [came home|was born]. Everybody "
           "[wanted to see|talked about|smiled at] the baby. Nobody had time for {A} any more.")
    t.says("A", "[Will you play with me|Can you see what I have built|Can you read me a story], {E}?",
           "asked")
    t.says("E", "[Not now, dear. The baby is hungry|Later, my dear. The baby must sleep|Hush, you will "
           "wake the baby].", "soft")
    t.feel("A", "lonely" if t.chance(0.5) else "angry")
    t.maybe(0.6, "{A} [went to {A.own} room and shut the door|took {A.own} {toy} and sat in the "
            "corner|wished that things were as before].")
    t.para()
    t.later("evening")
    t.tell("{then}, the baby cried and cried. {E} [rocked {b_him}|walked up and down|tried everything], "
           "but nothing helped. {A} came in [on tiptoe|quietly|with the {toy}]. " + t.pick([
               "{A.he} sang {song}.", "{A.he} made a silly face.", "{A.he} put one finger into the tiny hand.",
               "{A.he} shook the {toy} very gently."]))
    t.tell("[The baby stopped crying|The crying stopped|All at once, the baby was quiet]. [{b_he.cap} "
           "looked at {A} with big eyes|Then {b_he} smiled {b_his} very first smile]" + (".", "!")[t.chance(
               0.3)])
    t.says("E", "[Only you can do that, {A}!|{b_he.cap} likes you best, {A}.|What would we do without "
           "you, {A}?]", "glad")
    t.feel("A", "proud")
    t.tell("[From then on, {A} was the one who sang the baby to sleep|Later, {E} and {A} read a story "
           "together, just the two of them|"
           "It was not so bad after all to be the big one|{A} showed the baby every toy in the house].")
    t.lesson("kind", 0.3)


@plot
def rainy_day(t):
    t.hero("town")
    t.friend()
    t.weather = "rainy"
    t.opens()
    t.meets()
    t.para()
    t.when()
    t.draw(plan=["go to the beach", "have a picnic", "fly their kites", "play football",
                 "ride their bicycles", "build a sand castle"])
    t.tell("{when}, {A} and {B} wanted to {plan}. But it [rained and rained|poured|was raining hard].")
    t.scene(0.7)
    t.says("B", "[Now our day is spoiled.|What shall we do now?|There is nothing to do inside.]", "sad")
    t.tell("They [sat|lay] [by the window|on the stairs|on the floor|on the sofa] and [watched the "
           "drops|did nothing|listened to the rain|looked out]. " + t.pick([
               "One drop raced another down the glass.", "The street looked like a river.",
               "A wet pigeon sat on the roof."]))
    t.says("A", "{~idea}", "cried")
    t.para()
    game = t.pick(["ship", "tent", "theatre", "puddles", "zoo"])
    if game == "ship":
        t.tell("They turned the [sofa|table|big box] into a ship. A [broom|long stick] was the mast, and "
               "a [sheet|blanket] was the sail. They sailed [to an island of cushions|across a stormy "
               "sea|all around the world] and found a treasure of [biscuits|raisins|buttons].")
    elif game == "tent":
        t.tell("They hung blankets over the chairs and made a [tent|cave|secret house]. Inside, they lit "
               "a lamp, ate [biscuits|apples|bread and cheese] and told [ghost stories|jokes|stories about "
               "bears].")
    elif game == "theatre":
        t.tell("They made puppets from old socks. One was a [king|dragon|wolf], and one was a "
               "[clown|princess|sheep]. They put on a show, and the whole family [clapped|came to "
               "watch|laughed until they cried].")
    elif game == "puddles":
        t.tell("They put on [rubber boots and raincoats|boots and big hats] and went outside. They jumped "
               "into every puddle. Splash! They [made rivers in the mud|sailed paper boats down the "
               "street|sang in the rain].")
    else:
        t.tell("They took all their toy animals and built a zoo. There was a [lion in a shoe box|bear "
               "under the chair|giraffe on the shelf]. {B} sold tickets, and {A} [fed the animals|was the "
               "keeper].")
    t.feel("A", "happy")
    t.para()
    t.later("afternoon" if t.time == "morning" else "evening")
    t.tell("{then}, the rain stopped and a [bright|big|wide] rainbow [stood over the town|appeared]. " )
    t.says("B", "[I did not even notice|Must we stop|I hope that it rains again tomorrow]!" if t.chance(0.5) else
           "[This was the best rainy day ever|I hope that it rains again tomorrow]!", "glad")
    t.ends("B", 0.4)


@plot
def errand(t):
    t.hero("town", "tale")
    t.elder()
    t.helper()
    t.set(items=t.pick(["bread, milk and eggs", "apples, cheese and honey", "salt, flour and butter",
                        "candles, soap and thread",
                        "onions, carrots and beans", "a fish, a lemon and some rice",
                        "tea, sugar and plums"]))
    t.opens()
    t.para()
    t.when()
    t.tell("{when}, {E} gave {A.him} some [coins|money] and a basket.")
    t.says("E", "Please [go to the market|run to the shop] and buy {items}. [Do not forget anything|Can "
           "you remember that]?" if t.chance(0.5) else "Please buy {items}. You are big enough to go alone "
           "now.", "said", "A")
    t.feel("A", "proud")
    t.tell("On the way, {A} " + t.pick(["stopped to watch a man with a monkey.", "followed a butterfly.",
                                        "listened to a street musician.", "met a friend and talked for a while.",
                                        "looked at the boats.", "petted a big friendly dog."]) +
           " [When {A.he} reached the shop|At the shop|But when {A.he} opened "
           "{A.own} mouth at the shop], [everything|the list] was gone from "
           "{A.own} head!")
    t.para()
    way = t.pick(["rhyme", "think", "wrong"])
    if way == "wrong":
        t.tell("{A} did not want to ask. So {A.he} just bought [three brooms|a bag of buttons|two hats "
               "and a spoon]. At home, {E} opened the basket and stared.")
        t.says("A", "I forgot, and I was afraid to say so.", "sad")
        t.says("E", "[It is not bad to forget|Next time, just come back and ask|Anybody can forget].",
               "kind", "A")
        t.tell("They both laughed and went back to the shop {~together}. This time, {A} sang all the "
               "things like a song, all the way: {items}.")
    elif way == "rhyme":
        t.says("H", "[You look lost|What is the trouble|Can I help you]?", "asked")
        t.says("A", "I do not remember what to buy.", "soft")
        t.says("H", "Close your eyes and think of your kitchen. What is missing on the table?", "kind", "A")
        t.tell("{A} closed {A.own} eyes. {~then} {A.he} saw it all: {items}!")
    else:
        t.tell("{A} sat down [on a step|on a bench] and thought about what {E} wanted to cook. Slowly it "
               "came back: {items}. {A.he} counted the things on {A.own} fingers so as not to forget them "
               "again.")
    t.para()
    t.tell("{A} [came home with a full basket|carried the heavy basket home with both hands]. [Nothing "
           "was missing|Everything was there|Not one thing had been forgotten].")
    t.says("E", "[Well done|What a great help you are|I knew that you could do it]!", "glad")
    t.feel("A", "happy")
    t.ends(share=0.4)


@plot
def bad_dream_toy(t):
    t.hero("town")
    t.draw(toy=["teddy bear", "rag doll", "toy rabbit", "little robot", "wooden horse", "tin soldier",
                "toy elephant", "puppet"],
           toy2=["music box", "spinning top", "toy train", "paper crown", "toy boat"])
    t.set(name=t.pick(["Bobo", "Mister Blue", "Captain", "Tilly", "Sir Fluff", "Nana", "Bim", "Cookie"]))
    t.opens()
    t.tell("{A} had an old {toy} called {name}. {name} had [only one eye|a patch on one leg|lost an arm|a "
           "scratch on its nose], but {A} loved it.")
    t.para()
    t.begins("night")
    t.weather = "clear night"
    t.tell("{then}, when {A} was asleep, [the clock struck twelve|the moon shone on the shelf|a soft wind "
           "came in]. The {toy} opened its eyes and [stretched|yawned|sat up].")
    t.tell(t.pick(["\"Wake up, friends!\" it said. \"It is time to play!\"",
                   "\"Is everybody awake?\" it whispered.", "\"The night is ours!\" it called."]))
    t.tell("The {toy2} [began to move|woke up, too|laughed]. [All the toys|The dolls and the bears|Big "
           "toys and little toys] [danced|marched|played tag|ran races] [on the carpet|around the bed|from "
           "wall to wall].")
    trouble = t.pick(["fall", "cat", "spider"])
    if trouble == "fall":
        t.tell("But {name} climbed too high and fell [behind the cupboard|into a deep basket|out of the "
               "window into the garden]. The toys made a long chain [of ribbons|of scarves] and pulled and "
               "pulled. {~atlast}, {name} was back.")
    elif trouble == "cat":
        t.tell("{~suddenly}, the cat came in. The toys froze. {name} pushed a [ball|marble] across the "
               "floor, and the cat ran after it[ and out of the door|].")
    else:
        t.tell("They heard somebody cry. It was a small spider that had lost its way. {name} carried it "
               "to the window and showed it the garden.")
    t.para()
    t.time = "morning"
    t.tell("[When the sun came up|In the morning|As the first light came in], every toy was [back in its "
           "place|on its shelf again|where it belonged]. {A} [woke up|opened {A.own} eyes|sat up] and looked "
           "at {name}.")
    t.says("A", "[Why is there dust on your nose|How did you get to this side of the bed|Did you sleep "
           "well]?", "asked")
    t.tell("The {toy} said nothing. But {A} [thought|could have sworn] that [it winked|it smiled|its eye "
           "was shining].")
    t.feel("A", "happy")
