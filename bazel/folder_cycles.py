"""Folders that include each other, directly or by way of others: folder_cycles.py FILE...

Prints each such group of folders, with the includes inside it, or nothing if all is well. Files in
the folders of TOPS, which nothing else includes, are left out.
"""

import collections
import os
import re
import sys

TOPS = ("tests/", "benchmarks/", "examples/")


def includes(paths):
    """{folder: {other folder: the first include of it}}"""
    found = collections.defaultdict(dict)
    for path in paths:
        if path.startswith(TOPS):
            continue
        with open(path, encoding="utf-8") as file:
            targets = re.findall(r'^#include "([^"]+)"', file.read(), re.M)
        folder = os.path.dirname(path)
        for target in targets:
            other = os.path.dirname(target)
            if other not in ("", folder) and os.path.exists(target):
                found[folder].setdefault(other, "%s includes %s" % (path, target))
    return found


def reached(graph, start):
    seen, waiting = set(), [start]
    while waiting:
        for other in graph.get(waiting.pop(), ()):
            if other not in seen:
                seen.add(other)
                waiting.append(other)
    return seen


def groups(graph):
    """The sets of folders in which each reaches each."""
    reach = {folder: reached(graph, folder) for folder in graph}
    return {frozenset(other for other in reach[folder] if folder in reach.get(other, ()))
            for folder in graph if folder in reach[folder]}


def main():
    graph = includes(sys.argv[1:])
    for group in sorted(groups(graph), key=sorted):
        print("%s include each other:" % ", ".join(sorted(group)))
        for folder in sorted(group):
            for other in sorted(group & graph[folder].keys()):
                print("  " + graph[folder][other])


if __name__ == "__main__":
    main()
