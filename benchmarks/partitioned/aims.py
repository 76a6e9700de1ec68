"""What the figures of `./dev bench partitioned` should reach (microseconds unless it says otherwise)."""

from aim import Aim, geometric_mean, quotient

MIB = 1 << 20
TINY = 64  # eight partitions of 8 bytes
MEMORIES = {"private": "ordinary memory", "allocated": "memory of MPI_Alloc_mem"}
LATE_PARTITIONS = 8
PAPER_US = {"psend_init": 17.2, "precv_init": 17.2, "pallreduce_init": 62.3, "prequest_create": 110.7,
            "pbuf_prepare_first": 193.4, "pbuf_prepare_later": 3.4}
# What the issue asks for, of those.
WANTED_US = {"psend_init": 10, "precv_init": 10, "prequest_create": 20, "pbuf_prepare_later": 1}


def cell(size, way):
    return f"{size}/{way}"


def over_plain(ours, size, partitions):
    """A partitioned message's time over the plain one's; None: not measured."""
    return quotient(ours.get(cell(size, partitions)), ours.get(cell(size, "plain")))


def of_messages(messages):
    """`messages` is {memory: {cell: us}}, of one thread, inside a node."""
    found = []
    for memory, ours in messages.items():
        for size, partitions, limit, text in ((MIB, 8, 0.9, "1 MiB in 8 partitions"),
                                              (MIB, 1024, 1.2, "1 MiB in 1024 partitions"),
                                              (TINY, 8, 1.5, "8 partitions of 8 B")):
            found.append(Aim(f"{text} over a plain message, {MEMORIES[memory]}",
                             over_plain(ours, size, partitions), limit, ""))
    return found


def of_late(ours, size):
    """After the last partition's readying only that partition is left: as a plain message of its size."""
    mine = ours.get(cell(size, LATE_PARTITIONS))
    part = ours.get(cell(size // LATE_PARTITIONS, "plain"))
    return Aim("1 MiB, one late of 8: from the last MPI_Pready on, over a plain message of 128 KiB",
               quotient(mine, part), 1.2, "")


def of_rate(ours):
    """`ours` is {threads: millions a second}."""
    return [Aim("MPI_Pready without transfer, one thread", ours.get(1), 50, "M/s", at_least=True),
            Aim("MPI_Pready without transfer, two threads over one", quotient(ours.get(2), ours.get(1)), 1.2, "",
                at_least=True)]


def of_calls(ours):
    return [Aim(f"{call} (paper: {PAPER_US[call]:g} us)", ours.get(call), limit, "us")
            for call, limit in WANTED_US.items()]


def gains(plain, partitioned):
    """How many times as fast, by size; both are {size: us}."""
    return [quotient(plain.get(size), partitioned.get(size)) for size in plain]


def of_goodput(text, plain, partitioned):
    """At every size."""
    found = gains(plain, partitioned)
    least = min(found) if found and None not in found else None
    return Aim(f"goodput of {text} over send after synchronise, least of the sizes", least, 1, "", at_least=True)


def of_granularity(text, blocks, others):
    """Blocks, beside warps and threads: the least of the sizes."""
    found = [gain for other in others for gain in gains(other, blocks)]
    least = min(found) if found and None not in found else None
    return Aim(f"goodput of MPIX_Pready_block over _warp and _thread, {text}, least of the sizes", least, 1, "",
               at_least=True)


def shares_of_waiting(steps):
    """Of launch and wait: percent that is not the kernel, and percent of the wait."""
    if None in steps.values():
        return None, None
    both = steps["launch"] + steps["synchronise"]
    return 100 * max(0, 1 - steps["kernel"] / both), 100 * steps["synchronise"] / both


def of_allreduce(ranks, plain, partitioned):
    found = [gain for gain in gains(plain, partitioned) if gain is not None]
    return Aim(f"MPI_Allreduce after synchronise over MPIX_Pallreduce, {ranks} ranks, mean of the sizes",
               geometric_mean(found), 1, "", at_least=True)


def of_program(title, ours):
    """`ours` has the microseconds of both ways."""
    return Aim(f"{title}: time after synchronise over that with partitions",
               quotient(ours.get("plain"), ours.get("partitioned")), 1, "", at_least=True)
