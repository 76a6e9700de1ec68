"""What the figures of `./dev bench shmem` should reach (nanoseconds unless it says otherwise)."""

from aim import Aim, geometric_mean, quotient

MEMCPY = "memcpy"
OUR_MPI = ("MPI, private", "MPI, MPI_Alloc_mem")
COLLECTIVES = {"broadcast": "MPI_Bcast", "fcollect": "MPI_Allgather", "sum_reduce": "MPI_Allreduce"}
KIB_64, MIB = 65536, 1048576


def of_collective(name, figures, sizes):
    """Our OpenSHMEM's time over that of our MPI's faster memory: the mean over sizes."""
    quotients = []
    for size in sizes:
        mpi = [figures[way][name, size] for way in OUR_MPI if (name, size) in figures.get(way, {})]
        quotients.append(quotient(figures["Ferry"].get((name, size)), min(mpi, default=None)))
    found = [value for value in quotients if value is not None]
    return geometric_mean(found)


def aims_between_nodes(ours, mpi_round_trip):
    """`ours` is {(what, size): figure}, the other an MPI ping-pong's of 8 bytes there and back."""
    return [
        Aim("put and quiet, 8 B, over an MPI round trip", quotient(ours.get(("put", 8)), mpi_round_trip), 1.15, ""),
        Aim("puts of 8 B a second", ours.get(("rate", 8)), 2, "millions", at_least=True),
    ]


def aims(figures, sizes):
    """`figures` is {library: {(what, size): figure}}."""
    ours = figures["Ferry"]

    def over_memcpy(size):
        return quotient(ours.get(("put", size)), ours.get((MEMCPY, size)))

    return [
        Aim("put and quiet, 8 B", ours.get(("put", 8)), 50, "ns"),
        Aim("put and quiet, 64 KiB, over memcpy", over_memcpy(KIB_64), 1.05, ""),
        Aim("put and quiet, 1 MiB, over memcpy", over_memcpy(MIB), 1.05, ""),
        Aim("puts of 8 B a second", ours.get(("rate", 8)), 33, "millions", at_least=True),
        Aim("fetch-add, alone", ours.get(("fetch_add", 8)), 50, "ns"),
        Aim("barrier of two PEs", ours.get(("barrier_all", 0)), 350, "ns"),
        *(Aim(f"{name} over our {mpi}, mean of the sizes", of_collective(name, figures, sizes), 1, "")
          for name, mpi in COLLECTIVES.items()),
        Aim("CPU time of a PE that waits for 500 ms", ours.get(("wait", 500)), 5, "ms"),
    ]
