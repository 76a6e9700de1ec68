// Procedures of Fortran that MPI 3.0 has removed, and that Open MPI's library still shows.
// Addresses and displacements are INTEGER there.
#include "mpi/fortran/binding.h"

extern "C" {

// C's functions, which the standard's headers declare no more.
int MPI_Type_struct(int, const int[], const MPI_Aint[], const MPI_Datatype[], MPI_Datatype*);
int MPI_Type_hindexed(int, int[], MPI_Aint[], MPI_Datatype, MPI_Datatype*);
int MPI_Type_hvector(int, int, MPI_Aint, MPI_Datatype, MPI_Datatype*);

// Open MPI 4 has no such constant.
alignas(32) const int mpi_fortran_buffer_automatic_[1] = {-1};
}

namespace ferry::fortran {
namespace {

class Addresses : public Elements<MPI_Aint> {
 public:
  Addresses(const int* displacements, int count) : Elements<MPI_Aint>(count) {
    std::copy_n(displacements, this->count(), get());
  }
};

void Extent(const int* datatype, MPI_Aint* lb, MPI_Aint* extent, int* ierror) {
  *ierror = MPI_Type_get_extent(HandleOf<MPI_Datatype>(*datatype), lb, extent);
}

}  // namespace
}  // namespace ferry::fortran

// Both names of a procedure.
#define FERRY_REMOVED(low, capital, parameters)                \
  extern "C" FERRY_SHOWN void mpi_##low##_ parameters;         \
  FERRY_NAMES("mpi_" #low, "MPI_" capital, "mpi_" #low "_");   \
  FERRY_NAME("pmpi_" #low "_", "mpi_" #low "_");               \
  FERRY_NAMES("pmpi_" #low, "PMPI_" capital, "mpi_" #low "_"); \
  extern "C" void mpi_##low##_ parameters

using ferry::fortran::Addresses;
using ferry::fortran::Buffer;
using ferry::fortran::Extent;
using ferry::fortran::HandleOf;
using ferry::fortran::Handles;
using ferry::fortran::NumberOf;

FERRY_REMOVED(address, "ADDRESS", (void* location, int* address, int* ierror)) {
  MPI_Aint found = 0;
  *ierror = MPI_Get_address(Buffer(location), &found);
  *address = static_cast<int>(found);
}

FERRY_REMOVED(type_extent, "TYPE_EXTENT", (int* datatype, int* extent, int* ierror)) {
  MPI_Aint lb = 0;
  MPI_Aint found = 0;
  Extent(datatype, &lb, &found, ierror);
  *extent = static_cast<int>(found);
}

FERRY_REMOVED(type_lb, "TYPE_LB", (int* datatype, int* displacement, int* ierror)) {
  MPI_Aint lb = 0;
  MPI_Aint extent = 0;
  Extent(datatype, &lb, &extent, ierror);
  *displacement = static_cast<int>(lb);
}

FERRY_REMOVED(type_ub, "TYPE_UB", (int* datatype, int* displacement, int* ierror)) {
  MPI_Aint lb = 0;
  MPI_Aint extent = 0;
  Extent(datatype, &lb, &extent, ierror);
  *displacement = static_cast<int>(lb + extent);
}

FERRY_REMOVED(type_hvector, "TYPE_HVECTOR",
              (int* count, int* blocklength, int* stride, int* oldtype, int* newtype,
               int* ierror)) {
  MPI_Datatype made = MPI_DATATYPE_NULL;
  *ierror =
      MPI_Type_hvector(*count, *blocklength, *stride, HandleOf<MPI_Datatype>(*oldtype), &made);
  *newtype = NumberOf(made);
}

FERRY_REMOVED(type_hindexed, "TYPE_HINDEXED",
              (int* count, int* lengths, int* displacements, int* oldtype, int* newtype,
               int* ierror)) {
  Addresses places(displacements, *count);
  MPI_Datatype made = MPI_DATATYPE_NULL;
  *ierror =
      MPI_Type_hindexed(*count, lengths, places.get(), HandleOf<MPI_Datatype>(*oldtype), &made);
  *newtype = NumberOf(made);
}

FERRY_REMOVED(type_struct, "TYPE_STRUCT",
              (int* count, int* lengths, int* displacements, int* types, int* newtype,
               int* ierror)) {
  Addresses places(displacements, *count);
  Handles<MPI_Datatype> parts(types, *count);
  MPI_Datatype made = MPI_DATATYPE_NULL;
  *ierror = MPI_Type_struct(*count, lengths, places.get(), parts.get(), &made);
  *newtype = NumberOf(made);
}

// The error handlers of today have another name and the same arguments.
extern "C" void mpi_comm_create_errhandler_(void (*)(), int*, int*);
extern "C" void mpi_comm_get_errhandler_(int*, int*, int*);
extern "C" void mpi_comm_set_errhandler_(int*, int*, int*);

FERRY_REMOVED(errhandler_create, "ERRHANDLER_CREATE",
              (void (*function)(), int* errhandler, int* ierror)) {
  mpi_comm_create_errhandler_(function, errhandler, ierror);
}

FERRY_REMOVED(errhandler_get, "ERRHANDLER_GET", (int* comm, int* errhandler, int* ierror)) {
  mpi_comm_get_errhandler_(comm, errhandler, ierror);
}

FERRY_REMOVED(errhandler_set, "ERRHANDLER_SET", (int* comm, int* errhandler, int* ierror)) {
  mpi_comm_set_errhandler_(comm, errhandler, ierror);
}
