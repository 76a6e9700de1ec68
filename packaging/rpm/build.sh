#!/bin/bash
# build.sh BUILT FOLDER TARGETS: makes the RPM of Ferry in FOLDER from what Bazel has built in BUILT,
# and prints its path. The file TARGETS names what of //third_party it is built from.
# Runs at the root of the sources; needs patchelf and rpmbuild, no root.
#
# It is for machines whose C library is as new as that of the machine where it is made, or nearly
# (docs/building.md): what Debian's packages give to Ferry's programs comes along in ferry/private.
set -euo pipefail
built=$1 folder=$2 targets=$3
source packaging/place.sh
source packaging/private_libraries.sh

version=$(ferry_version)
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
umask 022
root=$stage/root

declare -A at=([bin]=/usr/bin [sbin]=/usr/sbin [include]=/usr/include [lib]=/usr/lib64
  [libexec]=/usr/libexec/ferry [etc]=/etc/ferry [doc]=/usr/share/doc/ferry [man]=/usr/share/man
  [share]=/usr/share [zsh]=/usr/share/zsh/site-functions [unit]=/usr/lib/systemd/system
  [user_unit]=/usr/lib/systemd/user
  [rpath]="")  # the loader looks there by itself
place "$built" "$root"
mapfile -t files < <(elf_files "$root"/usr/{bin,sbin,lib64,libexec})
packaging/deb/sbom.py --version "$version" --date "${SOURCE_DATE_EPOCH:-0}" --targets "$targets" \
  --output "$root${at[doc]}/ferry.spdx.json" "${files[@]}" >/dev/null
private_libraries "$root${at[lib]}" "$root${at[doc]}" "${files[@]}"
chmod u+w -R "$root"
make_relocatable "$root${at[lib]}" "${files[@]}"
mapfile -t files < <(elf_files "$root"/usr/{bin,sbin,lib64,libexec})
gzip -9n "$root${at[man]}"/man*/*

# The package owns folders that are Ferry's alone, and files of /etc are kept when they were changed.
list_files() {
  (cd "$root" && find . -mindepth 1 -type d -path '*/ferry*' -printf '%%dir "/%P"\n' &&
    find . -not -type d -printf '"/%P"\n') |
    sed -E -e 's|^("/etc/)|%config(noreplace) \1|' -e 's|^("/usr/share/man/)|%doc \1|' \
      -e 's|^("/usr/share/doc/ferry/LICENSE")|%license \1|' -e 's|^("/usr/share/doc/)|%doc \1|'
}

list_files >"$stage/files"
fill_in packaging/rpm/ferry.spec "$stage" VERSION="$version" MAJOR="${version%%.*}" ROOT="$root" \
  FILES="$stage/files" PRIVATE="${at[lib]}/ferry/private" \
  GLIBC="$(newest_needed GLIBC "${files[@]}")" GLIBCXX="$(newest_needed GLIBCXX "${files[@]}")" \
  LICENSES="Apache-2.0 AND BSD-2-Clause AND BSD-3-Clause AND MIT"
mkdir -p "$folder"
rpmbuild -bb --quiet --target "$(uname -m)" --define "_topdir $stage/rpm" --define "_rpmdir $stage" \
  --define "_buildhost localhost" --define "source_date_epoch_from_changelog 0" \
  --define "use_source_date_epoch_as_buildtime 1" --define "clamp_mtime_to_source_date_epoch 1" \
  --buildroot "$stage/buildroot" "$stage/ferry.spec" >"$stage/log" 2>&1 || {
  cat "$stage/log" >&2
  exit 1
}
mv "$stage/$(uname -m)/ferry-$version-1.$(uname -m).rpm" "$folder"
ls "$folder/ferry-$version-1.$(uname -m).rpm"
