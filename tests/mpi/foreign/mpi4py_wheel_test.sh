#!/bin/bash
# mpi4py's wheel, as pip installs it, runs on Ferry: it knows only MPICH's and Open MPI's binary
# interfaces, and opens the library by itself. Its own tests come with its source alone.
# Downloads both; MPI4PY_SOURCE=FILE.tar.gz takes a source that is already here.
set -euo pipefail
source tests/support/skip.sh

readonly release=4.1.2

fail() {
  echo "FAILED: $*"
  exit 1
}

here=$PWD
work=$(mktemp -d /tmp/ferry-wheel-XXXXXX)
trap 'rm -rf "$work"' EXIT
export HOME=$work PATH=/usr/local/bin:/usr/bin:/bin

/usr/bin/python3 benchmarks/common/wheels.py "$work/venv" "mpi4py==$release" \
  numpy cython setuptools wheel >"$work/log" 2>&1 ||
  skip "$(tail -n 1 "$work/log")"
source=${MPI4PY_SOURCE:-}
if [[ -z $source ]]; then
  "$work/venv/bin/python" -m pip --disable-pip-version-check download -q --no-deps \
    --no-build-isolation --no-binary :all: -d "$work" "mpi4py==$release" >"$work/log" 2>&1 || true
  source=$(ls "$work"/mpi4py-*.tar.gz 2>/dev/null || true)
fi

ferryrun=("$here/tools/ferryrun/ferryrun" --private --no-label)
cat >"$work/sum.py" <<'PY'
from mpi4py import MPI
world = MPI.COMM_WORLD
sums = world.allreduce(world.rank), world.allgather(world.rank)
assert sums == (3, [0, 1, 2]), sums
print("Ferry" in MPI.Get_library_version(), MPI.get_vendor()[0])
PY
# try_library NAME: a sum and a ring; the wheel says which interface it has found.
try_library() {
  "${ferryrun[@]}" -n 3 -- "$work/venv/bin/python" "$work/sum.py" >"$work/out" 2>"$work/err" ||
    fail "$(cat "$work/err")"
  [[ $(sort -u "$work/out") == "True $1" && ! -s $work/err ]] ||
    fail "$(cat "$work/out" "$work/err")"
  "${ferryrun[@]}" -n 3 --nodes 2 -- "$work/venv/bin/python" -m mpi4py.bench ringtest ||
    fail "ring of $1"
}
try_library MPICH  # is found first
MPI4PY_LIBMPI=$here/mpi/foreign/openmpi/libmpi.so.40 try_library "Open MPI"

[[ -n $source ]] || skip "pip cannot download mpi4py's source: $(tail -n 1 "$work/log")"
mkdir "$work/mpi4py"
tar -xf "$source" -C "$work/mpi4py" --strip-components=1
for flags in "-n 1" "-n 2" "-n 3 --nodes 2"; do
  echo "== ferryrun $flags"
  # shellcheck disable=SC2086  # words of their own
  "${ferryrun[@]}" $flags -- "$work/venv/bin/python" "$here/tests/mpi/mpi4py_suite.py" \
    "$work/mpi4py/test" || fail "$flags: with code $?"
done
