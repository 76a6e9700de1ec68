#!/usr/bin/python3
"""When the aims of `./dev bench partitioned` are reached, and what it does with a peer that gives up at a figure."""

import importlib.machinery
import importlib.util
import sys
import unittest

sys.path[:0] = ["benchmarks/partitioned", "benchmarks/common"]
import aims  # noqa: E402
import libraries  # noqa: E402


def load_run():
    loader = importlib.machinery.SourceFileLoader("run", "benchmarks/partitioned/run")
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("run", loader))
    loader.exec_module(module)
    return module


run = load_run()


def messages():
    """All of them exactly as wanted."""
    of_memory = {aims.cell(aims.MIB, "plain"): 100, aims.cell(aims.MIB, 8): 90, aims.cell(aims.MIB, 1024): 120,
                 aims.cell(aims.TINY, "plain"): 2, aims.cell(aims.TINY, 8): 3}
    return {memory: dict(of_memory) for memory in aims.MEMORIES}


def verdicts(found):
    return {one.text: one.verdict() for one in found}


class AimsTest(unittest.TestCase):
    def test_a_limit_is_reached_by_itself(self):
        self.assertEqual(set(verdicts(aims.of_messages(messages())).values()), {"reached"})

    def test_each_memory_is_held_against_its_own_plain_message(self):
        measured = messages()
        measured["allocated"][aims.cell(aims.MIB, "plain")] = 99
        missed = {text for text, verdict in verdicts(aims.of_messages(measured)).items() if verdict == "missed"}
        self.assertEqual(missed, {f"1 MiB in {count} partitions over a plain message, memory of MPI_Alloc_mem"
                                  for count in (8, 1024)})

    def test_what_failed_is_not_measured(self):
        found = [*aims.of_messages({memory: {} for memory in aims.MEMORIES}), aims.of_late({}, aims.MIB),
                 *aims.of_rate({}), *aims.of_calls({}), aims.of_goodput("x", {8: None}, {8: 1}),
                 aims.of_allreduce(2, {}, {}), aims.of_program("x", {})]
        self.assertEqual(set(verdicts(found).values()), {"not measured"})

    def test_a_late_partition_is_held_against_a_message_of_its_size(self):
        ours = {aims.cell(aims.MIB, 8): 12, aims.cell(aims.MIB, "plain"): 1, aims.cell(aims.MIB // 8, "plain"): 10}
        self.assertEqual(aims.of_late(ours, aims.MIB).verdict(), "reached")
        ours[aims.cell(aims.MIB, 8)] = 12.1
        self.assertEqual(aims.of_late(ours, aims.MIB).verdict(), "missed")

    def test_readying_has_to_grow_with_threads(self):
        self.assertEqual([one.verdict() for one in aims.of_rate({1: 50, 2: 60})], ["reached", "reached"])
        self.assertEqual([one.verdict() for one in aims.of_rate({1: 51, 2: 60})], ["reached", "missed"])

    def test_goodput_is_looked_at_size_by_size(self):
        plain = {4096: 10, 8192: 20}
        self.assertEqual(aims.of_goodput("x", plain, {4096: 10, 8192: 1}).verdict(), "reached")
        self.assertEqual(aims.of_goodput("x", plain, {4096: 10.1, 8192: 1}).verdict(), "missed")

    def test_an_allreduce_by_the_mean_of_its_sizes(self):
        self.assertEqual(aims.of_allreduce(4, {8: 10, 16: 10}, {8: 20, 16: 5}).verdict(), "reached")
        self.assertEqual(aims.of_allreduce(4, {8: 10, 16: 10}, {8: 21, 16: 5}).verdict(), "missed")


class Peer:
    """Gives up at `last`, after the figures before it. Its output has other words in between."""

    name = "Peer"

    def __init__(self, last):
        self.last = last
        self.runs = []

    def run(self, layout, words):
        cells = words[1:]
        self.runs.append(cells)
        before = cells[:cells.index(self.last)] if self.last in cells else cells
        output = "warning: 1 of 2\n" + "".join(f"{cell} 1.50000\n" for cell in before)
        if self.last in cells:
            raise libraries.PeerGaveUp("no end after 20 s", "", output)
        return output


class CellsTest(unittest.TestCase):
    def test_goes_on_behind_a_figure_at_which_a_peer_gives_up(self):
        peer, cells = Peer("b"), run.Cells()
        self.assertEqual(cells.run(peer, "same_node", ["pair"], ["a", "b", "c"]), {"a": 1.5, "c": 1.5})
        self.assertEqual(peer.runs, [["a", "b", "c"], ["c"]])
        self.assertEqual(cells.parts(), ["- Peer gave up, same_node, pair: b (no end after 20 s)."])

    def test_does_not_ask_for_it_again(self):
        peer, cells = Peer("b"), run.Cells()
        for _ in range(2):
            self.assertEqual(cells.run(peer, "same_node", ["pair"], ["a", "b"]), {"a": 1.5})
        self.assertEqual(peer.runs, [["a", "b"], ["a"]])

    def test_a_failure_of_ferry_is_one_of_the_benchmark(self):
        class Ferry:
            name = "Ferry"

            def run(self, layout, words):
                raise libraries.Failure("exit code 1")

        with self.assertRaises(libraries.Failure):
            run.Cells().run(Ferry(), "same_node", ["pair"], ["a"])


class ProgramLinesTest(unittest.TestCase):
    def test_have_both_ways(self):
        line = ("rows: 123.4 us with partitions, 150.0 us after synchronising; 4 ranks: PASS\n"
                "blocks: 1.0 us with partitions, 2.5 us after synchronising; 4 ranks: PASS\n")
        self.assertEqual(run.PROGRAM_LINES.findall(line), [("rows", "123.4", "150.0"), ("blocks", "1.0", "2.5")])


if __name__ == "__main__":
    unittest.main()
