#include "mpi/io/representation.h"

#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "mpi/base/handle_table.h"
#include "mpi/datatype/constructors.h"
#include "mpi/datatype/external.h"

namespace ferry::mpi {
namespace {

// The arguments of a datatype's constructor, in the order in which it took them.
class Arguments {
 public:
  explicit Arguments(const DatatypeContents& contents) : contents_(contents) {}

  int64_t Integer() { return contents_.integers[integers_++]; }
  int64_t Count() { return contents_.large ? Large() : Integer(); }
  int64_t Displacement() { return contents_.large ? Large() : contents_.addresses[addresses_++]; }
  Counts Integers(int64_t count) {
    return Take(count, [this] { return Integer(); });
  }
  Counts ManyCounts(int64_t count) {
    return Take(count, [this] { return Count(); });
  }
  Counts Displacements(int64_t count) {
    return Take(count, [this] { return Displacement(); });
  }

 private:
  int64_t Large() { return contents_.large_counts[large_++]; }
  template <typename Next>
  static Counts Take(int64_t count, Next&& next) {
    Counts values;
    values.reserve(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) {
      values.push_back(next());
    }
    return values;
  }

  const DatatypeContents& contents_;
  size_t integers_ = 0;
  size_t addresses_ = 0;
  size_t large_ = 0;
};

MadeDatatype Convert(Datatype& type, const Datarep* datarep);

MadeDatatype ConvertStruct(const DatatypeContents& contents, CountForm form,
                           const Datarep* datarep) {
  Arguments arguments(contents);
  const int64_t count = arguments.Count();
  const Counts lengths = arguments.ManyCounts(count);
  const Counts displacements = arguments.Displacements(count);
  std::vector<Ref<Datatype>> kept;
  std::vector<Datatype*> types;
  for (const Ref<Datatype>& old : contents.types) {
    MadeDatatype converted = Convert(*old, datarep);
    FERRY_RETURN_FAILURE(converted.failure());
    kept.push_back(std::move(converted).value());
    types.push_back(kept.back().get());
  }
  return MakeStruct(form, lengths, displacements, types);
}

MadeDatatype ConvertSubarray(const DatatypeContents& contents, CountForm form, Datatype& old) {
  Arguments arguments(contents);
  const int64_t dimensions = arguments.Integer();
  const Counts sizes = arguments.ManyCounts(dimensions);
  const Counts subsizes = arguments.ManyCounts(dimensions);
  const Counts starts = arguments.ManyCounts(dimensions);
  return MakeSubarray(form, sizes, subsizes, starts, static_cast<int>(arguments.Integer()), old);
}

MadeDatatype ConvertDarray(const DatatypeContents& contents, CountForm form, Datatype& old) {
  Arguments arguments(contents);
  DarrayArguments darray;
  darray.size = arguments.Integer();
  darray.rank = arguments.Integer();
  const int64_t dimensions = arguments.Integer();
  darray.gsizes = arguments.ManyCounts(dimensions);
  darray.distributions = arguments.Integers(dimensions);
  darray.arguments = arguments.Integers(dimensions);
  darray.psizes = arguments.Integers(dimensions);
  darray.order = static_cast<int>(arguments.Integer());
  return MakeDarray(form, darray, old);
}

// Makes the converted datatype of a constructor that takes one datatype.
MadeDatatype ConvertOf(const DatatypeContents& contents, Datatype& old) {
  const CountForm form = contents.large ? CountForm::kLarge : CountForm::kInt;
  Arguments arguments(contents);
  switch (contents.combiner) {
    case MPI_COMBINER_DUP:
      return MakeContiguous(form, 1, old);
    case MPI_COMBINER_CONTIGUOUS:
      return MakeContiguous(form, arguments.Count(), old);
    case MPI_COMBINER_VECTOR: {
      const Counts values = arguments.ManyCounts(3);
      return MakeVector(form, values[0], values[1], values[2], old);
    }
    case MPI_COMBINER_HVECTOR: {
      const Counts values = arguments.ManyCounts(2);
      return MakeHvector(form, values[0], values[1], arguments.Displacement(), old);
    }
    case MPI_COMBINER_INDEXED: {
      const int64_t count = arguments.Count();
      Counts lengths = arguments.ManyCounts(count);
      return MakeIndexed(form, std::move(lengths), arguments.ManyCounts(count), old);
    }
    case MPI_COMBINER_HINDEXED: {
      const int64_t count = arguments.Count();
      Counts lengths = arguments.ManyCounts(count);
      return MakeHindexed(form, std::move(lengths), arguments.Displacements(count), old);
    }
    case MPI_COMBINER_INDEXED_BLOCK: {
      const Counts values = arguments.ManyCounts(2);
      return MakeIndexedBlock(form, values[1], arguments.ManyCounts(values[0]), old);
    }
    case MPI_COMBINER_HINDEXED_BLOCK: {
      const Counts values = arguments.ManyCounts(2);
      return MakeHindexedBlock(form, values[1], arguments.Displacements(values[0]), old);
    }
    case MPI_COMBINER_SUBARRAY:
      return ConvertSubarray(contents, form, old);
    case MPI_COMBINER_DARRAY:
      return ConvertDarray(contents, form, old);
    case MPI_COMBINER_RESIZED: {
      const int64_t lower_bound = arguments.Displacement();
      return MakeResized(form, lower_bound, arguments.Displacement(), old);
    }
    default:
      return Failure{MPI_ERR_INTERN, "a datatype of the combiner " +
                                         std::to_string(contents.combiner) +
                                         " has no form in a file"};
  }
}

// The bytes that an element of a predefined datatype takes in the file.
Result<int64_t> BytesInFile(const Datatype& type, const Datarep* datarep) {
  if (datarep == nullptr) {
    return type.predefined()->external_bytes;
  }
  MPI_Aint bytes = 0;
  const int error = datarep->extent(type.handle(), &bytes, datarep->extra_state);
  if (error != MPI_SUCCESS || bytes < 0) {
    return Failure{MPI_ERR_CONVERSION, "the function of the data representation \"" +
                                           datarep->name + "\" found no extent of " +
                                           std::string(type.name()) + ": it returned " +
                                           std::to_string(error)};
  }
  return bytes;
}

MadeDatatype Convert(Datatype& type, const Datarep* datarep) {
  if (type.IsPredefined()) {
    const Result<int64_t> bytes = BytesInFile(type, datarep);
    FERRY_RETURN_FAILURE(bytes.failure());
    return MakeContiguous(CountForm::kLarge, bytes.value(), *datatypes.Find(MPI_BYTE));
  }
  const DatatypeContents& contents = type.contents();
  if (contents.combiner == MPI_COMBINER_STRUCT) {
    return ConvertStruct(contents, contents.large ? CountForm::kLarge : CountForm::kInt, datarep);
  }
  MadeDatatype old = Convert(*contents.types[0], datarep);
  FERRY_RETURN_FAILURE(old.failure());
  return ConvertOf(contents, *old.value());
}

std::mutex registered_mutex;
// Is never destroyed, as what it holds: files refer to it until the process has ended.
std::vector<std::unique_ptr<const Datarep>>& registered =
    *new std::vector<std::unique_ptr<const Datarep>>();

using Bytes = std::unique_ptr<std::byte[]>;

Failure Allocate(int64_t bytes, Bytes* memory) {
  memory->reset(new (std::nothrow) std::byte[static_cast<size_t>(bytes)]);
  return *memory != nullptr
             ? Failure()
             : Failure{MPI_ERR_NO_MEM, "no memory to convert " + std::to_string(bytes) + " bytes"};
}

// Calls a function of the program's for the first `count` elements.
template <typename Function, typename FunctionC>
Failure ConvertByProgram(const Conversion& conversion, Function* function, FunctionC* function_c,
                         int64_t count, std::byte* file_data) {
  const Datarep& datarep = *conversion.datarep;
  const int error = function != nullptr
                        ? function(conversion.buffer, conversion.handle, static_cast<int>(count),
                                   file_data, 0, datarep.extra_state)
                        : function_c(conversion.buffer, conversion.handle, count, file_data, 0,
                                     datarep.extra_state);
  return error == MPI_SUCCESS ? Failure()
                              : Failure{MPI_ERR_CONVERSION,
                                        "the function of the data representation \"" +
                                            datarep.name + "\" returned " + std::to_string(error)};
}

// Without a function the bytes of memory are those of the file.
Failure CheckPlain(const Conversion& conversion) {
  return conversion.file_bytes == conversion.type->size_bytes()
             ? Failure()
             : Failure{MPI_ERR_CONVERSION, "the data representation \"" + conversion.datarep->name +
                                               "\" has no function that converts elements of " +
                                               std::to_string(conversion.file_bytes) + " bytes"};
}

// One run of bytes that the host reaches.
bool IsPlain(const Payload& payload) { return payload.is_dense() && !payload.IsByStream(); }

Failure CheckReachable(const Conversion& conversion, const Payload& payload) {
  return conversion.count <= INT32_MAX && !payload.IsByStream()
             ? Failure()
             : Failure{MPI_ERR_CONVERSION,
                       "functions of data representations convert host memory, and up to 2^31 "
                       "elements"};
}

}  // namespace

Result<Ref<Datatype>> TypeInFile(Datatype& type, const Datarep* datarep) {
  MadeDatatype converted = Convert(type, datarep);
  if (converted.ok()) {
    converted.value()->Commit();
  }
  return converted;
}

Failure RegisterDatarep(Datarep datarep) {
  const std::lock_guard lock(registered_mutex);
  bool is_known =
      datarep.name == "native" || datarep.name == "internal" || datarep.name == "external32";
  for (const auto& each : registered) {
    is_known = is_known || each->name == datarep.name;
  }
  if (is_known) {
    return {MPI_ERR_DUP_DATAREP, "there is a data representation \"" + datarep.name + "\" already"};
  }
  registered.push_back(std::make_unique<const Datarep>(std::move(datarep)));
  return {};
}

const Datarep* FindDatarep(const std::string& name) {
  const std::lock_guard lock(registered_mutex);
  for (const auto& each : registered) {
    if (each->name == name) {
      return each.get();
    }
  }
  return nullptr;
}

Failure ConvertForFile(const Conversion& conversion, const Payload& payload, std::byte* file_data) {
  const Datarep* const datarep = conversion.datarep;
  if (datarep != nullptr) {
    FERRY_RETURN_FAILURE(CheckReachable(conversion, payload));
    if (datarep->write != nullptr || datarep->write_c != nullptr) {
      return ConvertByProgram(conversion, datarep->write, datarep->write_c, conversion.count,
                              file_data);
    }
    FERRY_RETURN_FAILURE(CheckPlain(conversion));
    return payload.CopyOut(file_data);
  }
  if (IsPlain(payload)) {
    return PackedToExternal(payload.data(), conversion.count, *conversion.type, file_data);
  }
  Bytes packed;
  FERRY_RETURN_FAILURE(Allocate(payload.size_bytes(), &packed));
  FERRY_RETURN_FAILURE(payload.CopyOut(packed.get()));
  return PackedToExternal(packed.get(), conversion.count, *conversion.type, file_data);
}

Failure ConvertFromFile(const Conversion& conversion, const Payload& payload,
                        const std::byte* file_data, int64_t bytes, int64_t* moved) {
  const Datarep* const datarep = conversion.datarep;
  *moved = 0;
  if (datarep != nullptr) {
    FERRY_RETURN_FAILURE(CheckReachable(conversion, payload));
    const int64_t whole = conversion.file_bytes == 0 ? 0 : bytes / conversion.file_bytes;
    *moved = whole * conversion.type->size_bytes();
    if (datarep->read != nullptr || datarep->read_c != nullptr) {
      return ConvertByProgram(conversion, datarep->read, datarep->read_c, whole,
                              const_cast<std::byte*>(file_data));
    }
    FERRY_RETURN_FAILURE(CheckPlain(conversion));
    *moved = bytes;
    return payload.CopyIn(file_data, bytes);
  }
  if (IsPlain(payload)) {
    *moved = ExternalToPacked(file_data, bytes, conversion.count, *conversion.type, payload.data());
    return {};
  }
  Bytes packed;
  FERRY_RETURN_FAILURE(Allocate(payload.size_bytes(), &packed));
  *moved = ExternalToPacked(file_data, bytes, conversion.count, *conversion.type, packed.get());
  return payload.CopyIn(packed.get(), *moved);
}

}  // namespace ferry::mpi
