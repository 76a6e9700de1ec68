// The binary interfaces of which Ferry has libraries, and where Debian has the originals.
#pragma once

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "tests/e2e/command.h"

namespace ferry::mpi_tests {

struct Interface {
  std::string family;         // as --abi has it
  std::string soname;         // of the library
  std::string library;        // Ferry's
  std::string numbers;        // its constants, for compare_numbers.py
  std::string their_library;  // the original
  std::string headers;
  std::string package;  // of Debian, which has the original
  std::string header_package;
  std::vector<std::string> options;  // of the compiler
  // Returns true for names of the original that no program has from its headers.
  bool (*is_internal)(const std::string& name);
  // At least so many has the original in Debian 12 and 13, beside the internal ones.
  int functions;
  int objects;
  int compared;                       // numbers, by compare_numbers.py
  std::set<std::string> can_compile;  // of tests/mpi/ranks
};

// Names that MPICH's libraries for Fortran and C++, its tools (QMPI) and its MPI-IO use; mpi.h
// declares none of them but QMPI's. docs/binaries.md says that they are missing.
inline Interface Mpich() {
  return {.family = "mpich",
          .soname = "libmpi.so.12",
          .library = "mpi/foreign/mpich/libmpi.so.12",
          .numbers = "mpi/foreign/mpich/numbers.txt",
          .their_library = "/usr/lib/x86_64-linux-gnu/libmpich.so.12",
          .headers = "/usr/include/x86_64-linux-gnu/mpich",
          .package = "libmpich12",
          .header_package = "libmpich-dev",
          .options = {},
          .is_internal =
              [](const std::string& name) {
                return name.starts_with("MPII_") || name.starts_with("MPIR_Err_") ||
                       name.starts_with("QMPI_");
              },
          .functions = 1269,
          .objects = 5,
          .compared = 330,
          .can_compile = {"generalized", "intercommunicators", "messages", "operations", "threads",
                          "topologies", "windows"}};
}

// mpi.h names the handles' objects, and functions whose names begin with MPI, PMPI and OMPI_C. In
// capitals, and with an underscore behind, are Fortran's.
inline Interface OpenMpi() {
  return {.family = "openmpi",
          .soname = "libmpi.so.40",
          .library = "mpi/foreign/openmpi/libmpi.so.40",
          .numbers = "mpi/foreign/openmpi/numbers.txt",
          .their_library = "/usr/lib/x86_64-linux-gnu/libmpi.so.40",
          .headers = "/usr/lib/x86_64-linux-gnu/openmpi/include",
          .package = "libopenmpi3 or libopenmpi40",
          .header_package = "libopenmpi-dev",
          .options = {"-DIS_OPEN_MPI"},
          .is_internal =
              [](const std::string& name) {
                const bool is_capital =
                    name.find_first_of("abcdefghijklmnopqrstuvwxyz") == name.npos;
                const bool is_sentinel = name.starts_with("mpi_fortran_");
                return !is_sentinel && !name.starts_with("OMPI_C_MPI_") &&
                       (is_capital ? !name.starts_with("MPI_F_STATUS") &&
                                         !name.starts_with("MPI_F08_STATUS")
                                   : !name.starts_with("MPI_") && !name.starts_with("PMPI_") &&
                                         !name.starts_with("MPIX_") && !name.starts_with("PMPIX_"));
              },
          .functions = 887,
          .objects = 11,
          .compared = 415,
          .can_compile = {"generalized", "threads", "topologies", "windows"}};
}

inline std::string FamilyOf(const testing::TestParamInfo<Interface>& info) {
  return info.param.family;
}

// Compiles a source with the original's header, and links it with the original.
inline std::string CompileFor(const Interface& interface, const std::string& source,
                              const std::string& output, const std::vector<std::string>& more) {
  std::vector<std::string> words = {"/usr/bin/gcc",           "-w",   "-O1", "-I.",
                                    "-I" + interface.headers, source, "-o",  output};
  words.insert(words.end(), interface.options.begin(), interface.options.end());
  words.push_back(interface.their_library);
  words.insert(words.end(), more.begin(), more.end());
  const e2e::CommandResult result = e2e::RunCommand(words);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return output;
}

}  // namespace ferry::mpi_tests
