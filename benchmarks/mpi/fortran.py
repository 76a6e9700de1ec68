"""The part fortran of `./dev bench mpi`: MPI's calls in Fortran beside those in C, and sections of arrays.

One program (fortran.c with fortran_calls.F90) is compiled by the wrappers of each library. Beside Ferry stand Debian's
MPICH and Open MPI, since what PyPI has of them comes without modules for gfortran.
"""

import os
import subprocess

import libraries
import peers
import report
import wheels
from aim import Aim, section

FOLDER = os.path.dirname(os.path.relpath(__file__))
WAYS = {"mpif": "mpif.h", "module": "use mpi", "typed": "use mpi_f08"}
LIMITS_NS = {"mpif": 5, "module": 5, "typed": 15}  # over C, of a message
MESSAGES = {"null": 1, "own": 2}  # that a call hands over: a send; a send and a receive
CALLS = {"null": "MPI_Send of 8 bytes to MPI_PROC_NULL", "own": "MPI_Sendrecv of 8 bytes with oneself"}
SECTIONS = {1: "oneself", 2: "the other rank"}
# The wrappers for C and Fortran, where not Ferry's own, and where each is.
DEBIAN = {"MPICH": ("mpicc.mpich", "mpif90.mpich", peers.debian_mpich),
          "Open MPI": ("mpicc.openmpi", "mpif90.openmpi", peers.debian_open_mpi)}
OWN = ("tools/wrappers/ferrycc", "tools/wrappers/ferryfc")
OF_C = ["-O2", "-I.", "-Wno-stringop-overflow", "-D_GNU_SOURCE", "-DBENCH_MPI"]
OF_FORTRAN = ["-O2", "-ffree-line-length-none"]


def compile_program(of_c, of_fortran, folder, title):
    """The program that these wrappers make; raises Missing, which says why there is none."""
    def call(*command):
        try:
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        except OSError as error:
            raise peers.Missing(f"cannot start {command[0]}: {error.strerror}") from None
        if done.returncode != 0:
            raise peers.Missing(f"{command[0]} fails: {wheels.last_line(done.stdout)}")

    def place(name):
        return os.path.join(folder, f"fortran.{title.replace(' ', '_')}.{name}")

    objects = [place("c.o")]
    call(of_c, *OF_C, "-c", f"{FOLDER}/fortran.c", "-o", objects[0])
    for way in WAYS:
        objects.append(place(f"{way}.o"))
        call(of_fortran, *OF_FORTRAN, f"-DBENCH_{way.upper()}", "-c", f"{FOLDER}/fortran_calls.F90", "-o", objects[-1])
    call(of_fortran, *objects, "-o", place("program"))
    return place("program")


def find(folder, arguments):
    """Ferry, the peers, and what they are in words."""
    found, words = [libraries.ferry(compile_program(*OWN, folder, "Ferry"))], []
    for name, (of_c, of_fortran, look) in {} if arguments.alone else DEBIAN.items():
        try:
            there = look()
            program = compile_program(of_c, of_fortran, folder, name)
            found.append(peers.Peer(name, program, there.launcher, arguments.limit))
            words.append(f"{name} {there.version}")
        except peers.Missing as reason:
            found.append(peers.Peer(name, "", None, reason=str(reason)))
            words.append(f"{name} (missing)")
    return found, ", ".join(words)


def run(library, what, ranks, arguments, sizes=()):
    """{(what, way) or (size, way): figure}"""
    output = library.run("same_node", [what, str(arguments.batch), *map(str, sizes)], ranks=ranks)
    figures = {}
    for line in output.splitlines():
        *key, way, figure = line.split()
        figures[int(key[1]) if what == "sections" else key[0], way] = float(figure)
    return figures


def over_c(figures, call, way):
    """Nanoseconds that Fortran adds to a message."""
    both = figures.get((call, way)), figures.get((call, "c"))
    return None if None in both else (both[0] - both[1]) / MESSAGES[call]


def tables_of_calls(medians):
    """Of each call: what it takes in C, and what Fortran adds."""
    parts = []
    for call, title in CALLS.items():
        of_what = "a message" if MESSAGES[call] > 1 else "the call"
        cells = [["library", "C, ns", *(f"{name} adds to {of_what}" for name in WAYS.values())]]
        for library, figures in medians.items():
            cells.append([library, *(report.figure_text(value) for value in (
                figures.get((call, "c")), *(over_c(figures, call, way) for way in WAYS)))])
        parts.append(f"### {title}\n\n{report.table(cells)}")
    return parts


def section_rows(medians, ranks, sizes):
    """Ferry's typed interface beside the faster interface of each peer, and beside other ways of Ferry's."""
    rows = []
    for size in sizes:
        figures = {}
        for library, of_library in medians.items():
            ways = {way: of_library.get((size, way)) for way in ("c", *WAYS)}
            if library == "Ferry":
                figures |= {"Ferry": ways["typed"], "Ferry, use mpi": ways["module"],
                            "Ferry, C with a datatype": ways["c"]}
            else:
                figures[library] = min((ways[way] for way in WAYS if ways[way] is not None), default=None)
        rows.append(report.Row(f"mpi_fortran/sections_of_{ranks}", "same_node", size, "latency", "us", figures))
    return rows


def aims(calls):
    return [Aim(f"{WAYS[way]} over C, {CALLS[call]}{', each of both' if MESSAGES[call] > 1 else ''}",
                over_c(calls["Ferry"], call, way), LIMITS_NS[way], "ns") for call in CALLS for way in WAYS]


def measure(folder, arguments):
    """Titles and tables, and groups of rows."""
    try:
        found, words = find(folder, arguments)
    except peers.Missing as reason:
        return [f"## Fortran\n\nLeft out: {reason}."], []
    calls = libraries.take_turns(found, arguments.repetitions, "calls in Fortran",
                                 lambda library: run(library, "calls", 1, arguments))
    parts = [f"## Fortran{', beside ' + words if words else ''}", *calls.parts(), *tables_of_calls(calls),
             section(aims(calls))]
    groups = []
    for ranks, partner in SECTIONS.items():
        medians = libraries.take_turns(
            found, arguments.repetitions, f"sections in Fortran, {ranks} ranks",
            lambda library, ranks=ranks: run(library, "sections", ranks, arguments, arguments.sizes))
        groups.append(section_rows(medians, ranks, arguments.sizes))
        parts += [f"### MPI_Sendrecv of every second number of an array with {partner}, us\n\nPeers: the fastest of "
                  "their interfaces.", *medians.parts(), report.beside_ways(groups[-1])]
    return parts, groups
