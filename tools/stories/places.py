"""Where stories happen: how one is there, how one goes there, and what there is to see."""


class Place:
    def __init__(self, line):
        where, _, seen = line.partition(":")
        self.at = where.strip()                        # "in the park"
        self.name = self.at.split(" ", 1)[1]           # "the park"
        self.seen = [s.strip() for s in seen.split(",")]


def places(text):
    return [Place(line) for line in text.strip().splitlines()]


PLACES = {
    "town": places("""
        in the park: tall green trees, a wooden bench, a duck pond, a round fountain, children on the swings
        at the beach: white waves, smooth pebbles, a striped umbrella, gulls above the water, a sand castle
        in the garden: rows of beans, a watering can, bright red roses, a wooden gate, busy bees
        at the market: piles of oranges, a man with balloons, baskets of fish, pots of honey, a lady selling flowers
        by the river: a small stone bridge, tall reeds, a rowing boat, silver fish, two white swans
        on the farm: a red barn, fat brown hens, a sleepy horse, a big green tractor, golden hay
        in the library: long shelves, soft chairs, a quiet cat, a huge map on the wall, books with bright covers
        at the playground: a tall slide, two swings, a sandbox, a climbing frame, a spinning wheel
        at the train station: a shiny engine, a big clock, heavy suitcases, a man with a flag, long rails
        in the orchard: ripe apples, old ladders, full baskets, a stone wall, yellow butterflies
        at the harbour: fishing boats, thick ropes, a white lighthouse, wooden boxes, hungry gulls
        on the hill behind the school: soft grass, an old windmill, wild flowers, a winding path, a lonely tree
        in the town square: a bronze statue, a fruit stall, flocks of pigeons, a tall tower, bright flags
        at the zoo: sleepy lions, pink flamingos, a tall giraffe, funny monkeys, a big grey elephant
        in the attic: dusty trunks, an old rocking chair, a broken lamp, piles of hats, a small round window
        at the pond: green frogs, white water lilies, a wooden dock, dragonflies, a family of ducks"""),
    "wood": places("""
        in the forest: tall pine trees, red mushrooms, a mossy log, a winding path, green ferns
        by the stream: smooth stones, cool clear water, little fish, a fallen branch, blue dragonflies
        in the meadow: yellow buttercups, long grass, white butterflies, sweet clover, humming bees
        on the hill: a big flat rock, soft moss, wild thyme, a bent old tree, purple flowers
        at the edge of the lake: tall reeds, a sandy bank, water lilies, a heron on one leg, small round waves
        in the valley: a narrow river, grey stones, a field of poppies, an old mill, low bushes
        under the old oak tree: brown acorns, thick roots, cool shade, a pile of leaves, a hollow trunk
        near the waterfall: wet rocks, a tiny rainbow, white foam, dark green moss, a deep pool
        in the berry patch: ripe blackberries, thorny stems, busy ants, fat bumblebees, sweet raspberries
        at the foot of the mountain: steep cliffs, a dark cave, tall firs, a cold spring, round boulders
        by the old stone wall: warm stones, climbing ivy, a sleepy lizard, blue bells, a gap full of leaves
        in the swamp: lily pads, muddy water, long vines, croaking frogs, floating logs"""),
    "tale": places("""
        in the village: thatched roofs, a stone well, a busy inn, a crooked lane, a small church
        at the castle: high towers, bright banners, a deep moat, a wooden drawbridge, guards in shiny helmets
        in the deep forest: dark fir trees, a narrow path, strange footprints, pale flowers, a lonely hut
        by the mill: a slow wooden wheel, sacks of flour, a white goose, green water, a little boat
        on the high mountain: snowy peaks, an eagle, loose stones, a cold wind, a silver spring
        at the old inn: a warm fire, long tables, a sleepy dog, copper pans, a merry fiddler
        in the royal garden: trimmed hedges, a marble fountain, white peacocks, rare roses, a golden gate
        by the sea: grey cliffs, a white lighthouse, fishing nets, foamy waves, crying gulls"""),
}

# Where something small is looked for in vain, and where it is found in the end.
SPOTS = {
    "town": """under the bed|behind the sofa|in the laundry basket|under the kitchen table|behind the curtains
|in the toy box|on top of the cupboard|under a pile of books|beside the stove|in the pocket of an old coat
|behind the door|in the garden shed|under the stairs|inside a rain boot|between two cushions|in the dog's basket
|on the window sill|in the wheelbarrow|beside the letter box|under the porch""",
    "wood": """under a pile of leaves|behind a mossy log|between the roots of a tree|inside a hollow stump
|beneath a flat stone|in a clump of ferns|beside the stream|under a big mushroom|in a thorny bush|in the tall grass
|on a low branch|behind a grey rock|in a rabbit hole|near an ant hill|among the reeds|at the bottom of a ditch""",
    "tale": """behind the well|under the old bridge|in a sack of flour|between two barrels|in the hay|behind the stable
|beneath a loose stone|under the stairs of the tower|beside the fire|in an old boot|among the herbs|in a crack in the wall
|inside a cracked pot|behind the mill""",
}
SPOTS = {world: text.replace("\n", "").split("|") for world, text in SPOTS.items()}

HOMES = """a small house at the end of a lane|a tall yellow house near the park|a cottage with a green door
|a flat above the bakery|a house by the sea|a farmhouse outside the town|a white house on a hill|a brick house next to the school
|a narrow house beside the canal|a little house with a blue roof|a noisy street full of shops
|a quiet village between two hills""".replace("\n", "").split("|")
LANDS = """a land of green hills|a kingdom by the sea|a small village in the mountains|a country far away
|a valley full of apple trees|a town with seven towers|a village at the edge of a great forest
|a castle above the clouds|a town on an island in the warm south""".replace("\n", "").split("|")
