"""Sentences that fit many stories: feelings, lessons, openings, endings, and ways to speak.

{X} is whom a sentence is about. The lists in LISTS are for {~name} in templates."""


def lines(text):
    return [line.strip() for line in text.strip().splitlines()]


LISTS = {
    "then": "Then|After that|Next|Soon|A moment later|Right away|At once|Before long".split("|"),
    "later": """After a while|A little later|Some time later|Before long|After a few minutes|When a little time had passed
        |By and by""".split("|"),
    "suddenly": "Suddenly|All at once|Just then|At that moment|Out of nowhere|All of a sudden".split("|"),
    "atlast": "At last|Finally|In the end|After a long time|At long last".split("|"),
    "very": "very|so|really".split("|"),
    "glad": "glad|happy|pleased|cheerful".split("|"),
    "sad": "sad|unhappy|upset|gloomy|miserable".split("|"),
    "nice": "lovely|wonderful|beautiful|fine|splendid|marvellous".split("|"),
    "big": "big|large|huge|enormous|giant|great".split("|"),
    "small": "small|little|tiny".split("|"),
    "loved": "loved|liked|enjoyed".split("|"),
    "looked": "looked|searched|hunted".split("|"),
    "ran": "ran|hurried|rushed|raced|dashed".split("|"),
    "walked": "walked|went|strolled|wandered|set off".split("|"),
    "quietly": "quietly|softly|slowly|carefully|gently".split("|"),
    "quickly": "quickly|at once|without waiting|right away".split("|"),
    "day": "day|morning|afternoon".split("|"),
    "long": "for a long time|for a whole hour|all morning|until {X.own} legs were tired|again and again".split("|"),
    "thanks": """Thank you!|Thank you so much!|Oh, thank you!|Thanks a lot!|Many thanks!|How can I ever thank you?
        |You are very kind.|I will never forget this.""".split("|"),
    "welcome": """You are welcome.|It was nothing.|I was glad to help.|That is what friends are for.|Any time.
        |You would do the same for me.|Helping is fun.""".split("|"),
    "ohno": "Oh no!|Oh dear!|Goodness!|Oh, what a pity!|What bad luck!|Dear me!".split("|"),
    "hooray": "Hooray!|Hurray!|We did it!|How wonderful!|Look at that!|Yes, yes, yes!".split("|"),
    "dontworry": """Do not worry.|Do not be sad.|Please do not cry.|There is no need to cry.|Everything will be all right.
        |Take a deep breath.|Cheer up.""".split("|"),
    "idea": """I have an idea.|I know what we can do.|I have a plan.|I think I know a way.|Let me think. Yes, I know!
        |What if we try something new?""".split("|"),
    "ofcourse": "Of course!|Yes, of course.|I would love to.|With pleasure.|Yes, please!|Sure!".split("|"),
    "together": "together|together|side by side".split("|"),
}
LISTS = {name: [entry.strip() for entry in entries] for name, entries in LISTS.items()}

SAY = {
    "said": ["said"],
    "answered": ["said", "answered", "replied"],
    "asked": ["asked", "asked", "asked", "wanted to know"],
    "cried": ["cried", "shouted", "called", "said"],
    "soft": ["whispered", "said softly", "said quietly", "murmured"],
    "sad": ["said sadly", "sighed", "sobbed", "said with a sigh"],
    "glad": ["said happily", "laughed", "said with a smile", "said cheerfully"],
    "kind": ["said kindly", "said gently", "said warmly", "said in a soft voice"],
    "proud": ["said proudly", "boasted", "bragged"],
    "cross": ["grumbled", "said crossly", "snapped", "growled"],
}
# What a speaker does before speaking.
BEATS = {
    "said": ["{X} nodded.", "{X} thought for a moment.", "{X} looked up.", "{X} turned around.", "{X} scratched {X.own} head."],
    "asked": ["{X} tilted {X.own} head.", "{X} came closer.", "{X} looked puzzled.", "{X} stopped and listened."],
    "cried": ["{X} jumped up.", "{X} waved {X.own} arms.", "{X} gasped.", "{X}'s eyes grew wide."],
    "soft": ["{X} leaned closer.", "{X} held {X.own} breath.", "{X} put a finger to {X.own} lips."],
    "sad": ["A tear rolled down {X}'s cheek.", "{X} hung {X.own} head.", "{X}'s lip trembled.", "{X} sat down and sighed."],
    "glad": ["{X} clapped.", "{X} grinned from ear to ear.", "{X}'s face lit up.", "{X} laughed out loud.", "{X} beamed."],
    "kind": ["{X} smiled.", "{X} sat down beside {L}.", "{X} gave {L} a warm smile.", "{X} put an arm around {L}."],
    "proud": ["{X} stood up very straight.", "{X} puffed out {X.own} chest.", "{X} lifted {X.own} chin."],
    "cross": ["{X} frowned.", "{X} stamped a foot.", "{X} crossed {X.own} arms.", "{X} made a face."],
}

FEEL = {name: lines(text) for name, text in {
    "happy": """
        {X} felt warm and {~glad} inside.
        {X} was {~very} {~glad}.
        {X.his} heart [jumped for joy|danced|sang].
        {X} could not stop smiling.
        {X.his} eyes [shone|sparkled] with joy.
        {X} had never been happier.
        {X} hopped up and down with joy.
        {X} smiled from ear to ear.
        {X} laughed and [spun around|clapped|danced a little dance].
        {X.his} cheeks [glowed|turned pink] with joy.
        {X} felt as light as a feather.
        {X} wanted to [sing|dance|hug everybody].
        It was the best [feeling|thing] in the world.""",
    "sad": """
        {X} felt {~very} {~sad}.
        Tears came to {X.his} eyes.
        {X} began to cry.
        {X.his} heart felt as heavy as a stone.
        {X} sat down and [sobbed|sighed|hid {X.own} face].
        {X} did not know what to do.
        A [big|fat|salty] tear ran down {X.his} cheek.
        {X} hung {X.own} head.
        {X} wanted to [hide|cry|be alone].
        {X} bit {X.own} lip so as not to cry.
        All the [joy|fun] was gone.
        {X} swallowed hard.""",
    "scared": """
        {X} was {~very} [scared|afraid|frightened].
        {X.his} knees [shook|trembled|felt weak].
        {X.his} heart beat fast[| like a drum].
        {X} did not dare to move.
        {X} shivered with fear.
        {X} wanted to run away.
        {X} held {X.own} breath and listened.
        A cold feeling ran down {X.his} back.""",
    "angry": """
        {X} was {~very} [angry|cross|mad].
        {X.his} face turned red.
        {X} stamped on the ground.
        {X} frowned and turned away.
        {X} did not want to talk to anyone.
        {X} felt hot and cross inside.""",
    "proud": """
        {X} felt [very|so] proud.
        {X} stood [a little taller|very straight].
        {X} had never felt so proud.
        {X} beamed with pride.
        {X.his} chest [swelled|grew warm] with pride.
        {X} wanted to tell the whole world.
        {X} smiled and held {X.own} head high.
        It was a moment that {X} would never forget.""",
    "sorry": """
        {X} felt [very|so] sorry.
        {X} felt bad about what {X.he} had done.
        {X.his} cheeks grew hot with shame.
        {X} wished {X.he} could start the day again.
        {X} knew {X.he} had done something wrong.
        There was a heavy lump in {X.his} throat.""",
    "curious": """
        {X} was {~very} curious.
        {X} wanted to know more.
        {X} could not look away.
        {X} had never seen anything like it.
        {X.his} eyes grew wide with wonder.
        A hundred questions filled {X.his} head.""",
    "tired": """
        {X} was [tired|worn out|sleepy].
        {X.his} legs ached.
        {X} yawned.
        {X} could hardly keep {X.own} eyes open.""",
    "lonely": """
        {X} felt lonely.
        {X} had nobody to play with.
        The days seemed long and empty.
        {X} wished for a friend.
        {X} often talked to {X.self}.
        Without a friend, nothing was much fun.""",
    "calm": """
        {X} took a deep breath.
        {X} felt better.
        {X} was not afraid any more.
        The fear [melted away like snow in the sun|was gone|flew away like a bird].
        {X.his} heart beat slowly again.
        {X} could smile again.
        {X} felt safe.""",
}.items()}

# What a story has taught, as a clause after "that".
LESSONS = {name: lines(text) for name, text in {
    "share": """
        sharing makes everything [taste|feel] better
        [good|nice] things are even [better|nicer] when they are shared
        there is always enough when friends share
        a shared [joy|treat] is twice as sweet
        giving can feel better than getting""",
    "honest": """
        it is best to tell the truth
        the truth is better than a lie, even when it is hard
        honest words make the heart light
        people trust those who are honest
        a lie only makes things worse""",
    "found": """
        it is right to give back what is not yours
        a thing that is found still belongs to somebody
        the best reward is a thankful smile
        it feels good to do the right thing
        an honest heart is a light heart""",
    "brave": """
        being brave means trying even when you are afraid
        some things look scary only from far away
        fears grow smaller when you face them
        even the smallest can be brave
        a friend at your side makes it easier to be brave""",
    "practice": """
        nobody is good at everything the first time
        practice makes hard things easy
        it is all right to fail and try again
        every try makes you a little better
        [those who|people who] keep trying get there in the end""",
    "patience": """
        good things take time
        waiting can be hard, but it is worth it
        patience brings the sweetest rewards
        some things cannot be hurried""",
    "kind": """
        a kind deed always comes back
        a little kindness can change a whole day
        kindness costs nothing and means a lot
        even a small kindness can be a big help""",
    "team": """
        many hands make hard work easy
        together they could do what nobody could do alone
        it is good to ask for help
        the best work is done together
        everyone has something to give""",
    "careful": """
        it is wise to be careful
        it is better to be slow and safe than quick and sorry
        a little care saves a lot of trouble
        it is important to listen to good advice""",
    "greed": """
        it is not wise to want too much
        enough is as good as a feast
        taking too much can spoil everything
        being greedy makes nobody happy""",
    "friends": """
        friends are worth more than [toys|gold|anything]
        a good friend is the best treasure
        everything is more fun with a friend
        a friend can make the whole day bright""",
    "newfriends": """
        new friends can be found in the most surprising places
        it takes only one hello to make a friend
        a stranger may be a friend you do not know yet
        a good friend is the best treasure""",
    "peace": """
        old quarrels melt when friends talk
        no toy is worth a quarrel
        it is good to say sorry first
        taking turns is better than fighting""",
    "race": """
        being kind is better than being first
        it is more important to help than to win""",
    "work": """
        a little work every day goes a long way
        it is good to be ready before the cold comes
        work comes first, and then play is twice as much fun
        helping at home can be fun""",
    "self": """
        it is fine to be different
        everybody is good at something
        being yourself is the best thing to be
        size does not matter when the heart is big
        what makes you different can make you strong""",
    "try": """
        you never know what you like until you try it
        new things can turn out to be wonderful
        trying is the first step""",
}.items()}
LESSON_FRAMES = lines("""
    [That day|On that day|From all this], {A} learned that {lesson}.
    {A} [knew now|had learned] that {lesson}.
    And {A} never forgot that {lesson}.
    From [then|that day] on, {A} knew that {lesson}.
    Now {A} understood that {lesson}.
    {A} thought about it before going to sleep, and saw that {lesson}.
    [So|And so] {A} found out that {lesson}.""")

ENDINGS = {name: lines(text) for name, text in {
    "any": """
        It had been [a wonderful|a very good|an exciting] day.
        {A} would remember this day for a long, long time.
        Everyone was {~glad}.
        [What a day it had been|It had turned out well after all|All was well again].
        So everything ended well.
        And that was the end of a [good|strange and happy|long and happy] day.
        {A} could hardly wait to tell [everybody|the others] about it.
        {A} smiled for a long time.""",
    "out": """
        {A} went home with a [light|happy|glad|full] heart.
        On the way home, {A} [hummed a tune|skipped and sang|could not stop smiling].
        {A} could hardly wait to tell the whole story at home.""",
    "night": """
        {A} fell asleep with a smile.
        That night, {A} slept [very well|deeply|like a stone] and dreamed of [the sea|tomorrow|flying|stars|new adventures].
        The moon [rose|shone] over the roofs, and everything was quiet.
        {A} curled up in {A.own} warm bed and closed {A.own} eyes.
        Soon {A} was fast asleep.
        {A} yawned, smiled, and went to sleep.""",
    "two": """
        {A} and {B} became the best of friends.
        From that day on, {A} and {B} were always together.
        {A} and {B} laughed all the way home.
        After that, {A} and {B} met every day.
        {A} and {B} hugged each other.
        {A} and {B} stayed friends for ever.
        {A} and {B} sat together and watched the sky.""",
}.items()}

WEATHER = {name: lines(text) for name, text in {
    "sunny": """
        The sun was shining and the sky was blue.
        Warm sunlight fell on the grass.
        There was not a cloud in the sky.
        The air smelled of flowers.""",
    "windy": """
        The wind blew the leaves about.
        A strong wind pulled at the trees.
        White clouds raced across the sky.
        The wind whistled around the corners.""",
    "rainy": """
        Rain was falling from a grey sky.
        Raindrops tapped on the leaves.
        There were puddles everywhere.
        Water dripped from every branch.""",
    "snowy": """
        Snow covered the ground like a white blanket.
        Big snowflakes danced in the air.
        The snow sparkled and crunched.
        The air was cold, and every breath made a little cloud.""",
    "foggy": """
        A thick fog lay over the ground.
        The trees looked like grey ghosts in the fog.
        Everything was quiet and grey.""",
    "cloudy": """
        Soft grey clouds covered the sky.
        The sun was hiding behind the clouds.
        It was a cool and quiet day.""",
    "warm": """
        The air was warm and still.
        Bees hummed in the warm air.
        A soft warm wind was blowing.""",
    "clear night": """
        The moon was round and bright.
        A thousand stars twinkled in the sky.
        Somewhere an owl was calling.
        Everything was still and dark.""",
}.items()}
