#!/bin/bash
# The apt repository that packaging/deb/repository.sh makes: apt, with folders and keys of its own,
# takes the package from it, and takes nothing that somebody has changed.
set -euo pipefail
source tests/support/skip.sh

for program in apt-get apt-ftparchive gpg; do
  command -v "$program" >/dev/null || skip "$program is not installed: apt-get install apt apt-utils gpg"
done
work=$(mktemp -d /tmp/ferry-repository-XXXXXX)
export GNUPGHOME=$work/gnupg
trap 'gpgconf --kill all; rm -rf "$work"' EXIT
mkdir -m 700 "$GNUPGHOME"
fail() {
  echo "FAILED: $*"
  exit 1
}

readonly deb=packaging/deb/ferry.deb repository=$work/repository
readonly release=$(source /etc/os-release && echo "$VERSION_CODENAME")
make_key() { gpg --batch --quiet --passphrase "" --quick-generate-key "$1" ed25519 sign never 2>/dev/null; }
make_key us@ferry.invalid
make_key others@ferry.invalid
publish() { packaging/deb/repository.sh "$repository" "$@" >"$work/log" 2>&1; }

# apt of its own: none of this machine's sources, keys, lists and settings; what is installed is.
apt() {
  local command=$1
  shift
  apt-get -qq -o Dir="$work/apt" -o Dir::State::status=/var/lib/dpkg/status \
    -o Dir::Bin::methods=/usr/lib/apt/methods -o APT::Sandbox::User="$(id -un)" \
    -o Acquire::Languages=none -o Debug::NoLocking=1 "$command" "$@" >"$work/log" 2>&1
}
# know KEYRING: the repository, whose signature must be of a key in that file.
know() {
  rm -rf "$work/apt"
  mkdir -p "$work"/apt/{etc/apt/{apt.conf.d,preferences.d,sources.list.d,trusted.gpg.d},var/{lib,cache}/apt}
  mkdir -p "$work"/apt/var/lib/apt/lists/partial "$work"/apt/var/cache/apt/archives/partial
  echo "deb [signed-by=$1] file:$repository $release main" >"$work/apt/etc/apt/sources.list"
}
expect_refusal() {
  local what=$1 words=$2
  shift 2
  if "$@"; then fail "$what was taken"; fi
  grep -qE "$words" "$work/log" || fail "$what: apt does not say \"$words\" but: $(cat "$work/log")"
  echo "refused: $what"
}

if publish nobody@ferry.invalid "$deb"; then fail "a key that is not there has signed"; fi
grep -q 'no secret key "nobody@ferry.invalid"' "$work/log" || fail "$(cat "$work/log")"
publish us@ferry.invalid "$deb" || fail "$(cat "$work/log")"
publish us@ferry.invalid "$deb" || fail "the same again: $(cat "$work/log")"

mkdir "$repository/dists/woody"
if publish us@ferry.invalid "$deb"; then fail "packages of two releases are in one repository"; fi
grep -q "is a repository for woody, and this is $release: take another folder" "$work/log" ||
  fail "$(cat "$work/log")"
rmdir "$repository/dists/woody"

know "$repository/ferry-archive-keyring.gpg"
apt update || fail "update: $(cat "$work/log")"
apt install --download-only --yes --no-install-recommends --reinstall ferry ||
  fail "install: $(cat "$work/log")"
mkdir "$work/root"
dpkg-deb -x "$repository"/pool/main/f/ferry/ferry_*.deb "$work/root"
version=$("$work/root/usr/bin/ferryctl" --version)
[[ $version == "ferryctl "* ]] || fail "the installed ferryctl says: $version"
(cd "$work" && apt download ferry && cmp ferry_*.deb "$OLDPWD/$deb") || fail "download: $(cat "$work/log")"
echo "installed: $version"

# ---- Repositories that apt must refuse ----

gpg --batch --export --output "$work/others.gpg" others@ferry.invalid
know "$work/others.gpg"
expect_refusal "a signature of another key" "NO_PUBKEY|not signed" apt update

cp -a "$repository" "$work/kept"
restore() {
  rm -rf "$repository"
  cp -a "$work/kept" "$repository"
  know "$repository/ferry-archive-keyring.gpg"
}

restore
sed -i 's/^Suite: .*/Suite: woody/' "$repository/dists/$release/InRelease"
expect_refusal "a changed InRelease" "BADSIG|not signed|invalid" apt update

restore
rm "$repository/dists/$release/InRelease"  # Release stays, without a signature
expect_refusal "an unsigned repository" "not signed|does not have a Release file" apt update

restore
sed -i 's/^Version: .*/Version: 9.9/' "$repository/dists/$release/main/binary-amd64/Packages"
gzip -9nkf "$repository/dists/$release/main/binary-amd64/Packages"
expect_refusal "a changed list of packages" "unexpected size|Hash Sum mismatch" apt update

restore
apt update || fail "update: $(cat "$work/log")"
package=$(echo "$repository"/pool/main/f/ferry/ferry_*.deb)
printf '%016d' 0 | dd of="$package" bs=1 seek=5000 conv=notrunc status=none
cd "$work"
rm -f ferry_*.deb
expect_refusal "a changed package" "Hash Sum mismatch" apt download ferry
cd "$OLDPWD"

# A package of that version is on machines already.
expect_refusal "other bytes under a version that is there" "other contents" publish us@ferry.invalid "$deb"
echo passed
