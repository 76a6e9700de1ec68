#!/bin/bash
# Programs cross between Ferry and other libraries with the binary interface of MPI 5.0, both ways:
# ferrycc's run on theirs, and those compiled with their header and linked with their library run on
# Ferry's. First each header is compared with the interface; a library whose header has other
# numbers cannot run our programs, nor can we run its: that is said, and it is left out.
#
# Downloads MPICH and Intel MPI; ABI_PEERS=FOLDER:FOLDER takes installations that are already
# here (with include/mpi_abi.h, lib/libmpi_abi.so.1, bin/mpiexec).
set -euo pipefail
source tests/support/skip.sh

readonly programs=(attributes communicators datatypes intercommunicators messages operations
  threads topologies)  # of tests/mpi/ranks: those without mpix.h

fail() {
  echo "FAILED: $*"
  exit 1
}

here=$PWD
work=$(mktemp -d /tmp/ferry-abi-XXXXXX)
trap 'rm -rf "$work"' EXIT
export HOME=$work PATH=/usr/local/bin:/usr/bin:/bin

# install NAME PACKAGE...: into $work/NAME.
install() {
  /usr/bin/python3 benchmarks/common/wheels.py "$work/$1" "${@:2}" >"$work/log" 2>&1 ||
    skip "$(tail -n 1 "$work/log")"
  peers+=("$work/$1")
}

peers=()
if [[ -n ${ABI_PEERS:-} ]]; then
  IFS=: read -ra peers <<<"$ABI_PEERS"
else
  install mpich mpich==5.0.2
  install impi impi-devel impi-rt
fi

# Their mpi.h may be that of their own interface; the standard's has the name mpi_abi.h.
mkdir "$work/include"
echo '#include <mpi_abi.h>' >"$work/include/mpi.h"

# ours PEER: a program of ferrycc's on the peer's library.
ours() {
  local ranks
  for ranks in 2 3; do
    echo "== Ferry's program on $1, $ranks ranks"
    LD_LIBRARY_PATH=$1/lib I_MPI_FABRICS=shm timeout 120 \
      "$1/bin/mpiexec" -n "$ranks" "$work/ours" >"$work/out" 2>&1 || fail "$(cat "$work/out")"
    [[ $(grep -c ': ok$' "$work/out") == "$ranks" ]] || fail "$(cat "$work/out")"
  done
}

# theirs PEER SOURCE: a program of the peer's on Ferry's library, on one node and on two.
theirs() {
  local placement program
  program=$work/$(basename "$2" .c)  # some look at their own name
  echo "== $2 of $1 on Ferry"
  cc -I"$work/include" -I"$1/include" -I"$here" -O1 "$2" -o "$program" \
    -L"$1/lib" -lmpi_abi -lpthread -lm >"$work/out" 2>&1 || fail "$(cat "$work/out")"
  for placement in "-n 2" "-n 3 --nodes 2"; do
    # shellcheck disable=SC2086
    LD_LIBRARY_PATH=$here/mpi:$here/client timeout 240 "$here/tools/ferryrun/ferryrun" \
      --private --no-label $placement "$program" >"$work/out" 2>&1 || fail "$(cat "$work/out")"
    ! grep -q 'not so' "$work/out" || fail "$(cat "$work/out")"
  done
}

tools/wrappers/ferrycc tests/mpi/abi/portable_program.c -o "$work/ours"
tried=0
for peer in "${peers[@]}"; do
  [[ -e $peer/include/mpi_abi.h ]] || fail "$peer has no include/mpi_abi.h"
  echo "== $peer/include/mpi_abi.h"
  if ! /usr/bin/python3 tests/mpi/abi/compare_header.py "$peer/include/mpi_abi.h" \
    include/ferry/mpi; then
    echo "$peer is left out: its interface is another one"
    continue
  fi
  ours "$peer"
  theirs "$peer" tests/mpi/abi/portable_program.c
  for program in "${programs[@]}"; do theirs "$peer" "tests/mpi/ranks/$program.c"; done
  tried=$((tried + 1))
done
((tried > 0)) || fail "no library has the interface that Ferry has"
echo "ok: $tried of ${#peers[@]} libraries"
