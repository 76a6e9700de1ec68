#include "tests/mpi/fuzz/exceptions.h"

#include <fnmatch.h>
#include <mpi.h>

#include "tests/mpi/fuzz/judge.h"

namespace ferry::mpi {
namespace {

bool Fits(const char* pattern, const std::string& text) {
  return fnmatch(pattern, text.c_str(), 0) == 0;
}

struct ClassRule {
  const char* call;
  int error_class;
};

constexpr ClassRule kClassRules[] = {
    {"MPI_*send*", MPI_ERR_BUFFER},  // no buffer is attached, or it is full
    {"MPI_*ecv*", MPI_ERR_TRUNCATE},
    {"MPI_*ather*", MPI_ERR_TRUNCATE},  // a rank sends itself more or less than it receives
    {"MPI_*catter*", MPI_ERR_TRUNCATE},
    {"MPI_*lltoall*", MPI_ERR_TRUNCATE},
    {"MPI_*uffer_*tach*", MPI_ERR_BUFFER},  // one is attached already, or none
    {"MPI_Comm_*tach_buffer*", MPI_ERR_BUFFER},
    {"MPI_Intercomm_create", MPI_ERR_RANK},  // both groups are the same
    {"MPI_Abi_set_*", MPI_ERR_ABI},
    {"MPI_*", MPI_ERR_NO_MEM},
};

struct Forgiven {
  const char* call;
  const char* parameter;
  const char* value;
  const char* beside = "*";  // the required value of another argument
};

constexpr Forgiven kForgiven[] = {
    // They have names (MPI 5.0, section 7.8).
    {"MPI_Comm_get_name", "comm", "a null handle"},
    {"MPI_Type_get_name", "datatype", "a null handle"},
    // A vector has none.
    {"MPI_Type_get_contents*", "array_of_addresses", "null"},
    {"MPI_Type_get_contents*", "array_of_large_counts", "null"},
    // Nothing is written there: the graph has no weights.
    {"MPI_Dist_graph_neighbors", "*weights", "null"},
    // Nothing is sent or received, and every other library takes it.
    {"MPI_*[sS]end*", "*type", "a null handle", "MPI_PROC_NULL"},
    {"MPI_*[rR]ecv*", "*type", "a null handle", "MPI_*PROC*"},
};

bool HasValue(const Attempt& attempt, const char* pattern) {
  for (size_t i = 0; i < attempt.chosen.size(); ++i) {
    if (Fits(pattern, attempt.ValueOf(i).text)) {
      return true;
    }
  }
  return false;
}

}  // namespace

bool ReturnsAnError(const std::string& call) {
  return !Fits("*_toint", call) && !Fits("*_fromint", call) && !Fits("MPI_Aint_*", call);
}

bool CanSucceed(const std::string& call) {
  // There is no other group, a Fortran binding's values count once, and no buffer is attached.
  return !Fits("MPI_Intercomm_*", call) && !Fits("MPI_Comm_remote_*", call) &&
         !Fits("MPI_Abi_set_*", call) && !Fits("MPI_*detach*", call);
}

std::set<int> OtherClassesOf(const std::string& call) {
  std::set<int> classes;
  for (const ClassRule& rule : kClassRules) {
    if (Fits(rule.call, call)) {
      classes.insert(rule.error_class);
    }
  }
  return classes;
}

bool MayFreeAndFail(const std::string& call) {
  return Fits("MPI_Wait*", call) || Fits("MPI_Test*", call);
}

bool IsForgiven(const Attempt& attempt) {
  for (const Forgiven& rule : kForgiven) {
    for (size_t i = 0; Fits(rule.call, attempt.signature->name) && i < attempt.chosen.size(); ++i) {
      if (Fits(rule.parameter, attempt.signature->parameters[i].name) &&
          Fits(rule.value, attempt.ValueOf(i).text) && HasValue(attempt, rule.beside)) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace ferry::mpi
