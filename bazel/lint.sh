#!/usr/bin/env bash
# `./dev lint`: formatting, clang-tidy on what changed, the direction of dependencies, habits.
# `./dev lint --quick`: the habits alone, which need neither Bazel nor clang: a few seconds.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

problems=0

# clean WHAT COMMAND...: a check that passes when the command succeeds and prints nothing.
clean() {
  local what=$1 found
  shift
  if ! found=$("$@" 2>&1) || [[ -n $found ]]; then
    printf 'lint: %s\n%s\n' "$what" "$found"
    problems=$((problems + 1))
  fi
}

# absent REGEX PATHSPEC...: prints the tracked lines of code, comments left out, that match.
absent() { git grep -nP "^(?! *//).*($1)" -- '*.h' '*.cc' '*.c' "${@:2}" || true; }

unformatted() {
  clang-format --dry-run -Werror "$@" 2>&1 | sed -n 's/:[0-9]*:[0-9]*: error: .*//p' | sort -u
}

# query EXPRESSION: labels, without Bazel's chatter.
query() { bazel query --noimplicit_deps --noshow_progress --ui_event_filters=-info "$1"; }

# uses FOLDER ALLOWED...: prints what targets of FOLDER depend on outside the folders or labels allowed.
uses() {
  local allowed expression="deps(//$1/...) intersect //..."
  for allowed in "$@" third_party bazel; do
    [[ $allowed == //* ]] || allowed="//$allowed/..."
    expression+=" except $allowed"
  done
  query "$expression"
}

# names_only FOLDER ALLOWED...: as `layer`, of what targets of FOLDER name themselves.
names_only() {
  local folder=$1 allowed expression="deps(//$1/..., 1) intersect //..."
  for allowed in "$@" third_party bazel; do
    [[ $allowed == //* ]] || allowed="//$allowed/..."
    expression+=" except $allowed"
  done
  clean "$folder may name only: ${*:2}" query "$expression"
}

# layer FOLDER ALLOWED...: FOLDER depends on nothing of ours but what is allowed.
layer() { clean "$1 may depend only on: $*" uses "$@"; }

# loaded_by_loader FOLDER [OTHERS [LOADERS]]: nothing but FOLDER's loader, the targets LOADERS, tests and benchmarks names the
# concrete implementations in FOLDER; the targets OTHERS are none.
loaded_by_loader() {
  clean "$1 other than the api are named outside its loader" \
    query "rdeps(//..., //$1/... except //$1/api/... except //$1/loader/...${2:+ except $2}, 1) except (//$1/...:* + //tests/... + //benchmarks/...${3:+ + $3})"
}

check_dependencies() {
  bazel info release >/dev/null 2>&1  # says that it starts the server, unless one runs
  layer common
  layer proto
  layer shm common
  layer config common
  layer transports/api common
  layer transports/ofi common transports/api
  layer transports/rails common transports/api
   layer transports/tcp common transports/api //shm:words # into memory that programs watch
  layer transports/greeting common transports/api
   layer transports/loader common config transports //shm:words
   layer gpu_backends/api common //shm:words
  layer include
   layer gpu_backends/device include //gpu_backends/api:reduction # the numbers that kernels know
   layer gpu_backends/host common include gpu_backends/api gpu_backends/base gpu_backends/device //shm:words # matched pairs: words that other processes share
   layer gpu_backends/cuda common include gpu_backends/api gpu_backends/base gpu_backends/device gpu_backends/driver //shm:words
   layer gpu_backends/hip common include gpu_backends/api gpu_backends/base gpu_backends/device gpu_backends/driver //shm:words
   layer gpu_backends/level_zero common include gpu_backends/api gpu_backends/base gpu_backends/device gpu_backends/driver //shm:words
   layer gpu_backends/loader common include config gpu_backends //shm:words
  layer engine shm common
   layer client include engine shm proto gpu_backends common internode transports/api transports/tcp transports/ofi transports/greeting //config
   layer coll client/api engine/schedule shm common gpu_backends/api //config
   layer mpi client coll include engine shm proto gpu_backends common internode transports/api transports/tcp transports/ofi transports/greeting //config
   layer shmem client coll include engine shm proto gpu_backends common internode transports/api transports/tcp transports/ofi transports/greeting //config
  clean "of client/, coll/, mpi/ and shmem/, only client/direct may use internode and transports" \
    query "rdeps((//client/... + //coll/... + //mpi/... + //shmem/...) except //client/direct/..., //internode/... + //transports/..., 1) intersect (//client/... + //coll/... + //mpi/... + //shmem/...) except //client/direct/..."
  names_only mpi //client:ferry //include:ferry_headers //include:mpi_headers \
    //client/api //client/api //client/memory //client/api \
    coll engine/schedule shm common gpu_backends/api include \
    //config //config
  names_only shmem //client:ferry //include:ferry_headers //client/api \
    //client/api //client/memory //client/api \
    coll include shm common //config //config
  layer internode engine shm transports/api common
  layer daemon include internode engine shm proto config transports gpu_backends common
  clean "libferry links gRPC or spdlog" \
    query "somepath(//client:libferry.so.0, //third_party:grpc + //third_party:spdlog)"
  clean "libferry links the progress core" query "somepath(//client:libferry.so.0, //internode/... + //transports/...)"
  loaded_by_loader transports "" "//client/direct:libferry_direct.so + //client/direct:libferry_direct_ofi.so"
  loaded_by_loader gpu_backends //gpu_backends/device/...
}

# Tests that docs/ name as Suite.Test and that do not exist. Beginnings of names (Suite.Test...) pass.
unknown_tests() {
  grep -ohE '`[A-Za-z]+Test\.[A-Za-z]+`' docs/*.md | tr -d '`' | sort -u |
    comm -23 - <(git ls-files 'tests/*.cc' | xargs cat | tr -d '\n' |
      grep -oE 'TEST(_F|_P)?\([A-Za-z]+, *[A-Za-z0-9]+\)' |
      sed -E 's/TEST(_F|_P)?\(//; s/, */./; s/\)//' | sort -u)
}

folder_cycles() { git ls-files '*.h' '*.cc' '*.c' '*.hpp' | xargs python3 bazel/folder_cycles.py; }

# What clang-format leaves of a rule that is too long.
broken_rules() { git grep -nE '^ *// ?-{20,}$|^ *// ---- .* ---- *[^- ]' -- '*.h' '*.cc' '*.c' || true; }

build_lists() { git ls-files 'BUILD' '*/BUILD' | xargs python3 bazel/build_lists.py; }

one_definition() { git ls-files '*.h' '*.cc' | xargs python3 bazel/one_definition.py; }

# One process per file and core; its tally of warnings in system headers is left out.
tidy() {
  printf '%s\0' "$@" | xargs -0 -n 1 -P "$(nproc)" clang-tidy --quiet -p . 2>&1 |
    grep -v ' warnings\? generated\.$' || [[ ${PIPESTATUS[1]} == 0 ]]
}

changed_sources() {
  local base
  base=$(git merge-base HEAD main 2>/dev/null || git rev-parse HEAD)
  [[ $base != $(git rev-parse HEAD) ]] || base=$(git rev-parse -q --verify HEAD~ || echo HEAD)
  git diff --name-only --diff-filter=d "$base" -- '*.cc'
}

warn_of_long_files() {
  local file lines limit
  while read -r file; do
    lines=$(wc -l <"$file")
    case $file in *.h) limit=300 ;; *) limit=600 ;; esac
    ((lines <= limit)) || echo "lint: warning: $file has $lines lines (limit $limit)"
  done < <(git ls-files '*.h' '*.cc' '*.c')
}

clean "only config/ reads the environment" absent '\b(secure_)?getenv *\(' ':!config/' ':!tests/fixtures/' ':!tests/support/'
# Programs in C, which only tests have, cannot include it: they do as users' programs do. The machine for
# litmus tests stands in for what atomic.h uses.
clean "atomics on shared memory go through shm/atomic.h" \
  absent '\batomic_ref\b|\b__(atomic|sync)_' ':!shm/atomic.h' ':!include' \
  ':!tests/*.c' ':!tests/shm/weak/words.h'
clean "volatile is not for threads" \
  absent '(?<!asm )\bvolatile\b(?! (std::)?sig_atomic_t)' ':!include' ':!tests/opencl/runtime.cc'
clean "a section rule is one line: // ---- Title ----" broken_rules
clean "docs/ name tests that do not exist" unknown_tests
clean "comments name functions that are nowhere" python3 bazel/pairs_with.py
clean "docs/bad_input.md: its index" python3 bazel/bad_input.py
clean "docs/dev/where.md leads nowhere" python3 bazel/where.py docs/dev/where.md
clean "these are defined twice: name one anew, or put it into an unnamed namespace" one_definition
clean "folders include each other" folder_cycles
clean "lists of BUILD files: python3 bazel/build_lists.py --fix these" build_lists
clean "prose got worse (bazel/house_numbers.py): reword, or merge with what shrank" \
  python3 bazel/house_numbers.py --check bazel/house_baseline.txt
if [[ ${1:-} != --quick ]]; then
  mapfile -t sources < <(git ls-files '*.h' '*.cc' '*.c')
  clean "format these with clang-format -i" unformatted "${sources[@]}"
  check_dependencies
  warn_of_long_files
  mapfile -t sources < <(changed_sources)
  if ((${#sources[@]})); then
    ./dev compdb
    clean "clang-tidy" tidy "${sources[@]}"
  fi
  python3 bazel/house_numbers.py
fi
((problems == 0)) || exit 1
echo "lint: clean"
