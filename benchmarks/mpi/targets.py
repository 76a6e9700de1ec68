"""What the figures of `./dev bench mpi` should reach, and which do not.

A speed is how many times as fast as another library Ferry is: above 1 is better, whatever is measured.
"""

import math

import report

COLLECTIVES = ("barrier", "bcast", "datatype", "allreduce", "allgather", "alltoall", "reduce")
NONBLOCKING = ("ibcast", "iallreduce", "iallgather", "ialltoall", "ireduce")
WINDOWS = ("put", "get", "puts", "gets", "accumulate", "fetch_and_op", "compare_and_swap", "fence", "put_fence")
OPEN_MPI = "Open MPI"  # with mpi_yield_when_idle where ranks outnumber cores


class Target:
    """The least geometric mean of the speeds of a pattern, and the least speed of one cell; None: any.
    `peer` names the library it is compared with, else it is the best."""

    def __init__(self, mean=None, cell=None, peer=None):
        self.mean = mean
        self.cell = cell
        self.peer = peer

    def text(self):
        against = self.peer or "the best peer"
        wanted = [f"{what} {least:.2f}" for what, least in (("mean", self.mean), ("each", self.cell)) if least]
        return f"{', '.join(wanted)} of {against}"


def pattern_of(row):
    return row.benchmark.split("/")[1]


def target_of(row):
    """The target of the row's cell and of its pattern; None where there is none."""
    pattern = pattern_of(row)
    if row.benchmark.startswith("mpi_overhead/"):
        return Target(cell=1 / 1.15)
    if row.benchmark.startswith("mpi_fortran/"):
        return Target(cell=1.0)
    if row.benchmark == "mpi_device/latency":
        if row.layout == "tcp":
            return Target(cell=1.0, peer="Ferry, staged in pinned memory")
        return Target(cell=1.8, peer="Ferry, staged in pinned memory") if row.size_bytes <= 8192 else Target(cell=1.0)
    if row.benchmark in ("mpi_device/bandwidth", "mpi_device/bibw"):
        return Target(cell=1.0, peer="Ferry, staged in pinned memory")
    if row.benchmark.startswith("mpi_device/"):
        return Target(mean=2.0, peer="Ferry, naive")
    if pattern.endswith("_computing"):
        return Target(cell=10) if row.layout == "tcp" else None
    if pattern in WINDOWS:
        return window_target(pattern, row)
    if pattern in NONBLOCKING:
        return None if "oversubscribed" in row.layout or row.layout == "tcp" else Target(1.0, 1 / 1.15)
    if pattern in COLLECTIVES:
        return None if row.layout == "tcp" else Target(1.1, 1 / 1.1)
    return point_to_point_target(pattern, row.layout, row.size_bytes)


def window_target(pattern, row):
    """Those of the memory of MPI_Win_allocate."""
    if not row.benchmark.endswith("/allocated"):
        return None
    if row.layout == "tcp":
        return Target(cell=1 / 1.15)
    if pattern in ("fetch_and_op", "compare_and_swap", "fence"):
        return Target(cell=1 / 0.8)
    if pattern in ("put", "get") and row.size_bytes in (8, 65536, 1048576):
        return Target(cell=1 / 0.8 if row.size_bytes == 8 else 1.0)
    return Target(cell=1.0) if pattern == "puts" else None


def point_to_point_target(pattern, layout, size):
    """Those of ordinary memory, with a core for each rank and without."""
    if "oversubscribed" in layout:
        return Target(cell=1.0, peer=OPEN_MPI)
    if layout != "same_node":
        return None
    if pattern == "latency":
        return Target(cell=1.0 if size <= 8192 else 1 / 1.05) if size <= 1048576 else None
    if pattern == "rate":
        return Target(cell=1.0) if size == 8 else None
    return Target(cell=0.95) if 8192 <= size <= 1048576 else None


def speed(row, peer=None):
    """Ferry's against the peer's, or the best one's; None when one of them has no figure."""
    # Other ways of Ferry's are no peers unless they are named.
    speeds = [report.gain(row, name) for name in row.peers
              if (name == peer if peer else not name.startswith("Ferry"))]
    return min((value for value in speeds if value is not None), default=None)


def geometric_mean(values):
    return math.exp(math.fsum(math.log(value) for value in values) / len(values)) if values else None


def means(rows):
    """{peer or None (the best): geometric mean of speeds} of one pattern's rows."""
    peers = list(dict.fromkeys(name for row in rows for name in row.peers))
    found = {}
    for peer in [None] + peers:
        speeds = [speed(row, peer) for row in rows]
        found[peer] = geometric_mean([value for value in speeds if value is not None])
    return found


def misses(groups):
    """Sentences on what was not reached. `groups` are lists of rows, one pattern and layout each."""
    said = []
    for rows in groups:
        where = f"{rows[0].benchmark}, {rows[0].layout}"
        of_pattern = target_of(rows[0])
        if of_pattern and of_pattern.mean is not None:
            mean = means(rows).get(of_pattern.peer)
            if mean is not None and mean < of_pattern.mean:
                said.append(f"{where}: geometric mean {mean:.2f} (wanted: {of_pattern.mean:.2f} of "
                            f"{of_pattern.peer or 'the best peer'})")
        for row in rows:
            target = target_of(row)
            if row.ferry is None:
                said.append(f"{where}, {row.size_bytes} B: no figure of Ferry")
            elif target and target.cell is not None:
                reached = speed(row, target.peer)
                if reached is not None and reached < target.cell:
                    said.append(f"{where}, {row.size_bytes} B: {reached:.2f} (wanted: {target.cell:.2f} of "
                                f"{target.peer or 'the best peer'})")
    return said
