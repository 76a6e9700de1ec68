# A bare Debian in a folder, for tests in bash, which source this and tests/support/skip.sh. It is of
# this machine's release, for which its build makes packages. Packages come from where this machine's
# apt has its own, and those that its cache holds are not downloaded again.

release=$(source /etc/os-release && [[ $ID == debian ]] && echo "$VERSION_CODENAME") || release=bookworm

say() { echo "== $*"; }
fail() {
  echo "FAILED: $*"
  exit 1
}

# need_debootstrap: skips the test where no Debian can be made.
need_debootstrap() {
  ((EUID == 0)) || skip "debootstrap needs root, and this is uid $EUID"
  PATH=/usr/sbin:/sbin:$PATH
  command -v debootstrap >/dev/null || skip "debootstrap is not installed: apt-get install debootstrap"
}

# debian_sources: of this machine's package sources those of that release itself.
debian_sources() {
  apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)' 'Origin: Debian' \
    'Created-By: Packages' 2>/dev/null | grep " $release" | sort -u
}

# link_packages FOLDER: links to packages that this machine has in its cache, which cost nothing; on
# another file system there are none.
link_packages() { cp -l /var/cache/apt/archives/*.deb "$1/var/cache/apt/archives" 2>/dev/null || true; }

# make_debian FOLDER: with no more than apt, which knows its packages.
make_debian() {
  local root=$1 sources mirror log=$1.log
  sources=$(debian_sources) || sources="deb http://deb.debian.org/debian $release main"
  mirror=$(awk -v release="$release" '$3 == release { print $2; exit }' <<<"$sources")
  mkdir -p "$root/var/cache/apt/archives" "$root/etc/apt/apt.conf.d"
  chmod 755 "$root"  # it will be / to users who are not root
  mkdir -p "$root/etc/dpkg/dpkg.cfg.d"
  echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/test"  # it need not outlive a loss of power
  link_packages "$root"
  debootstrap --variant=minbase "$release" "$root" "${mirror:-http://deb.debian.org/debian}" \
    >"$log" 2>&1 || skip "debootstrap cannot make a Debian here: $(tail -n 1 "$log")"
  echo "127.0.0.1 localhost $(hostname)" >"$root/etc/hosts"  # as installers write it
  echo "$sources" >"$root/etc/apt/sources.list"
  apt-config dump | grep -i '^Acquire::.*proxy' >"$root/etc/apt/apt.conf.d/90proxy" || true
  inside "$root" 'apt-get update -qq' >"$log" 2>&1 ||
    skip "a Debian here reaches no package sources: $(tail -n 1 "$log")"
  rm "$log"
}

# inside FOLDER LINE: a line of shell in that Debian, as its root user. It has processes and shared
# memory of its own, and a root of its own, not chroot's, in which there are no user namespaces.
# It ends with the test; unshare itself takes no SIGTERM. FOLDER.mounts may hold lines "FROM TO": folders of this machine to be seen there, too.
inside() {
  local code=0
  setpriv --pdeathsig KILL unshare --mount --pid --ipc --fork --kill-child /bin/bash -euc '
    root=$1 line=$2
    mount --bind "$root" "$root"
    cd "$root"
    mount -t proc proc proc
    mount --rbind /sys sys
    mount --rbind /dev dev
    mount -t tmpfs -o mode=1777 tmpfs dev/shm
    if [[ -e $root.mounts ]]; then
      while read -r from to; do
        mkdir -p ".$to"
        mount --bind "$from" ".$to"
      done <"$root.mounts"
    fi
    mkdir -p .outside
    pivot_root . .outside
    umount -l /.outside
    rmdir /.outside
    exec env -i HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
      PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin /bin/sh -ec "$line"
  ' inside "$1" "$2" &
  inside_pid=$!
  wait "$inside_pid" || code=$?
  inside_pid=
  return "$code"
}

# delete_debian FOLDER...: with all that runs there, for the trap of a test.
delete_debian() {
  local folder
  [[ -z ${inside_pid:-} ]] || kill -KILL "$inside_pid" 2>/dev/null || true
  wait
  for folder; do rm -rf --one-file-system "$folder" "$folder.log"; done
}
