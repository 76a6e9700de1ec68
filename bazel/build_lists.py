"""Lists in BUILD files as they are to stand: build_lists.py [--fix] FILE...

A list of strings stands on one line if it fits into 100 columns. Otherwise its strings fill lines, as words do a paragraph.
Lists with comments inside, and whatever else is in a list, stay as they are. Prints the files that differ, or mends them.
"""
import re
import sys

COLUMNS = 100

LIST = re.compile(r"""\[\s*((?:"[^"\n\\]*",?\s*)+)\]""")
# Matches the text before a list on its line. A line that is too long is broken only behind such text.
OWNER = re.compile(r"""\s*(?:\w+ = |"[^"]*": )?$""")


def filled(strings, indent):
    """The lines of a paragraph of strings."""
    lines = [indent]
    for string in strings:
        if lines[-1] != indent and len(lines[-1]) + 1 + len(string) + 1 > COLUMNS:
            lines.append(indent)
        lines[-1] += (" " if lines[-1] != indent else "") + string + ","
    return lines


def formatted_list(text, match):
    """What is to stand in the place of the list, which begins at match.start()."""
    before = text[text.rfind("\n", 0, match.start()) + 1:match.start()]
    after = text[match.end():].split("\n", 1)[0]
    strings = re.findall(r'"[^"]*"', match.group(1))
    line = "[" + ", ".join(strings) + "]"
    stands_in_comment = "#" in re.sub(r'"[^"]*"', "", before)
    breakable = "\n" in match.group(0) or OWNER.match(before)
    if stands_in_comment or len(before + line + after) <= COLUMNS or not breakable:
        return match.group(0) if stands_in_comment else line
    indent = re.match(r"\s*", before).group(0)
    return "\n".join(["["] + filled(strings, indent + "    ") + [indent + "]"])


def formatted(text):
    """The file as it is to be."""
    at = 0
    while True:
        match = LIST.search(text, at)
        if not match:
            return text
        replacement = formatted_list(text, match)
        text = text[:match.start()] + replacement + text[match.end():]
        at = match.start() + len(replacement)


def main(arguments):
    for path in arguments:
        if path == "--fix":
            continue
        with open(path, encoding="utf-8") as file:
            text = file.read()
        wanted = formatted(text)
        if wanted != text and "--fix" in arguments:
            with open(path, "w", encoding="utf-8") as file:
                file.write(wanted)
        elif wanted != text:
            print(path)


if __name__ == "__main__":
    main(sys.argv[1:])
