// Procedures of Open MPI 5 in Fortran for jobs that outlive their ranks. Ferry refuses the functions
// in C that they call, in words (other_names.cc).
#include "mpi/fortran/binding.h"

// All names of a procedure, which calls C's function without the arguments before `ierror`: it does
// not look at them.
#define FERRY_MISSING(low, capital, Name, ...)                          \
  extern "C" int MPIX_##Name();                                         \
  extern "C" FERRY_SHOWN void mpix_##low##_(__VA_ARGS__, int* ierror) { \
    ferry::fortran::Give(ierror, MPIX_##Name());                        \
  }                                                                     \
  FERRY_NAMES("mpix_" #low, "MPIX_" capital, "mpix_" #low "_");         \
  FERRY_NAME("mpix_" #low "_f08_", "mpix_" #low "_");                   \
  FERRY_NAMES("pmpix_" #low, "PMPIX_" capital, "mpix_" #low "_");       \
  FERRY_NAME("pmpix_" #low "_", "mpix_" #low "_");                      \
  FERRY_NAME("pmpix_" #low "_f08_", "mpix_" #low "_")

FERRY_MISSING(comm_ack_failed, "COMM_ACK_FAILED", Comm_ack_failed, int*, int*, int*);
FERRY_MISSING(comm_agree, "COMM_AGREE", Comm_agree, int*, int*);
FERRY_MISSING(comm_failure_ack, "COMM_FAILURE_ACK", Comm_failure_ack, int*);
FERRY_MISSING(comm_failure_get_acked, "COMM_FAILURE_GET_ACKED", Comm_failure_get_acked, int*, int*);
FERRY_MISSING(comm_get_failed, "COMM_GET_FAILED", Comm_get_failed, int*, int*);
FERRY_MISSING(comm_iagree, "COMM_IAGREE", Comm_iagree, int*, int*, int*);
FERRY_MISSING(comm_is_revoked, "COMM_IS_REVOKED", Comm_is_revoked, int*, int*);
FERRY_MISSING(comm_revoke, "COMM_REVOKE", Comm_revoke, int*);
FERRY_MISSING(comm_shrink, "COMM_SHRINK", Comm_shrink, int*, int*);
