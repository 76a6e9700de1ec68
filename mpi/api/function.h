// How the functions of MPI are defined: each as PMPI_x, which the library itself never calls by
// that name, with MPI_x a weak alias of it that a tool may replace (MPI 5.0, chapter 15).
//
// The public headers are the table of the functions. A definition that differs from its declaration
// there does not compile.
//
// For use inside of namespace ferry::mpi.
#pragma once

#include <mpi.h>

#if !defined(__clang__)
// gcc finds out that some functions throw nothing, and misses that at their aliases.
#pragma GCC diagnostic ignored "-Wmissing-attributes"
#endif

// FERRY_MPI_CALL(int, MPI_Wait, (MPI_Request* request, MPI_Status* status)) { ... }
#define FERRY_MPI_CALL(result, name, parameters)                               \
  extern "C" __attribute__((visibility("default"))) result P##name parameters; \
  extern "C" __attribute__((visibility("default"), weak, alias("P" #name)))    \
  result name parameters;                                                      \
  extern "C" result P##name parameters

// FERRY_MPI_TWINS(MPI_Get_count, (const MPI_Status* status, MPI_Datatype datatype, Count* count),
//                 expression);
// Defines MPI_Get_count and MPI_Get_count_c, which return the expression. In both, the type Count
// is that of the twin's counts, and Displacement that of its displacements.
#define FERRY_MPI_TWINS(name, parameters, ...)                      \
  namespace with_int {                                              \
  FERRY_MPI_CALL(int, name, parameters) { return __VA_ARGS__; }     \
  }                                                                 \
  namespace with_count {                                            \
  FERRY_MPI_CALL(int, name##_c, parameters) { return __VA_ARGS__; } \
  }                                                                 \
  static_assert(true)

// The name, for messages, of the call in whose function it stands; not in a lambda there.
#define FERRY_MPI_NAME ::ferry::mpi::NameOfCall(__func__)

namespace ferry::mpi {

// MPI_x of PMPI_x. Does not compile for other names.
consteval const char* NameOfCall(const char* function) {
  return function[0] == 'P' && function[1] == 'M' ? function + 1 : throw function;
}

namespace with_int {
using Count = int;
using Displacement = int;
}  // namespace with_int
namespace with_count {
using Count = MPI_Count;
using Displacement = MPI_Aint;
}  // namespace with_count
}  // namespace ferry::mpi
