// Packing into a program's own buffers (MPI 5.0, sections 5.2 and 5.3). MPI_Pack writes what a
// message would carry: the data without gaps, with nothing before or behind it.
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "mpi/api/call.h"
#include "mpi/api/function.h"
#include "mpi/base/connection.h"
#include "mpi/datatype/external.h"
#include "mpi/p2p/payload.h"

namespace ferry::mpi {
namespace {

// The typed side of a call, checked.
struct Data {
  const Datatype* type = nullptr;
  int64_t size_bytes = 0;  // packed
};

Data FindData(Call& call, int64_t count, MPI_Datatype datatype) {
  Data data{call.Find(datatype)};
  if (call.ok() && !data.type->IsCommitted()) {
    call.Refuse(MPI_ERR_TYPE, data.type->Text() + " is not committed; call MPI_Type_commit first");
  }
  (void)call.Then([&] {
    const Result<int64_t> bytes = data.type->PackedBytes(count);
    data.size_bytes = bytes.ok() ? bytes.value() : 0;
    return bytes.failure();
  });
  return data;
}

// Finds the data of a call that uses the buffer, and so refuses a null one.
Data FindData(Call& call, const char* argument, const void* buffer, int64_t count,
              MPI_Datatype datatype) {
  const Data data = FindData(call, count, datatype);
  if (call.ok() && buffer == nullptr && data.size_bytes > 0 && data.type->Span(count).low == 0) {
    call.Refuse(MPI_ERR_BUFFER, std::string(argument) + " is a null pointer");
  }
  return data;
}

// Refuses the call unless `bytes` lie between *position and the end of the packed buffer.
template <typename Position>
void NeedPosition(Call& call, const char* argument, const void* packed, int64_t size,
                  const Position* position, int64_t bytes) {
  call.Need(position, "position");
  if (size < 0) {
    call.Refuse(MPI_ERR_ARG,
                "the size of " + std::string(argument) + " is negative: " + std::to_string(size));
  }
  if (!call.ok()) {
    return;
  }
  if (*position < 0 || *position > size) {
    call.Refuse(MPI_ERR_ARG, "position is " + std::to_string(*position) +
                                 ", not between 0 and the size " + std::to_string(size));
  } else if (bytes > size - *position) {
    call.Refuse(MPI_ERR_TRUNCATE, std::to_string(bytes) + " bytes do not fit between position " +
                                      std::to_string(*position) + " and the size " +
                                      std::to_string(size));
  } else if (packed == nullptr && bytes > 0) {
    call.Refuse(MPI_ERR_BUFFER, std::string(argument) + " is a null pointer");
  }
}

template <typename Number>
int Pack(Call call, const void* inbuf, int64_t incount, MPI_Datatype datatype, void* outbuf,
         int64_t outsize, Number* position, MPI_Comm comm) {
  (void)call.Find(comm);
  const Data data = FindData(call, "inbuf", inbuf, incount, datatype);
  NeedPosition(call, "outbuf", outbuf, outsize, position, data.size_bytes);
  (void)call.Then([&] {
    return Payload(const_cast<void*>(inbuf), incount, *data.type)
        .CopyOut(static_cast<char*>(outbuf) + *position);
  });
  return call.Then([&] { *position += static_cast<Number>(data.size_bytes); });
}

template <typename Number>
int Unpack(Call call, const void* inbuf, int64_t insize, Number* position, void* outbuf,
           int64_t outcount, MPI_Datatype datatype, MPI_Comm comm) {
  (void)call.Find(comm);
  const Data data = FindData(call, "outbuf", outbuf, outcount, datatype);
  NeedPosition(call, "inbuf", inbuf, insize, position, data.size_bytes);
  (void)call.Then([&] {
    return Payload(outbuf, outcount, *data.type)
        .CopyIn(static_cast<const char*>(inbuf) + *position, data.size_bytes);
  });
  return call.Then([&] { *position += static_cast<Number>(data.size_bytes); });
}

template <typename Number>
int PackSize(Call call, int64_t incount, MPI_Datatype datatype, MPI_Comm comm, Number* size) {
  (void)call.Find(comm);
  const Data data = FindData(call, incount, datatype);
  call.Need(size, "size");
  return call.Then([&] { PutNumber(size, data.size_bytes); });
}

// ---- external32 ---------------------------------------------------------------------------------

void NeedExternal(Call& call, const char* datarep) {
  call.NeedRunning();
  call.Need(datarep, "datarep");
  if (call.ok() && std::strcmp(datarep, "external32") != 0) {
    call.Refuse(MPI_ERR_ARG,
                "datarep is \"" + std::string(datarep) + "\"; only \"external32\" is known");
  }
}

// Memory of the program's as CPUs convert it: itself, or, where only streams reach it, a copy of it
// that lies in the same way.
class OnHost {
 public:
  OnHost(void* buffer, int64_t count, const Datatype& type)
      : buffer_(static_cast<std::byte*>(buffer)),
        count_(count),
        type_(type),
        span_(type.Span(count)),
        is_copy_(Payload(buffer, count, type).IsByStream()),
        copy_(is_copy_ ? static_cast<size_t>(span_.high - span_.low) : 0) {}

  void* buffer() { return is_copy_ ? copy_.data() - span_.low : buffer_; }
  Failure Load() {
    return CopyRuns([](std::byte* copy, std::byte* own, uint64_t bytes) {
      return front_end->memory->Copy(copy, own, bytes);
    });
  }
  Failure Store() {
    return CopyRuns([](std::byte* copy, std::byte* own, uint64_t bytes) {
      return front_end->memory->Copy(own, copy, bytes);
    });
  }

 private:
  template <typename Copy>
  Failure CopyRuns(Copy&& copy) {
    Status status;
    if (is_copy_) {
      type_.ForEachRun(count_, 0, count_ * type_.size_bytes(), [&](int64_t at, int64_t length) {
        if (status.ok()) {
          status =
              copy(copy_.data() + (at - span_.low), buffer_ + at, static_cast<uint64_t>(length));
        }
      });
    }
    return FailureOf(status);
  }

  std::byte* const buffer_;
  const int64_t count_;
  const Datatype& type_;
  const Bounds span_;
  const bool is_copy_;
  std::vector<std::byte> copy_;
};

int64_t ExternalBytes(const Call& call, const Data& data, int64_t count) {
  return call.ok() ? count * data.type->signature().external_bytes : 0;
}

template <typename Number>
int PackExternally(Call call, const char* datarep, const void* inbuf, int64_t incount,
                   MPI_Datatype datatype, void* outbuf, int64_t outsize, Number* position) {
  NeedExternal(call, datarep);
  const Data data = FindData(call, "inbuf", inbuf, incount, datatype);
  const int64_t bytes = ExternalBytes(call, data, incount);
  NeedPosition(call, "outbuf", outbuf, outsize, position, bytes);
  (void)call.Then([&] {
    OnHost in(const_cast<void*>(inbuf), incount, *data.type);
    OnHost out(static_cast<char*>(outbuf) + *position, bytes, *datatypes.Find(MPI_BYTE));
    FERRY_RETURN_FAILURE(in.Load());
    FERRY_RETURN_FAILURE(PackExternal(in.buffer(), incount, *data.type, out.buffer()));
    return out.Store();
  });
  return call.Then([&] { *position += static_cast<Number>(bytes); });
}

template <typename Number>
int UnpackExternally(Call call, const char* datarep, const void* inbuf, int64_t insize,
                     Number* position, void* outbuf, int64_t outcount, MPI_Datatype datatype) {
  NeedExternal(call, datarep);
  const Data data = FindData(call, "outbuf", outbuf, outcount, datatype);
  const int64_t bytes = ExternalBytes(call, data, outcount);
  NeedPosition(call, "inbuf", inbuf, insize, position, bytes);
  (void)call.Then([&] {
    OnHost in(const_cast<char*>(static_cast<const char*>(inbuf)) + *position, bytes,
              *datatypes.Find(MPI_BYTE));
    OnHost out(outbuf, outcount, *data.type);
    FERRY_RETURN_FAILURE(in.Load());
    UnpackExternal(in.buffer(), out.buffer(), outcount, *data.type);
    return out.Store();
  });
  return call.Then([&] { *position += static_cast<Number>(bytes); });
}

template <typename Number>
int ExternalSize(Call call, const char* datarep, int64_t incount, MPI_Datatype datatype,
                 Number* size) {
  NeedExternal(call, datarep);
  const Data data = FindData(call, incount, datatype);
  call.Need(size, "size");
  return call.Then([&] { PutNumber(size, ExternalBytes(call, data, incount)); });
}

}  // namespace

FERRY_MPI_TWINS(MPI_Pack,
                (const void* inbuf, Count incount, MPI_Datatype datatype, void* outbuf,
                 Count outsize, Count* position, MPI_Comm comm),
                Pack(FERRY_MPI_NAME, inbuf, incount, datatype, outbuf, outsize, position, comm));

FERRY_MPI_TWINS(MPI_Unpack,
                (const void* inbuf, Count insize, Count* position, void* outbuf, Count outcount,
                 MPI_Datatype datatype, MPI_Comm comm),
                Unpack(FERRY_MPI_NAME, inbuf, insize, position, outbuf, outcount, datatype, comm));

FERRY_MPI_TWINS(MPI_Pack_size, (Count incount, MPI_Datatype datatype, MPI_Comm comm, Count* size),
                PackSize(FERRY_MPI_NAME, incount, datatype, comm, size));

FERRY_MPI_TWINS(MPI_Pack_external,
                (const char* datarep, const void* inbuf, Count incount, MPI_Datatype datatype,
                 void* outbuf, MPI_Aint outsize, MPI_Aint* position),
                PackExternally(FERRY_MPI_NAME, datarep, inbuf, incount, datatype, outbuf, outsize,
                               position));

FERRY_MPI_TWINS(MPI_Unpack_external,
                (const char datarep[], const void* inbuf, MPI_Aint insize, MPI_Aint* position,
                 void* outbuf, Count outcount, MPI_Datatype datatype),
                UnpackExternally(FERRY_MPI_NAME, datarep, inbuf, insize, position, outbuf, outcount,
                                 datatype));

FERRY_MPI_TWINS(MPI_Pack_external_size,
                (const char* datarep, Count incount, MPI_Datatype datatype, MPI_Aint* size),
                ExternalSize(FERRY_MPI_NAME, datarep, incount, datatype, size));

}  // namespace ferry::mpi
