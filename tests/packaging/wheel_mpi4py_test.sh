#!/bin/bash
# The wheels of Ferry and of mpi4py in one virtual environment, as a user installs them: under ferryrun,
# under Hydra, as a pool of workers, and alone. Downloads mpi4py.
set -euo pipefail
source tests/support/skip.sh

fail() {
  echo "FAILED: $*"
  exit 1
}
# expect WORDS COMMAND...: the command succeeds, and prints the words.
expect() {
  local words=$1 output
  shift
  output=$(env -i PATH="$work/venv/bin:/usr/bin:/bin" HOME="$work" "$@" 2>&1) ||
    fail "$* ended with code $?: $output"
  [[ $output == *"$words"* ]] || fail "$* did not say \"$words\" but: $output"
  [[ $output != *ferryrun:* ]] || fail "$* said: $output"
}

command -v patchelf >/dev/null || skip "patchelf is not installed: apt-get install patchelf"
work=$(mktemp -d /tmp/ferry-wheel-XXXXXX)
daemon=
trap '[[ -z $daemon ]] || kill "$daemon" 2>/dev/null || true; rm -rf "$work"' EXIT
/usr/bin/python3 benchmarks/common/wheels.py "$work/venv" mpi4py numpy >"$work/log" 2>&1 ||
  skip "$(tail -n 1 "$work/log")"
wheel=$(packaging/wheel/build.sh . "$work" packaging/deb/third_party_targets) || fail "no wheel"
"$work/venv/bin/python" -m pip --disable-pip-version-check install -q --no-index "$wheel" ||
  fail "pip cannot install it"

cat >"$work/sum.py" <<'PY'
from mpi4py import MPI
import numpy
world = MPI.COMM_WORLD
total = numpy.empty(1000)
world.Allreduce(numpy.arange(1000.0) * (world.rank + 1), total)
assert (total == numpy.arange(1000.0) * sum(range(1, world.size + 1))).all()
library = MPI.Get_library_version()
assert "Ferry" in library, library
if world.rank == 0:
    print("sum of", world.size)
PY
cat >"$work/squares.py" <<'PY'
from mpi4py.futures import MPIPoolExecutor
def square(number):
    return number * number
if __name__ == "__main__":
    with MPIPoolExecutor() as pool:
        print("squares", sum(pool.map(square, range(100))))
PY

echo "== ferryrun"
expect "time for 1 loops" ferryrun --private -n 4 python -m mpi4py.bench ringtest
expect "sum of 4" ferryrun --private -n 4 python "$work/sum.py"
expect "sum of 4" ferryrun --private -n 4 --nodes 2 python "$work/sum.py"
expect "squares 328350" ferryrun --private -n 3 python -m mpi4py.futures "$work/squares.py"
echo "== alone, as in a notebook"
expect "sum of 1" python "$work/sum.py"
if [[ -x /usr/bin/mpiexec.hydra ]]; then
  echo "== Hydra"
  mkdir -m 700 "$work/run"
  mkfifo "$work/ready"
  "$work/venv/bin/ferryd" --run_directory "$work/run" --ready-fd 3 3>"$work/ready" 2>"$work/log" &
  daemon=$!
  read -r word <"$work/ready" && [[ $word == ready ]] || fail "ferryd: $(cat "$work/log")"
  expect "sum of 2" env FERRY_RUN_DIRECTORY="$work/run" mpiexec.hydra -n 2 python "$work/sum.py"
  kill "$daemon"
  wait "$daemon" || fail "ferryd ended with code $?: $(cat "$work/log")"
fi
echo "passed"
