#!/bin/bash
# `./dev demo` and `./dev test` of a clean checkout on a bare Debian of this release, in the order of the README on
# one and in the other order on another: both pass, run as many cases, and skip the same. What one
# command installs the next must notice.
#
# Takes as long as compiling Ferry, and running its tests twice. The second Debian takes what the first
# has compiled, but not what its tests said. It hides how long a first `./dev test` compiles, no more.
# Variables: FIRST_COMMANDS_CACHE=FOLDER starts with the compiled files of a Bazel disk cache, such as
# ~/.cache/bazel-disk; FIRST_COMMANDS_TARGETS=TARGETS has `./dev test` build and run these alone.
set -euo pipefail
source tests/support/skip.sh
source tests/packaging/bare_debian.sh

need_debootstrap
source=$(dirname "$(realpath dev)")
[[ -e $source/.git ]] || skip "$source is no git checkout: which files are its own is not known"

work=$(mktemp -d /tmp/ferry-first-commands-XXXXXX)
trap 'delete_debian "$work"' EXIT
cache=${FIRST_COMMANDS_CACHE:-$work/cache}
mkdir -p "$cache"

# What is committed, and changes of files that git knows.
checkout() {
  local commit
  commit=$(git -C "$source" stash create)
  git -C "$source" archive "${commit:-HEAD}" | tar -x -C "$1"
}

# run DEBIAN COMMAND...: one after the other, as by somebody who types them: the server of Bazel that the
# first has started lives on, and is the one that has to notice what the second installs.
run() {
  local debian=$1 command line="cd /root/ferry"
  shift
  for command; do
    [[ $command != test ]] || command+=" ${FIRST_COMMANDS_TARGETS:-}"
    line+="; echo == $debian: ./dev $command; time ./dev $command >/root/${command%% *}.log 2>&1"
  done
  inside "$work/$debian" "exec bash -ec '$line'" || {
    for command; do
      [[ -e $work/$debian/root/$command.log ]] || continue
      say "$debian: the end of ./dev $command"
      tail -n 40 "$work/$debian/root/$command.log"
    done
    fail "$debian: ./dev ended with an error"
  }
}

# skipped DEBIAN: what its tests left out, and why.
skipped() { grep '^SKIPPED' "$work/$1/root/test.log" | sort || true; }

say "debootstrap"
make_debian "$work/bare"
mkdir "$work/bare/root/ferry"
checkout "$work/bare/root/ferry"
cat >"$work/bare/root/.bazelrc" <<RC
startup --max_idle_secs=7200
test --nocache_test_results
RC
rm -f "$work"/bare/var/cache/apt/archives/*.deb
for debian in demo_first test_first; do
  cp -a "$work/bare" "$work/$debian"
  link_packages "$work/$debian"
  echo "$cache /root/.cache/bazel-disk" >"$work/$debian.mounts"
done
rm -rf --one-file-system "$work/bare"

run demo_first demo test
run test_first test demo

# The same number of cases, too: a suite may be empty without a word.
lasts=()
for debian in demo_first test_first; do
  grep -q 'demo: PASS' "$work/$debian/root/demo.log" || fail "$debian: the demo does not say that it has passed"
  last=$(tail -n 1 "$work/$debian/root/test.log")
  [[ $last =~ ^[1-9][0-9]*\ passed,\ 0\ failed(,\ [0-9]+\ skipped)?$ ]] || fail "$debian: ./dev test ends with: $last"
  say "$debian: $last"
  lasts+=("$last")
done
say "skipped in both"
skipped demo_first
[[ ${lasts[0]} == "${lasts[1]}" ]] || fail "the order decides what is run"
diff <(skipped demo_first) <(skipped test_first) || fail "the order decides what is skipped (< demo first, > test first)"
say "passed"
