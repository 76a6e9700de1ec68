#!/bin/bash
# On a distribution without dpkg, `./dev install` looks for what Ferry is built from: it names what is
# missing, and finds what pkg-config alone knows. In a mount namespace, headers and libraries are
# covered by an empty folder or a file of words; programs are left out of PATH.
set -euo pipefail
source tests/support/skip.sh
work=$(mktemp -d /tmp/ferry-requirements-XXXXXX)
trap 'rm -rf "$work"' EXIT
unset CPLUS_INCLUDE_PATH LIBRARY_PATH PKG_CONFIG_PATH
export WORK=$work

fail() { echo "FAILED: $*" >&2; cat "$work/out" >&2; exit 1; }
# without PATHS COMMAND: its exit code; what it writes lies in $work/out.
without() {
  local paths=$1 code=0
  shift
  rm -rf "$work/bin"
  mkdir "$work/bin"
  ln -s /usr/bin/* "$work/bin"
  PATH=$work/bin PATHS=$paths unshare --map-root-user --mount /bin/bash -euc '
    mkdir -p "$WORK/empty"
    echo "no library" >"$WORK/nothing"
    for path in $PATHS; do
      if [[ $path == /usr/bin/* ]]; then
        rm "$WORK/bin/${path##*/}"
      elif [[ -d $path ]]; then
        mount --bind "$WORK/empty" "$path"
      else
        mount --bind "$WORK/nothing" "$path"
      fi
    done
    exec "$@"' without "$@" >"$work/out" 2>&1 || code=$?
  return $code
}
says() { grep -qF -- "$1" "$work/out" || fail "no \"$1\""; }
does_not_say() { ! grep -qF -- "$1" "$work/out" || fail "it says \"$1\""; }

without "" true || skip "this kernel or container lets a user make no mount namespace"
libraries=$(dirname "$(gcc -print-file-name=libsystemd.so)")

without "" bazel/requirements.sh || fail "all is there"
says --copt=-Wno-error
does_not_say missing

! without "/usr/include/level_zero /usr/include/spdlog $libraries/libsystemd.so $libraries/libfmt.so" \
  bazel/requirements.sh || fail "much is missing"
says "the header <level_zero/ze_api.h> (level-zero)"
says "the header <spdlog/spdlog.h> (spdlog)"
says "the library systemd (libsystemd)"
says "the library fmt (fmt)"
does_not_say "(openssl)"
does_not_say --copt

# A program that is missing is named before anything is compiled.
! without /usr/bin/protoc bazel/requirements.sh || fail "protoc is missing"
says "the program protoc"

# In a folder of its own.
mkdir -p "$work/prefix/include" "$work/pkgconfig"
cp -r /usr/include/toml++ "$work/prefix/include"
printf 'Name: toml++\nDescription: -\nVersion: 3\nCflags: -I%s/include\nLibs: -L%s/lib\n' "$work/prefix" "$work/prefix" \
  >"$work/pkgconfig/tomlplusplus.pc"
! without /usr/include/toml++ bazel/requirements.sh || fail "toml++ is missing"
says "the header <toml++/toml.h> (tomlplusplus)"
PKG_CONFIG_PATH=$work/pkgconfig without /usr/include/toml++ bazel/requirements.sh || fail "toml++ is there"
says "--action_env=CPLUS_INCLUDE_PATH=$work/prefix/include"
says "--action_env=LIBRARY_PATH=$work/prefix/lib"
says "--linkopt=-Wl,-rpath,$work/prefix/lib"

# ./dev itself, where there is no dpkg-query.
! without "/usr/bin/dpkg-query /usr/include/spdlog" ./dev install "$work/ferry" || fail "spdlog is missing"
says "the header <spdlog/spdlog.h> (spdlog)"
says "without these Ferry cannot be built"
! without /usr/bin/dpkg-query ./dev demo || fail "the demo installs Debian's packages"
says "this is not Debian"
echo "requirements: ok"
