// Functions that MPI 3.0 has removed, and that libraries of other binary interfaces still show.
#include "mpi/foreign/convert.h"
#include "mpi/foreign/library.h"

namespace ferry::foreign {

FERRY_FOREIGN(int, Address, (const void* location, MPI_Aint* address)) {
  return TheirCode(abi.Get_address(location, address));
}

FERRY_FOREIGN(int, Type_hvector,
              (int count, int blocklength, MPI_Aint stride, TheirHandle oldtype,
               TheirHandle* newtype)) {
  HandleOut<MPI_Datatype> made(newtype);
  const int code =
      abi.Type_create_hvector(count, blocklength, stride, Ours<MPI_Datatype>(oldtype), made.get());
  made.Give();
  return TheirCode(code);
}

FERRY_FOREIGN(int, Type_hindexed,
              (int count, int lengths[], MPI_Aint displacements[], TheirHandle oldtype,
               TheirHandle* newtype)) {
  HandleOut<MPI_Datatype> made(newtype);
  const int code = abi.Type_create_hindexed(count, lengths, displacements,
                                            Ours<MPI_Datatype>(oldtype), made.get());
  made.Give();
  return TheirCode(code);
}

extern "C" int foreign_Type_create_struct(int, const int[], const MPI_Aint[], const TheirHandle[],
                                          TheirHandle*) asm("PMPI_Type_create_struct");

FERRY_FOREIGN(int, Type_struct,
              (int count, const int lengths[], const MPI_Aint displacements[],
               const TheirHandle types[], TheirHandle* newtype)) {
  return foreign_Type_create_struct(count, lengths, displacements, types, newtype);
}

namespace {

int Extent(TheirHandle datatype, MPI_Aint* lb, MPI_Aint* extent) {
  MPI_Aint unused_lb = 0;
  MPI_Aint unused_extent = 0;
  return TheirCode(abi.Type_get_extent(Ours<MPI_Datatype>(datatype),
                                       lb == nullptr ? &unused_lb : lb,
                                       extent == nullptr ? &unused_extent : extent));
}

}  // namespace

FERRY_FOREIGN(int, Type_extent, (TheirHandle datatype, MPI_Aint* extent)) {
  return Extent(datatype, nullptr, extent);
}

FERRY_FOREIGN(int, Type_lb, (TheirHandle datatype, MPI_Aint* displacement)) {
  return Extent(datatype, displacement, nullptr);
}

FERRY_FOREIGN(int, Type_ub, (TheirHandle datatype, MPI_Aint* displacement)) {
  MPI_Aint lb = 0;
  MPI_Aint extent = 0;
  const int code = Extent(datatype, &lb, &extent);
  if (code == MPI_SUCCESS) {
    *displacement = lb + extent;
  }
  return code;
}

extern "C" int foreign_Comm_create_errhandler(void (*)(TheirHandle*, int*, ...),
                                              TheirHandle*) asm("PMPI_Comm_create_errhandler");

FERRY_FOREIGN(int, Errhandler_create,
              (void (*function)(TheirHandle*, int*, ...), TheirHandle* errhandler)) {
  return foreign_Comm_create_errhandler(function, errhandler);
}

FERRY_FOREIGN(int, Errhandler_get, (TheirHandle comm, TheirHandle* errhandler)) {
  HandleOut<MPI_Errhandler> found(errhandler);
  const int code = abi.Comm_get_errhandler(Ours<MPI_Comm>(comm), found.get());
  found.Give();
  return TheirCode(code);
}

FERRY_FOREIGN(int, Errhandler_set, (TheirHandle comm, TheirHandle errhandler)) {
  return TheirCode(abi.Comm_set_errhandler(Ours<MPI_Comm>(comm), Ours<MPI_Errhandler>(errhandler)));
}

}  // namespace ferry::foreign
