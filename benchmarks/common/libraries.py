"""How a benchmark is run by Ferry and by the MPI libraries that are installed beside it.

A benchmark in C includes benchmarks/common/shim.h; Bazel builds it for Ferry, compiler wrappers for the
others. Libraries take turns within each repetition, so that a disturbance of the machine hits all of them
alike. Only figures of one run should be compared.
"""

import os
import shutil
import signal
import statistics
import subprocess
import sys
from collections import defaultdict

FERRYRUN = "out/bin/tools/ferryrun/ferryrun"
TIMEOUT_S = 60  # of one run: a library that stands still should not hold the others up for long

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

# Root may run Open MPI only when it says so twice.
OPEN_MPI_ENVIRONMENT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
OPEN_MPI = ["mpirun.openmpi", "--oversubscribe"]
OPEN_MPI_YIELDS = ["--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"]
OPEN_MPI_OVER_LOOPBACK = ["--mca", "pml", "ob1", "--mca", "btl_tcp_if_include", "lo"]
OPEN_MPI_MORE = {
    "oversubscribed": OPEN_MPI_YIELDS,
    "tcp": OPEN_MPI_OVER_LOOPBACK + ["--mca", "btl", "tcp,self"],
    # Two ranks of a node share memory, as they do with Ferry.
    "tcp_oversubscribed": OPEN_MPI_YIELDS + OPEN_MPI_OVER_LOOPBACK + [
        "--mca", "btl", "tcp,vader,self", "--mca", "oob_tcp_if_include", "lo", "--mca", "plm_rsh_agent",
        os.path.join(os.path.dirname(os.path.abspath(__file__)), "other_host"), "-host", "node0:2,node1:2"],
}
MPICH = ["mpiexec.mpich"]
MPICH_OVER_LOOPBACK = {"UCX_TLS": "tcp", "UCX_NET_DEVICES": "lo"}
MPICH_ENVIRONMENT = {"tcp": {**MPICH_OVER_LOOPBACK, "MPIR_CVAR_NOLOCAL": "1"},
                     "tcp_oversubscribed": {**MPICH_OVER_LOOPBACK, "MPIR_CVAR_NUM_CLIQUES": "2"}}
# The device of Chen et al. (OSU), as gpu_backends/host/link_options.h has it, with an engine for each
# direction: the environment in which Ferry emulates the link to it.
OSU_LINK = {"FERRY_HOST_LINK_" + name: str(value) for name, value in {
    "H2D_MB_PER_S": 3768, "D2H_MB_PER_S": 5622, "PAGEABLE_H2D_MB_PER_S": 2917, "PAGEABLE_D2H_MB_PER_S": 3510,
    "D2D_MB_PER_S": 34000, "LATENCY_US": 27, "PAGEABLE_LATENCY_US": 54}.items()}


class Library:
    """A way to run a program: the library's name, the program built for it, and for a layout the launcher
    and added environment."""

    def __init__(self, name, program, launcher):
        self.name = name
        self.program = program
        self.launcher = launcher

    def run(self, layout, arguments, environment=None, ranks=None):
        """The program's standard output; RuntimeError with its last words when it fails. `ranks`, if it
        is not the layout's number."""
        command, added = self.launcher(layout)
        command = command + ["-n", str(ranks or RANKS[layout]), self.program] + arguments
        cores = sorted(os.sched_getaffinity(0))[:2] if RANKS[layout] > 2 else None
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env={**os.environ, **added, **(environment or {})}, start_new_session=True,
                              preexec_fn=lambda: cores and os.sched_setaffinity(0, cores)) as process:
            try:
                output, errors = process.communicate(timeout=TIMEOUT_S)
            except BaseException as error:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                if isinstance(error, subprocess.TimeoutExpired):
                    raise RuntimeError(f"{self.name}: no end after {TIMEOUT_S} s") from None
                raise
        if process.returncode != 0:
            raise RuntimeError(f"{self.name}: code {process.returncode}: {errors.strip()[-500:]}")
        return output


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


def peers(source, folder):
    """The MPI libraries that are installed, each with `source` compiled for it in `folder`."""
    found = []
    for name, wrapper, launcher in (
            ("Open MPI", "mpicc.openmpi",
             lambda layout: (OPEN_MPI + OPEN_MPI_MORE.get(layout, []), OPEN_MPI_ENVIRONMENT)),
            ("MPICH", "mpicc.mpich", lambda layout: (MPICH, MPICH_ENVIRONMENT.get(layout, {})))):
        if shutil.which(wrapper) is None:
            print(f"{name} is not installed ({wrapper}): left out", file=sys.stderr)
            continue
        program = os.path.join(folder, os.path.basename(source) + "." + wrapper)
        # gcc takes MPICH's MPI_STATUSES_IGNORE for an array of no elements.
        subprocess.run([wrapper, "-O2", "-I.", "-Wno-stringop-overflow", "-D_GNU_SOURCE", "-DBENCH_MPI",
                        source, "-o", program], check=True)
        found.append(Library(name, program, launcher))
    return found


def show(progress):
    """One line that is written over, for somebody who waits."""
    if sys.stderr.isatty():
        print(f"\r{progress:78}\r", end="", file=sys.stderr, flush=True)


def take_turns(libraries, repetitions, title, run):
    """Calls run(library), which returns {key: figure}, for each library in turn. Returns the medians
    {library name: {key: figure}}; of a library that fails, which is reported and not run again, no figures."""
    samples = defaultdict(lambda: defaultdict(list))
    failed = set()
    for repetition in range(repetitions):
        for library in libraries:
            if library.name in failed:
                continue
            show(f"{title}: {repetition + 1} of {repetitions}, {library.name}")
            try:
                for key, value in run(library).items():
                    samples[library.name][key].append(value)
            except RuntimeError as error:
                print(f"\n{error}", file=sys.stderr)
                failed.add(library.name)
    show("")
    return {library.name: {} if library.name in failed else
            {key: statistics.median(values) for key, values in samples[library.name].items()}
            for library in libraries}
