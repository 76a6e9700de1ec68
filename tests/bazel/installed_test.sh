#!/bin/bash
# What is installed between two builds is noticed by the second (bazel/installed.bzl): a workspace of its
# own, in which the compilers for device code come, change and go, under one server of Bazel and the next.
set -euo pipefail
source tests/support/skip.sh

command -v bazel >/dev/null || skip "bazel is not in PATH"
work=$(mktemp -d "${TEST_TMPDIR:-/tmp}/installed-XXXXXX")
bazel=(bazel "--output_user_root=$work/bazel" --max_idle_secs=60 --host_jvm_args=-Xmx200m)
trap 'cd "$work/tree"; "${bazel[@]}" shutdown; chmod -R u+w "$work"; rm -rf "$work"' EXIT
mkdir -p "$work"/{compilers,tree/bazel,tree/kernels,tree/gpu_backends/device}
cp -L bazel/{arm64,device_code,installed,offline}.bzl "$work/tree/bazel"
cp -L WORKSPACE "$work/tree"
cd "$work/tree"
touch bazel/BUILD kernels/{kernels.cl,images.h}
cat >gpu_backends/device/BUILD <<'BUILD'
cc_library(name = "device_image", visibility = ["//visibility:public"])
BUILD
cat >kernels/BUILD <<'BUILD'
load("//bazel:device_code.bzl", "device_images")

device_images(
    name = "images",
    src = "kernels.cl",
    device_hdrs = [],
    function = "Images",
    hdr = "images.h",
    why_not = "WhyNot",
)
BUILD

# install PROGRAM VERSION: a compiler whose result says which it was.
install() {
  cat >"$work/compilers/$1" <<SH
#!/bin/sh
while [ "\$1" != -o ]; do shift; done
echo $1 $2 >"\$2"
SH
  chmod +x "$work/compilers/$1"
}

# expect FORMAT WORDS: after a build, what the image of the format says; or, without one, why.
expect() {
  local format=$1 words=$2 found table=out/bin/kernels/images_sources_table.cc file
  "${bazel[@]}" build --symlink_prefix=out/ --nosandbox_debug --spawn_strategy=local \
    --incompatible_strict_action_env --repo_env=FERRY_DEVICE_COMPILERS="$work/compilers" \
    //kernels:images_sources //kernels:images_files >"$work/log" 2>&1 || {
    cat "$work/log"
    exit 1
  }
  found=$(sed -n "s/.*case ImageFormat::$format: return \"\(.*\)\";/\1/p" "$table")
  if [[ -z $found ]]; then
    file=$(sed -n "s/.*{ImageFormat::$format, \"[^\"]*\", {ferry_image_\([a-z0-9_]*\), .*/\1/p" "$table" | head -n 1)
    file=${file/kernels_/kernels.}
    found=$(cat "out/bin/kernels/${file/_co/.co}")
  fi
  [[ $found == *"$words"* ]] || {
    echo "FAILED: $format: expected \"$words\", found \"$found\""
    exit 1
  }
  echo "$format: $found"
}

readonly without=$work/compilers
expect kPtx "$without/clang-14 (Debian's clang-14)"
expect kSpirv "$without/clang-14 (Debian's clang-14) and $without/llvm-spirv-14 (Debian's llvm-spirv-14)"
install clang-14 1
expect kPtx "clang-14 1"
expect kSpirv "$without/llvm-spirv-14 (Debian's llvm-spirv-14)"
expect kAmdgcn "$without/ld.lld-14 (Debian's lld-14)"
install llvm-spirv-14 1
expect kSpirv "llvm-spirv-14 1"
install ld.lld-14 1
expect kAmdgcn "ld.lld-14 1"
install clang-14 2
expect kPtx "clang-14 2"
rm "$work/compilers/llvm-spirv-14"
expect kSpirv "$without/llvm-spirv-14 (Debian's llvm-spirv-14)"
# Programs of two versions make no image together.
install llvm-spirv-19 1
expect kSpirv "$without/llvm-spirv-14 (Debian's llvm-spirv-14) or $without/clang-19 (Debian's clang-19)"
install clang-19 1
expect kSpirv "llvm-spirv-19 1"
expect kPtx "clang-14 2"
"${bazel[@]}" shutdown
install llvm-spirv-14 2
expect kSpirv "llvm-spirv-14 2"
expect kPtx "clang-14 2"
echo passed
