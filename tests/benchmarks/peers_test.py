#!/usr/bin/python3
"""Which MPI libraries Ferry is compared with, and what becomes of one that fails."""

import contextlib
import io
import json
import os
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, "benchmarks/common")
import libraries  # noqa: E402
import peers  # noqa: E402
import report  # noqa: E402
import wheels  # noqa: E402


def write_script(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\n" + text)
    os.chmod(path, 0o755)
    return path


class WithFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)


class TakeTurnsTest(WithFolder):
    def library(self, kind, name, script):
        launcher = write_script(self.path(name), f'echo >>"{self.path(name)}.runs"\n{script}')
        return kind(name, "program", lambda layout: ([launcher], {}), limit_s=1)

    def runs_of(self, name):
        with open(self.path(f"{name}.runs"), encoding="utf-8") as file:
            return len(file.readlines())

    def measure(self, *found):
        return libraries.take_turns(found, 3, "title", lambda library: {8: float(library.run("same_node", []))})

    def test_a_peer_that_gives_up_is_named_and_no_failure(self):
        medians = self.measure(self.library(libraries.Library, "Ferry", "echo 2"),
                               self.library(peers.Peer, "Sound", "echo 1"),
                               self.library(peers.Peer, "Crashed", "kill -SEGV $$"),
                               self.library(peers.Peer, "Failed", "echo no >&2; exit 3"),
                               self.library(peers.Peer, "Hung", "sleep 1000"),
                               peers.Peer("Missing", "", None, reason="it is not there"))
        self.assertTrue(medians.whole)
        self.assertEqual(medians.failures, {"Crashed": "ended by SIGSEGV", "Failed": "exit code 3",
                                            "Hung": "no end after 1 s", "Missing": "it is not there"})
        self.assertEqual([self.runs_of(name) for name in ("Ferry", "Sound", "Hung")], [3, 3, 1])
        row = report.Row("x", "same_node", 8, "latency", "us", {name: of.get(8) for name, of in medians.items()})
        header, _, line = report.comparison({"": [row]}).splitlines()
        self.assertEqual([cell.strip() for cell in header.split("|")[1:-1]],
                         ["size", "Ferry", "Sound", "Crashed", "Failed", "Hung", "Missing", "ratio"])
        self.assertEqual([cell.strip() for cell in line.split("|")[1:-1]],
                         ["8 B", "2.00", "1.00", "gave up", "gave up", "gave up", "gave up", "2.00"])
        self.assertIn("- Hung gave up: no end after 1 s.", medians.parts())

    def test_a_page_has_its_tables_as_data(self):
        row = report.Row("x", "same_node", 8, "latency", "us", {"Ferry": 2, "Sound": 1})
        page = self.path("page.md")
        text = "# X\n\nOf a\nmachine.\n\n## One\n\n### Part\n\n" + report.comparison({"": [row]}) + "\n\n## Two\n\n| a | b |\n|--|--|\n| 1 |   |\n"
        with contextlib.redirect_stdout(io.StringIO()):
            report.publish(text, [row], page)
        with open(self.path("page.json"), encoding="utf-8") as file:
            data = json.load(file)
        self.assertEqual(data, {"measured": "Of a machine.", "tables": [
            {"section": ["One", "Part"], "columns": ["size", "Ferry", "Sound", "ratio"], "rows": [["8 B", "2.00", "1.00", "2.00"]]},
            {"section": ["Two"], "columns": ["a", "b"], "rows": [["1", ""]]}]})

    def test_a_failure_of_ferry_is_one(self):
        medians = self.measure(self.library(libraries.Library, "Ferry", "exit 1"),
                               self.library(peers.Peer, "Sound", "echo 1"))
        self.assertFalse(medians.whole)
        self.assertEqual(dict(medians), {"Ferry": {}, "Sound": {8: 1}})

    def test_a_failure_has_what_was_printed_before(self):
        for script, why in (("echo 8 1; kill -SEGV $$", "ended by SIGSEGV"), ("echo 8 1; exit 3", "exit code 3"),
                            ("echo 8 1; sleep 1000", "no end after 1 s")):
            with self.assertRaises(libraries.PeerGaveUp) as raised:
                self.library(peers.Peer, "Late", script).run("same_node", [])
            self.assertEqual((str(raised.exception), raised.exception.output), (why, "8 1\n"))

    def test_a_launcher_that_is_not_there_is_a_failure(self):
        peer = peers.Peer("Gone", "program", lambda layout: (["/nowhere/mpiexec"], {}))
        medians = self.measure(peer)
        self.assertEqual(medians.failures, {"Gone": "cannot start /nowhere/mpiexec: No such file or directory"})


class FindTest(WithFolder):
    def setUp(self):
        super().setUp()
        os.mkdir(self.path("bin"))
        for name, value in (("FOLDER", self.path("peers")), ("FERRYCC", self.path("bin/ferrycc"))):
            patch = mock.patch.object(peers, name, value)
            patch.start()
            self.addCleanup(patch.stop)
        with open(self.path("venv.py"), "w", encoding="utf-8") as file:
            file.write("import sys\nsys.exit('nothing can be installed here')\n")
        self.set_environment(PATH=self.path("bin") + ":/usr/sbin:/sbin", PYTHONPATH=self.folder)
        peers.find.cache_clear()
        self.addCleanup(peers.find.cache_clear)

    def set_environment(self, **variables):
        patch = mock.patch.dict(os.environ, variables)
        patch.start()
        self.addCleanup(patch.stop)

    def pretend(self, package, version):
        """As `pip install` leaves it."""
        folder = self.path(f"peers/{package}")
        info = os.path.join(folder, f"lib/python3.11/site-packages/{package.replace('-', '_')}-{version}.dist-info")
        os.makedirs(info)
        with open(os.path.join(info, "METADATA"), "w", encoding="utf-8") as file:
            file.write(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
        with open(os.path.join(folder, wheels.MARK), "w", encoding="utf-8") as file:
            file.write(f"{package}\n")
        return folder

    def test_without_pip_debians_stand_in_and_the_rest_is_missing(self):
        compiler = 'for word; do last=$word; done; echo "$0" >"$last"\n'
        write_script(self.path("bin/mpicc.openmpi"), compiler)
        write_script(self.path("bin/dpkg-query"), "echo 4.1.4")
        open_mpi, mpich, intel = peers.peers("source.c", self.folder)
        self.assertEqual([peer.name for peer in (open_mpi, mpich, intel)], ["Open MPI", "MPICH", "Intel MPI"])
        self.assertIsNone(open_mpi.reason)
        command, _ = open_mpi.launcher("same_node")
        self.assertEqual(command[0], "mpirun.openmpi")
        self.assertIn("vader,self", command)
        for peer in (mpich, intel):
            self.assertIn("nothing can be installed here", peer.reason)
        self.assertIn("Debian's mpich is not installed", mpich.reason)
        self.assertEqual(peers.describe(), "Open MPI 4.1.4 (Debian's), MPICH (missing), Intel MPI (missing)")
        with self.assertRaises(libraries.PeerGaveUp):
            intel.run("same_node", [])

    def test_one_program_of_ferrycc_runs_on_mpich_and_intel(self):
        count = self.path("compiled")
        write_script(self.path("bin/ferrycc"), f'echo "$@" >>{count}\nfor word; do last=$word; done; : >"$last"\n')
        mpich_folder, intel_folder = self.pretend("mpich", "5.0.2"), self.pretend("impi-rt", "2021.18.0")
        self.pretend("openmpi", "5.0.11")  # whose compiler is not there
        open_mpi, mpich, intel = peers.peers("source.c", self.folder)
        self.assertEqual((mpich.reason, intel.reason), (None, None))
        self.assertEqual(mpich.program, intel.program)
        with open(count, encoding="utf-8") as file:
            self.assertEqual(len(file.readlines()), 1)
        for peer, folder in ((mpich, mpich_folder), (intel, intel_folder)):
            command, environment = peer.launcher("same_node")
            self.assertEqual(command, [f"{folder}/bin/mpiexec"])
            self.assertEqual(environment["LD_LIBRARY_PATH"], f"{folder}/lib")
        self.assertIn("peers/openmpi/bin/mpicc: No such file", open_mpi.reason)
        self.assertEqual(peers.describe(), "Open MPI 5.0.11, MPICH 5.0.2, Intel MPI 2021.18.0")


class WheelsTest(WithFolder):
    def test_nothing_unfinished_stays(self):
        folder = self.path("venv")
        os.makedirs(os.path.join(folder, "lib"))
        no_index = {"PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": "/dev/null"}
        with mock.patch.dict(os.environ, no_index), self.assertRaises(wheels.NotInstalled):
            wheels.install(folder, ["ferry-has-no-such-package"])
        self.assertFalse(os.path.exists(folder))


if __name__ == "__main__":
    unittest.main()
