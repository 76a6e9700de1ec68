// The life of datatypes, and the questions about them (MPI 5.0, sections 5.1.5 to 5.1.11, 5.1.13,
// 7.8, 6.9.4 and 19.1.5). Attributes are elsewhere.
#include <algorithm>
#include <cstring>
#include <mutex>

#include "client/mpi/api/function.h"
#include "client/mpi/api/type_arguments.h"
#include "client/mpi/base/handle_table.h"
#include "client/mpi/datatype/unnamed_types.h"

namespace ferry::mpi {
namespace {

template <typename Number>
int Size(const char* call, MPI_Datatype datatype, Number* size) {
  Datatype* type = nullptr;
  if (const int error = FindType(call, datatype, &type); error != MPI_SUCCESS) {
    return error;
  }
  if (const int error = CheckPointer(call, size, "size"); error != MPI_SUCCESS) {
    return error;
  }
  PutNumber(size, type->size_bytes());
  return MPI_SUCCESS;
}

template <typename Number>
int Extent(const char* call, bool is_true, MPI_Datatype datatype, Number* lower_bound,
           Number* extent) {
  Datatype* type = nullptr;
  if (const int error = FindType(call, datatype, &type); error != MPI_SUCCESS) {
    return error;
  }
  if (const int error = CheckPointer(call, lower_bound, is_true ? "true_lb" : "lb", extent,
                                     is_true ? "true_extent" : "extent");
      error != MPI_SUCCESS) {
    return error;
  }
  PutNumber(lower_bound, is_true ? type->true_lower_bound() : type->lower_bound());
  PutNumber(extent, is_true ? type->true_extent() : type->extent());
  return MPI_SUCCESS;
}

// Types with large counts are told only by the calls that have them.
int CheckForm(const char* call, const Datatype& type) {
  return !type.contents().large
             ? MPI_SUCCESS
             : Fail(call, nullptr, MPI_ERR_TYPE,
                    "the datatype was made with large counts: use " + std::string(call) + "_c");
}

template <typename Number>
Number SizeOfArray(const auto& array) {
  return static_cast<Number>(array.size());
}

// The room that MPI_Type_get_contents is given.
struct Room {
  MPI_Count integers;
  MPI_Count addresses;
  MPI_Count large_counts;
  MPI_Count types;
};

int CheckRoom(const char* call, const DatatypeContents& contents, const Room& room) {
  const auto check = [&](const char* argument, size_t needed, MPI_Count given) {
    return given >= static_cast<MPI_Count>(needed)
               ? MPI_SUCCESS
               : Fail(call, nullptr, MPI_ERR_ARG,
                      std::string(argument) + " is " + std::to_string(given) +
                          ", but the datatype has " + std::to_string(needed));
  };
  int error = check("max_integers", contents.integers.size(), room.integers);
  if (error == MPI_SUCCESS) {
    error = check("max_addresses", contents.addresses.size(), room.addresses);
  }
  if (error == MPI_SUCCESS) {
    error = check("max_large_counts", contents.large_counts.size(), room.large_counts);
  }
  if (error == MPI_SUCCESS) {
    error = check("max_datatypes", contents.types.size(), room.types);
  }
  return error;
}

int CheckArrays(const char* call, const DatatypeContents& contents, const int* integers,
                const MPI_Aint* addresses, const MPI_Count* large_counts,
                const MPI_Datatype* types) {
  const auto is_missing = [](const auto& needed, const void* array) {
    return !needed.empty() && array == nullptr;
  };
  const char* const missing = is_missing(contents.integers, integers)     ? "array_of_integers"
                              : is_missing(contents.addresses, addresses) ? "array_of_addresses"
                              : is_missing(contents.large_counts, large_counts)
                                  ? "array_of_large_counts"
                              : is_missing(contents.types, types) ? "array_of_datatypes"
                                                                  : nullptr;
  return missing == nullptr ? MPI_SUCCESS : CheckPointer(call, nullptr, missing);
}

int GetContents(const char* call, Datatype& type, const Room& room, int* integers,
                MPI_Aint* addresses, MPI_Count* large_counts, MPI_Datatype* types) {
  const DatatypeContents& contents = type.contents();
  if (contents.combiner == MPI_COMBINER_NAMED) {
    return Fail(call, nullptr, MPI_ERR_TYPE,
                "the datatype " + std::string(type.name()) + " is predefined: it has no contents");
  }
  if (const int error = CheckRoom(call, contents, room); error != MPI_SUCCESS) {
    return error;
  }
  if (const int error = CheckArrays(call, contents, integers, addresses, large_counts, types);
      error != MPI_SUCCESS) {
    return error;
  }
  std::transform(contents.integers.begin(), contents.integers.end(), integers,
                 [](int64_t value) { return static_cast<int>(value); });
  std::copy(contents.addresses.begin(), contents.addresses.end(), addresses);
  std::copy(contents.large_counts.begin(), contents.large_counts.end(), large_counts);
  std::transform(contents.types.begin(), contents.types.end(), types,
                 [](const Ref<Datatype>& part) { return HandleOf(*part); });
  return MPI_SUCCESS;
}

// Types that programs ask for by their properties. Their handles are made when first asked for.
int PutUnnamed(const char* call, Result<Datatype*> found, MPI_Datatype* handle) {
  if (!found.ok()) {
    return Fail(call, nullptr, found.failure());
  }
  Datatype* const type = found.value();
  if (type == nullptr) {
    *handle = MPI_DATATYPE_NULL;
    return MPI_SUCCESS;
  }
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (type->handle() == nullptr) {
    type->Retain();
    type->set_handle(datatypes.Add(type));
  }
  *handle = type->handle();
  return MPI_SUCCESS;
}

UnnamedTypes& Unnamed() {
  // Not destroyed at exit: handles still stand for them.
  static auto& types =
      *new UnnamedTypes([](MPI_Datatype handle) { return datatypes.Find(handle); });
  return types;
}

int Fortran(const char* call, int combiner, int precision, int range, MPI_Datatype* newtype) {
  if (const int error = CheckRunning(call); error != MPI_SUCCESS) {
    return error;
  }
  if (const int error = CheckPointer(call, newtype, "newtype"); error != MPI_SUCCESS) {
    return error;
  }
  return PutUnnamed(call, Unnamed().Fortran(combiner, precision, range), newtype);
}

}  // namespace
}  // namespace ferry::mpi

using namespace ferry::mpi;  // NOLINT: the functions below are of no namespace

// ---- Life ---------------------------------------------------------------------------------------

FERRY_MPI_CALL(int, Type_commit, (MPI_Datatype * datatype)) {
  if (const int error = CheckPointer("MPI_Type_commit", datatype, "datatype");
      error != MPI_SUCCESS) {
    return error;
  }
  Datatype* type = nullptr;
  if (const int error = FindType("MPI_Type_commit", *datatype, &type); error != MPI_SUCCESS) {
    return error;
  }
  type->Commit();
  return MPI_SUCCESS;
}

FERRY_MPI_CALL(int, Type_free, (MPI_Datatype * datatype)) {
  const char* const call = "MPI_Type_free";
  if (const int error = CheckPointer(call, datatype, "datatype"); error != MPI_SUCCESS) {
    return error;
  }
  Datatype* type = nullptr;
  if (const int error = FindType(call, *datatype, &type); error != MPI_SUCCESS) {
    return error;
  }
  if (type->IsPredefined()) {
    return Fail(call, nullptr, MPI_ERR_TYPE,
                "the datatype " + std::string(type->name()) + " is predefined");
  }
  // Handles of MPI_Type_get_contents are further ones: the attributes belong to the first.
  if (type->handle() == *datatype) {
    if (const Failure failure = type->attributes().DeleteAll(*datatype); !failure.ok()) {
      return Fail(call, nullptr, failure);
    }
  }
  if (datatypes.Remove(*datatype) == nullptr) {
    return FindType(call, *datatype, &type);  // a callback freed it
  }
  if (type->handle() == *datatype) {
    type->set_handle(nullptr);
  }
  type->Release();
  *datatype = MPI_DATATYPE_NULL;
  return MPI_SUCCESS;
}

FERRY_MPI_CALL(int, Type_dup, (MPI_Datatype oldtype, MPI_Datatype* newtype)) {
  const char* const call = "MPI_Type_dup";
  Datatype* old = nullptr;
  if (const int error = FindType(call, oldtype, &old); error != MPI_SUCCESS) {
    return error;
  }
  if (const int error = CheckPointer(call, newtype, "newtype"); error != MPI_SUCCESS) {
    return error;
  }
  *newtype = MPI_DATATYPE_NULL;  // if it fails
  MadeDatatype made = MakeDuplicate(*old);
  if (made.ok()) {
    AttributeSet& copies = made.value()->attributes();
    if (Failure failure = old->attributes().CopyTo(oldtype, &copies); !failure.ok()) {
      (void)copies.DeleteAll(MPI_DATATYPE_NULL);
      made = std::move(failure);
    }
  }
  return PublishType(call, std::move(made), newtype);
}

// ---- Names --------------------------------------------------------------------------------------

FERRY_MPI_CALL(int, Type_set_name, (MPI_Datatype datatype, const char* name)) {
  Datatype* type = nullptr;
  if (const int error = FindType("MPI_Type_set_name", datatype, &type); error != MPI_SUCCESS) {
    return error;
  }
  if (const int error = CheckPointer("MPI_Type_set_name", name, "type_name");
      error != MPI_SUCCESS) {
    return error;
  }
  type->set_name({name, strnlen(name, MPI_MAX_OBJECT_NAME - 1)});
  return MPI_SUCCESS;
}

FERRY_MPI_CALL(int, Type_get_name, (MPI_Datatype datatype, char* name, int* resultlen)) {
  const char* const call = "MPI_Type_get_name";
  if (const int error = CheckPointer(call, name, "type_name", resultlen, "resultlen");
      error != MPI_SUCCESS) {
    return error;
  }
  if (const int error = CheckRunning(call); error != MPI_SUCCESS) {
    return error;
  }
  std::string text = "MPI_DATATYPE_NULL";  // has a name, though it is no datatype
  if (datatype != MPI_DATATYPE_NULL) {
    Datatype* type = nullptr;
    if (const int error = FindType(call, datatype, &type); error != MPI_SUCCESS) {
      return error;
    }
    text = type->name();
  }
  std::memcpy(name, text.c_str(), text.size() + 1);
  *resultlen = static_cast<int>(text.size());
  return MPI_SUCCESS;
}

// ---- Sizes --------------------------------------------------------------------------------------

FERRY_MPI_CALL(int, Type_size, (MPI_Datatype datatype, int* size)) {
  return Size("MPI_Type_size", datatype, size);
}

FERRY_MPI_CALL(int, Type_size_c, (MPI_Datatype datatype, MPI_Count* size)) {
  return Size("MPI_Type_size_c", datatype, size);
}

FERRY_MPI_CALL(int, Type_size_x, (MPI_Datatype datatype, MPI_Count* size)) {
  return Size("MPI_Type_size_x", datatype, size);
}

FERRY_MPI_CALL(int, Type_get_extent, (MPI_Datatype datatype, MPI_Aint* lb, MPI_Aint* extent)) {
  return Extent("MPI_Type_get_extent", false, datatype, lb, extent);
}

FERRY_MPI_CALL(int, Type_get_extent_c, (MPI_Datatype datatype, MPI_Count* lb, MPI_Count* extent)) {
  return Extent("MPI_Type_get_extent_c", false, datatype, lb, extent);
}

FERRY_MPI_CALL(int, Type_get_extent_x, (MPI_Datatype datatype, MPI_Count* lb, MPI_Count* extent)) {
  return Extent("MPI_Type_get_extent_x", false, datatype, lb, extent);
}

FERRY_MPI_CALL(int, Type_get_true_extent,
               (MPI_Datatype datatype, MPI_Aint* true_lb, MPI_Aint* true_extent)) {
  return Extent("MPI_Type_get_true_extent", true, datatype, true_lb, true_extent);
}

FERRY_MPI_CALL(int, Type_get_true_extent_c,
               (MPI_Datatype datatype, MPI_Count* true_lb, MPI_Count* true_extent)) {
  return Extent("MPI_Type_get_true_extent_c", true, datatype, true_lb, true_extent);
}

FERRY_MPI_CALL(int, Type_get_true_extent_x,
               (MPI_Datatype datatype, MPI_Count* true_lb, MPI_Count* true_extent)) {
  return Extent("MPI_Type_get_true_extent_x", true, datatype, true_lb, true_extent);
}

// ---- How it was made ----------------------------------------------------------------------------

FERRY_MPI_CALL(int, Type_get_envelope,
               (MPI_Datatype datatype, int* num_integers, int* num_addresses, int* num_datatypes,
                int* combiner)) {
  const char* const call = "MPI_Type_get_envelope";
  Datatype* type = nullptr;
  if (const int error = FindType(call, datatype, &type); error != MPI_SUCCESS) {
    return error;
  }
  if (const int error =
          CheckPointer(call, num_integers, "num_integers", num_addresses, "num_addresses",
                       num_datatypes, "num_datatypes", combiner, "combiner");
      error != MPI_SUCCESS) {
    return error;
  }
  if (const int error = CheckForm(call, *type); error != MPI_SUCCESS) {
    return error;
  }
  const DatatypeContents& contents = type->contents();
  *num_integers = SizeOfArray<int>(contents.integers);
  *num_addresses = SizeOfArray<int>(contents.addresses);
  *num_datatypes = SizeOfArray<int>(contents.types);
  *combiner = contents.combiner;
  return MPI_SUCCESS;
}

FERRY_MPI_CALL(int, Type_get_envelope_c,
               (MPI_Datatype datatype, MPI_Count* num_integers, MPI_Count* num_addresses,
                MPI_Count* num_large_counts, MPI_Count* num_datatypes, int* combiner)) {
  const char* const call = "MPI_Type_get_envelope_c";
  Datatype* type = nullptr;
  if (const int error = FindType(call, datatype, &type); error != MPI_SUCCESS) {
    return error;
  }
  if (const int error = CheckPointer(call, num_integers, "num_integers", num_addresses,
                                     "num_addresses", num_large_counts, "num_large_counts",
                                     num_datatypes, "num_datatypes", combiner, "combiner");
      error != MPI_SUCCESS) {
    return error;
  }
  const DatatypeContents& contents = type->contents();
  *num_integers = SizeOfArray<MPI_Count>(contents.integers);
  *num_addresses = SizeOfArray<MPI_Count>(contents.addresses);
  *num_large_counts = SizeOfArray<MPI_Count>(contents.large_counts);
  *num_datatypes = SizeOfArray<MPI_Count>(contents.types);
  *combiner = contents.combiner;
  return MPI_SUCCESS;
}

FERRY_MPI_CALL(int, Type_get_contents,
               (MPI_Datatype datatype, int max_integers, int max_addresses, int max_datatypes,
                int integers[], MPI_Aint addresses[], MPI_Datatype types[])) {
  const char* const call = "MPI_Type_get_contents";
  Datatype* type = nullptr;
  if (const int error = FindType(call, datatype, &type); error != MPI_SUCCESS) {
    return error;
  }
  if (const int error = CheckForm(call, *type); error != MPI_SUCCESS) {
    return error;
  }
  return GetContents(call, *type, {max_integers, max_addresses, 0, max_datatypes}, integers,
                     addresses, nullptr, types);
}

FERRY_MPI_CALL(int, Type_get_contents_c,
               (MPI_Datatype datatype, MPI_Count max_integers, MPI_Count max_addresses,
                MPI_Count max_large_counts, MPI_Count max_datatypes, int integers[],
                MPI_Aint addresses[], MPI_Count large_counts[], MPI_Datatype types[])) {
  const char* const call = "MPI_Type_get_contents_c";
  Datatype* type = nullptr;
  if (const int error = FindType(call, datatype, &type); error != MPI_SUCCESS) {
    return error;
  }
  return GetContents(call, *type, {max_integers, max_addresses, max_large_counts, max_datatypes},
                     integers, addresses, large_counts, types);
}

// ---- Types by their properties ------------------------------------------------------------------

FERRY_MPI_CALL(int, Type_get_value_index,
               (MPI_Datatype value_type, MPI_Datatype index_type, MPI_Datatype* pair_type)) {
  const char* const call = "MPI_Type_get_value_index";
  Datatype* value = nullptr;
  Datatype* index = nullptr;
  if (const int error = FindType(call, value_type, &value); error != MPI_SUCCESS) {
    return error;
  }
  if (const int error = FindType(call, index_type, &index); error != MPI_SUCCESS) {
    return error;
  }
  if (const int error = CheckPointer(call, pair_type, "pair_type"); error != MPI_SUCCESS) {
    return error;
  }
  return PutUnnamed(call, Unnamed().ValueIndex(*value, *index), pair_type);
}

FERRY_MPI_CALL(int, Type_match_size, (int typeclass, int size, MPI_Datatype* datatype)) {
  const char* const call = "MPI_Type_match_size";
  if (const int error = CheckRunning(call); error != MPI_SUCCESS) {
    return error;
  }
  if (const int error = CheckPointer(call, datatype, "datatype"); error != MPI_SUCCESS) {
    return error;
  }
  *datatype = TypeOfSize(typeclass, size);
  return *datatype != MPI_DATATYPE_NULL
             ? MPI_SUCCESS
             : Fail(call, nullptr, MPI_ERR_ARG,
                    "there is no type of class " + std::to_string(typeclass) + " and size " +
                        std::to_string(size));
}

FERRY_MPI_CALL(int, Type_create_f90_integer, (int r, MPI_Datatype* newtype)) {
  return Fortran("MPI_Type_create_f90_integer", MPI_COMBINER_F90_INTEGER, MPI_UNDEFINED, r,
                 newtype);
}

FERRY_MPI_CALL(int, Type_create_f90_real, (int p, int r, MPI_Datatype* newtype)) {
  return Fortran("MPI_Type_create_f90_real", MPI_COMBINER_F90_REAL, p, r, newtype);
}

FERRY_MPI_CALL(int, Type_create_f90_complex, (int p, int r, MPI_Datatype* newtype)) {
  return Fortran("MPI_Type_create_f90_complex", MPI_COMBINER_F90_COMPLEX, p, r, newtype);
}

// ---- Addresses ----------------------------------------------------------------------------------

FERRY_MPI_CALL(int, Get_address, (const void* location, MPI_Aint* address)) {
  if (const int error = CheckPointer("MPI_Get_address", address, "address"); error != MPI_SUCCESS) {
    return error;
  }
  *address = reinterpret_cast<MPI_Aint>(location);
  return MPI_SUCCESS;
}

// Addresses wrap, as pointers' bits do.
FERRY_MPI_CALL(MPI_Aint, Aint_add, (MPI_Aint base, MPI_Aint disp)) {
  return static_cast<MPI_Aint>(static_cast<uintptr_t>(base) + static_cast<uintptr_t>(disp));
}

FERRY_MPI_CALL(MPI_Aint, Aint_diff, (MPI_Aint addr1, MPI_Aint addr2)) {
  return static_cast<MPI_Aint>(static_cast<uintptr_t>(addr1) - static_cast<uintptr_t>(addr2));
}
