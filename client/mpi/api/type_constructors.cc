// The constructors of datatypes (MPI 5.0, sections 5.1.2 to 5.1.5, 5.1.8 and 5.1.9), with counts as
// int and as MPI_Count.
#include "client/mpi/api/function.h"
#include "client/mpi/api/type_arguments.h"
#include "client/mpi/base/handle_table.h"

namespace ferry::mpi {
namespace {

template <typename Count>
constexpr CountForm FormOf() {
  return std::is_same_v<Count, int> ? CountForm::kInt : CountForm::kLarge;
}

// The old type, and a place for the new one.
int FindOld(const char* call, MPI_Datatype oldtype, const MPI_Datatype* newtype, Datatype** old) {
  const int error = FindType(call, oldtype, old);
  return error == MPI_SUCCESS ? CheckPointer(call, newtype, "newtype") : error;
}

// Makes the new type by make(old type).
template <typename Make>
int MakeOf(const char* call, MPI_Datatype oldtype, MPI_Datatype* newtype, Make&& make) {
  Datatype* old = nullptr;
  const int error = FindOld(call, oldtype, newtype, &old);
  return error == MPI_SUCCESS ? PublishType(call, make(*old), newtype) : error;
}

// How many entries the arrays of a call have.
struct Length {
  int64_t count;
  const char* argument = "count";
  int error_class = MPI_ERR_COUNT;
};

Length Dimensions(int ndims) { return {ndims, "ndims", MPI_ERR_ARG}; }

// The same after the arrays have been looked at: pairs of array and name.
template <typename Make, typename... Arrays>
int MakeOfArrays(const char* call, MPI_Datatype oldtype, MPI_Datatype* newtype,
                 const Length& length, Make&& make, Arrays... arrays) {
  Datatype* old = nullptr;
  if (const int error = FindOld(call, oldtype, newtype, &old); error != MPI_SUCCESS) {
    return error;
  }
  if (const int error = CheckCount(call, length.argument, length.count, length.error_class);
      error != MPI_SUCCESS) {
    return error;
  }
  if (length.count > 0) {
    if (const int error = CheckPointer(call, arrays...); error != MPI_SUCCESS) {
      return error;
    }
  }
  return PublishType(call, make(*old), newtype);
}

template <typename Count, typename Displacement>
int Blocks(const char* call, decltype(&MakeIndexed) make, Count count, const Count* blocklengths,
           const Displacement* displacements, MPI_Datatype oldtype, MPI_Datatype* newtype) {
  return MakeOfArrays(
      call, oldtype, newtype, Length{count},
      [&](Datatype& old) {
        return make(FormOf<Count>(), CountsOf(blocklengths, count), CountsOf(displacements, count),
                    old);
      },
      blocklengths, "array_of_blocklengths", displacements, "array_of_displacements");
}

template <typename Count, typename Displacement>
int EqualBlocks(const char* call, decltype(&MakeIndexedBlock) make, Count count, Count blocklength,
                const Displacement* displacements, MPI_Datatype oldtype, MPI_Datatype* newtype) {
  return MakeOfArrays(
      call, oldtype, newtype, Length{count},
      [&](Datatype& old) {
        return make(FormOf<Count>(), blocklength, CountsOf(displacements, count), old);
      },
      displacements, "array_of_displacements");
}

template <typename Count, typename Displacement>
int Struct(const char* call, Count count, const Count* blocklengths,
           const Displacement* displacements, const MPI_Datatype* handles, MPI_Datatype* newtype) {
  if (const int error = CheckRunning(call); error != MPI_SUCCESS) {
    return error;
  }
  if (const int error = CheckPointer(call, newtype, "newtype"); error != MPI_SUCCESS) {
    return error;
  }
  if (const int error = CheckCount(call, "count", count); error != MPI_SUCCESS) {
    return error;
  }
  if (count > 0) {
    if (const int error = CheckPointer(call, blocklengths, "array_of_blocklengths", displacements,
                                       "array_of_displacements", handles, "array_of_types");
        error != MPI_SUCCESS) {
      return error;
    }
  }
  std::vector<Datatype*> types;
  for (Count i = 0; i < count; ++i) {
    types.push_back(datatypes.Find(handles[i]));
    if (types.back() == nullptr) {
      return Fail(call, nullptr, MPI_ERR_TYPE,
                  "array_of_types[" + std::to_string(i) + "] is no datatype");
    }
  }
  return PublishType(call,
                     MakeStruct(FormOf<Count>(), CountsOf(blocklengths, count),
                                CountsOf(displacements, count), types),
                     newtype);
}

template <typename Count>
int Subarray(const char* call, int ndims, const Count* sizes, const Count* subsizes,
             const Count* starts, int order, MPI_Datatype oldtype, MPI_Datatype* newtype) {
  return MakeOfArrays(
      call, oldtype, newtype, Dimensions(ndims),
      [&](Datatype& old) {
        return MakeSubarray(FormOf<Count>(), CountsOf(sizes, ndims), CountsOf(subsizes, ndims),
                            CountsOf(starts, ndims), order, old);
      },
      sizes, "array_of_sizes", subsizes, "array_of_subsizes", starts, "array_of_starts");
}

template <typename Count>
int Darray(const char* call, int size, int rank, int ndims, const Count* gsizes,
           const int* distributions, const int* arguments, const int* psizes, int order,
           MPI_Datatype oldtype, MPI_Datatype* newtype) {
  return MakeOfArrays(
      call, oldtype, newtype, Dimensions(ndims),
      [&](Datatype& old) {
        return MakeDarray(FormOf<Count>(),
                          {size, rank, CountsOf(gsizes, ndims), CountsOf(distributions, ndims),
                           CountsOf(arguments, ndims), CountsOf(psizes, ndims), order},
                          old);
      },
      gsizes, "array_of_gsizes", distributions, "array_of_distribs", arguments, "array_of_dargs",
      psizes, "array_of_psizes");
}

}  // namespace
}  // namespace ferry::mpi

using namespace ferry::mpi;  // NOLINT: the functions below are of no namespace

// ---- Regular ------------------------------------------------------------------------------------

FERRY_MPI_CALL(int, Type_contiguous, (int count, MPI_Datatype oldtype, MPI_Datatype* newtype)) {
  return MakeOf("MPI_Type_contiguous", oldtype, newtype,
                [&](Datatype& old) { return MakeContiguous(CountForm::kInt, count, old); });
}

FERRY_MPI_CALL(int, Type_contiguous_c,
               (MPI_Count count, MPI_Datatype oldtype, MPI_Datatype* newtype)) {
  return MakeOf("MPI_Type_contiguous_c", oldtype, newtype,
                [&](Datatype& old) { return MakeContiguous(CountForm::kLarge, count, old); });
}

FERRY_MPI_CALL(int, Type_vector,
               (int count, int blocklength, int stride, MPI_Datatype oldtype,
                MPI_Datatype* newtype)) {
  return MakeOf("MPI_Type_vector", oldtype, newtype, [&](Datatype& old) {
    return MakeVector(CountForm::kInt, count, blocklength, stride, old);
  });
}

FERRY_MPI_CALL(int, Type_vector_c,
               (MPI_Count count, MPI_Count blocklength, MPI_Count stride, MPI_Datatype oldtype,
                MPI_Datatype* newtype)) {
  return MakeOf("MPI_Type_vector_c", oldtype, newtype, [&](Datatype& old) {
    return MakeVector(CountForm::kLarge, count, blocklength, stride, old);
  });
}

FERRY_MPI_CALL(int, Type_create_hvector,
               (int count, int blocklength, MPI_Aint stride, MPI_Datatype oldtype,
                MPI_Datatype* newtype)) {
  return MakeOf("MPI_Type_create_hvector", oldtype, newtype, [&](Datatype& old) {
    return MakeHvector(CountForm::kInt, count, blocklength, stride, old);
  });
}

FERRY_MPI_CALL(int, Type_create_hvector_c,
               (MPI_Count count, MPI_Count blocklength, MPI_Count stride, MPI_Datatype oldtype,
                MPI_Datatype* newtype)) {
  return MakeOf("MPI_Type_create_hvector_c", oldtype, newtype, [&](Datatype& old) {
    return MakeHvector(CountForm::kLarge, count, blocklength, stride, old);
  });
}

FERRY_MPI_CALL(int, Type_create_resized,
               (MPI_Datatype oldtype, MPI_Aint lb, MPI_Aint extent, MPI_Datatype* newtype)) {
  return MakeOf("MPI_Type_create_resized", oldtype, newtype,
                [&](Datatype& old) { return MakeResized(CountForm::kInt, lb, extent, old); });
}

FERRY_MPI_CALL(int, Type_create_resized_c,
               (MPI_Datatype oldtype, MPI_Count lb, MPI_Count extent, MPI_Datatype* newtype)) {
  return MakeOf("MPI_Type_create_resized_c", oldtype, newtype,
                [&](Datatype& old) { return MakeResized(CountForm::kLarge, lb, extent, old); });
}

// ---- By lists -----------------------------------------------------------------------------------

FERRY_MPI_CALL(int, Type_indexed,
               (int count, const int blocklengths[], const int displacements[],
                MPI_Datatype oldtype, MPI_Datatype* newtype)) {
  return Blocks("MPI_Type_indexed", MakeIndexed, count, blocklengths, displacements, oldtype,
                newtype);
}

FERRY_MPI_CALL(int, Type_indexed_c,
               (MPI_Count count, const MPI_Count blocklengths[], const MPI_Count displacements[],
                MPI_Datatype oldtype, MPI_Datatype* newtype)) {
  return Blocks("MPI_Type_indexed_c", MakeIndexed, count, blocklengths, displacements, oldtype,
                newtype);
}

FERRY_MPI_CALL(int, Type_create_hindexed,
               (int count, const int blocklengths[], const MPI_Aint displacements[],
                MPI_Datatype oldtype, MPI_Datatype* newtype)) {
  return Blocks("MPI_Type_create_hindexed", MakeHindexed, count, blocklengths, displacements,
                oldtype, newtype);
}

FERRY_MPI_CALL(int, Type_create_hindexed_c,
               (MPI_Count count, const MPI_Count blocklengths[], const MPI_Count displacements[],
                MPI_Datatype oldtype, MPI_Datatype* newtype)) {
  return Blocks("MPI_Type_create_hindexed_c", MakeHindexed, count, blocklengths, displacements,
                oldtype, newtype);
}

FERRY_MPI_CALL(int, Type_create_indexed_block,
               (int count, int blocklength, const int displacements[], MPI_Datatype oldtype,
                MPI_Datatype* newtype)) {
  return EqualBlocks("MPI_Type_create_indexed_block", MakeIndexedBlock, count, blocklength,
                     displacements, oldtype, newtype);
}

FERRY_MPI_CALL(int, Type_create_indexed_block_c,
               (MPI_Count count, MPI_Count blocklength, const MPI_Count displacements[],
                MPI_Datatype oldtype, MPI_Datatype* newtype)) {
  return EqualBlocks("MPI_Type_create_indexed_block_c", MakeIndexedBlock, count, blocklength,
                     displacements, oldtype, newtype);
}

FERRY_MPI_CALL(int, Type_create_hindexed_block,
               (int count, int blocklength, const MPI_Aint displacements[], MPI_Datatype oldtype,
                MPI_Datatype* newtype)) {
  return EqualBlocks("MPI_Type_create_hindexed_block", MakeHindexedBlock, count, blocklength,
                     displacements, oldtype, newtype);
}

FERRY_MPI_CALL(int, Type_create_hindexed_block_c,
               (MPI_Count count, MPI_Count blocklength, const MPI_Count displacements[],
                MPI_Datatype oldtype, MPI_Datatype* newtype)) {
  return EqualBlocks("MPI_Type_create_hindexed_block_c", MakeHindexedBlock, count, blocklength,
                     displacements, oldtype, newtype);
}

FERRY_MPI_CALL(int, Type_create_struct,
               (int count, const int blocklengths[], const MPI_Aint displacements[],
                const MPI_Datatype types[], MPI_Datatype* newtype)) {
  return Struct("MPI_Type_create_struct", count, blocklengths, displacements, types, newtype);
}

FERRY_MPI_CALL(int, Type_create_struct_c,
               (MPI_Count count, const MPI_Count blocklengths[], const MPI_Count displacements[],
                const MPI_Datatype types[], MPI_Datatype* newtype)) {
  return Struct("MPI_Type_create_struct_c", count, blocklengths, displacements, types, newtype);
}

// ---- Arrays -------------------------------------------------------------------------------------

FERRY_MPI_CALL(int, Type_create_subarray,
               (int ndims, const int sizes[], const int subsizes[], const int starts[], int order,
                MPI_Datatype oldtype, MPI_Datatype* newtype)) {
  return Subarray("MPI_Type_create_subarray", ndims, sizes, subsizes, starts, order, oldtype,
                  newtype);
}

FERRY_MPI_CALL(int, Type_create_subarray_c,
               (int ndims, const MPI_Count sizes[], const MPI_Count subsizes[],
                const MPI_Count starts[], int order, MPI_Datatype oldtype, MPI_Datatype* newtype)) {
  return Subarray("MPI_Type_create_subarray_c", ndims, sizes, subsizes, starts, order, oldtype,
                  newtype);
}

FERRY_MPI_CALL(int, Type_create_darray,
               (int size, int rank, int ndims, const int gsizes[], const int distribs[],
                const int dargs[], const int psizes[], int order, MPI_Datatype oldtype,
                MPI_Datatype* newtype)) {
  return Darray("MPI_Type_create_darray", size, rank, ndims, gsizes, distribs, dargs, psizes, order,
                oldtype, newtype);
}

FERRY_MPI_CALL(int, Type_create_darray_c,
               (int size, int rank, int ndims, const MPI_Count gsizes[], const int distribs[],
                const int dargs[], const int psizes[], int order, MPI_Datatype oldtype,
                MPI_Datatype* newtype)) {
  return Darray("MPI_Type_create_darray_c", size, rank, ndims, gsizes, distribs, dargs, psizes,
                order, oldtype, newtype);
}
