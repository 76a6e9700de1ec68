"""Who may use the libraries of a folder, unless a rule says otherwise: one table for all folders of the product."""

_ALL = ["//visibility:public"]

def _folders(*names):
    return ["//%s:__subpackages__" % name for name in names]

# By folder, for it and all below it; the longest name counts. What a layer may use as a whole is checked by lint.sh.
_USERS = {
    "client": _folders("benchmarks", "client", "coll", "mpi", "shmem", "tests"),
    "client/bootstrap": _folders("client", "coll", "mpi", "shmem", "tests", "tools"),
    "client/direct": _folders("client", "tests/client/direct"),
    "coll": _folders("client", "coll", "mpi", "shmem", "tests", "tools"),
    "common": _ALL,
    "config": _ALL,
    "daemon": _folders("benchmarks", "daemon", "tests"),
    "engine": _ALL,
    "gpu_backends": _folders("benchmarks/gpu", "gpu_backends", "tests/gpu_backends"),
    "gpu_backends/api": _ALL,
    "internode": _folders("benchmarks", "client/direct", "daemon", "internode", "tests"),
    "mpi": _folders("benchmarks", "mpi", "tests"),
    "shm": _ALL,
    "shmem": _folders("shmem", "tests", "tools/tune"),
    "tools": _folders("benchmarks", "tests", "tools"),
    "transports": _ALL,
}

def users_of(package):
    """The visibility of the libraries of a package; None where it says so itself."""
    found = [folder for folder in _USERS if (package + "/").startswith(folder + "/")]
    return _USERS[sorted(found)[-1]] if found else None
