"""Runs programs that start others, and leaves none of them behind.

The processes of an MPI launcher have groups and sessions of their own, and may outlive it. So this process adopts
what its descendants leave behind (PR_SET_CHILD_SUBREAPER), and ends its own children, by their ids, until it has no
more than before: an id cannot pass to somebody else before its parent has waited for it.
"""

import ctypes
import os
import select
import signal
import subprocess
import sys
import tempfile

PR_SET_CHILD_SUBREAPER = 36
GRACE_S = 3  # for a launcher to end its ranks, and to take its files away


class Ended:
    """How a program ended. `code` is None if its time ran out, and minus the signal's number if one ended it."""

    def __init__(self, code, output, errors):
        self.code = code
        self.output = output
        self.errors = errors


def adopt_orphans():
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")
    if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:  # so that what runs is ended then, too
        signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))


def children():
    """The ids of this process's children, those that have ended included."""
    found = set()
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                # "ID (NAME) STATE PARENT ...", where NAME may have blanks and parentheses
                parent = int(file.read().rpartition(")")[2].split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue
        if parent == os.getpid():
            found.add(int(name))
    return found


def has_ended(descriptor, limit_s):
    """Whether the process of a pidfd ends before the limit."""
    return bool(select.select([descriptor], [], [], limit_s)[0])


def end_all_but(spared):
    """Each round's parents leave their children to us."""
    while True:
        left = children() - spared
        if not left:
            return
        for child in left:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def run(command, limit_s, environment=None, cores=None):
    """Runs it to its end, or until the limit, on these cores only if there are any. Afterwards nothing that it has
    started is left. Raises OSError if it cannot be started."""
    adopt_orphans()
    before = children()
    # Files: a pipe would stay open for as long as somebody who was left behind has it.
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=errors, env=environment,
                              start_new_session=True,
                              preexec_fn=lambda: cores and os.sched_setaffinity(0, cores)) as process:
            descriptor = os.pidfd_open(process.pid)
            try:
                ended = has_ended(descriptor, limit_s)
                if not ended:
                    process.terminate()
                    has_ended(descriptor, GRACE_S)
            finally:
                os.close(descriptor)
                process.kill()
                process.wait()
                end_all_but(before)

        def text(file):
            file.seek(0)
            return file.read().decode(errors="replace")

        return Ended(process.returncode if ended else None, text(output), text(errors))
