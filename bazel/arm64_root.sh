#!/usr/bin/env bash
# arm64_root.sh FOLDER PACKAGE...: makes FOLDER a tree of Debian's arm64 packages and of all that they
# need, for a cross compiler (--sysroot) and for qemu-aarch64 (-L). It comes from the sources of
# packages that this machine has; nothing is installed, no script of a package runs, and no root is
# needed. A package that Debian does not build for arm64 gives the headers that are installed here. A
# FOLDER that has these packages stays as it is.
set -euo pipefail

folder=$1
shift
wanted=$(printf '%s\n' "$@" | sort)
[[ ! -e $folder/packages || $(<"$folder/packages") != "$wanted" ]] || exit 0

work=$(mktemp -d "${TMPDIR:-/tmp}/ferry-arm64.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{lists,archives}/partial "$work"/root/usr/{bin,lib,sbin}
touch "$work/status"
cat >"$work/apt.conf" <<TEXT
APT::Architecture "arm64";
APT::Architectures { "arm64"; };
APT::Install-Recommends "false";
Acquire::Languages "none";
Debug::NoLocking "true";
Dir::Cache::archives "$work/archives";
Dir::Cache::pkgcache "";
Dir::Cache::srcpkgcache "";
Dir::State::lists "$work/lists";
Dir::State::status "$work/status";
TEXT
((EUID != 0)) || echo 'APT::Sandbox::User "root";' >>"$work/apt.conf"
export APT_CONFIG=$work/apt.conf

apt-get update -qq || echo "arm64_root.sh: some sources of packages did not answer; going on" >&2
packages=() headers=()
for package in "$@"; do
  if apt-cache show "$package" >/dev/null 2>&1; then packages+=("$package"); else headers+=("$package"); fi
done
((${#packages[@]})) || {
  echo "arm64_root.sh: the sources of packages have none for arm64: add a mirror of Debian's" >&2
  exit 1
}
apt-get install -y -qq --download-only "${packages[@]}" >/dev/null

# As Debian's systems are, where /lib and /usr/lib are one. Programs, documents and what only an
# installation has stay out.
for name in bin lib sbin; do ln -s "usr/$name" "$work/root/$name"; done
for file in "$work"/archives/*.deb; do
  dpkg-deb --fsys-tarfile "$file" | tar -x -C "$work/root" --keep-directory-symlink --no-same-owner \
    --exclude='./etc/*' --exclude='./usr/bin/*' --exclude='./usr/sbin/*' --exclude='./sbin/*' \
    --exclude='./bin/*' --exclude='./usr/share/*' --exclude='./var/*'
done
for package in "${headers[@]+"${headers[@]}"}"; do
  while read -r file; do
    [[ ! -f $file ]] || install -D -m 644 "$file" "$work/root$file"
  done < <(APT_CONFIG= dpkg-query -L "$package" | grep '^/usr/include/')
done
# Links with absolute places lead into the tree.
find "$work/root" -type l -lname '/*' -print0 | while read -r -d '' link; do
  place=$(readlink "$link")
  ln -sfn "$(realpath -m --relative-to="${link%/*}" "$work/root$place")" "$link"
done
printf '%s\n' "$wanted" >"$work/root/packages"
rm -rf "$folder"
mkdir -p "${folder%/*}"
mv "$work/root" "$folder"
