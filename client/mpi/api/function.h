// How a function of MPI is defined: as PMPI_x, which the library itself never calls by that name,
// with MPI_x a weak alias of it that a tool may replace (MPI 5.0, chapter 15).
#pragma once

#if !defined(__clang__)
// gcc finds out that some of them throw nothing, and misses that at their aliases.
#pragma GCC diagnostic ignored "-Wmissing-attributes"
#endif

#define FERRY_MPI_CALL(result, name, parameters)                                   \
  extern "C" __attribute__((visibility("default"))) result PMPI_##name parameters; \
  extern "C" __attribute__((visibility("default"), weak, alias("PMPI_" #name)))    \
  result MPI_##name parameters;                                                    \
  extern "C" result PMPI_##name parameters
