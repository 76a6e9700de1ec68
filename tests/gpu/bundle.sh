#!/usr/bin/env bash
# bundle.sh BUILT FOLDER [COMMIT]: puts all that runs the GPU backends' suites and benchmarks into FOLDER,
# with the shared libraries it needs, so that FOLDER can be copied to another machine and started there
# as FOLDER/run. BUILT is Bazel's out/bin, or a test's own folder; scripts are read from the working
# directory.
set -euo pipefail

readonly built=$1 folder=$2 commit=${3:-unknown}

readonly programs=(
  benchmarks/exchange/exchange benchmarks/gpu/gpu benchmarks/gpu/ranks benchmarks/mpi/device
  daemon/ferryd daemon/ferry-worker tools/ferryrun/ferryrun tools/ferryctl/ferryctl
  examples/mpi_pingpong/mpi_pingpong tests/e2e/ranks/{device,matched,queues}
  tests/gpu_backends/{real_gpu,cuda,hip,level_zero_steps,host}_conformance_test
  tests/shmem/ranks/own_heap_{cuda,hip,level_zero}
  tests/vendor_memory/{direct,faults,mpi,shmem,virtual}_{cuda,hip,level_zero}
)
readonly stand_ins=(
  tests/fixtures/cuda/libcuda_{11,13}.so tests/fixtures/hip/libamdhip64_{5,6}.so
  tests/fixtures/hip_on_cuda/libamdhip64_on_cuda.so
  tests/fixtures/level_zero/libferry_level_zero.so
)
# The vendors' libraries, which a machine with a GPU has: programs are linked with them by their own
# names, and find stand-ins of these names only where they are told to.
readonly vendors_own='^(libcuda|libamdhip64|libze_loader)\.so'
readonly named_stand_ins=(cuda/libcuda.so.1 hip/libamdhip64.so.6)

# The machine's own: the C library belongs to its dynamic linker.
readonly machines_own='^(ld-linux.*|libc|libm|libdl|libpthread|librt|libresolv|libutil)\.so'

# put FILE PLACE
put() {
  mkdir -p "$(dirname "$folder/$2")"
  cp -fL "$1" "$folder/$2"
  chmod u+w "$folder/$2"
}

# needed FILE...: the libraries that the dynamic linker finds for them.
needed() {
  local file
  for file in "$@"; do
    ldd "$file" | awk '$2 == "=>" && $3 ~ "^/" { print $3 } $3 == "not" { print "missing: " $1 }'
  done | sort -u
}

[[ ! -e $folder || -f $folder/benchmarks/common/commit ]] || {
  echo "bundle.sh: $folder is there, and is none that this program has made" >&2
  exit 1
}
rm -rf "$folder"
for file in "${programs[@]}" "${stand_ins[@]}"; do put "$built/$file" "$file"; done
for file in "${named_stand_ins[@]}"; do put "$built/tests/fixtures/$file" "lib/stand_ins/$file"; done
loader=$(PATH=$PATH:/usr/sbin:/sbin ldconfig -p 2>/dev/null | awk '/libze_loader\.so\.1 / && !found { print $NF; found = 1 }') || true
[[ -z $loader ]] || put "$loader" lib/stand_ins/libze_loader.so.1  # a real GPU comes with its own

while read -r library; do
  [[ $library == /* ]] || {
    echo "bundle.sh: $library" >&2
    exit 1
  }
  name=${library##*/}
  if [[ $name =~ $machines_own || $name =~ $vendors_own ]]; then
    continue
  elif [[ $name == libstdc++* || $name == libgcc_s* ]]; then
    put "$library" "lib/gcc/$name"
  else
    put "$library" "lib/$name"
  fi
done < <(needed "${programs[@]/#/$built/}" "${stand_ins[@]/#/$built/}")

put benchmarks/gpu/run benchmarks/gpu/run
put benchmarks/gpu/backends.py benchmarks/gpu/backends.py
put benchmarks/common/report.py benchmarks/common/report.py
echo "$commit" >"$folder/benchmarks/common/commit"
put tests/gpu/run run
