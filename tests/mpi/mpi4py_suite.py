"""Runs mpi4py's own tests in this rank: mpi4py_suite.py FOLDER_OF_TESTS [NAME...].

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
    "test_spawn",  # waits for processes that cannot be spawned
}
EXCLUDED_TESTS = {
    # Wants a datatype that is_predefined says is predefined not to be, and a constructor that
    # mpi4py does not have.
    "testValueIndex",
}


class _Missing:
    """Stands for calls at the top of test files, which expect NotImplementedError."""

    @classmethod
    def missing(cls, *args, **kwargs):
        raise NotImplementedError


class _NoSession(MPI.Session):
    Init = _Missing.missing


class _NoFile(MPI.File):
    Open = _Missing.missing


class _NoWindow(MPI.Win):
    Create = Allocate = Allocate_shared = Create_dynamic = _Missing.missing


class _Result(unittest.TextTestResult):
    def addError(self, test, err):
        error = err[1]
        if (
            isinstance(error, MPI.Exception)
            and error.Get_error_class() == MPI.ERR_UNSUPPORTED_OPERATION
        ):
            self.addSkip(test, str(error))
        else:
            super().addError(test, err)


def load(folder, names):
    """The tests of `folder`, or those files of it that are named."""
    real = MPI.Session, MPI.File, MPI.Win
    MPI.Session, MPI.File, MPI.Win = _NoSession, _NoFile, _NoWindow
    sys.path.insert(0, str(folder))
    try:
        for name in sorted(path.stem for path in folder.glob("test_*.py")):
            if name not in EXCLUDED_FILES and (not names or name in names):
                yield from unittest.defaultTestLoader.loadTestsFromName(name)
    finally:
        MPI.Session, MPI.File, MPI.Win = real


def flatten(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from flatten(test)
        elif test.id().rsplit(".", 1)[-1] not in EXCLUDED_TESTS:
            yield test


def main():
    folder = pathlib.Path(sys.argv[1]).resolve()
    suite = unittest.TestSuite(flatten(list(load(folder, set(sys.argv[2:])))))
    runner = unittest.TextTestRunner(stream=sys.stderr, resultclass=_Result, verbosity=1)
    result = runner.run(suite)
    failed = len(result.failures) + len(result.errors) + len(result.unexpectedSuccesses)
    skipped = len(result.skipped)
    passed = result.testsRun - failed - skipped
    print(f"{passed} passed, {failed} failed, {skipped} skipped", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
