"""Plots about friends and neighbours: sharing, quarrels, kindness, honesty."""
from . import places, things
from .tale import plot


@plot
def share_food(t):
    t.hero()
    t.friend()
    t.draw(food=things.FOOD, other=things.FOOD)
    t.opens()
    t.place(where=["park", "garden", "river", "orchard", "hill", "pond", "forest", "stream", "meadow",
                   "lake", "valley", "oak", "waterfall", "wall"])
    t.para()
    t.when()
    t.gets("A", "food")
    t.tell("{when}, {A} {~walked} to {place}. {A.he} had {food} [with {A.him}|in a small bag|in a basket] "
           "and [could hardly wait to eat {food.it}|was looking forward to lunch].")
    t.scene(0.7)
    t.tell("{A} [sat down|found a good place to sit]. [Nearby|Not far away|On a stone] sat {B.intro}, who "
           "looked at {food.the} [with big eyes|and swallowed|but said nothing].")
    t.says("A", "[Are you hungry|Have you had no lunch]?", "asked")
    t.says("B", t.pick(["[Yes, very|A little]. [I forgot my lunch at home|A gull stole my lunch|I lost my "
                        "bag on the way].",
                        "I have not eaten since morning. [My bag fell into the water|There was nothing "
                        "left at home]."]), "soft")
    t.para()
    if t.chance(0.4):
        t.tell("{A} looked at {food.the}. There was not very much of {food.it}, and {A.he} was hungry, "
               "too.")
        t.tell("But then {A.he} [thought of how it feels to be hungry|saw the sad face of {B}].")
    t.says("A", "[Here, take half|Come and sit with me. There is enough for two|Let us share].", "kind",
           "B")
    t.gives("A", "B", "food")
    t.tell("They ate {~together}, and {food.the} {food.was} [better than ever|twice as good|gone in a "
           "minute].")
    t.says("B", "{~thanks}", "glad")
    t.para()
    if t.chance(0.7):
        t.next_day()
        t.tell("{then}, {A} [was there again|came back to the same place] and [opened {A.own} bag|looked "
               "for something to eat]. It was empty! {~suddenly}, {B} came [running|up the path] with "
               "{other}.")
        t.says("B", "[Now it is my turn|Today you are my guest|This is for you and me]!", "glad")
    else:
        t.tell("Then {B} showed {A} [a secret place full of flowers|how to whistle on a blade of "
               "grass|where the kingfisher lived|the best place to look for round stones].")
    t.feel("A", "happy")
    t.lesson("share")
    t.ends("B", 0.4)


@plot
def found_owner(t):
    t.hero("town", "tale")
    t.neighbour()
    t.draw(thing=things.PRECIOUS, food=things.FOOD)
    t.opens()
    t.place(where=["park", "market", "river", "station", "square", "harbour", "village", "inn", "mill",
                   "sea", "beach", "library"])
    t.para()
    t.when()
    t.tell("{when}, {A} was {place.at} and saw something [under a bench|on the ground|between two "
           "stones|beside the path]. It was {thing.a}!")
    t.gets("A", "thing")
    t.feel("A", "curious")
    if t.chance(0.6):
        t.tell("[{A} wanted to keep it|It would be nice to keep it, thought {A}|Nobody was looking]. " + t.pick(
            [
                "But somebody must be very sad now, and {A.he} knew it.", "But it did not belong to {A.him}.",
                "But what if it had been {A.own} own?"]))
    t.para()
    t.tell("{A} asked [everyone|all the people] {place.at}. " + t.pick([
        "The first one shook her head, and the second one laughed.", "\"It is not mine,\" said one after "
        "the other.", "Nobody knew anything about it."]))
    t.tell("{~atlast}, {A.he} saw {N}, who was [looking under every bush|walking up and down|almost "
           "crying|searching in every pocket].")
    t.says("A", "[Have you lost something|Are you looking for this|Is this yours]?", "asked")
    t.gives("A", "N", "thing")
    t.says("N", "[My {thing}! My grandmother gave it to me|My {thing}! I thought that it was gone for "
           "ever|You have found my {thing}]! {~thanks}", "cried")
    t.para()
    end = t.pick(["food", "story", "nothing", "friend"])
    t.tell({"food": "{N} invited {A.him} home and gave {A.him} {food}.",
            "story": "{N} [took {A.him} along and ]told {A.him} the long story of the {thing}[, and {A} "
            "listened until the evening bell rang|].",
            "nothing": "{N} wanted to give {A} a coin, but {A} only wanted [to hear that all was well|a "
            "smile].",
            "friend": "After that, {N} waved at {A} every day and always had [a kind word|a joke|a sweet] "
            "for {A.him}."}[end])
    t.feel("A", "proud" if t.chance(0.5) else "happy")
    t.lesson("found", 0.6)
    t.ends(share=0.3)


@plot
def quarrel(t):
    t.hero()
    t.friend()
    t.draw(toy=things.TOYS, colour=things.COLOURS)
    t.opens()
    t.meets()
    t.place()
    t.para()
    t.when()
    t.tell("{when}, they found a {colour} {toy} {place.at}. [Both of them|Each of them] wanted [to have "
           "it|to keep it|it].")
    t.says("A", "[I saw it first|It is mine! I saw it first|Let go! It is mine]!", "cross")
    t.says("B", "[No, it is mine|But I picked it up|You always get everything]!", "cross")
    if t.chance(0.6):
        t.tell("{A} pulled on one side, and {B} pulled on the other. Crack! The {toy} broke[ in two|].")
        t.tell("Now nobody had a {toy}. They [stared at the pieces|looked at each other|did not say a "
               "word].")
        broken = True
    else:
        t.tell("They [shouted|argued] until [their throats hurt|the birds flew away]. Then [they went "
               "home, one to the left and one to the right|each of them went home alone|they walked away "
               "without a word].")
        broken = False
    t.feel("A", "sorry" if t.chance(0.6) else "sad")
    t.para()
    if broken:
        t.says("A", "I am sorry. [I should not have pulled|I was so greedy].", "sad")
        t.says("B", "[I am sorry, too|It was my fault as much as yours]. [Maybe we can mend it|Let us fix "
               "it together].", "soft")
        t.tell("They [fetched some glue and a bit of string|tied the pieces with grass and string]. It "
               "took a long time. " +
               t.pick(["The {toy} looked a bit funny now, but it worked.", "In the end, the {toy} had a "
                       "long scar, and they liked it even more."]))
    else:
        t.next_day()
        t.tell("{then}, {A} [could not eat a thing|looked out and saw nobody to play with]. Playing was "
               "no fun alone.")
        t.tell("{A.he} {~ran} to {B}, and [halfway there they met|{B} was already on the way].")
        t.says("A", "[We can take turns. You may have it first|Let us share it. One day you, one day me].",
               "said")
        t.says("B", "[That is a good idea|I was going to say the same thing]!", "glad")
    t.tell("[From then on, they took turns|After that, they always played with it {~together}|They played "
           "until it was dark].")
    t.lesson("peace" if t.chance(0.7) else "share")
    t.ends("B", 0.45)


@plot
def newcomer(t):
    t.hero(trait=t.pick(["shy", "quiet"]))
    t.friend()
    t.opens("{A.intro} had just moved to {home}." if t.world == "town" else
            "{A.intro} had come from far away and lived in a {A.home}.")
    t.vars["A"].met = True
    t.tell("{A.he} [did not know anybody|knew nobody there|had left all {A.own} friends behind].")
    t.feel("A", "lonely")
    t.place(where=["park", "playground", "beach", "library", "pond", "garden", "forest", "meadow", "hill",
                   "stream", "lake", "oak"])
    t.para()
    t.when()
    t.tell("{when}, {A} [sat|stood] alone {place.at} and watched the others. They [were laughing|were "
           "running about|played a game], but {A.he} was too shy to [ask|say hello].")
    t.scene(0.4)
    t.draw(game=["draw in the sand with a stick", "hum a tune", "build a little house of stones",
                 "fold a bird out of a leaf",
                 "make a crown of flowers", "whistle like a bird", "juggle with pebbles",
                 "balance on one leg"])
    t.tell("[To feel better|To pass the time|So as not to think about it], {A} began to {game}.")
    t.tell("{~later}, a shadow fell on {A.him}. It was {B.intro}.")
    t.says("B", "[How do you do that|That looks fun. Can you show me|What are you doing]?", "asked")
    t.says("A", "[I can show you, if you like.|It is easy. Sit down.|Do you really want to know?]", "soft")
    t.para()
    t.tell("{B} [sat down beside {A}|tried it, too]. {B.he} was not very good at it, and they both "
           "[laughed|giggled]. Soon [the others came to see|two other children came and watched|everybody "
           "wanted to try it].")
    t.says("B", "[Come and play with us|You can be on my team|Come, we need one more]!" if t.chance(0.6) else
           "[Will you come back tomorrow|Do you want to play with us]?", "glad")
    t.tell("[Now {A} was not alone any more|{A} nodded, and all at once {A.he} was not shy at all|{A} ran "
           "with them until the sun went down].")
    t.feel("A", "happy")
    t.lesson("newfriends")
    t.ends("B", 0.5)


@plot
def sick_friend(t):
    t.hero()
    t.friend()
    t.draw(food=["a pot of soup", "a jar of honey", "some warm milk", "a sweet orange", "some fresh bread",
                 "a bowl of berries", "a cup of hot tea"],
           gift=things.GIFTS)
    t.opens()
    t.meets()
    t.para()
    t.when()
    t.tell("{when}, {A} [waited for|went to meet] {B}, but {B} [did not come|was not there]. {B} was ill "
           "and had to stay in bed.")
    t.says("A", "[Poor {B}! I must cheer up my friend|Poor {B}! What a pity|I must do something for {B}]!",
           "sad")
    t.tell("{A} took {food} and {gift} and {~ran} to {B}'s home.")
    t.tell("{B} [lay under three blankets|looked pale and tired|had a red nose and a sore throat].")
    t.says("B", "[I am so bored|My head hurts|Everything hurts, even my ears]. [I wish I could go "
           "outside|All day I look at the wall].", "sad")
    t.para()
    t.says("A", "[Then the outside must come to you|I will keep you company|Look what I have brought].",
           "kind", "B")
    t.tell(t.pick(["{A} told {B} about everything that had happened that day.", "{A} drew the sun, the "
                   "trees and the birds and hung the picture over the bed.",
                   "{A} read a funny story and did all the voices.", "{A} made shadow animals on the "
                   "wall: a dog, a bird and a dragon.",
                   "{A} sat down and sang all the songs {A.he} knew.", "{A} opened the window and told "
                   "{B} what the clouds looked like."]))
    t.tell("{B} [ate a little|drank a little|smiled a little] and soon [fell asleep|felt much "
           "better|began to laugh].")
    t.tell("{A} came back [every day|each morning] until {B} was well again.")
    t.says("B", "[You were the best medicine|When you are ill, I will come to you|Your visits made me "
           "well]!", "glad")
    t.lesson("kind", 0.6)
    t.ends("B", 0.6)


@plot
def neighbour_help(t):
    t.hero("town")
    t.neighbour()
    t.draw(food=things.FOOD)
    t.opens()
    t.tell("Across the street lived {N}, who was [old|very old] and walked with a stick.")
    t.para()
    t.when()
    job = t.pick(["carry", "garden", "snow", "cat", "letter"])
    if job == "snow":
        t.weather = "snowy"
        t.when()
    t.set(task={"carry": "carry two heavy bags up the hill", "garden": "water the thirsty flowers", "snow": "clear the snow from the steps",
                "cat": "get an old cat down from the roof", "letter": "read a letter in very small writing"}[
                    job])
    t.tell("{when}, {A} saw that {N} was trying to {task}. It was [hard|too hard|slow and hard]. [{N} had "
           "to stop and rest|{N} sighed and wiped {N.own} face].")
    if t.chance(0.5):
        t.tell("{A} was on {A.own} way to [play|the playground|a friend]. But {A.he} stopped.")
    t.says("A", "[May I help you|Can I do that for you|Shall I help you], {N}?", "asked")
    t.says("N", "[That would be very kind|You have come at the right time|Oh, my back will be thankful].",
           "glad")
    t.para()
    t.tell("{A} " + {"carry": "took one bag in each hand and carried them all the way to the door.",
                     "garden": "filled the can again and again until every flower had enough to drink.",
                     "snow": "took the shovel and worked until the steps were clean and {A.own} cheeks "
                     "were red.",
                     "cat": "climbed up the ladder and talked softly until the cat came into {A.own} arms.",
                     "letter": "sat down and read every word out loud. It was from {N}'s sister, who "
                     "lived across the sea."}[job])
    t.says("N", "{~thanks} [Come in for a moment|Wait, I have something for you|Sit down with me].", "kind",
           "A")
    t.para()
    t.tell("They [sat in the kitchen and ate|shared] {food}, and {N} " + t.pick([
        "told {A} how the town had looked long ago.", "showed {A} a box of old photos.",
        "taught {A} a card game.", "played a tune on an old violin.",
        "told {A} about a journey on a great ship.", "let {A} wind up a clock with a wooden bird."]))
    t.feel("A", "happy")
    t.tell("After that, {A} visited {N} every [Friday|week|Sunday|Wednesday].")
    t.lesson("kind" if t.chance(0.6) else "friends", 0.7)


@plot
def saving_money(t):
    t.hero("town")
    t.friend(trait="poor")
    t.draw(toy=things.TOYS, colour=things.COLOURS)
    t.opens()
    t.tell("In the window of a shop, {A} had seen a {colour} {toy}. {A.he} [wanted it more than "
           "anything|dreamed of it every night|stopped to look at it every day].")
    t.para()
    t.tell("So {A} saved every coin. {A.he} [washed cars|helped in the garden|carried bags for the "
           "neighbours|swept the yard|sold lemonade] and put the money into a [jar|tin|clay pig]. [Week "
           "after week|Little by little|Slowly], it grew heavy.")
    t.next_day()
    t.tell("[One day, there was enough|At last, there was enough|Then, one morning, there was enough]. "
           "{A} {~ran} to the shop. But on the way {A.he} met {B}, who was [crying|sitting on the kerb and "
           "crying].")
    t.says("A", "[What has happened|Why are you crying]?", "asked")
    why = t.pick([("My bicycle is broken, and I need it to bring the newspapers.",
                   "a new wheel for the bicycle"), ("My dog is ill, and the medicine costs so much.",
                                                    "the medicine for the dog"),
                  ("I have lost the money for my grandmother's birthday present.",
                   "a present for the grandmother"), ("My shoes have holes, and the school trip is "
                                                      "tomorrow.", "a pair of shoes"),
                  ("I have broken a window with my ball, and I must pay for it.", "the new window")])
    t.set(why=why[0], need=why[1])
    t.says("B", "{why}", "sad")
    t.para()
    t.tell("{A} [held the money tight|felt the coins in {A.own} pocket|thought of the {toy}]. It was hard. "
           "Then {A.he} [smiled|took a deep breath|made up {A.own} mind].")
    t.says("A", "[Come. We will go together|Take this. You need it more than I do].", "kind", "B")
    t.tell("The money was just enough for {need}.")
    t.says("B", "{~thanks}", "glad")
    t.para()
    end = t.pick(["gift", "work", "play"])
    if end == "gift":
        t.tell("[Some weeks later|On {A.own} next birthday], there was a box at {A}'s door. In it was the "
               "{colour} {toy}, and a card from {B} and all the neighbours.")
    elif end == "work":
        t.tell("The next week, {B} came to {A} with a broom. \"Let us earn it together,\" {B} said. With "
               "two, the jar was full in half the time.")
    else:
        t.tell("{A} still had no {toy}. But {A.he} had a new friend, and they [made toys out of wood and "
               "paper|played every day|told each other everything].")
    t.lesson("kind" if t.chance(0.5) else "friends", 0.7)


@plot
def trade_chain(t):
    t.hero("town", "wood", "tale")
    t.draw(start=things.SMALL_THINGS)
    pairs = {
        "wood": ["a magpie who had always wanted a {x}", "a mole who had lost its {x}",
                 "a hare who needed a {x}",
                 "an old toad who was looking for a {x}", "a goose who loved every {x} in the world"],
    }.get(t.world, ["a girl who needed a {x} for a game", "a boy who was looking for a {x}",
                    "an old man who had lost his {x}", "a lady who loved every {x} in the world",
                    "a sailor who had always wanted a {x}"])
    one, two, three = t.rng.sample(pairs, 3)  # who wants what A has at the time, {x}
    goods = t.rng.sample(["basket", "lantern", "blanket", "rope", "pot of honey", "bag of seeds",
                          "wooden spoon", "bottle of milk", "warm hat", "bunch of carrots", "little bell", "jar of jam",
                          "ball of wool", "pair of boots"], 3)
    t.set(one=goods[0], two=goods[1], three=goods[2])
    t.opens()
    t.para()
    t.when()
    t.draw(wish=["a birthday present for Grandma", "a present for a good friend",
                 "something nice for a sick friend", "a gift for a neighbour"])
    t.tell("{A} [needed|wanted to find] {wish}, but {A.he} had nothing but a {start}.")
    t.gets("A", "start")
    t.tell("{when}, {A.he} set out and met " + one.replace("{x}", "{start}") + ".")
    t.says("A", "[You may have mine|Take mine|Here, I have one].", "kind")
    t.tell("{A} was given a {one} [for it|in return|as a thank-you].")
    t.tell("{~later}, {A} met " + two.replace("{x}", "{one}") + ". [So they traded|They made a trade], "
           "and {A} walked on with a {two}.")
    t.para()
    t.tell("At the end of the road, {A} met " + three.replace("{x}", "{two}") +
           ". The two [shook hands|traded with a smile], and now {A} had a {three}.")
    t.says("A", "[This is just right|This is even better than I hoped|Who would have thought it]!", "glad")
    t.tell("{A} {~ran} home and [tied a ribbon around it|wrapped it in a big leaf|hid it until the "
           "evening]. Now {A.he} had {wish}.")
    t.feel("A", "happy")
    t.tell("[All that from a single {start}|And everyone on the road was {~glad}, too|And it had all "
           "begun with a {start}]!")
    t.lesson("share", 0.4)


@plot
def boaster(t):
    t.hero()
    fast = t.world == "wood"
    if fast:
        t.cast.clear()
        t.join("A", t.somebody(trait="proud", kinds=["rabbit", "deer", "fox", "squirrel", "pony", "otter"]))
        t.friend(kinds=["turtle", "snail", "mole", "hedgehog", "duck", "badger", "crab"])
    else:
        t.vars["A"].trait = "proud"
        t.friend()
    t.opens("{A.intro} [always won every race|had never lost a race|was the fastest animal in the woods]." if
            fast else "{A.intro} was the fastest runner in [town|the whole school|the street].")
    t.vars["A"].met = True
    t.says("A", "[Nobody is as fast as I am|I am the fastest of all|You are all as slow as snails]!",
           "proud")
    t.tell("{B.intro} [had heard enough|was tired of this|only smiled].")
    t.says("B", "[Let us race|I will race you] to the [old bridge|tall tree|big rock|river|windmill].",
           "said")
    t.tell("{A} laughed until {A.own} belly hurt.")
    t.para()
    t.next_day()
    t.tell("{then}, everybody came to watch. [One, two, three, go|Ready, steady, go]! {A} [shot away like "
           "an arrow|was off like the wind|was soon out of sight]. {B} [went on step by step|did not hurry "
           "but did not stop].")
    why = t.pick(["nap", "show", "shortcut", "help"])
    if why == "nap":
        t.tell("Halfway, {A} looked back and saw nobody. {A.he} lay down [in the shade|under a bush] and "
               "fell asleep. {B} [passed by on quiet feet|walked past and did not wake {A}].")
    elif why == "show":
        t.tell("{A} stopped to [wave at the crowd|show some tricks|eat berries|comb {A.own} hair]. {A.he} "
               "talked and talked. When {A.he} looked up, {B} was far ahead.")
    elif why == "shortcut":
        t.tell("{A} took a short cut and [got stuck in the mud|lost the way in the tall corn|fell into a "
               "ditch]. {B} stayed on the path.")
    else:
        t.tell("On the way, {A} slipped and hurt {A.own} foot. {B} could have run past. But {B} stopped.")
        t.says("B", "Lean on me. [We will finish together|A race is not so important].", "kind", "A")
        t.tell("They reached the end side by side, and everybody [cheered|clapped].")
        t.para()
        t.says("A", "[You are the real winner|I will never boast again]. {~thanks}", "soft")
        t.lesson("race", 0.9)
        t.ends("B", 0.5)
        return
    t.tell("{A} ran [as fast as {A.he} could|faster than ever], but it was too late. {B} had won!")
    t.para()
    t.tell("[Everybody cheered|The crowd shouted for joy]. {A} [went red|looked at the ground|did not "
           "know what to say].")
    t.says("A", "[Well done|You have won, and I was silly]. I will not boast any more.", "soft")
    t.says("B", "[Come and have some cake with us|You are still very fast|Come, let us run together, just "
           "for fun]!", "kind", "A")
    t.lesson("careful" if t.chance(0.3) else "self", 0.5)
    t.ends("B", 0.4)


@plot
def chores_lie(t):
    t.hero("town", "tale")
    t.elder()
    animal = t.pick(["hens", "goats", "rabbits", "geese", "sheep", "ducks"])
    t.set(animals=animal)
    t.opens()
    t.tell("It was {A.his} job to [feed|look after] the {animals}.")
    t.para()
    t.begins("evening")
    t.tell("{then}, {A} was [busy with a game|too lazy to go out|reading a book]. {E} came in.")
    t.says("E", "Have you [fed the {animals}|given the {animals} their food and closed the gate]?", "asked")
    t.says("A", "[Yes, of course|Yes, long ago|Yes, all of it is done].", "said")
    t.tell("[It was not true|That was a lie|Not a word of it was true]. {A} [told {A.self} that|thought "
           "that] {A.he} would do it later. But [soon {A.he} fell asleep|then {A.he} forgot].")
    t.para()
    t.next_day()
    t.tell("{then}, there was a [great|terrible] noise [in the yard|outside]. The gate was open, and the "
           "{animals} were [in the vegetable garden|all over the road|in the neighbour's field]! They had "
           "been hungry[ and had gone to look for food| all night, and now they were looking for food|, so "
           "they had gone out by themselves].")
    t.feel("A", "sorry")
    t.tell("It took [hours|all morning|half the day] to [catch them|bring them back]. {A} [fell into the "
           "mud twice|lost a shoe|was wet and dirty from head to toe].")
    t.says("A", "I did not tell the truth, {E}. [I did not feed them|I never went out]. I am sorry.", "sad")
    t.says("E", "[Thank you for telling me now|I had guessed it|Next time, say so, and we will go "
           "together]. [They trust you, you know|The {animals} need you].", "kind", "A")
    t.tell("[After that|From that day on], {A} fed the {animals} first and played later. [They came "
           "running when they heard {A.own} steps|They even learned to follow {A.him}].")
    t.lesson("honest", 0.8)


@plot
def school_show(t):
    t.hero("town", "wood")
    t.friend()
    t.draw(music=things.MUSIC)
    t.set(act=t.pick(["sing a song", "play the {music}", "say a poem", "be the king in the play",
                      "dance on the stage", "juggle with three balls"]))
    t.set(show="school show" if t.world == "town" else "feast of the full moon")
    t.opens()
    t.meets()
    t.para()
    t.tell("Soon it was time for the {show}. {A} was going to {act}. {A.he} had practised [every day|for "
           "weeks|every morning|until {B} knew it by heart, too].")
    t.later("evening")
    t.tell("But {then}, {A} looked out from [behind the curtain|the side] and saw all the [faces|eyes].")
    t.feel("A", "scared")
    t.says("A", "[I cannot do it|I have forgotten everything|My legs will not move], {B}[!|.]", "soft")
    t.says("B", t.pick(["Look at me and nobody else. I will sit in the first row.",
                        "Pretend that they are all turnips.", "I will hold your hand until you begin.",
                        "Take three deep breaths. I was afraid last year, too.",
                        "Just do it for me, as you did at home."]), "kind", "A")
    t.para()
    t.tell("{A} [went out|stepped into the light]. {A.his} knees shook. " + t.pick([
        "First there was only a squeak.", "For a moment, nothing happened.", "{A.he} made one mistake, "
        "and then another.", "It was so quiet that one could hear a pin drop."]))
    t.tell("{~then} {A.he} [saw {B}|found {B}'s face] and began again. It went [better and better|like a "
           "dream]. At the end, [everybody stood up and clapped|the clapping would not stop|somebody threw a "
           "flower].")
    t.feel("A", "proud")
    t.says("B", "[I knew it|You were wonderful|You were the best of all]!", "cried")
    t.lesson("brave")
    t.ends("B", 0.3)
