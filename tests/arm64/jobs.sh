#!/usr/bin/env bash
# jobs.sh BUILT: runs whole jobs of an arm64 build, by in_qemu.sh. BUILT is Bazel's out/bin of --config=arm64.
set -euo pipefail

built=$(realpath "$1")
work=$(mktemp -d "${TMPDIR:-/tmp}/ferry-jobs.XXXXXX")
trap 'rm -rf "$work"' EXIT
jobs=0

# run SAYS ARGUMENTS...: a job that has to end well, and to say this.
run() {
  local says=$1 code=0
  shift
  "$built/tools/ferryrun/ferryrun" --private --ferryd "$built/daemon/ferryd" "$@" >"$work/out" 2>"$work/err" || code=$?
  if ((code)) || ! grep -qe "$says" "$work/out"; then
    cat "$work/out" "$work/err" >&2
    echo "jobs.sh: exit code $code, or it does not say '$says': ferryrun ${*//$built\//}" >&2
    exit 1
  fi
  jobs=$((jobs + 1))
}

examples=$built/examples
run 'rank 1 of 2: rank 0 says hello' -n 2 "$examples/hello/hello"
run 'rank 1 of 2: rank 0 says hello' -n 2 --nodes 2 "$examples/hello/hello"
run 'demo: PASS' -n 4 --nodes 2 "$examples/heat2d/heat2d" --iterations 20 --output "$work/heat.png"
run 'serial solve 0: ' -n 4 --nodes 2 "$examples/mpi_jacobi/mpi_jacobi"
run 'windows: PASS' -n 4 --nodes 2 "$examples/mpi_windows/mpi_windows" 100
# A heap, functions of devices and queues. Static data are not shared here: the emulator has a thread of its own, and they are moved
# only while a process has one.
run 'equal to a serial run: PASS' -n 2 "$examples/shmem_jacobi/shmem_jacobi" 16 4 2
echo "jobs: $jobs have run"
