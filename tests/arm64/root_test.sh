#!/bin/bash
# The tree of arm64 packages that ./dev arm64 builds with: what is in it, and what is not; with stand-ins
# of apt, which has two small packages for arm64, and of a dpkg-query that knows one that is installed.
set -euo pipefail
fail() {
  echo "root_test: $*" >&2
  exit 1
}
work=$(mktemp -d /tmp/ferry-root-XXXXXX)
trap 'rm -rf "$work"' EXIT
export WORK=$work TMPDIR=$work PATH=$work/bin:$PATH
mkdir -p "$work"/{bin,debs}

# make NAME: a package of the files in $work/NAME.
make() {
  mkdir -p "$work/$1/DEBIAN"
  printf 'Package: %s\nVersion: 1\nArchitecture: arm64\nMaintainer: a test <test@localhost>\nDescription: a test\n' \
    "$1" >"$work/$1/DEBIAN/control"
  dpkg-deb --build --root-owner-group "$work/$1" "$work/debs/$1_1_arm64.deb" >/dev/null
}
mkdir -p "$work"/libone/{lib/aarch64-linux-gnu,usr/share/doc/libone}
echo library >"$work/libone/lib/aarch64-linux-gnu/libone.so.1"
echo text >"$work/libone/usr/share/doc/libone/copyright"
make libone
mkdir -p "$work"/libone-dev/usr/{bin,include,lib/aarch64-linux-gnu}
echo header >"$work/libone-dev/usr/include/one.h"
echo program >"$work/libone-dev/usr/bin/one-config"
ln -s /lib/aarch64-linux-gnu/libone.so.1 "$work/libone-dev/usr/lib/aarch64-linux-gnu/libone.so"
make libone-dev

mkdir -p "$work/here/usr/include/two"
cat >"$work/bin/apt-get" <<'SH'
#!/bin/bash
[[ -n $APT_CONFIG ]] || exit 1  # never with the lists and packages of the machine itself
grep -q 'APT::Architecture "arm64"' "$APT_CONFIG" || exit 1
echo "$*" >>"$WORK/asked"
archives=$(sed -n 's/^Dir::Cache::archives "\(.*\)";/\1/p' "$APT_CONFIG")
case $1 in
  install)
    [[ " $* " == *" --download-only "* ]] || exit 1
    [[ ! -e $WORK/broken ]] || exit 100
    cp "$WORK"/debs/*.deb "$archives" ;;
esac
SH
cat >"$work/bin/apt-cache" <<'SH'
#!/bin/bash
[[ $1 == show && $2 == libone-dev && ! -e $WORK/no-arm64 ]]
SH
cat >"$work/bin/dpkg-query" <<'SH'
#!/bin/bash
[[ $1 == -L && $2 == libtwo-dev ]] && printf '%s\n' /usr/include /usr/include/stdio.h /usr/share/doc/libtwo-dev
SH
chmod +x "$work"/bin/*

run() { bazel/arm64_root.sh "$work/tree" "$@"; }
run libone-dev libtwo-dev
[[ $(<"$work/tree/usr/include/one.h") == header ]] || fail "a header is not there"
[[ $(<"$work/tree/usr/lib/aarch64-linux-gnu/libone.so") == library ]] ||
  fail "a link with an absolute place does not lead into the tree"
[[ $(<"$work/tree/lib/aarch64-linux-gnu/libone.so.1") == library ]] || fail "/lib is not /usr/lib"
[[ -f $work/tree/usr/include/stdio.h ]] || fail "headers of a package that arm64 does not have are missing"
[[ ! -e $work/tree/usr/bin/one-config ]] || fail "programs are there"
[[ ! -e $work/tree/usr/share/doc ]] || fail "documents are there"
[[ -z $(find "$work" -maxdepth 1 -name 'ferry-arm64.*') ]] || fail "its own files are left"

rm "$work/asked"
run libtwo-dev libone-dev
[[ ! -e $work/asked ]] || fail "it asks apt again for what is there: $(<"$work/asked")"

# A run that fails leaves the tree as it was.
touch "$work/broken"
! run libone-dev 2>"$work/said" || fail "apt has failed, and it says nothing"
[[ -f $work/tree/usr/include/one.h ]] || fail "a run that failed has taken the tree away"
rm "$work/broken"
touch "$work/no-arm64"
! run libone-dev 2>"$work/said" || fail "there are no packages for arm64, and it goes on"
grep -q 'have none for arm64' "$work/said" || fail "it says: $(<"$work/said")"
echo passed
