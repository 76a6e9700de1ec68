#!/usr/bin/env bash
# The plugin of gcc that preludes are compiled with: a template that a function of the header uses is instantiated with
# the header. Without the plugin gcc would not notice there what is wrong with the template. Argument: the plugin.
set -euo pipefail
source tests/support/skip.sh
# Newer ones crash with it, and preludes are made without (precompiled_header.bzl).
[[ $(g++ -dumpversion) == 12* ]] || skip "the plugin is for gcc 12, and this is $(g++ -dumpversion)"
plugin=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/header.h" <<'TEXT'
template <typename T>
void Wrong() {
  static_assert(sizeof(T) == 0, "instantiated");
}
inline void Use() { Wrong<int>(); }
#pragma ferry instantiate
TEXT

precompile() { g++ -std=c++20 -x c++-header "$work/header.h" -o "$work/header.h.gch" "$@" 2>"$work/errors"; }

if ! precompile; then
  echo "FAILED: gcc alone instantiates, too: is the plugin needed any more?"
  cat "$work/errors"
  exit 1
fi
if precompile -fplugin="$plugin" || ! grep -q 'static assertion failed: instantiated' "$work/errors"; then
  echo "FAILED: the plugin has not instantiated the template"
  cat "$work/errors"
  exit 1
fi
