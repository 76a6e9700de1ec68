"""Runs mpi4py's own tests in this rank: mpi4py_suite.py [--ordinary] FOLDER_OF_TESTS [NAME...].

With --ordinary, memory that the tests take from MPI_Alloc_mem is Python's own.

What fails with MPI_ERR_UNSUPPORTED_OPERATION is skipped, with the library's message: docs/mpi.md
lists those calls. Prints how many tests passed, failed and were skipped, and ends with 1 if any failed.
"""

import pathlib
import sys
import unittest

from mpi4py import MPI

# Not about the MPI library, or contradicting mpi4py itself.
EXCLUDED_FILES = {
    "test_doc",  # docstrings
    "test_package",  # mpi4py's command line
    # Not of MPI 5.0; where it is missing, mpi4py calls collectives in different orders.
    "test_ulfm",
    # Where connecting and spawning are not there, one rank or thread learns it, and others wait.
    "test_dynproc",
    "test_spawn",
    "test_util_pool",
}
EXCLUDED_TESTS = {  # classes or methods
    # Pairs without a name: mpi4py has no constructor for them, nor a NumPy type, and contradicts
    # its own is_predefined.
    "testValueIndex",
    "testPair",
    # Wants the extent of vectors of vectors at odd strides to be composed, not that of the type map
    # rounded up once (MPI 5.0, section 5.1).
    "testHVector",
}


def _is_unsupported(error):
    return (
        isinstance(error, MPI.Exception)
        and error.Get_error_class() == MPI.ERR_UNSUPPORTED_OPERATION
    )


class _Result(unittest.TextTestResult):
    def addError(self, test, err):
        if _is_unsupported(err[1]):
            self.addSkip(test, str(err[1]))
        else:
            super().addError(test, err)


def take_ordinary_memory():
    """Windows over memory that MPI has not allocated: MPI_Alloc_mem gives Python's."""
    MPI.Alloc_mem = lambda size, info=None: MPI.buffer.allocate(size, clear=True)
    MPI.Free_mem = lambda memory: None


def load(folder, names):
    """The tests of `folder`, or those files of it that are named."""
    sys.path.insert(0, str(folder))
    files = {path.stem for path in folder.glob("test_*.py")}
    # Tests that are skipped halfway keep their operations, of which mpi4py has but a few.
    for name in sorted(files, key=lambda name: (name != "test_op", name)):
        if name in EXCLUDED_FILES or (names and name not in names):
            continue
        try:
            yield from unittest.defaultTestLoader.loadTestsFromName(name)
        except MPI.Exception as error:
            if not _is_unsupported(error):
                raise
            print(f"{name} is left out: {error}", flush=True)


def flatten(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from flatten(test)
        elif EXCLUDED_TESTS.isdisjoint(test.id().split(".")):
            yield test


def main():
    arguments = sys.argv[1:]
    if arguments[0] == "--ordinary":
        take_ordinary_memory()
        del arguments[0]
    folder = pathlib.Path(arguments[0]).resolve()
    suite = unittest.TestSuite(flatten(list(load(folder, set(arguments[1:])))))
    runner = unittest.TextTestRunner(stream=sys.stderr, resultclass=_Result, verbosity=1)
    result = runner.run(suite)
    failed = len(result.failures) + len(result.errors) + len(result.unexpectedSuccesses)
    skipped = len(result.skipped)
    passed = result.testsRun - failed - skipped
    print(f"{passed} passed, {failed} failed, {skipped} skipped", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
