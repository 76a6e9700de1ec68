"""What a figure should reach, and whether it does: the tables of aims."""

import math

import report


class Aim:
    """`figure`, and the `limit` that it is held against: at most that, or at least, if so. None: not measured."""

    def __init__(self, text, figure, limit, unit, at_least=False):
        self.text = text
        self.figure = figure
        self.limit = limit
        self.unit = unit
        self.at_least = at_least

    def verdict(self):
        if self.figure is None:
            return "not measured"
        return "reached" if (self.figure >= self.limit if self.at_least else self.figure <= self.limit) else "missed"

    def cells(self):
        measured = "-" if self.figure is None else f"{self.figure:.2f} {self.unit}".rstrip()
        limit = f"{'at least' if self.at_least else 'at most'} {self.limit:g} {self.unit}".rstrip()
        return [self.text, limit, measured, self.verdict()]


def quotient(dividend, divisor):
    return dividend / divisor if dividend is not None and divisor else None


def geometric_mean(values):
    return math.exp(math.fsum(map(math.log, values)) / len(values)) if values else None


def section(found):
    """The aims as a part of a page."""
    return "## Aims\n\n" + report.table([["aim", "wanted", "measured", ""]] + [aim.cells() for aim in found])
