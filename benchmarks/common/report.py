"""Tables and JSON rows of the benchmarks.

A row is Ferry's figure for one thing that was measured, with its peers' of the same run:
    {benchmark, layout, size_bytes, metric, unit, ferry, peers: {name: value}, ratio_to_best_peer}
The ratio is Ferry's figure over the best peer's: below 1 is better for a latency, above 1 for the rest.
"""

import json
import os
import platform
import subprocess

METRICS = ("latency", "bandwidth", "rate", "overlap")


class Row:
    """One figure beside its peers'; None where that run failed."""

    def __init__(self, benchmark, layout, size_bytes, metric, unit, figures):
        assert metric in METRICS, metric
        self.benchmark = benchmark
        self.layout = layout
        self.size_bytes = size_bytes
        self.metric = metric
        self.unit = unit
        self.ferry = figures.get("Ferry")
        self.peers = {name: value for name, value in figures.items() if name != "Ferry"}

    def ratio(self):
        """Ferry's figure over the best peer's; None without both. Other ways of Ferry's are no peers."""
        found = [value for name, value in self.peers.items() if value is not None and not name.startswith("Ferry")]
        if self.ferry is None or not found:
            return None
        best = (min if self.metric == "latency" else max)(found)
        return self.ferry / best if best else None

    def as_json(self):
        return {"benchmark": self.benchmark, "layout": self.layout, "size_bytes": self.size_bytes,
                "metric": self.metric, "unit": self.unit, "ferry": self.ferry, "peers": self.peers,
                "ratio_to_best_peer": self.ratio()}


def write_json(path, rows):
    with open(path, "w", encoding="utf-8") as file:
        json.dump([row.as_json() for row in rows], file, indent=1)
        file.write("\n")


def size_text(size):
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size} {unit}"
        size //= 1024
    return f"{size} GiB"


def figure_text(value, missing="-"):
    if value is None:
        return missing
    return f"{value:.2f}" if value < 100 else f"{value:.0f}"


def table(cells):
    """A Markdown table, aligned for reading as text too: the first row is the header."""
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    lines = ["| " + " | ".join(cell.rjust(width) for cell, width in zip(row, widths)) + " |"
             for row in cells]
    lines.insert(1, "|" + "|".join("-" * (width + 1) + ":" for width in widths) + "|")
    return "\n".join(lines)


def comparison(groups):
    """A table of rows by size. `groups` is {title: rows}: further groups stand to the right of the first,
    for the same sizes, their titles in the header."""
    first = next(iter(groups.values()))
    names = list(dict.fromkeys(name for rows in groups.values() for row in rows for name in row.peers))
    header = ["size"]
    for title in groups:
        suffix = f", {title}" if title else ""
        header += [f"{name}{suffix}" for name in ["Ferry"] + names] + ["ratio"]
    cells = [header]
    for index, row in enumerate(first):
        line = [size_text(row.size_bytes)]
        for rows in groups.values():
            line += [figure_text(value, "gave up") for value in
                     [rows[index].ferry] + [rows[index].peers.get(name) for name in names]]
            line.append(figure_text(rows[index].ratio()))
        cells.append(line)
    return table(cells)


def gain(row, name):
    """How many times as good Ferry's figure is as that of the peer `name`, another way of Ferry's included."""
    theirs = row.peers.get(name)
    if not row.ferry or not theirs:
        return None
    return theirs / row.ferry if row.metric == "latency" else row.ferry / theirs


def beside_ways(rows):
    """A table of one benchmark by size: Ferry's figures, those of its peers, and how many times as good Ferry is as
    each other way of using it (as by hand)."""
    names = list(rows[0].peers)
    ways = [name for name in names if name.startswith("Ferry")]
    has_ratio = len(ways) < len(names)
    cells = [["size", "Ferry", *names, *(["ratio"] if has_ratio else []),
              *(f"times as good as {name.removeprefix('Ferry, ')}" for name in ways)]]
    for row in rows:
        cells.append([size_text(row.size_bytes)] +
                     [figure_text(value, "gave up") for value in [row.ferry, *(row.peers[name] for name in names)]] +
                     ([figure_text(row.ratio())] if has_ratio else []) +
                     [figure_text(gain(row, name)) for name in ways])
    return table(cells)


def describe_commit():
    """Of the checkout; in a folder of programs that was copied here, what a file named commit says."""
    try:
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "commit"), encoding="utf-8") as file:
            return file.read().strip()
    except FileNotFoundError:
        pass
    try:
        return subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True,
                              check=False).stdout.strip() or "unknown"
    except OSError:
        return "unknown"


def describe_machine():
    cpu = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo", encoding="utf-8")
                if line.startswith("model name")), platform.machine())
    return f"{cpu}, {os.cpu_count()} cores, Linux {platform.release()}; commit {describe_commit()}"


def describe_ranks():
    """The machine, how busy it is with this and all else, and how ranks are bound on it: nobody changes what launchers
    do by default."""
    return (f"{describe_machine()}; load {os.getloadavg()[0]:.1f}; ranks as each launcher places them by default (Ferry, Open MPI and Intel MPI bind "
            "them to cores of their own where these are enough, MPICH does not)")


def tables_of(text):
    """The tables of a page of Markdown: the headings above each, its columns, and its rows; and the page's first paragraph."""
    headings, tables, lines = {}, [], []
    for line in text.splitlines() + [""]:
        if line.startswith("|"):
            lines.append([cell.strip() for cell in line.strip()[1:-1].split("|")])
        elif lines:
            section = [headings[level] for level in sorted(headings) if level > 1]
            tables.append({"section": section, "columns": lines[0], "rows": lines[2:]})
            lines = []
        if line.startswith("#"):
            marks, _, title = line.partition(" ")
            headings = {level: name for level, name in headings.items() if level < len(marks)} | {len(marks): title}
    measured = next((part for part in text.split("\n\n") if part and not part.startswith("#")), "")
    return {"measured": measured.replace("\n", " ").strip(), "tables": tables}


def publish(text, rows, output=None, json_path=None):
    """Prints the tables, and writes what was asked for (the usual options --output and --json).

    Beside a page FILE.md stands FILE.json with all its tables: the page may be cut to what matters afterwards.
    """
    print(text, end="")
    if output:
        with open(output, "w", encoding="utf-8") as file:
            file.write(text)
        with open(os.path.splitext(output)[0] + ".json", "w", encoding="utf-8") as file:
            page = tables_of(text)
            tables = ",\n".join("  " + json.dumps(entry, ensure_ascii=False) for entry in page["tables"])
            file.write(f'{{"measured": {json.dumps(page["measured"], ensure_ascii=False)},\n "tables": [\n{tables}]}}\n')
    if json_path:
        write_json(json_path, rows)


def add_options(parser):
    """The options that every benchmark has."""
    parser.add_argument("--json", metavar="FILE", help="write the figures there, as JSON rows")
    parser.add_argument("--output", metavar="FILE", help="write the tables there too, as Markdown, and beside it as JSON")
