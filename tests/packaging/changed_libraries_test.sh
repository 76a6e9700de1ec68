#!/bin/bash
# ./dev compiles everything anew once libraries that become part of Ferry have changed, for Bazel does
# not look at them: with a dpkg-query that names what this test has "installed".
set -euo pipefail
work=$(mktemp -d /tmp/ferry-libraries-XXXXXX)
trap 'rm -rf "$work"' EXIT
export HOME=$work PATH=$work:$PATH
mkdir "$work/.cache"
cat >"$work/dpkg-query" <<'SH'
#!/bin/sh
cat "$HOME/installed"
SH
chmod +x "$work/dpkg-query"
# The function alone: the script itself would begin to build.
eval "$(sed -n '/^notice_libraries() {$/,/^}$/p' dev)"

# after INSTALLED...: the key that results of builds have from now on.
after() {
  unset DISTRIBUTION_LIBRARIES
  printf '%s\n' "$@" >"$work/installed"
  notice_libraries >"$work/said"
  key=${DISTRIBUTION_LIBRARIES:-none}
}
expect() {
  [[ $2 == $3 ]] || {
    echo "FAILED: $1: \"$2\", not \"$3\"; it said: $(cat "$work/said")"
    exit 1
  }
}

after "libabsl-dev 1" "libgrpc-dev 1"
expect "at first" "$key" none
after "libabsl-dev 1" "libgrpc-dev 1"
expect "nothing has changed" "$key" none
after "libabsl-dev 1" "libgrpc-dev 1" "libpng-dev 1"
expect "one more library" "$key" none
after "libabsl-dev 1" "libgrpc-dev 1" "libmpich-dev " "libpng-dev 1"
expect "one that is known only by name" "$key" none
after "libabsl-dev 1" "libgrpc-dev 1" "libmpich-dev 4" "libpng-dev 1"
expect "and then installed" "$key" none
after "libabsl-dev 2" "libgrpc-dev 1" "libpng-dev 1"
expect "a new version" "${#key}" 16
expect "what it says" "$(cat "$work/said")" "dev: libraries have changed*"
changed=$key
after "libabsl-dev 2" "libgrpc-dev 1" "libpng-dev 1"
expect "the next build" "$key" "$changed"
expect "what it says then" "$(cat "$work/said")" ""
after "libabsl-dev 3" "libgrpc-dev 1" "libpng-dev 1"
[[ $key != "$changed" && $key != none ]] || expect "the next version" "$key" "another key"
# Bazel passes it on to every action.
grep -qx 'build --action_env=DISTRIBUTION_LIBRARIES' .bazelrc
echo passed
