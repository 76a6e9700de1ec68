"""Runs MPICH's conformance programs as jobs of ferryrun: mpich_suite.py FERRYRUN [FOLDER...].

The working directory is test/mpi of MPICH's source, configured and built. Which programs there are,
their numbers of ranks and their arguments is said by the files testlist there. Prints each program
that does not do what is expected of it here, and how many did; ends with 1 if any did not.
"""

import fnmatch
import os
import subprocess
import sys

FOLDERS = [
    "attr", "coll", "comm", "datatype", "errors/attr", "errors/basic", "errors/coll", "errors/comm",
    "errors/datatype", "errors/group", "errors/pt2pt", "errors/topo", "group", "info", "pt2pt",
    "threads/comm", "threads/init", "threads/pt2pt", "topo",
]
LIMIT_S = 90

# Programs that cannot be built with MPI 5.0's interface, or do not pass, and why. Patterns.
NOT_BUILT = {
    "datatype/pack_external": "a switch over handles, which are pointers in the ABI",
    "pt2pt/mprobe": "MPI_Message_c2f: there is no Fortran",
    # Their library of datatypes calls MPI_Type_hvector and others that MPI 3.0 removed.
    "attr/fkeyvaltype": "calls that MPI 3.0 removed",
    "coll/bcast": "calls that MPI 3.0 removed",
    "coll/bcast_comm_world_only": "calls that MPI 3.0 removed",
    "pt2pt/pingping*": "calls that MPI 3.0 removed",
    "pt2pt/sendrecv1": "calls that MPI 3.0 removed",
    "pt2pt/sendself": "calls that MPI 3.0 removed",
}
NOT_PASSED = {
    "coll/allred": "MPI_LAND, MPI_LOR and MPI_LXOR of MPI_AINT, which the standard lacks",
    "coll/nonblocking[23]": "keep datatypes as int",
    "datatype/darray_pack": "72 ranks are more than a daemon serves",
    "datatype/typename": "expects the other one of two names of a type",
    "errors/attr/keyvalmis": "windows are not there yet",
    "errors/coll/noalias*": "one rank alone makes collective calls that fail, which count here (docs/mpi.md)",
    "errors/pt2pt/truncmsg2": "types that do not match are not looked for in messages",
    "attr/keyval_double_free_win": "windows are not there yet",
    "info/infocreateenv": "the thread level is known after MPI_Init only",
    "threads/pt2pt/multisend4": "25 threads wait busily for each other: minutes on few cores",
    "threads/pt2pt/mt_improbe_*": "compares messages with MPI_REQUEST_NULL",
    "threads/pt2pt/threads": "minutes on few cores",
    "topo/cartsuball": "expects MPI_COMM_NULL where each rank has a grid of its own",
    "topo/dims5": "expects the other one of two grids that are equally square",
}
# Words of a testlist: MPICH itself expects it to fail, it wants another launcher's options, or more
# than the standard says.
NOT_RUN = ("xfail=", "resulttest=", "mpiexecarg=", "strict=false")


def programs(folder):
    """The programs with their ranks, arguments and environments, once each."""
    path = os.path.join(folder, "testlist")
    found = []
    if not os.path.exists(path):
        return found
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
    for word in words[2:]:
        kind, _, value = word.partition("=")
        if kind == "arg":
            arguments.append(value)
        elif kind == "env":
            name, _, value = value.partition("=")
            environment[name] = value
    command = [ferryrun, "--private", "--no-label"]
    if folder.startswith(("errors", "attr", "group")):
        # They expect that errors which belong to no communicator go to that of MPI_COMM_WORLD, as
        # before MPI 4.0, and have those returned only.
        command += ["-initial-errhandler", "mpi_errors_return"]
    command += ["-n", words[1] if len(words) > 1 else "1", "./" + words[0]] + arguments
    try:
        done = subprocess.run(command, cwd=folder, env=environment, timeout=LIMIT_S, text=True,
                              errors="replace", capture_output=True, check=False)
    except subprocess.TimeoutExpired:
        return False, f"it did not end within {LIMIT_S} s"
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


def main(ferryrun, folders):
    right = wrong = left_out = 0
    for folder in folders:
        for words in programs(folder):
            name = f"{folder}/{words[0]}"
            if reason(NOT_BUILT, name) or reason(NOT_PASSED, name):
                left_out += 1
            complaint = judge(ferryrun, folder, words)
            if complaint is None:
                right += 1
            else:
                wrong += 1
                print(complaint, flush=True)
    print(f"{right - left_out} passed, {wrong} failed, {left_out} left out", flush=True)
    return 1 if wrong or right == left_out else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:] or FOLDERS))
