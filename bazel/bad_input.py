"""The index of docs/bad_input.md: the files of the suites and tests that the page names. bad_input.py [--write].

Without --write it prints what is wrong: an index that is not up to date, or a test that is nowhere. A file whose only suite has
its name (FerryctlTest in ferryctl_test.cc) is listed without the suite.
"""
import collections
import re
import subprocess
import sys

PAGE = "docs/bad_input.md"
HEAD = "## Where the tests are"
NAMED = re.compile(r"`([A-Z]\w*Test)(?:\.(\w+)(?:\.\.\.)?)?`")
DEFINED = re.compile(r"\bTEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\s*\)")


def text_of(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def places():
    """{suite: {test: file}}"""
    found = collections.defaultdict(dict)
    paths = subprocess.run(["git", "ls-files", "tests/*.cc"], stdout=subprocess.PIPE, text=True, check=True)
    for path in paths.stdout.splitlines():
        for suite, test in DEFINED.findall(text_of(path)):
            found[suite][test] = path
    return found


def index(page):
    """The lines of the index, and the tests that are nowhere."""
    known = places()
    files, lost = collections.defaultdict(set), set()
    for suite, test in NAMED.findall(page):
        paths = {path for name, path in known[suite].items() if name.startswith(test)}
        if not paths:
            lost.add(suite + ("." + test if test else ""))
        for path in paths:
            files[path].add(suite)
    folders = collections.defaultdict(list)
    for path, suites in files.items():
        folder, name = path.rsplit("/", 1)
        name = name.removesuffix("_test.cc")
        own = "".join(word.capitalize() for word in name.split("_")) + "Test"
        folders[folder].append(name if suites == {own} else "%s: %s" % (name, ", ".join(sorted(suites))))
    return ["| `%s/` | %s |" % (folder, "; ".join(sorted(lines))) for folder, lines in sorted(folders.items())], lost


def main(arguments):
    old = text_of(PAGE)
    page = old.split("\n" + HEAD)[0].rstrip("\n") + "\n"
    lines, lost = index(page)
    new = page + "\n".join(["", HEAD, "| folder | file (`_test.cc`): suites, unless the only one has its name |", "|---|---|"] + lines) + "\n"
    for name in sorted(lost):
        print("%s names %s, which is nowhere" % (PAGE, name))
    if "--write" in arguments:
        with open(PAGE, "w", encoding="utf-8") as file:
            file.write(new)
    elif new != old:
        print("the index of %s is not up to date: python3 bazel/bad_input.py --write" % PAGE)
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
