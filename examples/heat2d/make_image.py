#!/usr/bin/env python3
"""Draws ferry.png, the sample image: a ferry at night, all grey. White is hot, black is cold."""

import math
import struct
import zlib

SIZE = 512


def inside(polygon, x, y):
    """Whether the point lies in the polygon (even-odd rule)."""
    result = False
    for (x1, y1), (x2, y2) in zip(polygon, polygon[1:] + polygon[:1]):
        if (y1 > y) != (y2 > y) and x < (x2 - x1) * (y - y1) / (y2 - y1) + x1:
            result = not result
    return result


HULL = [(70, 300), (442, 300), (404, 362), (112, 362)]
DECK = [(118, 262), (398, 262), (410, 292), (106, 292)]
BRIDGE = [(170, 226), (330, 226), (344, 254), (158, 254)]
FUNNELS = [[(x, 170), (x + 34, 170), (x + 38, 218), (x - 4, 218)] for x in (196, 268)]


def grey(x, y):
    """The temperature of a pixel, 0 to 255."""
    if math.hypot(x - 404, y - 104) < 46:  # the moon
        return 235
    if any(inside(funnel, x, y) for funnel in FUNNELS):
        return 255
    for top, left, right in ((270, 128, 388), (234, 180, 322)):  # windows
        if top <= y < top + 14 and left <= x < right and (x - left) % 26 < 16:
            return 255
    if inside(BRIDGE, x, y) or inside(DECK, x, y):
        return 120
    if inside(HULL, x, y):
        return 185
    for row, level in ((386, 210), (424, 170), (462, 140)):  # waves
        if abs(y - row - 9 * math.sin(x / 23 + row)) < 5:
            return level
    for cx, cy, radius in ((214, 128, 17), (196, 88, 23), (170, 40, 29)):  # smoke
        if radius - 7 < math.hypot(x - cx, y - cy) < radius:
            return 160
    return 70 if y > 362 else 8


def chunk(kind, data):
    body = kind + data
    return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))


def main():
    rows = b"".join(b"\0" + bytes(grey(x, y) for x in range(SIZE)) for y in range(SIZE))
    header = struct.pack(">IIBBBBB", SIZE, SIZE, 8, 0, 0, 0, 0)  # 8 bits, grey
    with open("ferry.png", "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) +
                   chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b""))


if __name__ == "__main__":
    main()
