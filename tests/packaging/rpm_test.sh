#!/bin/bash
# The RPM, installed into a folder by rpm itself: it asks for a C and a C++ library alone, its programs
# need nothing else of this machine, jobs run, and it leaves nothing when it is erased.
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

for name in patchelf rpmbuild rpm; do
  command -v "$name" >/dev/null || skip "$name is not installed: apt-get install patchelf rpm"
done
((EUID == 0)) || unshare -r true 2>/dev/null || skip "rpm changes its root, which this user may not do"
work=$(mktemp -d /tmp/ferry-rpm-XXXXXX)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"  # other users run what is installed there
root=$work/root
# Nothing of this machine's rpm is read or changed.
installed() {
  local as_root=()
  ((EUID == 0)) || as_root=(unshare -r)
  "${as_root[@]}" rpm --root "$root" --dbpath /var/lib/rpm "$@"
}

package=$(packaging/rpm/build.sh . "$work" packaging/deb/third_party_targets) || fail "no package"
version=$(sed -n 's/.*kFerryVersion\[\] = "\(.*\)";/\1/p' common/version.h)
[[ ${package##*/} == ferry-$version-1.x86_64.rpm ]] || fail "its name is $package"

echo "== what it says of itself"
others=$(rpm -qp --requires "$package" | grep -vE '^(/bin/(ba)?sh|libc\.so\.6\(GLIBC_2\.3[0-9]\)\(64bit\)|libstdc\+\+\.so\.6\(GLIBCXX_3\.4\.[0-9]+\)\(64bit\)|libgcc_s\.so\.1\(\)\(64bit\)|rpmlib\(.*)$' || true)
[[ -z $others ]] || fail "it asks for $others"
for name in libferry.so.0 libmpi_abi.so.1 libmpifort_abi.so.1 libferry_shmem.so.0; do
  rpm -qp --provides "$package" | grep -qxF "$name()(64bit)" || fail "it does not provide $name"
done
[[ $(rpm -qcp "$package" | xargs) == "/etc/ferry/ferryd.toml /etc/ferry/slurm.conf" ]] ||
  fail "changed files that are kept: $(rpm -qcp "$package" | xargs)"
rpm -qlp "$package" | sort >"$work/listed"
for path in /usr/sbin/ferryd /usr/bin/{ferryrun,ferryctl,ferrycc,ferryfc} /usr/lib64/libferry.so.0 \
  /usr/lib64/libmpi_abi.so.1 /usr/lib64/ferry/{openmpi/libmpi.so.40,mpich/libmpi.so.12,bin/mpirun} \
  /usr/lib64/pkgconfig/ferry.pc /usr/include/ferry/mpi/mpi.h /usr/libexec/ferry/ferry-worker \
  /usr/libexec/ferry/slurm/prolog /usr/lib/systemd/system/ferryd.service /usr/share/man/man8/ferryd.8.gz \
  /usr/share/doc/ferry/{LICENSE,ferry.spdx.json}; do
  grep -qxF "$path" "$work/listed" || fail "it lacks $path"
done
! grep -vE '^/(etc/ferry|usr/(s?bin|lib64|libexec/ferry|include/ferry|share|lib/systemd/(system|user))(/|$))' "$work/listed" ||
  fail "that is no place for them"
# What is told of a service ("%post": the lines after it, up to the next).
rpm -qp --scripts "$package" | awk '/^[a-z]+ scriptlet/ { file = "'"$work"'/scriptlet" ++n; next } file { print > file }'
[[ -e $work/scriptlet3 ]] || fail "there are not three scriptlets"
for script in "$work"/scriptlet*; do sh -n "$script" || fail "no shell reads $script"; done

echo "== installed"
mkdir -p "$root"
# Without its dependencies: that root has no C library. Without scriptlets: it has no shell.
installed -i --nodeps --noscripts "$package" || fail "rpm cannot install it"
installed -V --nodeps ferry || fail "it is not as it was packed"
[[ $(installed -q ferry) == "ferry-$version-1.x86_64" ]] || fail "rpm does not know it"
files=0
while read -r file; do
  files=$((files + 1))
  outside=$(env -i ldd "$file" | awk '$2 == "=>" { print $1 " " $3 }' | grep -v " $root/" |
    grep -vE '^(libc|libm|libstdc\+\+|libgcc_s)\.so\.[0-9]+ ' || true)
  [[ -z $outside ]] || fail "$file needs of this machine: $outside"
done < <(find "$root"/usr/{bin,sbin,lib64,libexec} -type f \
  -exec sh -c 'head -c 4 "$1" | grep -q ELF' _ {} \; -print)
((files > 15)) || fail "only $files programs and libraries"
licences=$(ls "$root"/usr/share/doc/ferry/private/*.copyright | wc -l)
((licences == $(wc -l <"$root/usr/share/doc/ferry/private/packages"))) || fail "$licences licences"
! grep -rlF "$work" "$root"/{usr,etc} || fail "these name the folder where the package was made"
! grep -rlE '@[A-Z]+@' "$root"/usr/lib/systemd "$root"/usr/libexec/ferry/slurm "$root"/usr/bin/ferrycc ||
  fail "these have places that nobody filled in"

echo "== programs"
expect "" gcc examples/hello/hello.c -I "$root/usr/include" -L "$root/usr/lib64" -lferry \
  -Wl,-rpath,"$root/usr/lib64" -o "$work/hello"
expect "rank 3 of 4: rank 2 says hello" "$root/usr/bin/ferryrun" --private -n 4 "$work/hello"
expect "rank 3 of 4: rank 2 says hello" "$root/usr/bin/ferryrun" --private -n 4 --nodes 2 "$work/hello"
expect "" gcc examples/mpi_hello/hello.c -I "$root/usr/include/ferry/mpi" -L "$root/usr/lib64" -lmpi_abi \
  -Wl,-rpath,"$root/usr/lib64" -o "$work/mpi_hello"
expect "rank 1 of 2 on " "$root/usr/lib64/ferry/bin/mpirun" --private -n 2 "$work/mpi_hello"
expect "ferryctl" "$root/usr/bin/ferryctl" --help
if ((EUID == 0)); then
  expect "rank 1 of 2: rank 0 says hello" setpriv --reuid=65534 --regid=65534 --clear-groups \
    "$root/usr/bin/ferryrun" --private -n 2 "$work/hello"
fi

echo "== erased"
echo "# an administrator's word" >>"$root/etc/ferry/ferryd.toml"
installed -e --noscripts ferry 2>"$work/said" || fail "rpm cannot erase it: $(cat "$work/said")"
left=$(cd "$root" && find . -not -type d -not -path './var/*')
[[ $left == ./etc/ferry/ferryd.toml.rpmsave ]] || fail "what is left: $left"
[[ ! -d $root/usr/lib64/ferry && ! -d $root/usr/share/ferry ]] || fail "folders of Ferry's are left"
