"""One story from a seed and a number, whatever was told before it."""
import random

# Each of these adds its plots to PLOTS.
from . import plots_animals, plots_friends, plots_home, plots_outdoors, plots_wonder  # noqa: F401
from .tale import PLOTS, Tale

WORDS = range(60, 201)  # how long a story may be


def story(seed, index):
    """The same text for the same two numbers; a story that comes out too long or too short is told anew."""
    for attempt in range(100):
        rng = random.Random(f"{seed}/{index}/{attempt}")
        text = tell(rng.choice(PLOTS), rng)
        if len(text.split()) in WORDS:
            return text
    raise RuntimeError(f"no story of {WORDS.start} to {WORDS.stop - 1} words from seed {seed}, number {index}")


def tell(plot, rng):
    tale = Tale(rng)
    plot(tale)
    return tale.text()
