#!/bin/bash
# repository.sh FOLDER KEY PACKAGE...: puts Debian packages into the apt repository in FOLDER, beside
# those that are there, and signs it anew with KEY: a secret key of gpg's by fingerprint, id or
# address, which the caller's GNUPGHOME has. Any web server hands the folder out.
#
#   pool/main/f/ferry/...               the packages
#   dists/CODENAME/InRelease            what there is, with hashes, signed; apt believes nothing else
#   ferry-archive-keyring.gpg           the public key, for Signed-By
#
# CODENAME is that of this machine's Debian, for which the packages were built: a folder is for one
# release, since packages of several have one name and version.
set -euo pipefail
(($# >= 3)) || {
  echo "usage: repository.sh FOLDER KEY PACKAGE..." >&2
  exit 2
}
folder=$1 key=$2
shift 2
suite=$(source /etc/os-release && echo "$VERSION_CODENAME") component=main architecture=$(dpkg --print-architecture)

gpg --batch --list-secret-keys "$key" >/dev/null 2>&1 || {
  echo "repository.sh: gpg has no secret key \"$key\"; \`gpg --list-secret-keys\` names those that it has" >&2
  exit 1
}
for other in "$folder"/dists/*; do
  [[ ! -d $other || ${other##*/} == "$suite" ]] || {
    echo "repository.sh: $folder is a repository for ${other##*/}, and this is $suite: take another folder" >&2
    exit 1
  }
done
for package; do
  name=$(dpkg-deb --field "$package" Package) version=$(dpkg-deb --field "$package" Version)
  place=$folder/pool/$component/${name:0:1}/$name/${name}_${version}_$(dpkg-deb --field "$package" Architecture).deb
  # Machines may have taken it: other bytes need another version.
  if [[ -e $place ]] && ! cmp -s "$package" "$place"; then
    echo "repository.sh: $place is there with other contents; give the new one a version of its own" >&2
    exit 1
  fi
  install -D -m 644 "$package" "$place"
done

cd "$folder"
lists=dists/$suite/$component/binary-$architecture
mkdir -p "$lists"
apt-ftparchive packages pool >"$lists/Packages"
gzip -9nkf "$lists/Packages"
apt-ftparchive -o APT::FTPArchive::Release::Origin=Ferry -o APT::FTPArchive::Release::Label=Ferry \
  -o APT::FTPArchive::Release::Suite="$suite" -o APT::FTPArchive::Release::Codename="$suite" \
  -o APT::FTPArchive::Release::Architectures="$architecture" \
  -o APT::FTPArchive::Release::Components="$component" release "dists/$suite" >Release.new
# Whole or not at all: apt may be reading.
gpg --batch --yes --local-user "$key" --clearsign --output InRelease.new Release.new
mv Release.new "dists/$suite/Release"
mv InRelease.new "dists/$suite/InRelease"
gpg --batch --yes --export --output ferry-archive-keyring.gpg "$key"
