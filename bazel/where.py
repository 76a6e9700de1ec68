"""Rows of docs/dev/where.md whose file, or the name in it, is not there: where.py PAGE. Prints a line for each."""
import os
import re
import sys

ROW = re.compile(r"^\|(?P<question>[^|]*)\| \[[^]]*\]\((?P<path>[^)]*)\) \| `(?P<name>[^`]*)` \|$", re.M)


def lost(page):
    """What is wrong with the page's rows."""
    with open(page, encoding="utf-8") as file:
        text = file.read()
    rows = list(ROW.finditer(text))
    others = [line for line in text.splitlines() if line.startswith("|") and not ROW.match(line) and "](" in line]
    for line in others:
        yield "not a row of question, file and name: " + line
    if not rows:
        yield page + " has no rows"
    for row in rows:
        path = os.path.normpath(os.path.join(os.path.dirname(page), row["path"]))
        if not os.path.exists(path):
            yield "%s: there is no %s" % (row["question"].strip(), path)
            continue
        with open(path, encoding="utf-8") as file:
            if row["name"] not in file.read():
                yield "%s: %s has no %s" % (row["question"].strip(), path, row["name"])


if __name__ == "__main__":
    for line in lost(sys.argv[1]):
        print(line)
