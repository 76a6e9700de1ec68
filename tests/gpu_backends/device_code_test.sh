#!/usr/bin/env bash
# Kernels that use the headers for kernels become code for every kind of device, with the instructions that they are to
# have. Arguments: the folder to include, and the source.
set -euo pipefail
source tests/support/skip.sh
include=$1
source=$2

for version in 14 19 none; do
  command -v clang-$version >/dev/null && command -v clang++-$version >/dev/null && break
done
[[ $version != none ]] ||
  skip "there is no clang-14 or clang-19, which know all these languages: apt-get install clang-14"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
flags=(-I. -I"$include" -O2 -Wall -Wextra -Werror -Wno-unused-function)
failed=0

# check WHAT WORDS COMMAND...: the code has an instruction of each of the words.
check() {
  local what=$1 words=$2 word
  shift 2
  if ! "$@" "$source" -o "$work/code" 2>"$work/errors"; then
    echo "FAILED: $what"
    cat "$work/errors"
    failed=1
    return
  fi
  for word in $words; do
    if ! grep -qF -- "$word" "$work/code"; then
      echo "FAILED: $what: there is no $word"
      failed=1
    fi
  done
  echo "done: $what"
}

opencl=(clang-$version -x cl -cl-std=CL2.0 "${flags[@]}")
nvidia='bar.sync bar.warp.sync shfl.sync.idx.b32 atom.acq_rel.sys.add.u64 st.shared.u64 atom.acq_rel.sys.add.u32 atom.acq_rel.sys.cas.b64 st.release.sys.u64 ld.acquire.sys.u32 fence.acq_rel.sys fence.sc.sys'
check "OpenCL C for SPIR-V" "work_group_barrier sub_group_barrier work_group_broadcast sub_group_broadcast test_groups test_arrived" \
  "${opencl[@]}" -Xclang -finclude-default-header -target spir64 -emit-llvm -S
check "OpenCL C for NVIDIA" "$nvidia" \
  "${opencl[@]}" -target nvptx64-nvidia-cuda -Xclang -target-cpu -Xclang sm_70 -Xclang -target-feature -Xclang +ptx63 -S
check "OpenCL C for AMD" "s_barrier v_readfirstlane_b32 ds_write_b64 atomic_add_x2 atomic_add atomic_cmpswap_x2" \
  "${opencl[@]}" -target amdgcn-amd-amdhsa -mcpu=gfx90a -nogpulib -S
check "CUDA" "$nvidia" clang++-$version -x cuda --cuda-device-only --cuda-gpu-arch=sm_70 -nocudainc -nocudalib \
  -Wno-unknown-cuda-version -std=c++17 "${flags[@]}" -Xclang -target-feature -Xclang +ptx63 -S
check "HIP" "s_barrier v_readfirstlane_b32 ds_write_b64 atomic_add_x2 atomic_add atomic_cmpswap_x2" clang++-$version -x hip --cuda-device-only --offload-arch=gfx90a -nogpuinc \
  -nogpulib -std=c++17 "${flags[@]}" -S
exit "$failed"
