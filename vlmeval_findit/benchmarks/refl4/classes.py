"""Classes: COCO's joined with those of Objects365; sports balls are a class of their own.

The published metrics use the authors' table.  Ten of its entries name the class before the one
meant (its bird is a bus), which the corrected table mends.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType

# Names as their owners spell them: Objects365 (v2) from 1, and COCO.  In one text each, because 445
# lines of one name would say no more.
_OBJECTS365 = """
Person | Sneakers | Chair | Other Shoes | Hat | Car | Lamp | Glasses | Bottle | Desk | Cup |
Street Lights | Cabinet/shelf | Handbag/Satchel | Bracelet | Plate | Picture/Frame | Helmet | Book |
Gloves | Storage box | Boat | Leather Shoes | Flower | Bench | Potted Plant | Bowl/Basin | Flag |
Pillow | Boots | Vase | Microphone | Necklace | Ring | SUV | Wine Glass | Belt | Monitor/TV |
Backpack | Umbrella | Traffic Light | Speaker | Watch | Tie | Trash bin Can | Slippers | Bicycle |
Stool | Barrel/bucket | Van | Couch | Sandals | Basket | Drum | Pen/Pencil | Bus | Wild Bird |
High Heels | Motorcycle | Guitar | Carpet | Cell Phone | Bread | Camera | Canned | Truck |
Traffic cone | Cymbal | Lifesaver | Towel | Stuffed Toy | Candle | Sailboat | Laptop | Awning |
Bed | Faucet | Tent | Horse | Mirror | Power outlet | Sink | Apple | Air Conditioner | Knife |
Hockey Stick | Paddle | Pickup Truck | Fork | Traffic Sign | Balloon | Tripod | Dog | Spoon |
Clock | Pot | Cow | Cake | Dining Table | Sheep | Hanger | Blackboard/Whiteboard | Napkin |
Other Fish | Orange/Tangerine | Toiletry | Keyboard | Tomato | Lantern | Machinery Vehicle | Fan |
Green Vegetables | Banana | Baseball Glove | Airplane | Mouse | Train | Pumpkin | Soccer |
Skiboard | Luggage | Nightstand | Tea pot | Telephone | Trolley | Head Phone | Sports Car |
Stop Sign | Dessert | Scooter | Stroller | Crane | Remote | Refrigerator | Oven | Lemon | Duck |
Baseball Bat | Surveillance Camera | Cat | Jug | Broccoli | Piano | Pizza | Elephant | Skateboard |
Surfboard | Gun | Skating and Skiing shoes | Gas stove | Donut | Bow Tie | Carrot | Toilet | Kite |
Strawberry | Other Balls | Shovel | Pepper | Computer Box | Toilet Paper | Cleaning Products |
Chopsticks | Microwave | Pigeon | Baseball | Cutting/chopping Board | Coffee Table | Side Table |
Scissors | Marker | Pie | Ladder | Snowboard | Cookies | Radiator | Fire Hydrant | Basketball |
Zebra | Grape | Giraffe | Potato | Sausage | Tricycle | Violin | Egg | Fire Extinguisher | Candy |
Fire Truck | Billiards | Converter | Bathtub | Wheelchair | Golf Club | Briefcase | Cucumber |
Cigar/Cigarette | Paint Brush | Pear | Heavy Truck | Hamburger | Extractor | Extension Cord | Tong |
Tennis Racket | Folder | American Football | earphone | Mask | Kettle | Tennis | Ship | Swing |
Coffee Machine | Slide | Carriage | Onion | Green beans | Projector | Frisbee |
Washing Machine/Drying Machine | Chicken | Printer | Watermelon | Saxophone | Tissue | Toothbrush |
Ice cream | Hot-air balloon | Cello | French Fries | Scale | Trophy | Cabbage | Hot dog | Blender |
Peach | Rice | Wallet/Purse | Volleyball | Deer | Goose | Tape | Tablet | Cosmetics | Trumpet |
Pineapple | Golf Ball | Ambulance | Parking meter | Mango | Key | Hurdle | Fishing Rod | Medal |
Flute | Brush | Penguin | Megaphone | Corn | Lettuce | Garlic | Swan | Helicopter | Green Onion |
Sandwich | Nuts | Speed Limit Sign | Induction Cooker | Broom | Trombone | Plum | Rickshaw |
Goldfish | Kiwi fruit | Router/modem | Poker Card | Toaster | Shrimp | Sushi | Cheese | Notepaper |
Cherry | Pliers | CD | Pasta | Hammer | Cue | Avocado | Hami melon | Flask | Mushroom |
Screwdriver | Soap | Recorder | Bear | Eggplant | Board Eraser | Coconut | Tape Measure/Ruler |
Pig | Showerhead | Globe | Chips | Steak | Crosswalk Sign | Stapler | Camel | Formula 1 |
Pomegranate | Dishwasher | Crab | Hoverboard | Meatball | Rice Cooker | Tuba | Calculator | Papaya |
Antelope | Parrot | Seal | Butterfly | Dumbbell | Donkey | Lion | Urinal | Dolphin |
Electric Drill | Hair Dryer | Egg tart | Jellyfish | Treadmill | Lighter | Grapefruit | Game board |
Mop | Radish | Baozi | Target | French | Spring Rolls | Monkey | Rabbit | Pencil Case | Yak |
Red Cabbage | Binoculars | Asparagus | Barbell | Scallop | Noddles | Comb | Dumpling | Oyster |
Table Tennis paddle | Cosmetics Brush/Eyeliner Pencil | Chainsaw | Eraser | Lobster | Durian |
Okra | Lipstick | Cosmetics Mirror | Curling | Table Tennis
"""

_COCO = """
1 person | 2 bicycle | 3 car | 4 motorcycle | 5 airplane | 6 bus | 7 train | 8 truck | 9 boat |
10 traffic light | 11 fire hydrant | 13 stop sign | 14 parking meter | 15 bench | 16 bird | 17 cat |
18 dog | 19 horse | 20 sheep | 21 cow | 22 elephant | 23 bear | 24 zebra | 25 giraffe |
27 backpack | 28 umbrella | 31 handbag | 32 tie | 33 suitcase | 34 frisbee | 35 skis |
36 snowboard | 37 sports ball | 38 kite | 39 baseball bat | 40 baseball glove | 41 skateboard |
42 surfboard | 43 tennis racket | 44 bottle | 46 wine glass | 47 cup | 48 fork | 49 knife |
50 spoon | 51 bowl | 52 banana | 53 apple | 54 sandwich | 55 orange | 56 broccoli | 57 carrot |
58 hot dog | 59 pizza | 60 donut | 61 cake | 62 chair | 63 couch | 64 potted plant | 65 bed |
67 dining table | 70 toilet | 72 tv | 73 laptop | 74 mouse | 75 remote | 76 keyboard |
77 cell phone | 78 microwave | 79 oven | 80 toaster | 81 sink | 82 refrigerator | 84 book |
85 clock | 86 vase | 87 scissors | 88 teddy bear | 89 hair drier | 90 toothbrush
"""


def _entries(text: str) -> list[str]:
    return [entry.strip() for entry in " ".join(text.split("\n")).split("|")]


# Objects365 category id, from 1, to name.
OBJECTS365: Mapping[int, str] = MappingProxyType(dict(enumerate(_entries(_OBJECTS365), 1)))

COCO: Mapping[int, str] = MappingProxyType(
    {int(number): name for number, name in (entry.split(" ", 1) for entry in _entries(_COCO))}
)  # COCO category id (1 to 90, ten are not in use) to name

OWN_CLASS = 100000  # no class of Objects365: it has several for COCO's sports balls

_AUTHORS = (
    "1:1 2:47 3:6 4:59 5:115 6:56 7:117 8:66 9:22 10:41 11:177 13:128 14:250 15:25 16:56 17:140 "
    "18:93 19:79 20:100 21:97 22:145 23:296 24:179 25:181 27:39 28:40 31:13 32:44 33:194 34:220 "
    "35:119 36:174 37:100000 38:155 39:138 40:114 41:146 42:147 43:205 44:9 46:36 47:11 48:89 "
    "49:85 50:94 51:26 52:113 53:83 54:266 55:104 56:142 57:153 58:235 59:144 60:151 61:98 62:3 "
    "63:51 64:26 65:76 67:98 70:154 72:37 73:74 74:116 75:133 76:107 77:62 78:164 79:135 80:278 "
    "81:82 82:134 84:19 85:95 86:31 87:170 88:70 89:328 90:227"
)

# COCO ids whose entry in the authors' table is one too low.
ONE_TOO_LOW = frozenset({16, 31, 33, 35, 51, 55, 67, 72, 88, 89})
_COCO_PREFIX, _O365_PREFIX = "refcoco_", "o365_"


class PictureSource(Enum):
    """Source of an annotated object; the value is its name in tables."""

    COCO = "COCO"
    O365_P1 = "O365-P1"  # of a class that COCO has too
    O365_P2 = "O365-P2"


ClassTable = Mapping[str, str]  # ``ori_category_id`` to class; an absent id is its own class
_PAIRS = [tuple(map(int, pair.split(":"))) for pair in _AUTHORS.split()]

AUTHORS: ClassTable = MappingProxyType(  # the table of the published metrics
    {f"{_COCO_PREFIX}{coco}": f"{_O365_PREFIX}{o365}" for coco, o365 in _PAIRS}
)

CORRECTED: ClassTable = MappingProxyType(  # with the ten wrong entries mended
    {
        f"{_COCO_PREFIX}{coco}": f"{_O365_PREFIX}{o365 + (coco in ONE_TOO_LOW)}"
        for coco, o365 in _PAIRS
    }
)

_SHARED = frozenset(CORRECTED.values())
# By the corrected table: which classes COCO has is a question about names, not about the evaluator.


def class_of(ori_category_id: str, table: ClassTable) -> str:
    """Return an annotation's class.

    >>> class_of("refcoco_16", AUTHORS), class_of("refcoco_16", CORRECTED)
    ('o365_56', 'o365_57')
    >>> class_of("o365_300", AUTHORS)
    'o365_300'
    """
    return table.get(ori_category_id, ori_category_id)


def class_name(key: str) -> str:
    """Name a class or ``ori_category_id``; an unknown one is its own name.

    >>> class_name("o365_57"), class_name("refcoco_16"), class_name("o365_100000")
    ('Wild Bird', 'bird', 'sports ball')
    """
    prefix, _, number = key.rpartition("_")
    if not (number.isascii() and number.isdecimal()):
        return key
    if f"{prefix}_" == _O365_PREFIX:
        return COCO[37] if int(number) == OWN_CLASS else OBJECTS365.get(int(number), key)
    if f"{prefix}_" == _COCO_PREFIX:
        return COCO.get(int(number), key)
    return key


def source_of(ori_category_id: str) -> PictureSource | None:
    """Return an annotated object's source; None where its id says neither."""
    if ori_category_id.startswith(_COCO_PREFIX):
        return PictureSource.COCO
    if ori_category_id.startswith(_O365_PREFIX):
        return PictureSource.O365_P1 if ori_category_id in _SHARED else PictureSource.O365_P2
    return None
