"""Fortran source that is valid in fixed form and in free form alike."""


def lines(statement):
    """A statement as lines of 72 columns. The `&` in column 73 goes on in free form and is a comment
    in fixed form; that in column 6 goes on in fixed form, and may begin a line in free form."""
    pieces = []
    rest = statement
    while len(rest) > 66:
        cut = rest.rfind(",", 0, 66) + 1 or rest.rfind(" ", 0, 66) + 1
        if cut <= 0:
            raise ValueError(f"no place to break: {statement}")
        pieces.append(rest[:cut])
        rest = rest[cut:]
    pieces.append(rest)
    found = []
    for number, piece in enumerate(pieces):
        line = ("      " if number == 0 else "     &") + piece
        found.append(line.ljust(72) + "&" if number < len(pieces) - 1 else line.rstrip())
    return "\n".join(found) + "\n"
