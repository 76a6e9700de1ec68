#!/usr/bin/python3
"""The pages that `./dev bench p2p`, `mpi`, `exchange`, `kernels`, `partitioned` and `scale` write, of programs that
only print figures."""

import json
import os
import subprocess
import tempfile
import unittest

ROOT = os.getcwd()
FERRYRUN = "out/bin/tools/ferryrun/ferryrun"
COMPILER = 'for word; do last=$word; done; : >"$last"\n'  # the program that it makes is not run
# What p2p prints: another figure for each memory that Ferry's buffers may be in.
P2P = """
while [ "$1" != private ] && [ "$1" != heap ]; do shift; done
case $1 in private) figure=%s ;; *) figure=%s ;; esac
shift 4
for size; do
  for what in latency bandwidth bidirectional; do echo "$what separate $size $figure"; done
done
"""
PATTERN = """
while [ "$1" != private ] && [ "$1" != allocated ]; do shift; done
case $1 in private) figure=%s ;; *) figure=%s ;; esac
shift 2
for size; do echo "$size $figure"; done
"""
# Nanoseconds: of stores, of ferryd, and with cutovers between them.
KERNELS = """
while [ "${1#*libferry_shmem}" = "$1" ]; do shift; done
case $FERRY_SHMEM_CUTOVERS in "") figure=100 ;; put=0,get=0) figure=200 ;; *) figure=50 ;; esac
what=$2 items=$4 names=$2
[ "$what" != moves ] || names="put get"
for size in $(echo "$5" | tr , ' '); do
  for name in $names; do echo "$name $items $size $figure"; done
done
"""
# Microseconds: plain messages, and kernels that are waited for, take as long as the test says.
PARTITIONED = """
plain=%s
while [ "${1#*partitioned}" = "$1" ]; do shift; done
program=$1
shift
case ${program##*/} in
  partitioned_*) echo "rows: 5.0 us with partitions, $plain us after synchronising; 4 ranks: PASS"; exit ;;
esac
case $1 in
  rate) echo "ready 60.00000" ;;
  inits) echo "psend_init 9.00000"; echo "precv_init 11.00000" ;;
  calls) echo "prequest_create 19.00000"; echo "pbuf_prepare_later 0.50000" ;;
  synchronise)
    shift 3
    for size; do
      echo "$size/launch 5.00000"; echo "$size/synchronise 15.00000"; echo "$size/kernel 4.00000"
    done ;;
  goodput | granularity | allreduce)
    case $2 in synchronised) figure=$plain ;; thread) figure=2.50000 ;; *) figure=5.00000 ;; esac
    shift 3
    for size; do echo "$size $figure"; done ;;
  *)
    shift 4
    for cell; do case $cell in */plain) echo "$cell $plain" ;; *) echo "$cell 5.00000" ;; esac; done ;;
esac
"""
# Of device memory: given to Ferry, copied by hand through pinned and through ordinary memory.
DEVICE = """
while [ "${1##*/}" != device ]; do shift; done
case $2 in bandwidth) given=60 pinned=20 ;; *) given=10 pinned=20 ;; esac
case $3 in straight) figure=$given ;; pinned) figure=$pinned ;; *) figure=30 ;; esac
shift 4
for size; do echo "$size $figure"; done
"""
EXCHANGE = """
link=${FERRY_HOST_LINK_LATENCY_US:-none}
while case ${1##*/} in exchange | stencil*) false ;; esac; do shift; done
case ${1##*/} in stencil*)
  figure=10 ; [ $link != none ] || figure=15
  echo "straight: 0.001 s, $figure.0 us per iteration"; echo "  device memory 100 %%"
  echo "staged by hand: 0.002 s, 20.0 us per iteration"; echo "serial solve: 0.003 s; every point equal"; exit ;;
esac
case $3 in straight) figure=%s ;; staged) figure=8 ;; pageable) figure=16 ;; *) figure=9 ;; esac
shift 5
for size; do echo "exchange $size $figure"; done
"""


class RunsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.write("bin/mpicc.openmpi", COMPILER)
        self.write("bin/mpicc.mpich", COMPILER)
        self.write("bin/dpkg-query", "echo 1.2.3\n")
        self.write("tools/wrappers/ferrycc", COMPILER)
        with open(self.path("venv.py"), "w", encoding="utf-8") as file:
            file.write("import sys\nsys.exit('nothing can be installed here')\n")
        # A child of a session of its own, which the launcher waits for; its id is kept.
        self.write("bin/mpiexec.mpich",
                   f"setsid sh -c 'echo $$ >{self.path('stray')}; exec sleep 1000' &\nwait\n")

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, script):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n" + script)
        os.chmod(self.path(name), 0o755)

    def start(self, benchmark, *arguments, limit=("--limit", "1")):
        """(exit code, the page, {(benchmark, size): row})"""
        environment = {"PATH": self.path("bin") + ":/usr/bin:/bin", "PYTHONPATH": self.folder}
        done = subprocess.run([os.path.join(ROOT, "benchmarks", benchmark, "run"), "--quick", *limit,
                               "--json", "rows", "--output", "page", *arguments], cwd=self.folder, env=environment,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        self.said = done.stdout
        try:
            with open(self.path("page"), encoding="utf-8") as page, open(self.path("rows"), encoding="utf-8") as rows:
                return done.returncode, page.read(), {(row["benchmark"], row["size_bytes"]): row
                                                      for row in json.load(rows)}
        except FileNotFoundError:
            self.fail(self.said)

    def assert_peers_are_named(self, page):
        self.assertIn("beside Open MPI 1.2.3 (Debian's), MPICH 1.2.3 (Debian's), Intel MPI (missing)", page)
        self.assertIn("- MPICH gave up: no end after 1 s.", page)
        self.assertIn("- Intel MPI gave up: it is not there: Python has no virtual environments", page)
        with open(self.path("stray"), encoding="utf-8") as file, self.assertRaises(ProcessLookupError):
            os.kill(int(file.read()), 0)

    def test_ordinary_memory_comes_first(self):
        self.write(FERRYRUN, P2P % (2, 1))
        self.write("out/bin/benchmarks/p2p/p2p", "")
        self.write("bin/mpirun.openmpi", P2P % (4, "no"))
        code, page, rows = self.start("p2p", "--part", "ranks", "--layout", "same_node")
        self.assertEqual(code, 0, self.said)
        ordinary, heap = page.index("### Ordinary memory, separate"), page.index("### The heap (ferry_alloc), separate")
        self.assertLess(ordinary, heap)
        self.assert_peers_are_named(page)
        for memory, ratio in (("private", 0.5), ("heap", 0.25)):
            row = rows[f"p2p/{memory}/separate", 1048576]
            self.assertEqual((row["ratio_to_best_peer"], row["peers"]["MPICH"]), (ratio, None))
            self.assertIn((f"p2p/{memory}/separate/bidirectional", 65536), rows)

    def test_a_crash_of_ferry_fails_the_benchmark(self):
        self.write(FERRYRUN, "exit 9\n")
        self.write("out/bin/benchmarks/p2p/p2p", "")
        self.write("bin/mpirun.openmpi", P2P % (4, "no"))
        code, page, _ = self.start("p2p", "--part", "ranks", "--layout", "same_node")
        self.assertEqual(code, 1, self.said)
        self.assertIn("- Ferry gave up: exit code 9.", page)

    def test_messages_of_mpi_come_in_ordinary_memory_first(self):
        self.write(FERRYRUN, PATTERN % (2, 1))
        self.write("bin/mpirun.openmpi", PATTERN % (4, 5))
        code, page, rows = self.start("mpi", "--pattern", "latency", "--pattern", "bcast", "--ranks", "2",
                                      "--nodes", "1")
        self.assertEqual(code, 0, self.said)
        self.assertLess(page.index("us; ordinary memory"), page.index("us; memory of MPI_Alloc_mem"))
        self.assert_peers_are_named(page)
        self.assertEqual(rows["mpi/latency", 8]["ratio_to_best_peer"], 0.5)
        self.assertEqual(rows["mpi/latency/allocated", 8]["ratio_to_best_peer"], 0.2)
        self.assertNotIn(("mpi/bcast/allocated", 8), rows)

    def test_windows_of_mpi_have_targets_for_the_memory_that_they_allocate(self):
        self.write(FERRYRUN, PATTERN % (5, 2))
        self.write("bin/mpirun.openmpi", PATTERN % (4, 20))
        code, page, rows = self.start("mpi", "--pattern", "put", "--pattern", "fetch_and_op_computing")
        self.assertEqual(code, 0, self.said)
        self.assertIn("memory of MPI_Win_allocate", page)
        self.assert_peers_are_named(page)
        self.assertEqual(rows["mpi/put/allocated", 1048576]["ratio_to_best_peer"], 0.1)
        self.assertNotIn(("mpi/fetch_and_op_computing/allocated", 1024), rows)
        missed = page[page.index("## What misses its target"):]
        self.assertNotIn("mpi/put", missed)
        self.assertNotIn("same_node", missed)
        self.assertIn("mpi/fetch_and_op_computing, tcp, 8 B: 0.80 (wanted: 10.00 of the best peer)", missed)

    def test_short_runs_that_are_far_from_the_median_are_counted(self):
        # Without binding one run in four is ten times as long.
        self.write(FERRYRUN, """
echo >>runs
[ "$FERRY_BIND_TO" != none ] || [ $(($(wc -l <runs) % 8)) != 0 ] || { echo "reduce 4.0"; exit; }
echo "reduce 0.4"
""")
        self.write("bin/mpirun.openmpi", 'echo "reduce 0.5"\n')
        code, page, rows = self.start("mpi", "--part", "spread")
        self.assertEqual(code, 0, self.said)
        self.assert_peers_are_named(page)
        counted = {cells[0]: cells[1:] for cells in (
            [cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line.startswith("|"))}
        self.assertEqual(counted["Ferry"], ["20", "0.40", "0.40", "0.40", "0.40", "0"])
        self.assertEqual(counted["Ferry, unbound"], ["20", "0.40", "0.40", "4.00", "4.00", "5"])
        self.assertEqual(rows["mpi_spread/reduce", 8]["ratio_to_best_peer"], 0.8)

    def test_kernels_stand_beside_what_their_cutovers_choose_from(self):
        self.write(FERRYRUN, KERNELS)
        self.write("out/bin/tools/tune/ferry-kernel-meter", "")
        self.write("out/bin/shmem/libferry_shmem.so.0", "")
        self.write("out/bin/tools/ferryctl/ferryctl", "echo '# measured'; echo 'shmem_cutovers = \"put=4096\"'\n")
        code, page, rows = self.start("kernels", limit=())
        self.assertEqual(code, 0, self.said)
        self.assertIn('`shmem_cutovers` is "put=4096"', page)
        row = rows["kernels/put/16", 8]
        self.assertEqual((row["ferry"], row["peers"]), (160, {"stores": 80, "ferryd": 40}))
        self.assertEqual(rows["kernels/broadcast/128x12", 64]["ferry"], 50)
        self.assertIn(("kernels/fcollect/128x8", 4096), rows)

    def write_partitioned(self, plain):
        self.write(FERRYRUN, PARTITIONED % plain)
        for program in ("benchmarks/partitioned/partitioned", "benchmarks/partitioned/device",
                        "examples/partitioned_vector_add/partitioned_vector_add",
                        "examples/partitioned_jacobi/partitioned_jacobi", "examples/partitioned_bce/partitioned_bce"):
            self.write(f"out/bin/{program}", "")

    def test_partitioned_messages_stand_beside_plain_ones_and_those_of_peers(self):
        self.write_partitioned("10.00000")
        self.write("bin/mpirun.openmpi", PARTITIONED % "4.00000")
        code, page, rows = self.start("partitioned", "--part", "late", "--part", "rate", "--nodes", "1")
        self.assertEqual(code, 0, self.said)
        self.assertIn("beside Open MPI 1.2.3 (Debian's), MPICH 1.2.3 (Debian's).", page)
        self.assertIn("- MPICH gave up, same_node, late private 400 1000: 1048576/8 (no end after 1 s)", page)
        row = rows["partitioned/late", 1048576]
        self.assertEqual((row["ferry"], row["peers"]), (5, {"plain": 10, "plain, an eighth": 10, "Open MPI": 5,
                                                            "MPICH": None}))
        self.assertEqual(rows["partitioned/rate/2", 8]["ferry"], 60)
        self.assertRegex(page, r"two threads over one \| +at least 1.2 \| +1.00 \| +missed")

    def test_kernels_that_ready_stand_beside_those_that_are_waited_for(self):
        self.write_partitioned("10.00000")
        code, page, rows = self.start("partitioned", "--alone", "--part", "calls", "--part", "goodput",
                                      "--part", "allreduce", "--part", "programs")
        self.assertEqual(code, 0, self.said)
        self.assertRegex(page, r"psend_init \(paper: 17.2 us\) \| +at most 10 us \| +9.00 us \| +reached")
        self.assertRegex(page, r"precv_init \(paper: 17.2 us\) \| +at most 10 us \| +11.00 us \| +missed")
        self.assertRegex(page, r"goodput of auto, two ranks on one node [^|]+\| +at least 1 \| +2.00 \|")
        self.assertRegex(page, r"goodput of daemon copy, two nodes over loopback TCP [^|]+\| +at least 1 \| +2.00 \|")
        self.assertRegex(page, r"partitioned_jacobi, rows: [^|]+\| +at least 1 \| +2.00 \| +reached")
        self.assertEqual(rows["partitioned/goodput", 4096]["ferry"], 4096 / 5)
        self.assertIn(("partitioned/allreduce/4", 4096), rows)

    def test_kernels_ready_by_blocks_warps_and_threads(self):
        self.write_partitioned("10.00000")
        code, page, rows = self.start("partitioned", "--alone", "--part", "granularity", "--part", "synchronise")
        self.assertEqual(code, 0, self.said)
        self.assertRegex(page, r"_block over _warp and _thread, two ranks on one node, [^|]+\| +at least 1 \| +0.50 \| +missed")
        self.assertEqual(rows["partitioned/granularity", 8192]["peers"]["thread"], 8192 / 2.5)
        # Of 20 us the kernel has 4, and the wait 15; a send that does not wait has 5 of 10.
        self.assertRegex(page, r"\| +4 KiB \| +5.00 \| +15.00 \| +4.00 \| +80.00 \| +75.00 \| +5.00 \| +50.00 \|")
        self.assertEqual(rows["partitioned/synchronise/kernel", 4096]["ferry"], 4)

    def test_device_memory_stands_beside_copies_by_hand_and_the_paper(self):
        self.write(FERRYRUN, DEVICE)
        self.write("out/bin/benchmarks/mpi/device", "")
        code, page, rows = self.start("mpi", "--part", "device", "--pattern", "latency", "--pattern", "bandwidth",
                                      "--pattern", "bcast", "--nodes", "1")
        self.assertEqual(code, 0, self.said)
        self.assertNotIn("two nodes", page)
        self.assertRegex(page, r"\| +latency \| +16 B \| +1.79 \| +2.12 \| +2.00 \| +3.00 \|")
        self.assertRegex(page, r"\| +bandwidth \| +4 MiB \| +1.40 \| +- \| +3.00 \| +2.00 \|")
        self.assertEqual(rows["mpi_device/bandwidth", 4194304]["ferry"], 60)
        self.assertNotIn("mpi_device/bandwidth, same_node", page[page.index("## What misses"):])

    def test_exchanges_stand_beside_copies_by_hand_and_the_papers(self):
        self.write(FERRYRUN, EXCHANGE % 4)
        for program in ("benchmarks/exchange/exchange", "examples/stencil5/stencil5", "examples/stencil3d/stencil3d"):
            self.write(f"out/bin/{program}", "")
        code, page, rows = self.start("exchange", "--alone", "--part", "stencil3d", "--part", "programs", limit=())
        self.assertEqual(code, 0, self.said)
        self.assertRegex(page, r"figure 9a\) \| +1.64 [^|]+\| +2.00 \| +4.00 \|")
        self.assertNotIn("figure 10", page)
        self.assertEqual(rows["exchange/link_stencil3d_4", 16]["peers"]["Ferry, staged pageable"], 16)
        self.assertRegex(page, r"\| +stencil5 \| +1 \| +1 \| +10.00 \| +20.00 \| +2.00 \| +3.00 \|")
        self.assertEqual(rows["exchange/stencil5/1x1", 0]["ferry"], 15)

    def test_a_stencil_that_does_not_say_its_times_fails_the_benchmark(self):
        self.write(FERRYRUN, "echo nothing\n")
        for program in ("benchmarks/exchange/exchange", "examples/stencil5/stencil5", "examples/stencil3d/stencil3d"):
            self.write(f"out/bin/{program}", "")
        code, page, _ = self.start("exchange", "--part", "programs", limit=())
        self.assertEqual(code, 1, self.said)
        self.assertIn("stencil5 does not say how long it took", page)

    def test_what_is_left_out_is_named(self):
        self.write(FERRYRUN, PATTERN % (2, 1))
        self.write("bin/mpirun.openmpi", PATTERN % (4, 5))
        _, page, rows = self.start("mpi", "--pattern", "bcast", "--ranks", "4", "--nodes", "2")
        self.assertIn("- MPICH is left out: ", page)
        self.assertIn("- Intel MPI is left out: ", page)
        self.assertEqual(list(rows["mpi/bcast", 8]["peers"]), ["Ferry, by daemons", "Open MPI"])

    # Much more than a pipe holds, before the first rank is ready.
    def test_a_job_that_writes_many_errors_is_read_to_its_end(self):
        self.write(FERRYRUN, """
[ "${*##* }" != true ] || exit 0
i=0; while [ $i != 4000 ]; do echo "rank $i: a warning of more than fifty bytes, as a large job has" >&2; i=$((i + 1)); done
echo "ready $$ 3.0 700"; echo "ready $$ 5.0 800"; read word; [ "$word" = "go on" ]
""")
        self.write("out/bin/benchmarks/scale/rank", "")
        self.write("out/bin/benchmarks/scale/world", "")
        code, page, _ = self.start("scale", "--part", "jobs", "--job", "2:2:16", "--timeout", "60", limit=())
        self.assertEqual(code, 0, self.said)
        self.assertRegex(page, r"\| +2 \| +2 \| +16 \| .*\| +750 \|")

    def test_a_job_whose_time_is_over_tells_how_far_it_came(self):
        self.write(FERRYRUN, """
echo "ready $$ 3.0 700"; echo "peer node1 is cut off" >&2; exec sleep 1000
""")
        self.write("out/bin/benchmarks/scale/rank", "")
        self.write("out/bin/benchmarks/scale/world", "")
        code, page, _ = self.start("scale", "--part", "jobs", "--job", "2:2:16", "--timeout", "1", limit=())
        self.assertEqual(code, 1, self.said)
        self.assertIn("1 of 2 ranks were ready after 1.", self.said)
        self.assertIn("its last lines: peer node1 is cut off", self.said)
        self.assertIn("gave up", page)


if __name__ == "__main__":
    unittest.main()
