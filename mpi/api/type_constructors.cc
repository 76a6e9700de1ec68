// The constructors of datatypes (MPI 5.0, sections 5.1.2 to 5.1.5, 5.1.8 and 5.1.9).
#include <type_traits>
#include <utility>
#include <vector>

#include "mpi/api/call.h"
#include "mpi/api/function.h"
#include "mpi/datatype/constructors.h"

namespace ferry::mpi {
namespace {

// Which of the twins a constructor is.
template <typename Count>
constexpr CountForm kForm = std::is_same_v<Count, int> ? CountForm::kInt : CountForm::kLarge;

// An array of a call: as 64-bit numbers.
template <typename Number>
Counts CountsOf(const Number* array, int64_t count) {
  Counts counts;
  if (count > 0) {
    counts.reserve(static_cast<size_t>(count) + 2);  // the datatype's contents put as much in front
    counts.assign(array, array + count);
  }
  return counts;
}

// Makes the new type by make(old type).
template <typename Make>
int MakeOf(Call call, MPI_Datatype oldtype, MPI_Datatype* newtype, Make&& make) {
  Datatype* const old = call.Find(oldtype);
  call.Need(newtype, "newtype");
  return call.Then([&] { call.Give(make(*old), newtype); });
}

// How many entries the arrays of a call have.
struct Length {
  int64_t count;
  const char* argument = "count";
  int error_class = MPI_ERR_COUNT;
};

Length Dimensions(int ndims) { return {ndims, "ndims", MPI_ERR_ARG}; }

// Makes a datatype once its arrays have been checked. `arrays`: pairs of array and argument's name.
template <typename Make, typename... Arrays>
int MakeOfArrays(Call call, MPI_Datatype oldtype, MPI_Datatype* newtype, const Length& length,
                 Make&& make, Arrays... arrays) {
  Datatype* const old = call.Find(oldtype);
  call.Need(newtype, "newtype");
  NeedLength(call, length.count, length.argument, length.error_class);
  if (length.count > 0) {
    call.Need(arrays...);
  }
  return call.Then([&] { call.Give(make(*old), newtype); });
}

template <typename Count, typename Displacement>
int Blocks(const char* name, decltype(&MakeIndexed) make, Count count, const Count* blocklengths,
           const Displacement* displacements, MPI_Datatype oldtype, MPI_Datatype* newtype) {
  return MakeOfArrays(
      name, oldtype, newtype, Length{count},
      [&](Datatype& old) {
        return make(kForm<Count>, CountsOf(blocklengths, count), CountsOf(displacements, count),
                    old);
      },
      blocklengths, "array_of_blocklengths", displacements, "array_of_displacements");
}

template <typename Count, typename Displacement>
int EqualBlocks(const char* name, decltype(&MakeIndexedBlock) make, Count count, Count blocklength,
                const Displacement* displacements, MPI_Datatype oldtype, MPI_Datatype* newtype) {
  return MakeOfArrays(
      name, oldtype, newtype, Length{count},
      [&](Datatype& old) {
        return make(kForm<Count>, blocklength, CountsOf(displacements, count), old);
      },
      displacements, "array_of_displacements");
}

template <typename Count>
int Struct(Call call, Count count, const Count* blocklengths, const MPI_Aint* displacements,
           const MPI_Datatype* handles, MPI_Datatype* newtype) {
  call.NeedRunning();
  call.Need(newtype, "newtype");
  NeedLength(call, count);
  if (count > 0) {
    call.Need(blocklengths, "array_of_blocklengths", displacements, "array_of_displacements",
              handles, "array_of_types");
  }
  std::vector<Datatype*> types;
  for (Count i = 0; call.ok() && i < count; ++i) {
    types.push_back(datatypes.Find(handles[i]));
    if (types.back() == nullptr) {
      call.Refuse(MPI_ERR_TYPE, "array_of_types[" + std::to_string(i) + "] is no datatype");
    }
  }
  return call.Then([&] {
    call.Give(MakeStruct(kForm<Count>, CountsOf(blocklengths, count),
                         CountsOf(displacements, count), types),
              newtype);
  });
}

template <typename Count>
int Subarray(const char* name, int ndims, const Count* sizes, const Count* subsizes,
             const Count* starts, int order, MPI_Datatype oldtype, MPI_Datatype* newtype) {
  return MakeOfArrays(
      name, oldtype, newtype, Dimensions(ndims),
      [&](Datatype& old) {
        return MakeSubarray(kForm<Count>, CountsOf(sizes, ndims), CountsOf(subsizes, ndims),
                            CountsOf(starts, ndims), order, old);
      },
      sizes, "array_of_sizes", subsizes, "array_of_subsizes", starts, "array_of_starts");
}

template <typename Count>
int Darray(const char* name, int size, int rank, int ndims, const Count* gsizes,
           const int* distributions, const int* arguments, const int* psizes, int order,
           MPI_Datatype oldtype, MPI_Datatype* newtype) {
  return MakeOfArrays(
      name, oldtype, newtype, Dimensions(ndims),
      [&](Datatype& old) {
        return MakeDarray(kForm<Count>,
                          {size, rank, CountsOf(gsizes, ndims), CountsOf(distributions, ndims),
                           CountsOf(arguments, ndims), CountsOf(psizes, ndims), order},
                          old);
      },
      gsizes, "array_of_gsizes", distributions, "array_of_distribs", arguments, "array_of_dargs",
      psizes, "array_of_psizes");
}

}  // namespace

// ---- Regular ------------------------------------------------------------------------------------

FERRY_MPI_TWINS(MPI_Type_contiguous, (Count count, MPI_Datatype oldtype, MPI_Datatype* newtype),
                MakeOf(FERRY_MPI_NAME, oldtype, newtype,
                       [&](Datatype& old) { return MakeContiguous(kForm<Count>, count, old); }));

FERRY_MPI_TWINS(MPI_Type_vector,
                (Count count, Count blocklength, Count stride, MPI_Datatype oldtype,
                 MPI_Datatype* newtype),
                MakeOf(FERRY_MPI_NAME, oldtype, newtype, [&](Datatype& old) {
                  return MakeVector(kForm<Count>, count, blocklength, stride, old);
                }));

FERRY_MPI_TWINS(MPI_Type_create_hvector,
                (Count count, Count blocklength, MPI_Aint stride, MPI_Datatype oldtype,
                 MPI_Datatype* newtype),
                MakeOf(FERRY_MPI_NAME, oldtype, newtype, [&](Datatype& old) {
                  return MakeHvector(kForm<Count>, count, blocklength, stride, old);
                }));

FERRY_MPI_TWINS(MPI_Type_create_resized,
                (MPI_Datatype oldtype, MPI_Aint lb, MPI_Aint extent, MPI_Datatype* newtype),
                MakeOf(FERRY_MPI_NAME, oldtype, newtype,
                       [&](Datatype& old) { return MakeResized(kForm<Count>, lb, extent, old); }));

// ---- By lists -----------------------------------------------------------------------------------

FERRY_MPI_TWINS(MPI_Type_indexed,
                (Count count, const Count blocklengths[], const Count displacements[],
                 MPI_Datatype oldtype, MPI_Datatype* newtype),
                Blocks(FERRY_MPI_NAME, MakeIndexed, count, blocklengths, displacements, oldtype,
                       newtype));

FERRY_MPI_TWINS(MPI_Type_create_hindexed,
                (Count count, const Count blocklengths[], const MPI_Aint displacements[],
                 MPI_Datatype oldtype, MPI_Datatype* newtype),
                Blocks(FERRY_MPI_NAME, MakeHindexed, count, blocklengths, displacements, oldtype,
                       newtype));

FERRY_MPI_TWINS(MPI_Type_create_indexed_block,
                (Count count, Count blocklength, const Count displacements[], MPI_Datatype oldtype,
                 MPI_Datatype* newtype),
                EqualBlocks(FERRY_MPI_NAME, MakeIndexedBlock, count, blocklength, displacements,
                            oldtype, newtype));

FERRY_MPI_TWINS(MPI_Type_create_hindexed_block,
                (Count count, Count blocklength, const MPI_Aint displacements[],
                 MPI_Datatype oldtype, MPI_Datatype* newtype),
                EqualBlocks(FERRY_MPI_NAME, MakeHindexedBlock, count, blocklength, displacements,
                            oldtype, newtype));

FERRY_MPI_TWINS(MPI_Type_create_struct,
                (Count count, const Count blocklengths[], const MPI_Aint displacements[],
                 const MPI_Datatype types[], MPI_Datatype* newtype),
                Struct(FERRY_MPI_NAME, count, blocklengths, displacements, types, newtype));

// ---- Arrays -------------------------------------------------------------------------------------

FERRY_MPI_TWINS(MPI_Type_create_subarray,
                (int ndims, const Count sizes[], const Count subsizes[], const Count starts[],
                 int order, MPI_Datatype oldtype, MPI_Datatype* newtype),
                Subarray(FERRY_MPI_NAME, ndims, sizes, subsizes, starts, order, oldtype, newtype));

FERRY_MPI_TWINS(MPI_Type_create_darray,
                (int size, int rank, int ndims, const Count gsizes[], const int distribs[],
                 const int dargs[], const int psizes[], int order, MPI_Datatype oldtype,
                 MPI_Datatype* newtype),
                Darray(FERRY_MPI_NAME, size, rank, ndims, gsizes, distribs, dargs, psizes, order,
                       oldtype, newtype));

}  // namespace ferry::mpi
