"""Who stories are about: children, animals that talk, families, neighbours and helpers."""

GIRLS = """Mia Lucy Anna Ella Nora Ruby Lily Rosa Maya Clara Zoe Emma Ivy Hana Leila Sofia Amara Greta Tessa
Priya Nina Daisy Hazel Molly Kate Sara Lena Elsie Mei Noor Poppy Wanda Bella Freya Jade Olive Yuki Carmen
Dora Edith Fatima Gwen Holly Ida June Kiri Lola Mabel Nell Opal""".split()
BOYS = """Tom Ben Sam Max Leo Jack Finn Omar Hugo Oscar Theo Ravi Noah Eli Adam Luca Felix Kofi Peter Anton
Milo Jonah Arlo Toby Dan Emil Hassan Ivan Jamal Kenji Liam Marco Nate Otto Paul Quinn Rafi Simon Tariq Will
Zack Alfie Bruno Caleb David Ezra Fred George Harry Joe""".split()
PETS_HER = """Pearl Willow Clover Maple Honey Dot Tulip Plum Juniper Misty Fern Penny Bramble Sorrel Minnow
Peach Dewdrop Hattie Mossy Tansy Nutmeg Velvet Cricket Dandelion Marigold""".split()
PETS_HIM = """Pip Biscuit Rusty Acorn Bumble Pebble Button Patch Whistle Barley Thistle Tumble Twig Muddle
Oakley Flint Cinder Dusty Copper Ziggy Waffle Bracken Murphy Scout Tuck""".split()

# kind: where it lives, what it looks like, what it is good at.
ANIMALS = {line.split(":")[0].strip(): tuple(p.strip() for p in line.split(":")[1:]) for line in """
fox: den under an old oak tree: a bushy red tail: sniff out hidden things
rabbit: burrow below the meadow: long soft ears: hop over anything
mouse: hole behind a stone wall: tiny pink paws: squeeze through small gaps
bear: cave on the side of a hill: thick brown fur: lift heavy logs
hedgehog: nest of dry leaves: a coat of spines: roll into a tight ball
squirrel: hollow in a tall pine tree: a fluffy tail: climb to the very top of a tree
badger: den with seven doors: a striped face: dig deep holes
otter: hole in the river bank: smooth wet fur: swim faster than the fish
beaver: house made of sticks: two strong front teeth: cut through thick branches
owl: hole in an old tower: big round eyes: see in the dark
frog: hiding place among the reeds: long green legs: jump very far
duck: nest beside the pond: bright yellow feet: paddle all day
turtle: sandy hollow by a quiet pool: a hard round shell: carry a house on one back
deer: hiding place in the ferns: long thin legs: run without a sound
mole: tunnel under the garden: soft black fur: find the way in the dark
raccoon: hollow log: a black mask: open any box
sparrow: nest in a hedge: quick brown wings: fly high above the trees
robin: nest in an apple tree: a bright red chest: sing before sunrise
goat: shed on the mountain: a short white beard: climb steep rocks
lamb: barn on the hill: curly white wool: jump over puddles
puppy: basket by the kitchen door: floppy ears: follow any smell
kitten: box beside the stove: soft grey paws: walk on thin branches
pony: stable at the end of the lane: a long golden mane: gallop across the fields
penguin: little cave of ice: a black coat and a white belly: slide down icy hills
elephant: shady grove near the wide river: a long grey trunk: spray water high into the air
monkey: house in the treetops: long clever arms: swing from tree to tree
lion cub: den among warm rocks: big soft paws: roar very loudly
snail: cosy corner beneath a cabbage leaf: a shiny curled shell: climb straight up a wall
bee: hive in the orchard: tiny clear wings: find the sweetest flowers
crab: hole in the sand: a pair of strong claws: walk sideways
""".strip().splitlines()}
FLYING = ("sparrow", "robin", "owl", "bee")
SLOW = ("turtle", "snail")
FAST = ("rabbit", "deer", "fox", "pony", "squirrel")
SMALL = ("mouse", "snail", "bee", "frog", "sparrow", "robin", "mole")
BIG = ("bear", "elephant", "pony", "deer")

GOOD = """kind brave clever cheerful gentle friendly helpful curious patient careful thoughtful lively
hopeful polite merry bright""".split()
LOOKS = "little small young".split()

# What people in town, in the woods and in old tales do for others.
HELPERS = {
    "town": """the baker|the farmer|the postman|the librarian|the gardener|the shopkeeper|the teacher|the bus driver
|the doctor|the carpenter|the fisherman|the painter|the policewoman|the firefighter|the shoemaker|the milkman""",
    "wood": """the old owl|the wise turtle|the old badger|the grey goose|the big moose|the quiet heron|the old toad
|the tall stork|the wise raven|the busy woodpecker|the kind old bear|the slow old tortoise""",
    "tale": """the miller|the blacksmith|the old woman at the well|the weaver|the shepherd|the woodcutter|the ferryman
|the wise old wizard|the gardener|the cook|the clockmaker|the candle maker""",
}
HELPERS = {world: [h.strip() for h in text.split("|")] for world, text in HELPERS.items()}
WOMEN = ("the policewoman", "the old woman at the well", "the grey goose", "the weaver", "the teacher",
         "the librarian", "the cook", "the painter", "the doctor", "the busy woodpecker", "the gardener")
NEIGHBOURS = """Mrs. Lane|Mr. Hill|Mrs. Brook|Mr. Stone|Mrs. Wood|Mr. Penn|Mrs. Marsh|Mr. Frost|Mrs. Bell|Mr. Green
|Mrs. Potter|Mr. Young|Miss Field|Mr. Baker|Mrs. Rose|Miss Gray""".replace("\n", "").split("|")
FAMILY = {"she": ["Mum", "Mama", "Grandma", "Mother", "Aunt Rosie", "Aunt May", "Granny"],
          "he": ["Dad", "Papa", "Grandpa", "Father", "Uncle Bob", "Uncle Jim", "Grandfather"]}

PRONOUNS = {"he": {"he": "he", "him": "him", "his": "his", "own": "his", "self": "himself"},
            "she": {"he": "she", "him": "her", "his": "her", "own": "her", "self": "herself"}}


class Character:
    """One of a story's cast. `label` is what the story calls it: a name, or "the baker"."""

    def __init__(self, label, gender, kind, world, trait="kind", age=0):
        self.label, self.gender, self.kind, self.world = label, gender, kind, world
        self.trait, self.age = trait, age
        self.met = False  # the story has introduced it, and may say "the boy"

    @property
    def intro2(self):
        return f"a {self.trait} young {self.kind} with {self.look}"

    @property
    def look(self):
        return ANIMALS[self.kind][1] if self.kind in ANIMALS else ""

    @property
    def home(self):
        return ANIMALS[self.kind][0] if self.kind in ANIMALS else "house"

    @property
    def skill(self):
        return ANIMALS[self.kind][2] if self.kind in ANIMALS else ""

    def pronoun(self, form):
        return PRONOUNS[self.gender][form]
