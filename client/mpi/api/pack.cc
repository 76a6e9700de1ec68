// Packing into a program's own buffers (MPI 5.0, sections 5.2 and 5.3). MPI_Pack writes what a
// message would carry: the data without gaps, with nothing before or behind it.
#include <cstring>

#include "client/mpi/api/function.h"
#include "client/mpi/api/type_arguments.h"
#include "client/mpi/base/handle_table.h"
#include "client/mpi/datatype/external.h"
#include "client/mpi/request/payload.h"

namespace ferry::mpi {
namespace {

// The typed side of a call, checked.
struct Data {
  const void* buffer;
  int64_t count;
  const Datatype* type;
  int64_t size_bytes;  // packed
};

int ResolveData(const char* call, Comm* comm, const void* buffer, int64_t count,
                MPI_Datatype datatype, Data* data) {
  const Datatype* const type = datatypes.Find(datatype);
  if (type == nullptr) {
    return FailHandle(call, comm, MPI_ERR_TYPE, "MPI_Datatype", datatype);
  }
  if (!type->IsCommitted()) {
    return Fail(call, comm, MPI_ERR_TYPE, "the datatype is not committed");
  }
  const Result<int64_t> bytes = type->PackedBytes(count);
  if (!bytes.ok()) {
    return Fail(call, comm, bytes.failure());
  }
  *data = {buffer, count, type, bytes.value()};
  return MPI_SUCCESS;
}

// The same with a buffer that is used, not only asked about.
int ResolveBuffer(const char* call, Comm* comm, const char* argument, const void* buffer,
                  int64_t count, MPI_Datatype datatype, Data* data) {
  if (const int error = ResolveData(call, comm, buffer, count, datatype, data);
      error != MPI_SUCCESS) {
    return error;
  }
  if (buffer == nullptr && data->size_bytes > 0 && data->type->Span(count).low == 0) {
    return Fail(call, comm, MPI_ERR_BUFFER, std::string(argument) + " is a null pointer");
  }
  return MPI_SUCCESS;
}

// Whether `bytes` lie between *position and the end of the packed buffer. `error_class`: if not.
template <typename Position>
int CheckPosition(const char* call, Comm* comm, const char* packed_name, const void* packed,
                  int64_t size, const Position* position, int64_t bytes, int error_class) {
  if (position == nullptr) {
    return Fail(call, comm, MPI_ERR_ARG, "position is a null pointer");
  }
  if (size < 0) {
    return Fail(
        call, comm, MPI_ERR_ARG,
        "the size of " + std::string(packed_name) + " is negative: " + std::to_string(size));
  }
  if (*position < 0 || *position > size) {
    return Fail(call, comm, MPI_ERR_ARG,
                "position is " + std::to_string(*position) + ", not between 0 and the size " +
                    std::to_string(size));
  }
  if (bytes > size - *position) {
    return Fail(call, comm, error_class,
                std::to_string(bytes) + " bytes do not fit between position " +
                    std::to_string(*position) + " and the size " + std::to_string(size));
  }
  if (packed == nullptr && bytes > 0) {
    return Fail(call, comm, MPI_ERR_BUFFER, std::string(packed_name) + " is a null pointer");
  }
  return MPI_SUCCESS;
}

template <typename Number>
int Pack(const char* call, const void* inbuf, int64_t incount, MPI_Datatype datatype, void* outbuf,
         int64_t outsize, Number* position, MPI_Comm handle) {
  Comm* const comm = comms.Find(handle);
  if (comm == nullptr) {
    return FailComm(call, handle);
  }
  Data data;
  if (const int error = ResolveBuffer(call, comm, "inbuf", inbuf, incount, datatype, &data);
      error != MPI_SUCCESS) {
    return error;
  }
  if (const int error = CheckPosition(call, comm, "outbuf", outbuf, outsize, position,
                                      data.size_bytes, MPI_ERR_TRUNCATE);
      error != MPI_SUCCESS) {
    return error;
  }
  const Payload payload(const_cast<void*>(inbuf), incount, *data.type);
  if (const Failure failure = payload.CopyOut(static_cast<char*>(outbuf) + *position);
      !failure.ok()) {
    return Fail(call, comm, failure);
  }
  *position += static_cast<Number>(data.size_bytes);
  return MPI_SUCCESS;
}

template <typename Number>
int Unpack(const char* call, const void* inbuf, int64_t insize, Number* position, void* outbuf,
           int64_t outcount, MPI_Datatype datatype, MPI_Comm handle) {
  Comm* const comm = comms.Find(handle);
  if (comm == nullptr) {
    return FailComm(call, handle);
  }
  Data data;
  if (const int error = ResolveBuffer(call, comm, "outbuf", outbuf, outcount, datatype, &data);
      error != MPI_SUCCESS) {
    return error;
  }
  if (const int error = CheckPosition(call, comm, "inbuf", inbuf, insize, position, data.size_bytes,
                                      MPI_ERR_TRUNCATE);
      error != MPI_SUCCESS) {
    return error;
  }
  const Payload payload(outbuf, outcount, *data.type);
  if (const Failure failure =
          payload.CopyIn(static_cast<const char*>(inbuf) + *position, data.size_bytes);
      !failure.ok()) {
    return Fail(call, comm, failure);
  }
  *position += static_cast<Number>(data.size_bytes);
  return MPI_SUCCESS;
}

template <typename Number>
int PackSize(const char* call, int64_t incount, MPI_Datatype datatype, MPI_Comm handle,
             Number* size) {
  Comm* const comm = comms.Find(handle);
  if (comm == nullptr) {
    return FailComm(call, handle);
  }
  Data data;
  if (const int error = ResolveData(call, comm, nullptr, incount, datatype, &data);
      error != MPI_SUCCESS) {
    return error;
  }
  if (const int error = CheckPointer(call, size, "size"); error != MPI_SUCCESS) {
    return error;
  }
  PutNumber(size, data.size_bytes);
  return MPI_SUCCESS;
}

// ---- external32 ----

int CheckRepresentation(const char* call, const char* datarep) {
  if (const int error = CheckRunning(call); error != MPI_SUCCESS) {
    return error;
  }
  if (const int error = CheckPointer(call, datarep, "datarep"); error != MPI_SUCCESS) {
    return error;
  }
  return std::strcmp(datarep, "external32") == 0
             ? MPI_SUCCESS
             : Fail(call, nullptr, MPI_ERR_ARG,
                    "datarep is \"" + std::string(datarep) + "\"; only \"external32\" is known");
}

int64_t ExternalBytes(const Data& data) {
  return data.count * data.type->signature().external_bytes;
}

template <typename Number>
int PackExternally(const char* call, const char* datarep, const void* inbuf, int64_t incount,
                   MPI_Datatype datatype, void* outbuf, int64_t outsize, Number* position) {
  if (const int error = CheckRepresentation(call, datarep); error != MPI_SUCCESS) {
    return error;
  }
  Data data;
  if (const int error = ResolveBuffer(call, nullptr, "inbuf", inbuf, incount, datatype, &data);
      error != MPI_SUCCESS) {
    return error;
  }
  const int64_t bytes = ExternalBytes(data);
  if (const int error = CheckPosition(call, nullptr, "outbuf", outbuf, outsize, position, bytes,
                                      MPI_ERR_TRUNCATE);
      error != MPI_SUCCESS) {
    return error;
  }
  if (const Failure failure =
          PackExternal(inbuf, incount, *data.type, static_cast<char*>(outbuf) + *position);
      !failure.ok()) {
    return Fail(call, nullptr, failure);
  }
  *position += static_cast<Number>(bytes);
  return MPI_SUCCESS;
}

template <typename Number>
int UnpackExternally(const char* call, const char* datarep, const void* inbuf, int64_t insize,
                     Number* position, void* outbuf, int64_t outcount, MPI_Datatype datatype) {
  if (const int error = CheckRepresentation(call, datarep); error != MPI_SUCCESS) {
    return error;
  }
  Data data;
  if (const int error = ResolveBuffer(call, nullptr, "outbuf", outbuf, outcount, datatype, &data);
      error != MPI_SUCCESS) {
    return error;
  }
  const int64_t bytes = ExternalBytes(data);
  if (const int error =
          CheckPosition(call, nullptr, "inbuf", inbuf, insize, position, bytes, MPI_ERR_TRUNCATE);
      error != MPI_SUCCESS) {
    return error;
  }
  UnpackExternal(static_cast<const char*>(inbuf) + *position, outbuf, outcount, *data.type);
  *position += static_cast<Number>(bytes);
  return MPI_SUCCESS;
}

template <typename Number>
int ExternalSize(const char* call, const char* datarep, int64_t incount, MPI_Datatype datatype,
                 Number* size) {
  if (const int error = CheckRepresentation(call, datarep); error != MPI_SUCCESS) {
    return error;
  }
  Data data;
  if (const int error = ResolveData(call, nullptr, nullptr, incount, datatype, &data);
      error != MPI_SUCCESS) {
    return error;
  }
  if (const int error = CheckPointer(call, size, "size"); error != MPI_SUCCESS) {
    return error;
  }
  PutNumber(size, ExternalBytes(data));
  return MPI_SUCCESS;
}

}  // namespace
}  // namespace ferry::mpi

using namespace ferry::mpi;  // NOLINT: the functions below are of no namespace

FERRY_MPI_CALL(int, Pack,
               (const void* inbuf, int incount, MPI_Datatype datatype, void* outbuf, int outsize,
                int* position, MPI_Comm comm)) {
  return Pack("MPI_Pack", inbuf, incount, datatype, outbuf, outsize, position, comm);
}

FERRY_MPI_CALL(int, Pack_c,
               (const void* inbuf, MPI_Count incount, MPI_Datatype datatype, void* outbuf,
                MPI_Count outsize, MPI_Count* position, MPI_Comm comm)) {
  return Pack("MPI_Pack_c", inbuf, incount, datatype, outbuf, outsize, position, comm);
}

FERRY_MPI_CALL(int, Unpack,
               (const void* inbuf, int insize, int* position, void* outbuf, int outcount,
                MPI_Datatype datatype, MPI_Comm comm)) {
  return Unpack("MPI_Unpack", inbuf, insize, position, outbuf, outcount, datatype, comm);
}

FERRY_MPI_CALL(int, Unpack_c,
               (const void* inbuf, MPI_Count insize, MPI_Count* position, void* outbuf,
                MPI_Count outcount, MPI_Datatype datatype, MPI_Comm comm)) {
  return Unpack("MPI_Unpack_c", inbuf, insize, position, outbuf, outcount, datatype, comm);
}

FERRY_MPI_CALL(int, Pack_size, (int incount, MPI_Datatype datatype, MPI_Comm comm, int* size)) {
  return PackSize("MPI_Pack_size", incount, datatype, comm, size);
}

FERRY_MPI_CALL(int, Pack_size_c,
               (MPI_Count incount, MPI_Datatype datatype, MPI_Comm comm, MPI_Count* size)) {
  return PackSize("MPI_Pack_size_c", incount, datatype, comm, size);
}

FERRY_MPI_CALL(int, Pack_external,
               (const char* datarep, const void* inbuf, int incount, MPI_Datatype datatype,
                void* outbuf, MPI_Aint outsize, MPI_Aint* position)) {
  return PackExternally("MPI_Pack_external", datarep, inbuf, incount, datatype, outbuf, outsize,
                        position);
}

FERRY_MPI_CALL(int, Pack_external_c,
               (const char* datarep, const void* inbuf, MPI_Count incount, MPI_Datatype datatype,
                void* outbuf, MPI_Count outsize, MPI_Count* position)) {
  return PackExternally("MPI_Pack_external_c", datarep, inbuf, incount, datatype, outbuf, outsize,
                        position);
}

FERRY_MPI_CALL(int, Unpack_external,
               (const char datarep[], const void* inbuf, MPI_Aint insize, MPI_Aint* position,
                void* outbuf, int outcount, MPI_Datatype datatype)) {
  return UnpackExternally("MPI_Unpack_external", datarep, inbuf, insize, position, outbuf, outcount,
                          datatype);
}

FERRY_MPI_CALL(int, Unpack_external_c,
               (const char datarep[], const void* inbuf, MPI_Count insize, MPI_Count* position,
                void* outbuf, MPI_Count outcount, MPI_Datatype datatype)) {
  return UnpackExternally("MPI_Unpack_external_c", datarep, inbuf, insize, position, outbuf,
                          outcount, datatype);
}

FERRY_MPI_CALL(int, Pack_external_size,
               (const char* datarep, int incount, MPI_Datatype datatype, MPI_Aint* size)) {
  return ExternalSize("MPI_Pack_external_size", datarep, incount, datatype, size);
}

FERRY_MPI_CALL(int, Pack_external_size_c,
               (const char* datarep, MPI_Count incount, MPI_Datatype datatype, MPI_Count* size)) {
  return ExternalSize("MPI_Pack_external_size_c", datarep, incount, datatype, size);
}
