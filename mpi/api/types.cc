// The life of datatypes, and the questions about them (MPI 5.0, sections 5.1.5 to 5.1.11, 5.1.13,
// 7.8, 6.9.4 and 19.1.5). Attributes are elsewhere.
#include <algorithm>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>

#include "mpi/api/call.h"
#include "mpi/api/function.h"
#include "mpi/datatype/constructors.h"
#include "mpi/datatype/unnamed_types.h"

namespace ferry::mpi {

MPI_Datatype HandleOf(Datatype& type) {
  if (type.IsPredefined()) {
    return type.handle();
  }
  type.Retain();
  const MPI_Datatype handle = datatypes.Add(&type);
  if (handle == nullptr) {
    type.Release();
  } else if (type.handle() == nullptr) {
    type.set_handle(handle);
  }
  return handle;
}

void NeedLength(Call& call, int64_t length, const char* argument, int error_class) {
  if (length < 0) {
    call.Refuse(error_class, std::string(argument) + " is negative: " + std::to_string(length));
  }
}

// ---- Life ---------------------------------------------------------------------------------------

FERRY_MPI_CALL(int, MPI_Type_commit, (MPI_Datatype * datatype)) {
  Call call(FERRY_MPI_NAME);
  call.Need(datatype, "datatype");
  Datatype* const type = call.ok() ? call.Find(*datatype) : nullptr;
  return call.Then([&] { type->Commit(); });
}

FERRY_MPI_CALL(int, MPI_Type_free, (MPI_Datatype * datatype)) {
  Call call(FERRY_MPI_NAME);
  call.Need(datatype, "datatype");
  Datatype* const type = call.ok() ? call.Find(*datatype) : nullptr;
  if (call.ok() && type->IsPredefined()) {
    call.Refuse(MPI_ERR_TYPE, type->Text() + " is predefined");
  }
  // Handles of MPI_Type_get_contents are further ones: the attributes belong to the first.
  if (call.ok() && type->handle() == *datatype) {
    call.Refuse(type->attributes().DeleteAll(*datatype));
  }
  if (call.ok() && datatypes.Remove(*datatype) == nullptr) {
    (void)call.Find(*datatype);  // a callback freed it
    return call.result();
  }
  return call.Then([&] {
    if (type->handle() == *datatype) {
      type->set_handle(nullptr);
    }
    type->Release();
    *datatype = MPI_DATATYPE_NULL;
  });
}

FERRY_MPI_CALL(int, MPI_Type_dup, (MPI_Datatype oldtype, MPI_Datatype* newtype)) {
  Call call(FERRY_MPI_NAME);
  Datatype* const old = call.Find(oldtype);
  call.Need(newtype, "newtype");
  return call.Then([&] {
    *newtype = MPI_DATATYPE_NULL;  // if it fails
    MadeDatatype made = MakeDuplicate(*old);
    if (made.ok()) {
      AttributeSet& copies = made.value()->attributes();
      if (Failure failure = old->attributes().CopyTo(oldtype, &copies); !failure.ok()) {
        (void)copies.DeleteAll(MPI_DATATYPE_NULL);
        made = std::move(failure);
      }
    }
    call.Give(std::move(made), newtype);
  });
}

// ---- Names --------------------------------------------------------------------------------------

FERRY_MPI_CALL(int, MPI_Type_set_name, (MPI_Datatype datatype, const char* name)) {
  Call call(FERRY_MPI_NAME);
  Datatype* const type = call.Find(datatype);
  call.Need(name, "type_name");
  return call.Then([&] { type->set_name({name, strnlen(name, MPI_MAX_OBJECT_NAME - 1)}); });
}

FERRY_MPI_CALL(int, MPI_Type_get_name, (MPI_Datatype datatype, char* name, int* resultlen)) {
  Call call(FERRY_MPI_NAME);
  call.Need(name, "type_name", resultlen, "resultlen");
  call.NeedRunning();
  const Datatype* const type = datatype == MPI_DATATYPE_NULL ? nullptr : call.Find(datatype);
  return call.Then([&] {
    // MPI_DATATYPE_NULL has a name, though it is no datatype.
    const std::string text(type == nullptr ? "MPI_DATATYPE_NULL" : type->name());
    std::memcpy(name, text.c_str(), text.size() + 1);
    *resultlen = static_cast<int>(text.size());
  });
}

// ---- Sizes --------------------------------------------------------------------------------------

namespace {

template <typename Number>
int Size(Call call, MPI_Datatype datatype, Number* size) {
  const Datatype* const type = call.Find(datatype);
  call.Need(size, "size");
  return call.Then([&] { PutNumber(size, type->size_bytes()); });
}

int Extent(Call call, MPI_Datatype datatype, MPI_Count* lb, MPI_Count* extent) {
  const Datatype* const type = call.Find(datatype);
  call.Need(lb, "lb", extent, "extent");
  return call.Then([&] {
    *lb = type->lower_bound();
    *extent = type->extent();
  });
}

int TrueExtent(Call call, MPI_Datatype datatype, MPI_Count* true_lb, MPI_Count* true_extent) {
  const Datatype* const type = call.Find(datatype);
  call.Need(true_lb, "true_lb", true_extent, "true_extent");
  return call.Then([&] {
    *true_lb = type->true_lower_bound();
    *true_extent = type->true_extent();
  });
}

}  // namespace

FERRY_MPI_TWINS(MPI_Type_size, (MPI_Datatype datatype, Count* size),
                Size(FERRY_MPI_NAME, datatype, size));
FERRY_MPI_CALL(int, MPI_Type_size_x, (MPI_Datatype datatype, MPI_Count* size)) {
  return Size(FERRY_MPI_NAME, datatype, size);
}

// MPI_Aint and MPI_Count are the same type.
FERRY_MPI_TWINS(MPI_Type_get_extent, (MPI_Datatype datatype, MPI_Count* lb, MPI_Count* extent),
                Extent(FERRY_MPI_NAME, datatype, lb, extent));
FERRY_MPI_CALL(int, MPI_Type_get_extent_x,
               (MPI_Datatype datatype, MPI_Count* lb, MPI_Count* extent)) {
  return Extent(FERRY_MPI_NAME, datatype, lb, extent);
}

FERRY_MPI_TWINS(MPI_Type_get_true_extent, (MPI_Datatype datatype, MPI_Count* lb, MPI_Count* extent),
                TrueExtent(FERRY_MPI_NAME, datatype, lb, extent));
FERRY_MPI_CALL(int, MPI_Type_get_true_extent_x,
               (MPI_Datatype datatype, MPI_Count* lb, MPI_Count* extent)) {
  return TrueExtent(FERRY_MPI_NAME, datatype, lb, extent);
}

// ---- How it was made ----------------------------------------------------------------------------

namespace {

// Types with large counts are told only by the calls that have them.
void NeedSmall(Call& call, const char* name, const Datatype* type) {
  if (call.ok() && type->contents().large) {
    call.Refuse(MPI_ERR_TYPE,
                "the datatype was made with large counts: use " + std::string(name) + "_c");
  }
}

template <typename Number>
Number SizeOfArray(const auto& array) {
  return static_cast<Number>(array.size());
}

// The arrays that MPI_Type_get_contents fills in, and the room that they have.
struct Room {
  MPI_Count max_integers;
  MPI_Count max_addresses;
  MPI_Count max_large_counts;
  MPI_Count max_datatypes;
  int* integers;
  MPI_Aint* addresses;
  MPI_Count* large_counts;
  MPI_Datatype* types;
};

void NeedRoom(Call& call, const DatatypeContents& contents, const Room& room) {
  const auto need = [&](const char* argument, size_t needed, MPI_Count given) {
    if (given < static_cast<MPI_Count>(needed)) {
      call.Refuse(MPI_ERR_ARG, std::string(argument) + " is " + std::to_string(given) +
                                   ", but the datatype has " + std::to_string(needed));
    }
  };
  need("max_integers", contents.integers.size(), room.max_integers);
  need("max_addresses", contents.addresses.size(), room.max_addresses);
  need("max_large_counts", contents.large_counts.size(), room.max_large_counts);
  need("max_datatypes", contents.types.size(), room.max_datatypes);
  const auto need_array = [&](const void* array, const auto& needed, const char* argument) {
    if (!needed.empty()) {
      call.Need(array, argument);
    }
  };
  need_array(room.integers, contents.integers, "array_of_integers");
  need_array(room.addresses, contents.addresses, "array_of_addresses");
  need_array(room.large_counts, contents.large_counts, "array_of_large_counts");
  need_array(room.types, contents.types, "array_of_datatypes");
}

int GetContents(Call& call, const Datatype* type, const Room& room) {
  if (call.ok() && type->contents().combiner == MPI_COMBINER_NAMED) {
    call.Refuse(MPI_ERR_TYPE, type->Text() + " is predefined: it has no contents");
  }
  if (call.ok()) {
    NeedRoom(call, type->contents(), room);
  }
  return call.Then([&] {
    const DatatypeContents& contents = type->contents();
    std::transform(contents.integers.begin(), contents.integers.end(), room.integers,
                   [](int64_t value) { return static_cast<int>(value); });
    std::copy(contents.addresses.begin(), contents.addresses.end(), room.addresses);
    std::copy(contents.large_counts.begin(), contents.large_counts.end(), room.large_counts);
    std::transform(contents.types.begin(), contents.types.end(), room.types,
                   [](const Ref<Datatype>& part) { return HandleOf(*part); });
  });
}

}  // namespace

FERRY_MPI_CALL(int, MPI_Type_get_envelope,
               (MPI_Datatype datatype, int* num_integers, int* num_addresses, int* num_datatypes,
                int* combiner)) {
  Call call(FERRY_MPI_NAME);
  const Datatype* const type = call.Find(datatype);
  call.Need(num_integers, "num_integers", num_addresses, "num_addresses", num_datatypes,
            "num_datatypes", combiner, "combiner");
  NeedSmall(call, FERRY_MPI_NAME, type);
  return call.Then([&] {
    const DatatypeContents& contents = type->contents();
    *num_integers = SizeOfArray<int>(contents.integers);
    *num_addresses = SizeOfArray<int>(contents.addresses);
    *num_datatypes = SizeOfArray<int>(contents.types);
    *combiner = contents.combiner;
  });
}

FERRY_MPI_CALL(int, MPI_Type_get_envelope_c,
               (MPI_Datatype datatype, MPI_Count* num_integers, MPI_Count* num_addresses,
                MPI_Count* num_large_counts, MPI_Count* num_datatypes, int* combiner)) {
  Call call(FERRY_MPI_NAME);
  const Datatype* const type = call.Find(datatype);
  call.Need(num_integers, "num_integers", num_addresses, "num_addresses", num_large_counts,
            "num_large_counts", num_datatypes, "num_datatypes", combiner, "combiner");
  return call.Then([&] {
    const DatatypeContents& contents = type->contents();
    *num_integers = SizeOfArray<MPI_Count>(contents.integers);
    *num_addresses = SizeOfArray<MPI_Count>(contents.addresses);
    *num_large_counts = SizeOfArray<MPI_Count>(contents.large_counts);
    *num_datatypes = SizeOfArray<MPI_Count>(contents.types);
    *combiner = contents.combiner;
  });
}

FERRY_MPI_CALL(int, MPI_Type_get_contents,
               (MPI_Datatype datatype, int max_integers, int max_addresses, int max_datatypes,
                int integers[], MPI_Aint addresses[], MPI_Datatype types[])) {
  Call call(FERRY_MPI_NAME);
  const Datatype* const type = call.Find(datatype);
  NeedSmall(call, FERRY_MPI_NAME, type);
  return GetContents(
      call, type,
      {max_integers, max_addresses, 0, max_datatypes, integers, addresses, nullptr, types});
}

FERRY_MPI_CALL(int, MPI_Type_get_contents_c,
               (MPI_Datatype datatype, MPI_Count max_integers, MPI_Count max_addresses,
                MPI_Count max_large_counts, MPI_Count max_datatypes, int integers[],
                MPI_Aint addresses[], MPI_Count large_counts[], MPI_Datatype types[])) {
  Call call(FERRY_MPI_NAME);
  const Datatype* const type = call.Find(datatype);
  return GetContents(call, type,
                     {max_integers, max_addresses, max_large_counts, max_datatypes, integers,
                      addresses, large_counts, types});
}

// ---- Types by their properties ------------------------------------------------------------------

namespace {

// Types that programs ask for by their properties. Their handles are made when first asked for.
Failure PutUnnamed(Result<Datatype*> found, MPI_Datatype* handle) {
  if (!found.ok()) {
    return found.failure();
  }
  Datatype* const type = found.value();
  if (type == nullptr) {
    *handle = MPI_DATATYPE_NULL;
    return {};
  }
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (type->handle() == nullptr) {
    type->Retain();
    type->set_handle(datatypes.Add(type));
  }
  *handle = type->handle();
  return {};
}

UnnamedTypes& Unnamed() {
  // Not destroyed at exit: handles still stand for them.
  static auto& types =
      *new UnnamedTypes([](MPI_Datatype handle) { return datatypes.Find(handle); });
  return types;
}

int Fortran(Call call, int combiner, int precision, int range, MPI_Datatype* newtype) {
  call.NeedRunning();
  call.Need(newtype, "newtype");
  return call.Then(
      [&] { return PutUnnamed(Unnamed().Fortran(combiner, precision, range), newtype); });
}

}  // namespace

FERRY_MPI_CALL(int, MPI_Type_get_value_index,
               (MPI_Datatype value_type, MPI_Datatype index_type, MPI_Datatype* pair_type)) {
  Call call(FERRY_MPI_NAME);
  Datatype* const value = call.Find(value_type);
  Datatype* const index = call.Find(index_type);
  call.Need(pair_type, "pair_type");
  return call.Then([&] { return PutUnnamed(Unnamed().ValueIndex(*value, *index), pair_type); });
}

FERRY_MPI_CALL(int, MPI_Type_match_size, (int typeclass, int size, MPI_Datatype* datatype)) {
  Call call(FERRY_MPI_NAME);
  call.NeedRunning();
  call.Need(datatype, "datatype");
  return call.Then([&] {
    *datatype = TypeOfSize(typeclass, size);
    if (*datatype == MPI_DATATYPE_NULL) {
      call.Refuse(MPI_ERR_ARG, "there is no type of class " + std::to_string(typeclass) +
                                   " and size " + std::to_string(size));
    }
  });
}

FERRY_MPI_CALL(int, MPI_Type_create_f90_integer, (int r, MPI_Datatype* newtype)) {
  return Fortran(FERRY_MPI_NAME, MPI_COMBINER_F90_INTEGER, MPI_UNDEFINED, r, newtype);
}

FERRY_MPI_CALL(int, MPI_Type_create_f90_real, (int p, int r, MPI_Datatype* newtype)) {
  return Fortran(FERRY_MPI_NAME, MPI_COMBINER_F90_REAL, p, r, newtype);
}

FERRY_MPI_CALL(int, MPI_Type_create_f90_complex, (int p, int r, MPI_Datatype* newtype)) {
  return Fortran(FERRY_MPI_NAME, MPI_COMBINER_F90_COMPLEX, p, r, newtype);
}

// ---- Addresses ----------------------------------------------------------------------------------

FERRY_MPI_CALL(int, MPI_Get_address, (const void* location, MPI_Aint* address)) {
  Call call(FERRY_MPI_NAME);
  call.Need(address, "address");
  return call.Then([&] { *address = reinterpret_cast<MPI_Aint>(location); });
}

// Addresses wrap, as pointers' bits do.
FERRY_MPI_CALL(MPI_Aint, MPI_Aint_add, (MPI_Aint base, MPI_Aint disp)) {
  return static_cast<MPI_Aint>(static_cast<uintptr_t>(base) + static_cast<uintptr_t>(disp));
}

FERRY_MPI_CALL(MPI_Aint, MPI_Aint_diff, (MPI_Aint addr1, MPI_Aint addr2)) {
  return static_cast<MPI_Aint>(static_cast<uintptr_t>(addr1) - static_cast<uintptr_t>(addr2));
}

}  // namespace ferry::mpi
