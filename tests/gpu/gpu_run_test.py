#!/usr/bin/python3
"""The folder that `./dev gpu` makes works where it is copied to, and its report has its rows."""

import glob
import importlib.machinery
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, "tests/support")
import skips  # noqa: E402

KEYS = ("cuda_stand_in", "hip_stand_in", "level_zero_stand_in", "host")
CALLS = ("Identify, own memory", "Identify, heap", "CopyAsync, 64 B on the device", "RecordEvent", "WaitEvent",
         "Event::Query", "WriteValue64", "AllocateDevice, Free, 1 MiB", "ExportIpc", "ImportIpc, CloseIpc",
         "RegisterHostMemory, Unregister..., 1 MiB")
COPIES = ["d2d_device"] + [f"{way}_{memory}" for way in ("d2h", "h2d") for memory in ("pageable", "pinned", "managed")]
# Rows of a report by --quick: the suite, five jobs, both ways of five comparisons; and, where programs are
# linked with the vendor's library, four of the program's own memory.
ROWS = 1 + 5 + 2 * 5
MEMORY_ROWS = 4
SIZES = [4 ** power for power in range(12)]
NO_GPU = 3


class GpuRunTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        made = os.path.join(cls.folder, "made")
        subprocess.run(["tests/gpu/bundle.sh", ".", made, "a-commit"], check=True)
        cls.gpu = os.path.join(cls.folder, "moved")
        os.rename(made, cls.gpu)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def start(self, arguments, environment=None):
        """(exit code, what it said), in an environment without anything of the build tree's."""
        plain = {"PATH": "/usr/bin:/bin", **(environment or {})}
        result = subprocess.run([os.path.join(self.gpu, "run")] + arguments, cwd="/", env=plain, check=False,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return result.returncode, result.stdout

    def test_the_stand_ins_pass_and_are_measured(self):
        results = os.path.join(self.folder, "results")
        figures = os.path.join(self.folder, "figures.json")
        code, said = self.start(["--stand-ins", "--quick", "--results", results, "--json", figures])
        self.assertEqual(code, 0, said)
        [path] = glob.glob(os.path.join(results, "stand-ins-*-*-*.md"))
        with open(path, encoding="utf-8") as file:
            text = file.read()
        self.assertIn("commit a-commit", text)
        self.assertEqual(text.count("(stand-in in software)"), 2 * 3)
        self.assertEqual(text.count("(emulated)"), 2)
        self.assertNotIn("FAILED", text)
        for key in KEYS:
            rows = [line for line in text.splitlines() if line.startswith("|") and f" {key} |" in line]
            self.assertEqual(len(rows), ROWS + (0 if key == "host" else MEMORY_ROWS), f"{key}: {rows}")
        self.assertIn("own memory: a symmetric heap of OpenSHMEM; two ranks, one node", text)
        self.assertIn("### `cuda_stand_in`: bcast, eight ranks, one node", text)
        self.assertIn("- own memory: collectives: --quick", text)
        self.assertIn("- `host`: own memory: there are no calls of a vendor's own", text)
        with open(figures, encoding="utf-8") as file:
            rows = {(row["benchmark"], row["size_bytes"], row["metric"]): row for row in json.load(file)}
        self.check_rows(rows)
        for key in KEYS:
            with self.subTest(key):
                self.check_kernels(key, rows, text)

    def test_every_program_is_named_built_and_brought_along(self):
        """The programs that it starts, those of tests/vendor_memory, and what ./dev gpu has Bazel build agree."""
        sys.dont_write_bytecode = True
        loader = importlib.machinery.SourceFileLoader("run", os.path.join(self.gpu, "run"))
        run = importlib.util.module_from_spec(importlib.util.spec_from_loader("run", loader))
        loader.exec_module(run)
        started = {f"tests/gpu_backends/{program}" for program, _ in run.SUITES.values()}
        started |= {program for _, program, _ in run.JOBS}
        started |= {f"{program}_{vendor}" for _, program, _, _ in run.MEMORY for vendor in run.VENDORS}
        started |= {program for _, _, (program, _, _), _ in run.COMPARISONS}
        started |= {"tools/ferryrun/ferryrun", "daemon/ferryd", run.backends.PROGRAM}
        there = set(glob.glob("tests/vendor_memory/*_*")) - set(glob.glob("tests/vendor_memory/two_vendors"))
        self.assertEqual({program for program in started if program.startswith("tests/vendor_memory/")}, there)
        for program in sorted(started):
            self.assertTrue(os.access(os.path.join(self.gpu, program), os.X_OK), program)
        with open("dev", encoding="utf-8") as file:
            [function] = re.findall(r"^run_gpu\(\) \{\n  (bazel build .*?[^\\])\n", file.read(), re.MULTILINE | re.DOTALL)
        labels = subprocess.run(["bash", "-c", f"bazel() {{ printf '%s\\n' \"${{@:2}}\"; }}\n{function}"], check=True,
                                stdout=subprocess.PIPE, text=True).stdout.split()
        for program in sorted(started | {os.path.relpath(path, self.gpu) for path in
                                         glob.glob(os.path.join(self.gpu, "tests/fixtures/*/*.so"))}):
            folder, name = os.path.split(program)
            built = {f"//{program}", f"//{folder}:{name}", f"//{folder}:programs", f"//{folder}/..."}
            if name == os.path.basename(folder):
                built.add(f"//{folder}")
            self.assertTrue(built & set(labels), f"./dev gpu does not build {program}: {labels}")

    def test_it_ends_within_ten_minutes(self):
        code, said = self.start(["--help"])
        self.assertEqual(code, 0)
        [limit] = re.findall(r"\n +--limit SECONDS\s[^(]+\((\d+)\)", said)
        self.assertLessEqual(int(limit), 570)

    def check_rows(self, rows):
        for key in KEYS:
            for call in CALLS:
                row = rows[f"gpu/{key}/call: {call}", 0, "latency"]
                self.assertGreater(row["ferry"], 0)
            if key != "host":
                self.assertEqual(len(rows[f"gpu/{key}/call: ExportIpc", 0, "latency"]["peers"]), 1)
            for size in SIZES:
                self.assertGreater(rows[f"gpu/{key}/ping_pong", size, "latency"]["ratio_to_best_peer"], 0)
                for copy in COPIES:
                    for metric in ("latency", "bandwidth"):
                        self.assertGreater(rows[f"gpu/{key}/copy_{copy}", size, metric]["ratio_to_best_peer"], 0)

    def check_kernels(self, key, rows, text):
        """Those of Ferry's own kernels; skipped where the build lacked their compiler, and the report says so."""
        part = text.split(f"\n### `{key.removesuffix('_stand_in')}`: ")[1].split("\n### `")[0]
        missing = re.search("The device runs none: (this build of Ferry has no kernels .* without .*)", part)
        if missing:
            self.skipTest(f"{key}: {missing.group(1)}")
        for where in ("device", "pinned"):
            self.assertGreater(rows[f"gpu/{key}/store_{where}", 8, "latency"]["ratio_to_best_peer"], 0)
        self.assertGreater(rows[f"gpu/{key}/pack_4096", 4, "latency"]["ratio_to_best_peer"], 0)

    def test_without_a_gpu_it_says_why_and_has_a_code_of_its_own(self):
        nowhere = {f"FERRY_{name}_LIBRARY": f"/nowhere/{name}.so" for name in ("CUDA", "HIP", "LEVEL_ZERO")}
        results = os.path.join(self.folder, "none")
        code, said = self.start(["--results", results], nowhere)
        self.assertEqual(code, NO_GPU, said)
        for name in ("CUDA", "HIP", "LEVEL_ZERO"):
            self.assertIn(f"{name.lower()}: not found: ", said)
            self.assertIn(f"/nowhere/{name}.so", said)
        self.assertFalse(os.path.exists(results))

    def test_vendors_libraries_are_found_by_their_own_names(self):
        """As on a machine with GPUs: nothing names a library, and the suites and programs find the system's."""
        stand_ins = os.path.join(self.gpu, "lib", "stand_ins")
        system = {"LD_LIBRARY_PATH": f"{stand_ins}/cuda:{stand_ins}/hip"}
        results = os.path.join(self.folder, "system")
        code, said = self.start(["--quick", "--backend", "cuda", "--backend", "hip", "--no-benchmarks", "--results",
                                 results], system)
        self.assertEqual(code, 0, said)
        for vendor in ("cuda", "hip"):
            self.assertRegex(said, rf"gpu: {vendor}: conformance: [1-9]\d* passed")
            self.assertIn(f"gpu: {vendor}: own memory: ferry.h's own calls; two ranks, one node: passed", said)
        [path] = glob.glob(os.path.join(results, "*.md"))
        with open(path, encoding="utf-8") as file:
            self.assertNotIn("FAILED", file.read())

    def test_what_the_time_does_not_suffice_for_is_said(self):
        results = os.path.join(self.folder, "late")
        code, said = self.start(["--stand-ins", "--quick", "--backend", "host", "--limit", "0", "--results", results])
        self.assertEqual(code, 1, said)
        self.assertIn("host: queues; two ranks, one node: FAILED", said)
        [path] = glob.glob(os.path.join(results, "*.md"))
        with open(path, encoding="utf-8") as file:
            text = file.read()
        self.assertIn("the time was up before it could begin: see --limit", text)
        self.assertIn("FAILED: the time was up before they could begin: see --limit", text)

    def test_a_failure_is_reported_and_the_rest_runs(self):
        broken = os.path.join(self.gpu, "tests/e2e/ranks/queues")
        os.rename(broken, broken + ".whole")
        try:
            with open(broken, "w", encoding="utf-8") as file:
                file.write("#!/bin/sh\necho this one is broken\nexit 9\n")
            os.chmod(broken, 0o755)
            results = os.path.join(self.folder, "broken")
            code, said = self.start(["--stand-ins", "--quick", "--backend", "host", "--no-benchmarks",
                                     "--results", results])
        finally:
            os.rename(broken + ".whole", broken)
        self.assertEqual(code, 1, said)
        self.assertIn("host: queues; two ranks, one node: FAILED", said)
        self.assertIn("host: MPI_Send and MPI_Recv of device memory; two ranks, one node: passed", said)
        [path] = glob.glob(os.path.join(results, "*.md"))
        with open(path, encoding="utf-8") as file:
            text = file.read()
        self.assertIn("Failed: host: queues; two ranks, one node", text)
        self.assertIn("this one is broken", text)


if __name__ == "__main__":
    skips.main()
