"""Numbers of the tree as a whole: house_numbers.py [--check BASELINE | --write BASELINE].

Prints them. With --check it prints only what is worse than in BASELINE: a folder's habits of prose, and words of
the glossary that have several meanings, may become fewer and never more. --write notes what there is now.
"""
import argparse
import collections
import os
import re
import subprocess

CODE = (".h", ".hpp", ".cc", ".c", ".cl")
LINES = CODE + (".py", ".proto", ".bzl", ".sh")
TESTS = ("tests", "benchmarks", "examples")
NO_PRODUCT = TESTS + ("docs", "bazel", "third_party", "packaging", "")

# Habits that a technical writer avoids: a name for each, and the pattern that finds it in a paragraph.
HABITS = {
    "nobody": re.compile(r"\b(?:[Nn]obody|[Ss]omebody|[Ee]verybody)\b"),
    "whether": re.compile(r"(?:^|(?<=[.:;] ))Whether\b"),
    "the same": re.compile(r"(?:^|(?<=[.:;] ))The same\b"),
    "who": re.compile(r"(?:^|(?<=[.:;] ))(?:Who|Whoever|What)\b(?![^.]*\?)"),
}


def tracked():
    return subprocess.run(["git", "ls-files"], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()


def text_of(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def folder_of(path):
    """The two upper folders: what a baseline speaks of."""
    return "/".join(os.path.dirname(path).split("/")[:2]) or "."


def top_of(path):
    return path.split("/")[0] if "/" in path else ""


# ---- Prose ----


def paragraphs(path, text):
    """The comments of a program, or what a page says, without code: each in one line."""
    if path.endswith(".md"):
        text = re.sub(r"^    .*$", "", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S), flags=re.M)
        blocks = re.split(r"\n\s*\n|\n(?=[-*|#])", text)
        return [re.sub(r"\s+", " ", block.lstrip("-*|# ")) for block in blocks]
    found, block = [], []
    for line in text.split("\n") + [""]:
        comment = re.match(r"\s*//+ ?(.*)$", line)
        trailing = None if comment else re.search(r"(?<=[;{},)]) +// (.*)$", line)
        if comment and comment.group(1).strip():
            block.append(comment.group(1).strip())
            continue
        if block:
            found.append(" ".join(block))
            block = []
        if trailing:
            found.append(trailing.group(1))
    return found


def habits(paths):
    """{(folder, habit): how often}"""
    counts = collections.Counter()
    for path in paths:
        if not path.endswith((".h", ".hpp", ".cc", ".md")):
            continue
        for paragraph in paragraphs(path, text_of(path)):
            for habit, form in HABITS.items():
                times = len(form.findall(paragraph))
                if times:
                    counts[folder_of(path), habit] += times
    return counts


# ---- The glossary ----


def meanings(explanation):
    """How many meanings a row gives: what is said plainly, and each "In `folder`:", "Of a thing:" or "Also"."""
    marks = len(re.findall(r"(?:^|(?<=[.;] ))(?:(?:In|Of|For) [^.:;]*?:|Also\b|Plainly\b|In `[^`]*`)", explanation))
    return marks + (0 if re.match(r"(?:In|Of|For) [^.:;]*?:", explanation) else 1)


def glossary(text):
    """{word: the number of its meanings}"""
    rows = {}
    for row in re.findall(r"^\| ([^|]+?) \| ([^|]+?) \| [^|]*\|$", text, re.M):
        if row[0] != "word":
            rows[row[0]] = meanings(row[1])
    return rows


# ---- Code ----


def libraries(paths):
    """The cc_library rules of the product; how many of them have one source at most."""
    total = small = 0
    for path in paths:
        if os.path.basename(path) == "BUILD" and top_of(path) not in NO_PRODUCT:
            for rule in re.findall(r"^cc_library\(\n(.*?)^\)", text_of(path), re.M | re.S):
                total += 1
                sources = re.findall(r"^    (?:files|srcs) = \[(.*?)\]", rule, re.M | re.S)
                small += sum(names.count('"') for names in sources) <= 2
    return total, small


def interfaces(paths):
    """[(pure virtual functions, class, file)], the widest first."""
    found = []
    for path in paths:
        if not path.endswith(".h") or top_of(path) in NO_PRODUCT:
            continue
        counts, name = collections.Counter(), ""
        for part in re.finditer(r"^(?:class|struct) (?:\[\[\w+\]\] )?(\w+)[^;{]*\{|\bvirtual [^;{}]*= 0;", text_of(path), re.M):
            if part.group(1):
                name = part.group(1)
            else:
                counts[name] += 1
        found += [(count, name, path) for name, count in counts.items()]
    return sorted(found, reverse=True)


def line_counts(paths):
    """{upper folder: lines of code}"""
    counts = collections.Counter()
    for path in paths:
        if path.endswith(LINES):
            counts[top_of(path)] += text_of(path).count("\n")
    return counts


def numbers(paths):
    """What is printed: [(what, how much)]."""
    lines = line_counts(paths)
    product = {top: count for top, count in lines.items() if top not in NO_PRODUCT}
    total = sum(product.values()) or 1
    biggest = max(product, key=product.get, default="-")
    count, small = libraries(paths)
    words = glossary(text_of("docs/glossary.md")) if "docs/glossary.md" in paths else {}
    prose = collections.Counter()
    for (_, habit), times in habits(paths).items():
        prose[habit] += times
    result = [
        ("lines of the product", str(total)),
        ("lines of tests, benchmarks and examples", str(sum(lines[top] for top in TESTS))),
        ("biggest upper folder", "%s/, %.1f %%" % (biggest, 100 * product.get(biggest, 0) / total)),
        ("libraries of the product", "%d, %d of them with one source at most" % (count, small)),
        ("lines of BUILD files", str(sum(text_of(p).count("\n") for p in paths if os.path.basename(p) == "BUILD"))),
        ("words of the glossary", "%d, %d of them with several meanings" % (len(words), sum(m > 1 for m in words.values()))),
        ("kilobytes of docs/", str(sum(os.path.getsize(p) for p in paths if p.startswith("docs/") and p.endswith(".md")) // 1000)),
    ]
    result += [("widest interface", "%s, %d functions (%s)" % (name, functions, path))
               for functions, name, path in interfaces(paths)[:3]]
    result += [("prose: " + habit, str(prose[habit])) for habit in HABITS]
    return result


# ---- The baseline ----


def notes(paths):
    """{(folder or page, what): how much}, as a baseline holds it."""
    found = dict(habits(paths))
    if "docs/glossary.md" in paths:
        found["docs/glossary.md", "several meanings"] = sum(m > 1 for m in glossary(text_of("docs/glossary.md")).values())
    return found


def read_baseline(path):
    found = {}
    for line in text_of(path).splitlines():
        if line and not line.startswith("#"):
            count, where, what = line.split(" ", 2)
            found[where, what] = int(count)
    return found


def worse(baseline, now):
    """A line for each count that has grown."""
    return ["%s: %d times '%s', %d were there" % (where, count, what, baseline.get((where, what), 0))
            for (where, what), count in sorted(now.items()) if count > baseline.get((where, what), 0)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--check")
    parser.add_argument("--write")
    arguments = parser.parse_args()
    paths = tracked()
    if arguments.check:
        for line in worse(read_baseline(arguments.check), notes(paths)):
            print(line)
    elif arguments.write:
        with open(arguments.write, "w", encoding="utf-8") as file:
            file.write("# How often each folder has what house_numbers.py counts. May shrink: house_numbers.py --write.\n")
            for (where, what), count in sorted(notes(paths).items()):
                if count:
                    file.write("%d %s %s\n" % (count, where, what))
    else:
        for what, how_much in numbers(paths):
            print("%s: %s" % (what, how_much))


if __name__ == "__main__":
    main()
