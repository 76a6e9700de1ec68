#!/bin/bash
# Installs the Debian package on a bare Debian of this release, made by debootstrap: serves by hand,
# then as a service of a systemd that is process 1 of namespaces of its own; removes it, and nothing is
# left.
set -euo pipefail
source tests/support/skip.sh
source tests/packaging/bare_debian.sh

readonly remains="find / -xdev -iname '*ferry*' -not -path '/root/*'"

need_debootstrap
root=$(mktemp -d /tmp/ferry-debian-XXXXXX)
machine=
clean_up() {
  [[ -z $machine ]] || kill -KILL "$machine" 2>/dev/null || true  # and with it all of the machine
  delete_debian "$root"
}
trap clean_up EXIT

# on_machine COMMAND...: where systemd runs.
on_machine() { nsenter --target "$init" --mount --pid --cgroup chroot "$root" "$@"; }

# expect WORDS COMMAND...: the command succeeds and prints the words.
expect() {
  local words=$1 output
  shift
  output=$("$@" 2>&1) || fail "$* ended with code $?: $output"
  [[ $output == *"$words"* ]] || fail "$* did not say \"$words\" but: $output"
}

say "debootstrap"
make_debian "$root"
cp packaging/deb/ferry.deb examples/hello/hello.c "$root/root"
chmod 644 "$root"/root/*

say "install"
inside "$root" 'apt-get install -qq --no-install-recommends /root/ferry.deb gcc libc6-dev pkg-config' \
  >/dev/null 2>&1 || fail "apt-get cannot install the package"

say "serve by hand, and run a program built by pkg-config"
cat >"$root/root/serve" <<'SH'
mkdir /run/ferry
mkfifo /root/ready
/usr/sbin/ferryd --config /etc/ferry/ferryd.toml --ready-fd 3 3>/root/ready &
read word </root/ready
test "$word" = ready
ferryctl status
cd /root
gcc hello.c $(pkg-config --cflags --libs ferry) -o hello
ferryrun -n 2 ./hello
ferryrun --nodes 2 -n 2 ./hello
kill $!
wait $!
test -z "$(ls -A /run/ferry)"
SH
expect "rank 1 of 2: rank 0 says hello" inside "$root" '. /root/serve'

say "purge"
inside "$root" 'apt-get purge -qq ferry' >/dev/null 2>&1 || fail "apt-get cannot purge the package"
left=$(inside "$root" "$remains")
[[ -z $left ]] || fail "after purge there is: $left"

say "boot systemd"
inside "$root" 'apt-get install -qq --no-install-recommends systemd systemd-sysv dbus' >/dev/null 2>&1
unshare --mount --pid --fork --kill-child --cgroup /bin/sh -ec '
  mount --bind "$0" "$0"
  cd "$0"
  mount -t proc proc proc
  mount -t sysfs sysfs sys
  mount -t cgroup2 cgroup2 sys/fs/cgroup
  mount -t tmpfs -o mode=0755 tmpfs run
  mount --rbind /dev dev
  exec env -i container=test PATH="$PATH" chroot . /lib/systemd/systemd --log-target=null' "$root" &
machine=$!
init= state=
for _ in {1..300}; do
  init=$(pgrep -P "$machine" || true)
  state=$([[ -z $init ]] || on_machine systemctl is-system-running 2>&1 || true)
  [[ $state != running ]] && kill -0 "$machine" 2>/dev/null || break
  sleep 0.1
done
if [[ $state != running ]]; then
  say "systemd cannot run in this machine's namespaces (${state:-it ended}): no service is tested"
  exit 0
fi

say "install: the service runs"
expect "Setting up ferry" on_machine apt-get install -y --no-install-recommends /root/ferry.deb
expect "enabled" on_machine systemctl is-enabled ferryd
expect "active" on_machine systemctl is-active ferryd
expect "StatusText=serves" on_machine systemctl show ferryd --property=StatusText
expect ": serving, pid " on_machine ferryctl status
expect "rank 0 of 2: rank 1 says hello" on_machine ferryrun -n 2 /root/hello
# Another user's, with a worker process of that user: within the unit's limits.
cp "$root/root/hello" "$root/usr/local/bin/hello"
expect "rank 0 of 2: rank 1 says hello" on_machine setpriv --reuid=1234 --regid=1234 --clear-groups \
  ferryrun -n 2 /usr/local/bin/hello
rm "$root/usr/local/bin/hello"
expect "" on_machine systemctl reload ferryd

say "it comes back after a crash"
before=$(on_machine systemctl show ferryd --property=MainPID --value)
on_machine systemctl kill --signal=KILL ferryd
for _ in {1..200}; do
  now=$(on_machine systemctl show ferryd --property=MainPID --value)
  [[ $now == 0 || $now == "$before" ]] || break
  sleep 0.1
done
for _ in {1..200}; do
  [[ $(on_machine systemctl is-active ferryd) != active ]] || break
  sleep 0.1
done
expect "NRestarts=1" on_machine systemctl show ferryd --property=NRestarts
expect ": serving, pid " on_machine ferryctl status

say "purge: nothing is left"
expect "Purging" on_machine apt-get purge -y ferry
left=$(on_machine sh -c "$remains; ls -d /run/ferry 2>/dev/null; systemctl list-units --all | grep ferry" || true)
[[ -z $left ]] || fail "after purge there is: $left"
say "passed"
