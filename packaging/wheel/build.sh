#!/bin/bash
# build.sh BUILT FOLDER TARGETS: makes the Python wheel of Ferry in FOLDER from what Bazel has built in
# BUILT, and prints its path. The file TARGETS names what of //third_party it is built from.
# Runs at the root of the sources; needs patchelf and Python's wheel, no root.
#
# `pip install` puts the wheel's files below the environment's prefix, whose path is not known here:
# programs find their libraries, and scripts their folders, from where they are themselves. What
# Debian's packages give to Ferry's programs comes along in lib/ferry/private, except the C and the
# C++ library. A wheel has no links.
set -euo pipefail
built=$1 folder=$2 targets=$3
source packaging/place.sh
source packaging/private_libraries.sh

readonly nowhere=/@prefix@  # the prefix, until scripts are told where to look for it
version=$(ferry_version)
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
umask 022
name=ferry_mpi-$version
root=$stage/root prefix=$stage/root$nowhere

place_files() {
  local -A at=([bin]=$nowhere/bin [sbin]=$nowhere/bin [lib]=$nowhere/lib [prefix]=$nowhere
    [include]=$nowhere/include [libexec]=$nowhere/libexec/ferry [etc]=$nowhere/share/ferry
    [doc]=$nowhere/share/doc/ferry [man]=$nowhere/share/man [share]=$nowhere/share
    [zsh]=$nowhere/share/zsh/site-functions [unit]=$nowhere/unit
    [user_unit]=$nowhere/unit
    [rpath]='-Wl,-rpath,${libdir} ')
  place "$built" "$root"
  # Services of the machine need fixed paths: they are what the Debian package is for.
  rm -r "$prefix"/unit "$prefix"/libexec/ferry/slurm "$prefix"/share/ferry/slurm.conf
}

# ---- Scripts and links --------------------------------------------------------------------------

# The wrappers' values stand in single quotes, pkg-config's at the ends of lines.
relocate_scripts() {
  local file
  for file in "$prefix"/bin/*; do
    [[ $(head -c 2 "$file") == '#!' ]] || continue
    sed -i -e "s|'$nowhere\([^']*\)'|\"\$prefix\1\"|g" \
      -e '/^set -euo pipefail$/a prefix=$(realpath "$(dirname "$(realpath "${BASH_SOURCE[0]}")")/..")' "$file"
  done
  sed -i "s|=$nowhere|=\${pcfiledir}/../..|" "$prefix"/lib/pkgconfig/*.pc
  ! grep -rIl -- "$nowhere" "$prefix" || {
    echo "these name a folder that is nowhere" >&2
    return 1
  }
}

# A program's second name calls the first; the linker's name of a library says where it is; and what
# the loader looks for is the library itself.
replace_links() {
  local link target
  while read -r link; do
    target=$(realpath "$link")
    rm "$link"
    case $link in
      */bin/*)
        printf '#!/bin/sh\nexec "$(dirname "$(realpath "$0")")/%s" "$@"\n' \
          "$(realpath --relative-to="${link%/*}" "$target")" >"$link"
        chmod 755 "$link"
        ;;
      */libferry.so.[0-9]) mv "$target" "$link" ;;
      */lib/lib*.so) ;;  # below
      */libmpi_abi.so.1) mv "$target" "$link" ;;
      */libmpi_abi.so.0) ;;
      *) cp "$target" "$link" ;;
    esac
  done < <(find "$prefix" -type l | sort -r)
  for target in "$prefix"/lib/lib*.so.*; do
    [[ $target != */libmpi.so.12 ]] || continue  # programs are not linked with it
    printf '/* GNU ld script */\nINPUT(%s)\n' "${target##*/}" >"${target%.so.*}.so"
  done
}

# ---- The wheel ----------------------------------------------------------------------------------

write_metadata() {
  local info=$stage/wheel/$name.dist-info tag=py3-none-manylinux_${1/./_}_$(uname -m)
  mkdir -p "$info/licenses"
  install -m 644 LICENSE "$info/licenses"
  fill_in packaging/wheel/METADATA "$info" VERSION="$version"
  cat README.md >>"$info/METADATA"
  printf 'Wheel-Version: 1.0\nGenerator: ferry\nRoot-Is-Purelib: false\nTag: %s\n' "$tag" >"$info/WHEEL"
}

# Without ferryrun, mpi4py looks into the environment for the library of MPICH's binary interface.
offer_to_mpi4py() { install -m 644 "$prefix/lib/ferry/mpich/libmpi.so.12" "$prefix/lib/libmpi.so.12"; }

place_files
offer_to_mpi4py
mapfile -t files < <(elf_files "$prefix"/{bin,lib,libexec})
packaging/deb/sbom.py --version "$version" --date "${SOURCE_DATE_EPOCH:-0}" --targets "$targets" \
  --output "$prefix/share/doc/ferry/ferry.spdx.json" "${files[@]}" >/dev/null
private_libraries "$prefix/lib" "$prefix/share/doc/ferry" "${files[@]}"
chmod u+w -R "$prefix"
make_relocatable "$prefix/lib" "${files[@]}"
replace_links
relocate_scripts
mapfile -t files < <(elf_files "$prefix"/{bin,lib,libexec})
mkdir -p "$stage/wheel" "$folder"
write_metadata "$(newest_needed GLIBC "${files[@]}")"
mkdir "$stage/wheel/$name.data"
mv "$prefix" "$stage/wheel/$name.data/data"
/usr/bin/python3 -m wheel pack --dest-dir "$folder" "$stage/wheel" >"$stage/log" || {
  cat "$stage/log" >&2
  exit 1
}
ls -d "$folder/$name"-*.whl
