"""How a benchmark is run by Ferry and by other libraries, and how they take turns.

A benchmark in C includes benchmarks/common/shim.h; Bazel builds it for Ferry, peers.py for the MPI libraries
beside it. Libraries take turns within each repetition, so that a disturbance of the machine hits all of them
alike. Only figures of one run should be compared.
"""

import os
import signal
import statistics
import sys
from collections import defaultdict

import processes

FERRYRUN = "out/bin/tools/ferryrun/ferryrun"
LIMIT_S = 60  # of one run: a library that stands still should not hold the others up for long

# Where the ranks are, and how many. A layout may hold more than two ranks for two cores.
RANKS = {"same_node": 2, "same_node_private": 2, "oversubscribed": 4, "tcp": 2, "tcp_oversubscribed": 4}
LAYOUTS = ["same_node", "same_node_private", "oversubscribed", "tcp"]  # those of point to point
TITLES = {
    "same_node": "two ranks on one node",
    "same_node_private": "two ranks on one node, private memory",
    "oversubscribed": "four ranks on two cores, two pairs at once",
    "tcp": "two nodes over loopback TCP",
    "tcp_oversubscribed": "four ranks on two nodes over loopback TCP, on two cores",
}

# The device of Chen et al. (OSU), as gpu_backends/host/link_options.h has it, with an engine for each
# direction: the environment in which Ferry emulates the link to it.
OSU_LINK = {"FERRY_HOST_LINK_" + name: str(value) for name, value in {
    "H2D_MB_PER_S": 3768, "D2H_MB_PER_S": 5622, "PAGEABLE_H2D_MB_PER_S": 2917, "PAGEABLE_D2H_MB_PER_S": 3510,
    "D2D_MB_PER_S": 34000, "LATENCY_US": 27, "PAGEABLE_LATENCY_US": 54}.items()}


class Failure(RuntimeError):
    """A run that failed. Its text is what to tell somebody who reads; `words` are the program's last, `output` what
    it had printed."""

    def __init__(self, text, words="", output=""):
        super().__init__(text)
        self.words = words
        self.output = output


class PeerGaveUp(Failure):
    """Not a failure of the benchmark: the tables say it."""


class Library:
    """A way to run a program: the library's name, the program built for it, and for a layout the launcher
    and added environment."""

    failure = Failure

    def __init__(self, name, program, launcher, limit_s=LIMIT_S):
        self.name = name
        self.program = program
        self.launcher = launcher
        self.limit_s = limit_s

    def run(self, layout, arguments, environment=None, ranks=None):
        """The program's standard output; raises `failure` when it fails, or has not ended when its time is over.
        Nothing that it started is left then. `ranks`, if it is not the layout's number."""
        command, added = self.launcher(layout)
        command = command + ["-n", str(ranks or RANKS[layout]), self.program] + arguments
        cores = sorted(os.sched_getaffinity(0))[:2] if RANKS[layout] > 2 else None
        try:
            ended = processes.run(command, self.limit_s, {**os.environ, **added, **(environment or {})}, cores)
        except OSError as error:
            raise self.failure(f"cannot start {command[0]}: {error.strerror}") from None
        if ended.code is None:
            raise self.failure(f"no end after {self.limit_s:g} s", ended.errors, ended.output)
        if ended.code < 0:
            raise self.failure(f"ended by {signal.Signals(-ended.code).name}", ended.errors, ended.output)
        if ended.code > 0:
            raise self.failure(f"exit code {ended.code}", ended.errors, ended.output)
        return ended.output


# Between nodes Ferry's ranks take direct links where they talk much; this row or column is without.
BY_DAEMONS = "Ferry, by daemons"


def ferry(program):
    """Ferry's way to run what Bazel built; exits when that is not there."""
    for path in (FERRYRUN, program):
        if not os.path.exists(path):
            sys.exit(f"no {path}: run ./dev bench NAME in the root of the workspace")
    where = {"tcp": ["--nodes", "2"], "tcp_oversubscribed": ["--nodes", "2"]}
    # Room for windows of 4 MiB both ways, and for blocks that Ferry copies through.
    command = [FERRYRUN, "--no-label", "--heap_bytes=268435456"]
    return Library("Ferry", program,
                   lambda layout: (command + where.get(layout, ["--private"]), {}))


def by_daemons(library):
    """The same without direct links."""
    def launcher(layout):
        command, added = library.launcher(layout)
        return command, {**added, "FERRY_DIRECT_LINKS": "off"}

    return Library(BY_DAEMONS, library.program, launcher)


UNBOUND = "Ferry, unbound"


def unbound(library):
    """The same without cores of their own for the ranks."""
    def launcher(layout):
        command, added = library.launcher(layout)
        return command, {**added, "FERRY_BIND_TO": "none"}

    return Library(UNBOUND, library.program, launcher)


def may_have_links(layout):
    return layout.startswith("tcp")


def show(progress):
    """One line that is written over, for somebody who waits."""
    if sys.stderr.isatty():
        print(f"\r{progress:78}\r", end="", file=sys.stderr, flush=True)


class Medians(dict):
    """{library's name: {key: figure}}, without figures for one that failed; `failures` says {its name: why}."""

    def __init__(self):
        super().__init__()
        self.failures = {}
        self.whole = True  # nothing has failed but peers

    def parts(self):
        """What the tables do not say, as a list of Markdown."""
        return [f"- {name} gave up: {why}." for name, why in self.failures.items()]


def take_turns(libraries, repetitions, title, run):
    """Calls run(library), which returns {key: figure}, for each library in turn, and returns the Medians. A library
    that fails is reported and not run again."""
    samples = defaultdict(lambda: defaultdict(list))
    medians = Medians()
    for repetition in range(repetitions):
        for library in libraries:
            if library.name in medians.failures:
                continue
            show(f"{title}: {repetition + 1} of {repetitions}, {library.name}")
            try:
                for key, value in run(library).items():
                    samples[library.name][key].append(value)
            except Failure as failure:
                print(f"\n{title}, {library.name}: {failure}\n{failure.words.strip()[-500:]}", file=sys.stderr)
                medians.failures[library.name] = str(failure)
                medians.whole = medians.whole and isinstance(failure, PeerGaveUp)
    show("")
    for library in libraries:
        medians[library.name] = {} if library.name in medians.failures else {
            key: statistics.median(values) for key, values in samples[library.name].items()}
    return medians
