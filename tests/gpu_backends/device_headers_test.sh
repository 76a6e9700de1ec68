#!/usr/bin/env bash
# The headers that programs' kernels include compile in every language that they are written for: OpenCL C for SPIR-V,
# PTX and AMD's code objects, CUDA and HIP (both halves of a file), C++ on the host. Arguments: the folder to include,
# and the headers.
set -euo pipefail
source tests/support/skip.sh
include=$1
shift

for version in 14 19 none; do
  command -v clang-$version >/dev/null && command -v clang++-$version >/dev/null && break
done
[[ $version != none ]] ||
  skip "there is no clang-14 or clang-19, which know all these languages: apt-get install clang-14"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
flags=(-I"$include" -O1 -Wall -Wextra -Werror -Wno-unused-function -fsyntax-only)
failed=0

# check WHAT COMMAND...
check() {
  local what=$1
  shift
  if "$@" 2>"$work/errors"; then
    echo "ok: $header as $what"
  else
    echo "FAILED: $header as $what"
    cat "$work/errors"
    failed=1
  fi
}

for header in "$@"; do
  source=$work/source
  # With a kernel, so that device compilers have something to look at.
  printf '#include "%s"\nFERRY_DEVICE_KERNEL test_kernel(FERRY_DEVICE_GLOBAL ferry_device_u64* word) {\n  ferry_device_fetch_add(word, ferry_device_thread());\n}\n' "$header" >"$source"
  opencl=(clang-$version -x cl -cl-std=CL2.0 "${flags[@]}")
  check "OpenCL C for SPIR-V" "${opencl[@]}" -Xclang -finclude-default-header -target spir64 "$source"
  check "OpenCL C for NVIDIA" "${opencl[@]}" -target nvptx64-nvidia-cuda "$source"
  check "OpenCL C for AMD" "${opencl[@]}" -target amdgcn-amd-amdhsa -mcpu=gfx90a -nogpulib "$source"
  for half in device host; do
    check "CUDA, $half" clang++-$version -x cuda --cuda-$half-only --cuda-gpu-arch=sm_70 -nocudainc -nocudalib \
      -Wno-unknown-cuda-version -std=c++17 "${flags[@]}" "$source"
    check "HIP, $half" clang++-$version -x hip --cuda-$half-only --offload-arch=gfx90a -nogpuinc -nogpulib -std=c++17 \
      "${flags[@]}" "$source"
  done
  check "C++" clang++-$version -x c++ -std=c++17 "${flags[@]}" "$source"
done
exit "$failed"
