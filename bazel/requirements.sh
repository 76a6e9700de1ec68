#!/usr/bin/env bash
# requirements.sh: looks for what Ferry is built from, on a machine without Debian's packages: programs,
# headers and libraries, where the compiler looks by itself or where pkg-config says. Prints the options
# that Bazel needs to find them, one on a line, and says on standard error what is missing. Exit code 1:
# something is.
set -euo pipefail

compiler=${CC:-gcc}
missing=()

# need_program NAME WHAT
need_program() { command -v "$1" >/dev/null || missing+=("the program $1: $2"); }

# ---- Folders that only pkg-config knows ----

# As gcc itself takes them: those of the caller, and then those that are added here.
export CPLUS_INCLUDE_PATH=${CPLUS_INCLUDE_PATH:-} LIBRARY_PATH=${LIBRARY_PATH:-}

found_by_loader=()  # what the programs have to be told, too

add_folders_of() {
  local word
  for word in $(pkg-config --cflags-only-I --libs-only-L "$1" 2>/dev/null); do
    case $word in
      -I*) CPLUS_INCLUDE_PATH+=${CPLUS_INCLUDE_PATH:+:}${word#-I} ;;
      -L*) LIBRARY_PATH+=${LIBRARY_PATH:+:}${word#-L}; found_by_loader+=("${word#-L}") ;;
    esac
  done
}

has_header() {
  printf '#if !__has_include(<%s>)\n#error\n#endif\n' "$1" |
    "$compiler" -x c++ -std=c++20 -E -o /dev/null - 2>/dev/null
}
has_library() {
  [[ $1 == - ]] ||
    "$compiler" -shared -x c++ -o /dev/null - -x none -Wl,--no-as-needed "-l$1" <<<"" 2>/dev/null
}

# ---- What is needed ----

need_program bazel "Bazel 4.2, the build tool (https://github.com/bazelbuild/bazel/releases/tag/4.2.3)"
need_program "$compiler" "gcc 12 or newer, the compiler"
need_program gfortran "of the same release as gcc: the modules of MPI for Fortran"
need_program protoc "protobuf's compiler"
need_program grpc_cpp_plugin "gRPC's plugin of protoc"
need_program python3 "Python 3"
need_program ar "binutils"

# By pkg-config's name, which may be missing: a header, and a library (-: none).
readonly parts=(
  "grpc++ grpcpp/grpcpp.h grpc++"
  "grpc++_unsecure grpcpp/grpcpp.h grpc++_unsecure"
  "protobuf google/protobuf/message.h protobuf"
  "absl_synchronization absl/synchronization/mutex.h absl_synchronization"
  "re2 re2/re2.h re2"
  "libcares ares.h cares"
  "zlib zlib.h z"
  "openssl openssl/ssl.h ssl"
  "libsystemd systemd/sd-daemon.h systemd"
  "libseccomp seccomp.h seccomp"
  "spdlog spdlog/spdlog.h spdlog"
  "fmt fmt/format.h fmt"
  "boost boost/asio.hpp -"
  "boost_context boost/context/fiber.hpp boost_context"
  "prometheus-cpp-core prometheus/registry.h prometheus-cpp-core"
  "libfabric rdma/fabric.h -"
  "hwloc hwloc.h hwloc"
  "level-zero level_zero/ze_api.h -"
  "jemalloc jemalloc/jemalloc.h :libjemalloc_pic.a"
  "tomlplusplus toml++/toml.h -"
  "CLI11 CLI/CLI.hpp -"
  "nlohmann_json nlohmann/json.hpp -"
)
if ((${#missing[@]} == 0)); then
  for part in "${parts[@]}"; do
    read -r module header library <<<"$part"
    has_header "$header" && has_library "$library" || add_folders_of "$module"
    has_header "$header" || missing+=("the header <$header> ($module)")
    has_library "$library" || missing+=("the library ${library#:} ($module)")
  done
fi
if ((${#missing[@]})); then
  echo "these are missing; install the packages for development that have them, or name their folders in
PKG_CONFIG_PATH, or in CPLUS_INCLUDE_PATH and LIBRARY_PATH:" >&2
  printf '  %s\n' "${missing[@]}" >&2
  exit 1
fi

# Warnings that this project has not seen, of other compilers and headers, end no build.
echo --copt=-Wno-error
if [[ $CPLUS_INCLUDE_PATH ]]; then
  echo "--action_env=CPLUS_INCLUDE_PATH=$CPLUS_INCLUDE_PATH"
  echo "--repo_env=CPLUS_INCLUDE_PATH=$CPLUS_INCLUDE_PATH"
fi
[[ -z $LIBRARY_PATH ]] || echo "--action_env=LIBRARY_PATH=$LIBRARY_PATH"
for folder in "${found_by_loader[@]+"${found_by_loader[@]}"}"; do echo "--linkopt=-Wl,-rpath,$folder"; done
