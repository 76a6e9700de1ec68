#!/bin/bash
# The recipes of images: what they do is done to a bare Debian of this release, by debootstrap, since no registry of
# images may be in reach; then jobs run there.
set -euo pipefail
source tests/support/skip.sh
source tests/packaging/bare_debian.sh

# section NAME: the lines of a section of the recipe for Apptainer.
section() { awk -v name="%$1" '/^%/ { inside = ($1 == name); next } inside && NF' packaging/container/ferry.def; }
docker_run=$(sed -n '/^RUN /,/[^\\]$/p' packaging/container/Dockerfile | sed -e 's/^RUN //' -e 's/ *\(&& \)*\\$//')
apptainer_post=$(section post)
[[ -n $docker_run && $(sed 's/^ *//' <<<"$docker_run") == "$(sed 's/^ *//' <<<"$apptainer_post")" ]] ||
  fail "the recipes differ: $docker_run / $apptainer_post"
[[ $(section files) == "    ferry.deb /tmp/ferry.deb" ]] || fail "Apptainer's recipe copies $(section files)"
grep -qx "COPY ferry.deb /tmp/ferry.deb" packaging/container/Dockerfile || fail "Docker's copies another file"
grep -qx "FROM $(sed -n 's/^From: //p' packaging/container/ferry.def)" packaging/container/Dockerfile ||
  fail "they begin with different images"

need_debootstrap
root=$(mktemp -d /tmp/ferry-container-XXXXXX)
trap 'delete_debian "$root"' EXIT
say "debootstrap"
make_debian "$root"
install -m 644 packaging/deb/ferry.deb "$root/tmp/ferry.deb"

say "build"
inside "$root" "$apptainer_post" >"$root.log" 2>&1 || fail "$(tail -n 5 "$root.log")"
[[ ! -e $root/tmp/ferry.deb ]] || fail "the package is left in the image"

say "jobs"
said=$(inside "$root" "$(section test)" | sort | xargs)
[[ $said == "rank 0 rank 1" ]] || fail "Apptainer's test says $said"
gcc examples/hello/hello.c -I include -L client -l:libferry.so.0 -Wl,--allow-shlib-undefined -o "$root/usr/local/bin/hello"
for nodes in 1 2; do
  inside "$root" "ferryrun --private --nodes $nodes -n 4 hello" >"$root.log" 2>&1 || fail "$(cat "$root.log")"
  grep -q "rank 3 of 4: rank 2 says hello" "$root.log" || fail "a job of $nodes nodes said $(cat "$root.log")"
done
say "passed"
