"""Runs MPICH's conformance programs as jobs of ferryrun: mpich_suite.py FERRYRUN FOLDER...

The working directory is test/mpi of MPICH's source, configured and built. Of FOLDERS below, those are
taken that are named, or lie in one that is. Which programs they have, their numbers of ranks and their
arguments is said by lists there. Prints each program that does not do what is expected of it here, and
for each folder how many did; ends with 1 if any did not, or a folder has no list.
"""

import fnmatch
import os
import subprocess
import sys

FOLDERS = [
    "attr", "coll", "comm", "datatype", "errors/attr", "errors/coll", "errors/comm", "errors/datatype",
    "errors/group", "errors/pt2pt", "errors/rma", "errors/topo", "group", "info", "init", "part", "pt2pt",
    "rma", "threads/comm", "threads/init", "threads/pt2pt", "threads/rma", "topo",
]
LIMIT_S = 90

# Programs that cannot be built with MPI 5.0's interface, or do not pass, and why. Patterns.
NOT_BUILT = {
    "datatype/pack_external": "a switch over handles, which are pointers in the ABI",
    "rma/aint*": "MPICH builds it with its extensions only",
    "pt2pt/mprobe": "MPI_Message_c2f: there is no Fortran",
}
NOT_PASSED = {
    "coll/allred": "MPI_LAND, MPI_LOR and MPI_LXOR of MPI_AINT, which the standard lacks",
    "coll/nonblocking[23]": "keep datatypes as int",
    "datatype/darray_pack": "72 ranks are more than a daemon serves",
    "datatype/typename": "expects the other one of two names of a type",
    "errors/coll/*noalias*": "one rank alone makes collective calls that fail, which count here (docs/mpi.md)",
    "errors/attr/keyvalmis": "expects that errors of windows go to MPI_COMM_WORLD's handler",
    "errors/pt2pt/truncmsg2": "types that do not match are not looked for in messages",
    "info/infocreateenv": "the thread level is known after MPI_Init only",
    "part/nonblocking_pready": "sends elements of MPI_DATATYPE_NULL to a rank, though none",
    "rma/large_acc_flush_local": "39 GB of single bytes, each added at once: minutes on few cores",
    "rma/linked_list_bench_lock_[as]*": "wants 16 bytes (MPI_BYTE) to change at once",
    "threads/pt2pt/multisend4": "25 threads wait busily for each other: minutes on few cores",
    "threads/pt2pt/mt_improbe_*": "compares messages with MPI_REQUEST_NULL",
    "threads/pt2pt/threads": "minutes on few cores",
    "topo/cartsuball": "expects MPI_COMM_NULL where each rank has a grid of its own",
    "topo/dims5": "expects the other one of two grids that are equally square",
}
# Folders that have another list: of programs which run with many datatypes. Those of coll and pt2pt
# have not been tried yet.
MANY_DATATYPES = ("attr", "part", "rma")
# Words of a list: MPICH itself expects it to fail, it wants another launcher's options, more than
# the standard says, or half an hour.
NOT_RUN = ("xfail=", "resulttest=", "mpiexecarg=", "strict=false", "timelimit=1800")


def programs(folder):
    """The programs with their ranks, arguments and environments, once each."""
    found = []
    for name in ("testlist", "testlist.dtp") if folder in MANY_DATATYPES else ("testlist",):
        path = os.path.join(folder, name)
        if not os.path.exists(path):
            continue
        with open(path, encoding="utf-8") as file:
            for line in file:
                words = line.split("#")[0].split()
                if not words or any(word.lower().startswith(NOT_RUN) for word in words):
                    continue
                if words not in found and not os.path.isdir(os.path.join(folder, words[0])):
                    found.append(words)
    return found


def reason(reasons, name):
    """Why the program is in this list; None: it is not."""
    return next((why for pattern, why in reasons.items() if fnmatch.fnmatch(name, pattern)), None)


def run(ferryrun, folder, words):
    """Whether the program passes, and what it wrote."""
    environment = dict(os.environ)
    arguments = []
    limit_s = LIMIT_S
    for word in words[2:]:
        kind, _, value = word.partition("=")
        if kind == "arg":
            arguments.append(value)
        elif kind == "env":
            name, _, value = value.partition("=")
            environment[name] = value
        elif kind == "timeLimit":
            limit_s = max(limit_s, int(value))
    command = [ferryrun, "--private", "--no-label"]
    if folder.startswith(("errors", "attr", "group")):
        # They expect that errors which belong to no communicator go to that of MPI_COMM_WORLD, as
        # before MPI 4.0, and have those returned only.
        command += ["-initial-errhandler", "mpi_errors_return"]
    command += ["-n", words[1] if len(words) > 1 else "1", "./" + words[0]] + arguments
    try:
        done = subprocess.run(command, cwd=folder, env=environment, timeout=limit_s, text=True,
                              errors="replace", capture_output=True, check=False)
    except subprocess.TimeoutExpired:
        return False, f"it did not end within {limit_s} s"
    passed = done.returncode == 0 and "no errors" in done.stdout.lower()
    return passed, (done.stdout + done.stderr)[:2000]


def judge(ferryrun, folder, words):
    """None, or what is wrong."""
    name = f"{folder}/{words[0]}"
    title = f"{folder}: {' '.join(words)}: "
    if not os.path.exists(name):
        return None if reason(NOT_BUILT, name) else title + "it was not built"
    if reason(NOT_PASSED, name):
        return None
    passed, output = run(ferryrun, folder, words)
    return None if passed else title + output


def check(ferryrun, folder):
    """Whether the programs of the folder do what is expected."""
    passed = failed = left_out = 0
    for words in programs(folder):
        name = f"{folder}/{words[0]}"
        complaint = judge(ferryrun, folder, words)
        if complaint is not None:
            failed += 1
            print(complaint, flush=True)
        elif reason(NOT_BUILT, name) or reason(NOT_PASSED, name):
            left_out += 1
        else:
            passed += 1
    print(f"{folder}: {passed} passed, {failed} failed, {left_out} left out", flush=True)
    return failed == 0 and passed + left_out > 0


def main(ferryrun, named):
    taken = [folder for folder in FOLDERS if {folder, folder.split("/")[0]} & set(named)]
    right = [check(ferryrun, folder) for folder in taken]
    return 0 if right and all(right) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
