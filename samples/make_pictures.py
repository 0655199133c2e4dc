#!/usr/bin/env python3
"""Draws a labelled picture set to try stripepack with.

    make_pictures.py OUT [--per-class N] [--seed S]

makes OUT/train/<class>/... and OUT/val/<class>/... with N and about N/4 pictures a class: shapes of
many sizes, as JPEG, PNG and WebP. Each class has its own hue, so that even a very small model learns
it. A picture depends on the seed, its class and its number only: the same seed gives the same files.
Needs Pillow (Debian: python3-pil) and nothing else.
"""
import argparse
import colorsys
import math
import pathlib
import random
import sys

try:
    from PIL import Image, ImageDraw, features
except ImportError:
    sys.exit("make_pictures.py: needs Pillow: apt install python3-pil, or pip install pillow")


def polygon(corners, turn, inner=1.0):
    """Corners of a regular polygon in the unit circle; INNER < 1 draws every second one in."""
    for i in range(corners):
        angle = turn + 2 * math.pi * i / corners
        radius = inner if i % 2 else 1.0
        yield radius * math.sin(angle), -radius * math.cos(angle)


def turned(corners, turn):
    for x, y in corners:
        yield x * math.cos(turn) - y * math.sin(turn), x * math.sin(turn) + y * math.cos(turn)


def cross(turn):
    arm = 0.33
    corners = [(arm, 1), (arm, arm), (1, arm), (1, -arm), (arm, -arm), (arm, -1),
               (-arm, -1), (-arm, -arm), (-1, -arm), (-1, arm), (-arm, arm), (-arm, 1)]
    return turned(corners, turn)


# Class -> corners by turn; None: round.
SHAPES = {
    "circle": None,
    "cross": cross,
    "diamond": lambda turn: turned([(0, -1), (0.6, 0), (0, 1), (-0.6, 0)], turn / 8),
    "hexagon": lambda turn: polygon(6, turn),
    "ring": None,
    "square": lambda turn: polygon(4, math.pi / 4 + turn / 4),
    "star": lambda turn: polygon(10, turn, 0.4),
    "triangle": lambda turn: polygon(3, turn),
}
CLASSES = sorted(SHAPES)


def rgb(hue, saturation, value):
    return tuple(round(255 * part) for part in colorsys.hsv_to_rgb(hue % 1.0, saturation, value))


def background(dice, width, height):
    """A grey ramp with coarse grain: something for the encoders to do."""
    low, high = sorted(dice.randrange(60, 200) for _ in range(2))
    ramp = Image.linear_gradient("L").rotate(dice.choice((0, 90, 180, 270)))
    ramp = ramp.point([low + (high - low) * i // 255 for i in range(256)]).resize((width, height))
    columns, rows = max(2, width // 4), max(2, height // 4)
    grain = Image.frombytes("L", (columns, rows), dice.randbytes(columns * rows))
    return Image.blend(ramp, grain.resize((width, height), Image.BILINEAR), 0.15).convert("RGB")


def draw(dice, name):
    width = dice.choice((32, 64, 96, 128, 160, 224, 320)) + dice.randrange(32)
    height = round(width * dice.uniform(0.6, 1.6))
    picture = background(dice, width, height)

    radius = min(width, height) * dice.uniform(0.3, 0.48)
    centre_x = dice.uniform(radius, width - radius)
    centre_y = dice.uniform(radius, height - radius)
    turn = dice.uniform(0, 2 * math.pi)
    hue = CLASSES.index(name) / len(CLASSES) + dice.uniform(-0.03, 0.03)
    colour = rgb(hue, dice.uniform(0.75, 1.0), dice.uniform(0.7, 1.0))

    fine = 3  # the mask is drawn larger and shrunk, which smooths its edges
    mask = Image.new("L", (width * fine, height * fine), 0)
    pen = ImageDraw.Draw(mask)
    if SHAPES[name] is None:
        for part, value in ((1.0, 255), (0.6, 0))[:2 if name == "ring" else 1]:
            r = radius * part
            pen.ellipse([fine * (centre_x - r), fine * (centre_y - r),
                         fine * (centre_x + r), fine * (centre_y + r)], fill=value)
    else:
        pen.polygon([(fine * (centre_x + radius * x), fine * (centre_y + radius * y))
                     for x, y in SHAPES[name](turn)], fill=255)
    picture.paste(colour, mask=mask.resize((width, height), Image.BOX))
    return picture


def save(dice, picture, stem):
    kind = dice.random()
    if kind < 0.6:
        picture.save(f"{stem}.jpg", quality=dice.randrange(70, 96))
    elif kind < 0.85 or not features.check("webp"):
        picture.save(f"{stem}.png")
    else:
        picture.save(f"{stem}.webp", quality=dice.randrange(60, 96))


def main():
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("out", type=pathlib.Path)
    options.add_argument("--per-class", type=int, default=40, metavar="N")
    options.add_argument("--seed", type=int, default=1, metavar="S")
    options = options.parse_args()
    if options.per_class < 1:
        sys.exit("make_pictures.py: --per-class must be at least 1")

    count = 0
    for split, per_class in (("train", options.per_class), ("val", (options.per_class + 3) // 4)):
        for name in CLASSES:
            folder = options.out / split / name
            folder.mkdir(parents=True, exist_ok=True)
            for number in range(per_class):
                dice = random.Random(f"{options.seed}/{split}/{name}/{number}")
                save(dice, draw(dice, name), folder / f"{name}-{number:04}")
                count += 1
    print(f"{count} pictures of {len(CLASSES)} classes in {options.out}")


if __name__ == "__main__":
    main()
