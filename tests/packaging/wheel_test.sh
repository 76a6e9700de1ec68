#!/bin/bash
# The Python wheel, installed by pip into a virtual environment, needs nothing of the machine but its C
# and C++ libraries: runs programs, compiles them, serves other users, survives a move, and leaves
# nothing when it is uninstalled.
set -euo pipefail
source tests/support/skip.sh

fail() {
  echo "FAILED: $*"
  exit 1
}
# expect WORDS COMMAND...: the command succeeds, in an environment without help, and prints the words.
expect() {
  local words=$1 output
  shift
  output=$(env -i PATH=/usr/bin:/bin HOME="$work" "$@" 2>&1) || fail "$* ended with code $?: $output"
  [[ $output == *"$words"* ]] || fail "$* did not say \"$words\" but: $output"
}

command -v patchelf >/dev/null || skip "patchelf is not installed: apt-get install patchelf"
/usr/bin/python3 -c 'import wheel' 2>/dev/null || skip "Python has no wheel: apt-get install python3-wheel"
work=$(mktemp -d /tmp/ferry-wheel-XXXXXX)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"  # other users run what is installed there

/usr/bin/python3 -m venv "$work/venv" >"$work/log" 2>&1 ||
  skip "Python has no virtual environments (apt-get install python3-venv): $(tail -n 1 "$work/log")"
wheel=$(packaging/wheel/build.sh . "$work" packaging/deb/third_party_targets) || fail "no wheel"
[[ ${wheel##*/} =~ ^ferry_mpi-[0-9.]+-py3-none-manylinux_2_3[0-9]_x86_64.whl$ ]] || fail "its name is $wheel"
find "$work/venv" -not -type d | sort >"$work/before"
"$work/venv/bin/python" -m pip --disable-pip-version-check install -q --no-index "$wheel" ||
  fail "pip cannot install it"

echo "== libraries"
files=0
while read -r file; do
  files=$((files + 1))
  outside=$(env -i ldd "$file" | awk '$2 == "=>" { print $1 " " $3 }' | grep -v " $work/venv/" |
    grep -vE '^(libc|libm|libstdc\+\+|libgcc_s)\.so\.[0-9]+ ' || true)
  [[ -z $outside ]] || fail "$file needs of this machine: $outside"
done < <(find "$work"/venv/{bin,lib,libexec} -type f -not -path '*/site-packages/*' \
  -exec sh -c 'head -c 4 "$1" | grep -q ELF' _ {} \; -print)
((files > 15)) || fail "only $files programs and libraries"
licences=$(ls "$work"/venv/share/doc/ferry/private/*.copyright | wc -l)
((licences == $(wc -l <"$work/venv/share/doc/ferry/private/packages"))) || fail "$licences licences"
expect '"SPDX-2.3"' cat "$work/venv/share/doc/ferry/ferry.spdx.json"

echo "== programs"
venv=$work/venv
mpi_hello() {
  expect "rank 3 of 4 on " "$1/bin/ferryrun" --private -n 4 "$work/mpi_hello"
  expect "rank 3 of 4 on " "$1/bin/ferryrun" --private -n 4 --nodes 2 "$work/mpi_hello"
}
expect "" "$venv/bin/ferrycc" examples/mpi_hello/hello.c -o "$work/mpi_hello"
mpi_hello "$venv"
expect "" "$venv/lib/ferry/bin/mpicc" examples/mpi_hello/hello.c -o "$work/mpi_hello"
expect "rank 1 of 2 on " "$venv/lib/ferry/bin/mpirun" --private -n 2 "$work/mpi_hello"
expect "" env PKG_CONFIG_PATH="$venv/lib/pkgconfig" sh -c \
  'gcc examples/hello/hello.c $(pkg-config --cflags --libs ferry) -o '"$work/hello"
expect "rank 1 of 2: rank 0 says hello" "$venv/bin/ferryrun" --private -n 2 "$work/hello"
expect "ferryctl" "$venv/bin/ferryctl" --help
for name in ferrycxx ferryfc oshcc oshc++ oshrun; do expect "" "$venv/bin/$name" --help; done

if ((EUID == 0)); then
  echo "== another user"
  expect "rank 1 of 2: rank 0 says hello" setpriv --reuid=65534 --regid=65534 --clear-groups \
    "$venv/bin/ferryrun" --private -n 2 "$work/hello"
fi

echo "== moved"
mv "$venv" "$work/moved"
expect "" "$work/moved/bin/ferrycc" examples/mpi_hello/hello.c -o "$work/mpi_hello"
mpi_hello "$work/moved"
mv "$work/moved" "$venv"

echo "== uninstalled"
"$venv/bin/python" -m pip --disable-pip-version-check uninstall -q -y ferry-mpi
find "$venv" -not -type d -not -name "*.pyc" | sort >"$work/after"  # pip leaves empty folders
left=$(comm -13 "$work/before" "$work/after")
[[ -z $left ]] || fail "after pip uninstall there is: $left"
echo "passed"
