#!/usr/bin/python3
"""When the aims of `./dev bench shmem` are reached."""

import sys
import unittest

sys.path[:0] = ["benchmarks/shmem", "benchmarks/common"]
import aims  # noqa: E402

SIZES = [8, aims.KIB_64, aims.MIB]


def figures():
    """All of them exactly as wanted."""
    ours = {("put", 8): 50, ("rate", 8): 33, ("fetch_add", 8): 50, ("barrier_all", 0): 350, ("wait", 500): 5}
    for size in (aims.KIB_64, aims.MIB):
        ours["put", size], ours[aims.MEMCPY, size] = 1.05 * size, size
    mpi = {(name, size): size for name in aims.COLLECTIVES for size in SIZES}
    slower = {key: 2 * figure for key, figure in mpi.items()}
    return {"Ferry": {**ours, **mpi}, "MPI, private": slower, "MPI, MPI_Alloc_mem": mpi}


class AimsTest(unittest.TestCase):
    def verdicts(self, measured):
        return {aim.text: aim.verdict() for aim in aims.aims(measured, SIZES)}

    def assert_only(self, measured, verdict, *texts):
        other = {text for text, found in self.verdicts(measured).items() if found != "reached"}
        self.assertEqual(other, set(texts))
        self.assertEqual({self.verdicts(measured)[text] for text in texts}, {verdict})

    def test_a_limit_is_reached_by_itself(self):
        self.assertEqual(set(self.verdicts(figures()).values()), {"reached"})

    def test_beyond_a_limit_is_missed(self):
        for key, factor, text in ((("put", 8), 1.01, "put and quiet, 8 B"),
                                  (("put", aims.MIB), 1.01, "put and quiet, 1 MiB, over memcpy"),
                                  (("rate", 8), 0.99, "puts of 8 B a second"),
                                  (("wait", 500), 2, "CPU time of a PE that waits for 500 ms"),
                                  (("sum_reduce", 8), 1.01, "sum_reduce over our MPI_Allreduce, mean of the sizes")):
            measured = figures()
            measured["Ferry"][key] *= factor
            self.assert_only(measured, "missed", text)

    def test_collectives_are_held_against_the_faster_memory_of_mpi(self):
        measured = figures()
        measured["MPI, private"] = {key: figure / 2 for key, figure in measured["MPI, private"].items()}
        self.assertEqual(set(self.verdicts(measured).values()), {"reached"})
        measured["MPI, private"]["broadcast", 8] /= 2
        self.assert_only(measured, "missed", "broadcast over our MPI_Bcast, mean of the sizes")

    def test_between_nodes_a_round_trip_of_mpi_is_the_measure(self):
        ours = {("put", 8): 1.15 * 40000, ("rate", 8): 2}
        self.assertEqual({aim.verdict() for aim in aims.aims_between_nodes(ours, 40000)}, {"reached"})
        self.assertEqual({aim.verdict() for aim in aims.aims_between_nodes({("put", 8): 46001, ("rate", 8): 1.99}, 40000)},
                         {"missed"})
        self.assertEqual({aim.verdict() for aim in aims.aims_between_nodes({}, None)}, {"not measured"})

    def test_what_failed_is_not_measured(self):
        measured = figures()
        del measured["Ferry"]["put", aims.KIB_64]
        self.assert_only(measured, "not measured", "put and quiet, 64 KiB, over memcpy")
        self.assertEqual(set(self.verdicts({"Ferry": {}}).values()), {"not measured"})


if __name__ == "__main__":
    unittest.main()
