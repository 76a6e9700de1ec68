"""How much short runs of one program differ: many jobs of two ranks on one node, each with a handful of small
operations, by each library as its launcher starts it, and by Ferry without binding, too."""

import statistics

import libraries
import peers
import report

SOURCE = "benchmarks/mpi/spread.c"
LAYOUT = "same_node"
BYTES = 8
FAR = 2  # times the median: a run in another state than most


def quantile(sorted_samples, part):
    """The smallest sample that is not below this part of them."""
    return sorted_samples[min(len(sorted_samples) - 1, int(part * len(sorted_samples)))]


def collect(found, runs, rounds):
    """{operation: {library: samples}} of libraries in turn, and {library that failed: why}."""
    samples, failures = {}, {}
    for run in range(runs):
        for library in found:
            if library.name in failures:
                continue
            libraries.show(f"spread: {run + 1} of {runs}, {library.name}")
            try:
                output = library.run(LAYOUT, [str(rounds)])
            except libraries.Failure as failure:
                failures[library.name] = str(failure)
                continue
            for line in output.splitlines():
                operation, figure = line.split()
                samples.setdefault(operation, {}).setdefault(library.name, []).append(float(figure))
    libraries.show("")
    return samples, failures


def count_far(samples):
    return sum(sample > FAR * statistics.median(samples) for sample in samples)


def describe(of_library):
    """A table of one operation."""
    cells = [["library", "runs", "least", "median", "95 %", "most", f"beyond {FAR} × the median"]]
    for name, samples in of_library.items():
        ordered = sorted(samples)
        cells.append([name, str(len(ordered)), report.figure_text(ordered[0]),
                      report.figure_text(statistics.median(ordered)), report.figure_text(quantile(ordered, 0.95)),
                      report.figure_text(ordered[-1]), str(count_far(ordered))])
    return report.table(cells)


def measure(folder, arguments):
    """Titles and tables, and groups of rows: the medians."""
    ferry = libraries.ferry(peers.portable(SOURCE, folder))
    found = [ferry, libraries.unbound(ferry)] + (
        [] if arguments.alone else peers.peers(SOURCE, folder, arguments.limit))
    samples, failures = collect(found, arguments.runs, arguments.rounds)
    parts = [f"## {arguments.runs} short runs of two ranks on one node, {arguments.rounds} rounds of each operation, "
             f"{BYTES} B, us", *(f"- {name} gave up: {why}." for name, why in failures.items())]
    groups = [] if samples else [[report.Row("mpi_spread", LAYOUT, BYTES, "latency", "us", {})]]
    for operation, of_library in samples.items():
        parts.append(f"### {operation.capitalize()}\n\n{describe(of_library)}")
        groups.append([report.Row(f"mpi_spread/{operation}", LAYOUT, BYTES, "latency", "us",
                                  {name: statistics.median(figures) for name, figures in of_library.items()})])
    return parts, groups
