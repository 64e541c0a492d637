"""Labels and expressions that FindIt-Nano does not know: everyday words, and words that are none.

None of the demonstration's words is here: its photographs and what is asked about them are held
out (tests/training/test_training_lessons_wild.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from training.questions import RELATIONS
from vlmeval_findit.data.rendered.drawing import COLOURS, TEXTURES, Rng

_NOUNS = """
airplane alligator ambulance anchor animal ant antelope apple apron arch arm armchair arrow
artist athlete avocado axe baby backpack badge bag bagel baker ball balloon balcony banana
banjo banner bar barn barrel baseball basin basket bat bath beach bead beak bear beard bed bee
beetle bell belt bench bicycle bin bird biscuit blanket blender blouse boat bolt bone book
boot bowl box boy bracelet branch bread brick bridge briefcase broom brush bucket buffalo bus
bush butterfly button cabbage cabinet cable cactus cage cake calculator calf camel candle cane
canoe cap car card carpet carriage carrot cart castle ceiling chain chair chalk chef cherry
chest chicken child chimney church cigar clown coat cobweb column comb computer cookie cord
cork counter couch cow cowboy crab crane crate crib crocodile crow crown cucumber
curtain cushion cyclist dancer deer desk dinosaur dish doctor doll dolphin donkey donut door
doorknob dragon drawer dress drill driver drum duck dumbbell eagle ear earring egg eggplant
elbow elephant elevator engine envelope fan farmer faucet feather fence ferry finger fireman
fireplace fish flag flamingo flute foot football fountain fox frame fridge frog fruit fungus
garage garlic gate ghost giraffe girl globe glove goat goggles goose gorilla grape grass grill
guitar gun hair hamburger hammer hammock hamster hand handbag handle harp hawk hedge hedgehog
helicopter hen hill hippo hook hose house hydrant iron island jacket jar jeans jeep jellyfish
jet judge jug kangaroo kayak kettle key keyboard kid kite kitten knee knife knob koala ladder
lady lake lamp lantern laptop leaf leg lemon lettuce lighthouse lion lizard llama lobster lock
log lorry luggage magnet mailbox man mango map mask mattress melon menu mermaid microphone
microwave mirror mitten monitor monkey moon moose mop mosquito mountain mouse mouth mug mushroom
nail napkin neck necklace needle nest net newspaper notebook nurse nut oar onion orchid ostrich
otter oven owl ox paddle painting pan panda pants paper parachute parrot path peach peacock
pear pen pencil penguin pepper piano pie pig pigeon pillow pineapple pipe pirate pizza plane
planet plant player pliers plug plum pole policeman pond pony popcorn porch pot potato printer
pumpkin puppet puppy purse rabbit raccoon racket radio raft rail rake raincoat rat razor
reindeer remote rhino rifle river road robe robin robot rock rooster rope rose rug ruler runner
sail sailor salad sandal sandwich saw scale scarf scissors scooter screen screw screwdriver
seagull seal shampoo shark sheep ship shirt shoe shop shovel shower shrimp shutter sidewalk
sign singer sink skateboard skater ski skirt skull sky skyscraper sled slipper snail snake
snow snowman soap sock sofa soldier soup spider sponge squirrel stable stadium stair stamp
star statue stick stone stool stove straw strawberry street stroller student suitcase sun
surfboard swan sweater swing sword syringe table tablet tank tap taxi teacher teapot
teddy telephone television tent ticket tie tiger tile tire toad toast toaster toilet tomato
tongue tooth toothbrush torch towel toy tractor train trash tray tree trolley trophy trousers
truck trumpet trunk tshirt tube tulip tunnel turkey turtle typewriter umbrella vacuum van vest
violin volcano volleyball waffle wagon waiter wall wallet walrus wardrobe washer watch water
watermelon wave whale wheat wheelbarrow wheelchair whistle wig window wine wing wolf worker
worm wrench yacht yoghurt zebra zipper zucchini
"""
NOUNS = tuple(_NOUNS.split())

_ADJECTIVES = """
wooden metal plastic golden silver brown black white grey pink dark bright old young broken
empty full open closed dirty clean furry leather woollen folded parked sleeping running sitting
standing smiling barefoot tiny huge tallest shortest nearest farthest middle front blurry wet
shiny electric striped dotted red green blue purple orange small large
"""
ADJECTIVES = tuple(_ADJECTIVES.split())

_GERUNDS = """
wearing holding carrying riding pushing pulling eating watching touching facing chasing feeding
cleaning crossing climbing
"""
GERUNDS = tuple(_GERUNDS.split())

RELATED_BY = (
    *RELATIONS,
    *GERUNDS,
    "behind",
    "under",
    "near",
    "beside",
    "against",
    "inside",
    "with",
    "without",
    "far from",
    "in front of",
)
"""What may stand between two things of an expression."""

_MOST_WORDS = 12

_CONSONANTS, _VOWELS = "bcdfghjklmnpqrstvwxyz", "aeiou"


def made_up(rng: Rng) -> str:
    """A word of two to four syllables that stands in no dictionary, or hardly ever."""
    said = ""
    for _ in range(2 + rng.randint(3)):
        said += _any(rng, _CONSONANTS) + _any(rng, _VOWELS)
        said += _any(rng, _CONSONANTS) if rng.randint(3) == 0 else ""
    return said


def noun(rng: Rng) -> str:
    """A noun, most often a real one, sometimes of several things."""
    said = made_up(rng) if rng.randint(4) == 0 else _any(rng, NOUNS)
    several = "es" if said.endswith(("s", "x", "sh", "ch")) else "s"
    return said + several if rng.randint(6) == 0 else said


def label(rng: Rng) -> str:
    """What a detection asks for: ``bus``, ``garden-gate``, ``wooden Chair``; without commas."""
    said = noun(rng)
    if rng.randint(4) == 0:
        said = f"{_any(rng, NOUNS)}{'- '[rng.randint(2)]}{said}"
    if rng.randint(6) == 0:
        said = f"{_any(rng, ADJECTIVES)} {said}"
    return _in_case(rng, said)


def labels(rng: Rng, count: int) -> list[str]:
    """So many labels, each once."""
    found: dict[str, None] = {}
    while len(found) < count:
        found[label(rng)] = None
    return list(found)


def expression(rng: Rng) -> str:
    """Two to twelve words that mean something of an unknown kind.

    ``the man wearing the blue shirt left of the car``.
    """
    said = f"the {_with_adjectives(rng)}" if rng.randint(5) else f"{_with_adjectives(rng)} there"
    for _ in range(rng.randint(3)):
        more = f"{said} {_any(rng, RELATED_BY)} the {_with_adjectives(rng)}"
        if len(more.split()) <= _MOST_WORDS:
            said = more
    return _in_case(rng, said)


def of_a_shape(rng: Rng, shape: str) -> str:
    """An expression of words that the model knows: ``the striped green ring``."""
    looks = [_any(rng, tuple(table)) for table in (TEXTURES, COLOURS) if rng.randint(2)]
    return " ".join(["the", *looks, shape])


def _with_adjectives(rng: Rng) -> str:
    count = (0, 0, 1, 1, 1, 2)[rng.randint(6)]
    return " ".join([*(_any(rng, ADJECTIVES) for _ in range(count)), noun(rng)])


def _in_case(rng: Rng, said: str) -> str:
    """Most often as it is."""
    kind = rng.randint(16)
    if kind == 0:
        return said.upper()
    if kind == 1:
        return said.title()
    return said[0].upper() + said[1:] if kind in (2, 3) else said


def _any(rng: Rng, names: Sequence[str]) -> str:
    return names[rng.randint(len(names))]
