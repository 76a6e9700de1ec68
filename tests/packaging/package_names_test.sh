#!/bin/bash
# ./dev takes of the names that a package has in the releases of Debian the one that apt has here,
# installs none that is there under another name, and does without what a test alone wants and apt has
# under no name: with stand-ins of a dpkg-query that knows what is installed, and of an apt-cache and an
# apt-get that know the release.
set -euo pipefail
work=$(mktemp -d /tmp/ferry-names-XXXXXX)
trap 'rm -rf "$work"' EXIT
export PATH=$work/bin:$PATH WORK=$work
mkdir "$work/bin"
cat >"$work/bin/dpkg-query" <<'SH'
#!/bin/bash
[[ $1 == -W ]] || exit 0  # and no package has files
package=${!#}
grep -qx "$package" "$WORK/installed" || exit 1
printf installed
SH
# As that of Debian: a package that another one only provides has a name, but no candidate.
cat >"$work/bin/apt-cache" <<'SH'
#!/bin/bash
[[ $1 == policy && $LC_ALL == C ]] || exit 1
[[ -e $WORK/updated ]] || exit 0  # a new machine knows no package before apt-get update
if grep -qx "$2" "$WORK/offered"; then
  printf '%s:\n  Installed: (none)\n  Candidate: 1.83.0-4.2\n' "$2"
elif grep -qx "$2" "$WORK/provided"; then
  printf '%s:\n  Installed: (none)\n  Candidate: (none)\n' "$2"
fi
SH
cat >"$work/bin/apt-get" <<'SH'
#!/bin/bash
case $1 in
  update) touch "$WORK/updated" ;;
  install)
    for package; do
      case $package in
        install | -*) continue ;;
      esac
      grep -qx "$package" "$WORK/offered" || exit 100  # and then apt-get installs nothing at all
      echo "$package" >>"$WORK/asked"
    done
    cat "$WORK/asked" >>"$WORK/installed" ;;
esac
SH
printf '#!/bin/bash\nexec "$@"\n' >"$work/bin/sudo"
chmod +x "$work"/bin/*
# The functions alone: the script itself would begin to build.
for function in die install_without_services first_that is_debian is_installed is_offered need want; do
  eval "$(sed -n "/^$function() {.*}\$/p; /^$function() {\$/,/^}\$/p" dev)"
done
policy=$work/policy

# on INSTALLED OFFERED PROVIDED: a machine, by the packages that it has, that apt has there, and that
# others provide there.
on() {
  rm -f "$work/updated"
  printf '%s\n' $1 >"$work/installed"
  printf '%s\n' $2 >"$work/offered"
  printf '%s\n' $3 >"$work/provided"
}
# asked COMMAND PACKAGE...: what apt-get was asked to install.
asked() {
  : >"$work/asked"
  result=0
  ("$@") >"$work/said" 2>&1 || result=$?
  asked=$(xargs <"$work/asked")
}
expect() {
  [[ $2 == $3 ]] || {
    echo "FAILED: $1: \"$2\", not \"$3\"; it said: $(cat "$work/said")"
    exit 1
  }
}

twelve="g++ libboost-context1.74-dev libboost-context-dev libpmix2 clang-14"
thirteen="g++ libboost-context-dev libpmix2t64"
boost=libboost-context1.74-dev,libboost-context-dev
pmix=libpmix2,libpmix2t64

on "" "$twelve" ""
asked need g++ $boost $pmix
expect "Debian 12" "$asked" "g++ libboost-context1.74-dev libpmix2"
asked need g++ $boost $pmix
expect "Debian 12, the second time" "$result $asked$(cat "$work/said")" "0 "
on "" "$thirteen" "libpmix2"
asked need g++ $boost $pmix
expect "Debian 13" "$asked" "g++ libboost-context-dev libpmix2t64"
asked need g++ $boost $pmix
expect "Debian 13, the second time" "$result $asked$(cat "$work/said")" "0 "

# One name is enough, also if apt would rather have the other.
on "libboost-context-dev" "$twelve" ""
asked need $boost g++
expect "a package that is there by its other name" "$asked" "g++"

# A build that needs a package which apt does not have ends, names it, and installs nothing. Packages
# that only tests want are left out.
on "" "$thirteen" "libpmix2"
asked need g++ clang-14
expect "a build without a package" "$result $asked" "1 "
expect "what it says" "$(tail -n 1 "$work/said")" "dev: apt has no clang-14, without which *"
asked need g++ old,older
expect "what it says of two names" "$(tail -n 1 "$work/said")" "dev: apt has no old or older, *"
asked want g++ clang-14 $pmix
expect "tests without a package" "$result $asked" "0 g++ libpmix2t64"
expect "what it says, then" "$(cat "$work/said")" "*apt has no clang-14*"
on "g++" "$thirteen" ""
asked want g++ clang-14
expect "tests that want no more" "$result $asked" "0 "

# Each name in the list is one that apt can have.
eval "$(sed -n '/^readonly [a-z]*_packages=(/,/^)/p' dev)"
for list in $(compgen -A variable | grep '_packages$'); do
  declare -n packages=$list
  for package in "${packages[@]}"; do
    [[ ,$package =~ ^(,[a-z0-9][a-z0-9+.-]+)+$ ]] || expect "$list" "$package" "names of packages"
    grep -qE "^  ${package//+/[+]} +# ." dev || expect "$package" "nothing" "what it is for"
  done
done
echo passed
