#!/bin/bash
# mpi4py, built from its source with ferrycc, runs its own tests on Ferry, on 1, 2 and 3 ranks of one
# node, and on 2 and 3 of two, at last with direct links from the first message on; those of windows
# over ordinary memory, too.
# Downloads it; MPI4PY_SOURCE=FILE.tar.gz takes a source that is already here.
set -euo pipefail
source tests/support/skip.sh

readonly release=4.1.2

fail() {
  echo "FAILED: $*"
  exit 1
}

python=/usr/bin/python3
here=$PWD
work=$(mktemp -d /tmp/ferry-mpi4py-XXXXXX)
trap 'rm -rf "$work"' EXIT
export HOME=$work PATH=/usr/local/bin:/usr/bin:/bin

pip=("$work/venv/bin/python" -m pip --disable-pip-version-check)
[[ -e $("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h ]] ||
  skip "Python.h is missing: apt-get install python3-dev"
"$python" benchmarks/common/wheels.py "$work/venv" cython setuptools wheel numpy >"$work/log" 2>&1 ||
  skip "$(tail -n 1 "$work/log")"
source=${MPI4PY_SOURCE:-}
if [[ -z $source ]]; then
  "${pip[@]}" download -q --no-deps --no-build-isolation --no-binary :all: -d "$work" \
    "mpi4py==$release" >"$work/log" 2>&1 ||
    skip "pip cannot download mpi4py: $(tail -n 1 "$work/log")"
  source=$(echo "$work"/mpi4py-*.tar.gz)
fi

mkdir "$work/mpi4py"
tar -xf "$source" -C "$work/mpi4py" --strip-components=1
MPICC=$here/tools/wrappers/ferrycc "${pip[@]}" install -q --no-build-isolation --no-deps \
  "$work/mpi4py" >"$work/log" 2>&1 || fail "mpi4py does not build: $(tail -n 20 "$work/log")"

for flags in "-n 1" "-n 2" "-n 3" "-n 2 --nodes 2" "-n 3 --nodes 2" "-n 3 --nodes 2 --direct_links=always"; do
  echo "== ferryrun $flags"
  # shellcheck disable=SC2206  # words of their own
  suite=("$here/tools/ferryrun/ferryrun" --private --no-label $flags -- "$work/venv/bin/python"
    "$here/tests/mpi/mpi4py_suite.py")
  "${suite[@]}" "$work/mpi4py/test" || fail "$flags: with code $?"
  "${suite[@]}" --ordinary "$work/mpi4py/test" test_rma test_rma_nb test_win ||
    fail "$flags, ordinary memory: with code $?"
done

# Memory of devices, over the stand-in of NVIDIA's driver as the linker finds that.
for flags in "-n 1" "-n 2" "-n 3 --nodes 2"; do
  echo "== ferryrun $flags, arrays on devices"
  # shellcheck disable=SC2086  # words of their own
  LD_LIBRARY_PATH=$here/tests/fixtures/cuda "$here/tools/ferryrun/ferryrun" --private --no-label \
    $flags -- "$work/venv/bin/python" "$here/tests/mpi/mpi4py_device.py" ||
    fail "$flags, arrays on devices: with code $?"
done
