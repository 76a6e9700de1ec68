#!/bin/bash
# build.sh BUILT OUTPUT LEVEL TARGETS: makes the Debian package OUTPUT from what Bazel has built in
# BUILT; xz compresses it at LEVEL. The file TARGETS names what of //third_party it is built from.
# Runs at the root of the sources; needs dpkg-dev, no root and no fakeroot.
set -euo pipefail
built=$1 output=$2 level=$3 targets=$4 here=packaging/deb
source packaging/place.sh

maintainer="Ferry maintainers <maintainers@ferry.invalid>"
version=$(ferry_version)
architecture=$(dpkg --print-architecture)
release=$(source /etc/os-release && echo "$VERSION_CODENAME")

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
root=$stage/root
umask 022
mkdir -p "$root/DEBIAN"

place_files() {
  local -A at=([bin]=/usr/bin [sbin]=/usr/sbin [include]=/usr/include [etc]=/etc/ferry
    [lib]=/usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH) [libexec]=/usr/libexec/ferry
    [doc]=/usr/share/doc/ferry [man]=/usr/share/man [unit]=/usr/lib/systemd/system
    [user_unit]=/usr/lib/systemd/user
    [share]=/usr/share [zsh]=/usr/share/zsh/vendor-completions
    [rpath]="")  # the loader looks there by itself
  place "$built" "$root"
  # Debian's Open MPI has these names in /usr/bin, and their pages; no two packages may have one file.
  mv "$root${at[bin]}"/osh{cc,c++} "$root${at[lib]}/ferry/bin"
  ln -sr "$root${at[bin]}/ferryrun" "$root${at[lib]}/ferry/bin/oshrun"
  rm "$root${at[bin]}/oshrun" "$root${at[man]}"/man1/osh*
  chmod u+w -R "$root"
  built_using=$(list_materials)
  strip --strip-unneeded --remove-section=.comment "$root"/usr/{bin/ferry{ctl,run,sim},sbin/ferryd} \
    "$root${at[libexec]}"/ferry-{worker,meter,kernel-meter} "$root${at[lib]}"/{,ferry/,ferry/mpich/,ferry/openmpi/}*.so*
  # The licence is Debian's own copy, named in the copyright file.
  rm "$root${at[doc]}/LICENSE"
  install -m 644 "$here/copyright" "$root${at[doc]}"
  install -D -m 644 "$here/lintian-overrides" "$root/usr/share/lintian/overrides/ferry"
  printf '%s\n\n  * See CHANGELOG.md.\n\n -- %s  %s\n' "ferry ($version) $release; urgency=medium" \
    "$maintainer" "$(date -R -d "@${SOURCE_DATE_EPOCH:-0}")" >"$root${at[doc]}/changelog"
  gzip -9n "$root${at[doc]}/changelog" "$root${at[man]}"/man*/*
}

# Programs and libraries, but not the links to them.
programs() {
  find "$root/usr" -path "$root/usr/share" -prune -o -type f \
    \( -name ferryd -o -name ferryctl -o -name ferryrun -o -name ferrysim -o -name ferry-worker -o -name ferry-meter \
    -o -name ferry-kernel-meter -o -name '*.so*' \) -print0
}

# Writes the bill of materials; prints the sources of what is linked statically.
list_materials() {
  programs | xargs -0 "$here/sbom.py" --version "$version" --date "${SOURCE_DATE_EPOCH:-0}" \
    --targets "$targets" --output "$root${at[doc]}/ferry.spdx.json"
}

# The packages of the libraries that the programs are linked with, and at which version.
depends() {
  mkdir -p "$stage/debian"
  printf 'Source: ferry\n\nPackage: ferry\nArchitecture: any\n' >"$stage/debian/control"
  (cd "$stage" &&
    programs | xargs -0 dpkg-shlibdeps -O --warnings=0 --ignore-missing-info -xferry) |
    sed -n 's/^shlibs:Depends=//p'
}

place_files
depends=$(depends)
fill_in "$here/control" "$root/DEBIAN" VERSION="$version" ARCHITECTURE="$architecture" \
  MAINTAINER="$maintainer" DEPENDS="$depends" BUILT_USING="$built_using" SIZE="$(du -sk "$root" | cut -f1)"
(cd "$root" && find etc -type f -printf '/%p\n' | sort) >"$root/DEBIAN/conffiles"
printf '%s ferry (>= %s)\n' "libferry ${version%%.*}" "$version" "libmpi_abi 1" "$version" "libmpifort_abi 1" "$version" \
  "libferry_shmem 0" "$version" \
  >"$root/DEBIAN/shlibs"
echo "activate-noawait ldconfig" >"$root/DEBIAN/triggers"
(cd "$root" && find usr -type f -exec md5sum {} + | sort -k2) >"$root/DEBIAN/md5sums"
chmod 644 "$root"/DEBIAN/*
for script in postinst prerm postrm; do
  fill_in "$here/$script" "$root/DEBIAN" \
    NAMES="/usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)/ferry/bin"
  chmod 755 "$root/DEBIAN/$script"
done
dpkg-deb --root-owner-group --build -Zxz "-z$level" "$root" "$output" >/dev/null
