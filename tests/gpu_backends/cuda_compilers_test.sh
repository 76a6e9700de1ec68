#!/usr/bin/env bash
# NVIDIA's own compilers take what is written for kernels, without a warning: nvcc the headers (in kernels that use all of
# them, and the examples), ptxas the code that Ferry's own kernels became by clang; and what they make is linked, by the
# run time of CUDA, with a program. FERRY_TEST_ALL: for all devices that they know, with optimisation. Arguments: the
# folder to include, the kernels, and the files of Ferry's own, of which .ptx is PTX.
set -euo pipefail
source tests/support/skip.sh
include=$1
kernels=$2
shift 2
ptx_files=()
for file in "$@"; do [[ $file != *.ptx ]] || ptx_files+=("$file"); done
cuda=/usr/local/cuda
nvcc=$cuda/bin/nvcc

[[ -x $nvcc && -x $cuda/bin/ptxas ]] || skip "there is no nvcc in $cuda/bin: a part of the CUDA toolkit"
[[ -e $cuda/lib64/libcudart.so && -e $cuda/lib64/stubs/libcuda.so ]] ||
  skip "$cuda/lib64 has no libcudart.so or no stub of libcuda.so"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# check WHAT COMMAND...
check() {
  local what=$1
  shift
  if "$@" >"$work/said" 2>&1 && ! grep -qiE 'warning|spill (stores|loads)' <(grep -v ' 0 bytes spill' "$work/said"); then
    echo "done: $what"
  else
    echo "FAILED: $what"
    cat "$work/said"
    failed=1
  fi
}

mapfile -t devices < <("$nvcc" --list-gpu-code)
echo "oldest device of this nvcc: ${devices[0]}"
chosen=("${devices[0]}")
quick=(-Xcicc -O0 -Xptxas -O0)
if [[ -n ${FERRY_TEST_ALL:-} ]]; then
  chosen=("${devices[@]}")
  quick=()
fi

cp "$kernels" "$work/kernels.cu"
flags=(-std=c++17 -I. -I"$include" -Werror all-warnings -Xcompiler -Wall,-Wextra,-Wno-unused-function)
for device in "${chosen[@]}"; do
  check "nvcc, $device" "$nvcc" -arch="$device" "${quick[@]}" "${flags[@]}" -c "$work/kernels.cu" -o "$work/kernels.o"
  for ptx in "${ptx_files[@]}"; do
    check "ptxas, $device: ${ptx##*/}" "$cuda/bin/ptxas" -arch="$device" -v --warn-on-spills "$ptx" -o "$work/cubin"
  done
done
((${#ptx_files[@]} > 0)) || echo "this build has no PTX of Ferry's own kernels: there was no clang-14 and no clang-19"

cat >"$work/main.cu" <<'CODE'
#include <cuda.h>
#include <cuda_runtime.h>
extern "C" __global__ void test_dot(const unsigned long long*, const double*, unsigned long long, double*, int*);
int main() {
  int devices = 0;
  int version = 0;
  if (cuDriverGetVersion(&version) != CUDA_SUCCESS || cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    return 0;  // the stub
  }
  test_dot<<<1, 1>>>(nullptr, nullptr, 0, nullptr, nullptr);
  return 0;
}
CODE
check "a program of CUDA's run time with these kernels" "$nvcc" -arch="${devices[0]}" -std=c++17 "$work/main.cu" \
  "$work/kernels.o" -L"$cuda/lib64/stubs" -lcuda -cudart shared -o "$work/program"
exit "$failed"
