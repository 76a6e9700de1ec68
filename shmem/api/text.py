"""How generated C is laid out: lines of at most 100 columns, as a person would break them."""

import textwrap

COLUMNS = 100


def comment(text):
    """One /* comment */ of one or more paragraphs."""
    paragraphs = [" ".join(paragraph.split()) for paragraph in text.strip().split("\n\n")]
    line = f"/* {paragraphs[0]} */"
    if len(paragraphs) == 1 and len(line) <= COLUMNS:
        return line
    lines = []
    for paragraph in paragraphs:
        lines += ([" *"] if lines else []) + textwrap.wrap(
            paragraph, COLUMNS, initial_indent=" * ", subsequent_indent=" * ",
            break_on_hyphens=False)
    lines[0] = "/* " + lines[0][3:]
    if len(lines[-1]) + 3 > COLUMNS:
        return "\n".join(lines) + "\n */"
    return "\n".join(lines) + " */"


def call(head, pieces, tail, indent=4):
    """head(piece, piece, ...)tail, broken between pieces."""
    lines, line = [], head + "("
    for i, piece in enumerate(pieces):
        last = i + 1 == len(pieces)
        piece += (")" + tail) if last else ","
        glue = "" if line.endswith("(") or not line.strip() else " "
        if len(line + glue + piece) > COLUMNS:
            lines.append(line)
            line, glue = " " * indent, ""
        line += glue + piece
    return "\n".join(lines + [line])


def prototype(function, name=None, tail=";"):
    pieces = [str(parameter) for parameter in function.parameters] or ["void"]
    glue = "" if function.result.endswith(" ") else " "
    return call(f"{function.result}{glue}{name or function.name}", pieces, tail)


def section(title):
    head = f"/* ---- {title} "
    return head + "-" * (COLUMNS - len(head) - 3) + " */"


def macro(lines):
    """Lines of a macro, with their backslashes in one column."""
    return "\n".join(f"{line:<{COLUMNS - 2}} \\" for line in lines[:-1]) + "\n" + lines[-1]
