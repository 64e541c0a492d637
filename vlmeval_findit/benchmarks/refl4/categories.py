"""Category names: Objects365 (v2) and COCO, as their owners spell them.

In one text each, because 445 lines of one name would say no more.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

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


OBJECTS365: Mapping[int, str] = MappingProxyType(dict(enumerate(_entries(_OBJECTS365), 1)))
"""Objects365 category id, from 1, to its name."""

COCO: Mapping[int, str] = MappingProxyType(
    {int(number): name for number, name in (entry.split(" ", 1) for entry in _entries(_COCO))}
)
"""COCO category id (1 to 90, ten are not in use) to its name."""
