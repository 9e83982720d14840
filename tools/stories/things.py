"""Objects: what is played with, worn, eaten, used, found and wished for."""


def items(text):
    return [item.strip() for item in text.replace("\n", " ").split(",")]


COLOURS = items("red, blue, green, yellow, orange, purple, pink, white, brown, silver, golden, black, grey")
TOYS = items("""
ball, doll, drum, puzzle, teddy bear, toy train, wooden horse, spinning top, toy boat, toy car,
yo-yo, puppet, toy rabbit, paper crown, jumping rope, tin soldier, marble, kite, toy aeroplane, rag
doll, whistle, music box, toy truck, little robot
""")
# Small enough to carry in a pocket, and to get lost.
SMALL_THINGS = items("""
key, button, ring, coin, feather, shell, marble, ribbon, bell, whistle, acorn, pencil, locket,
spoon, glove, sock, brush, magnet, compass, pebble, stamp, watch, thimble, bracelet
""")
WORN = items("""
hat, scarf, coat, cap, jacket, sweater, cloak, bow tie, apron, belt, cape
""")
PRECIOUS = items("""
silver watch, gold ring, leather purse, pearl necklace, brass key, velvet bag, old letter, wooden
flute, pocket knife, pair of glasses, red umbrella, photo in a frame, brass compass, blue notebook
""")
GIFTS = items("""
a paper flower, a painted stone, a woollen scarf, a drawing of a rainbow, a jar of jam, a string of
beads, a little wooden boat, a bunch of daisies, a book of stories, a tiny clay bird, a warm hat, a
shiny shell, a card with a big red heart, a basket of pears, a bag of marbles, a cup with blue dots,
a bracelet of grass, a lantern made of paper
""")
FOOD = items("""
a loaf of bread, an apple pie, some cherries, a bowl of soup, some pancakes, a ripe pear, some nuts,
a honey cake, some grapes, a cheese sandwich, a slice of melon, a bag of plums, some biscuits, a jar
of honey, some strawberries, a carrot cake, some raisins, a warm bun, some blueberries, a corn
muffin, a basket of peaches, some ginger cookies, a bowl of porridge
""")
NEW_FOOD = items("""
spinach, pumpkin soup, broccoli, mushrooms, beetroot, peas, cauliflower, lentil stew, cabbage,
tomato soup, rice pudding, turnips, green beans, fish pie, onion soup, olives
""")
CAKES = items("""
apple cake, chocolate cake, lemon cake, carrot cake, honey cake, banana bread, cherry pie, plum
tart, pumpkin pie, berry pie, nut cake, blueberry muffins, oat biscuits, ginger cookies
""")
PLANTS = items("""
sunflower, bean, pumpkin, tulip, carrot, strawberry, tomato, rose, apple tree, pea, melon, cherry
tree, poppy, lavender, oak tree, daisy
""")
HEAVY = items("""
cart full of hay, big pumpkin, fallen tree, old rowing boat, huge snowball, barrel of apples, great
round stone, giant turnip, broken wagon, stuck sledge, big wooden chest
""")
TOOLS = items("""
rope, ladder, long stick, basket, net, blanket, bucket, shovel, lantern, wheelbarrow, plank
""")
MUSIC = items("""
flute, drum, violin, trumpet, guitar, piano, harp, tin whistle, banjo, horn
""")
MAGIC = items("""
magic lamp, golden ring, silver bell, old wand, glowing stone, magic feather, tiny bottle, glass
ball, strange coin, wooden box, shining key, green hat
""")
TREASURE = items("""
a box of old letters, a jar of golden buttons, a small silver cup, a bag of seeds, a music box, a
book full of songs, a pile of shiny shells, a tin of old photos, a tiny crown, a bottle with a
letter inside, a telescope, a set of wooden animals
""")
CREATURES = items("""
kitten, duckling, lamb, puppy, baby bird, squirrel, hedgehog, rabbit, piglet, calf, chick, fawn
""")
BREAKABLE = items("""
blue vase, china cup, glass bowl, flower pot, picture frame, window, clock, lamp, mirror, teapot,
jug, plate with gold edges
""")
NUMBERS = items("two, three, four, five, six")
SIZES = items("big, small, tiny, huge, long, round")
FEEL_OF = items("""
old, new, soft, shiny, pretty, strange, beautiful, wonderful, smooth, bright, striped, wooden
""")

# What somebody likes to do; {X} is who does it.
HOBBIES_TOWN = items("""
paint pictures, ride a bicycle, read books about the sea, play football, sing songs, build towers,
collect stamps, look at the stars, bake bread with {X.own} family, climb trees, draw maps, fly
kites, dance, count the trains, tell jokes, watch the birds, play the drum, grow flowers, catch
raindrops, jump in puddles, make paper boats, skip stones across the pond, listen to stories, play
hide and seek, run races, invent games, look for insects, write letters, feed the ducks, fix old
clocks
""")
HOBBIES_WOOD = items("""
collect shiny stones, roll down the hill, pick berries, sing with the birds, splash in the stream,
chase butterflies, count the clouds, nap in the sun, tell stories, jump over logs, dig in the mud,
smell the flowers, listen to the wind, watch the fish, gather nuts, play hide and seek, race with
the wind, build little dams, dance in the rain, explore new paths, look for feathers, hum funny
tunes
""")
HOBBIES_TALE = items("""
gather herbs, whistle old songs, carve wood, watch the swallows, learn riddles, look after the
geese, mend broken things, listen to the river, bake small loaves, tell stories by the fire, sew
bright flags, feed the king's horses, polish the bells, wander in the hills
""")
