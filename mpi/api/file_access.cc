// Reads and writes of files: at an offset, at the own and at the shared pointer, together and not,
// in one call and in two (MPI 5.0, sections 14.4.2 to 14.4.5).
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "mpi/api/call.h"
#include "mpi/api/file_call.h"
#include "mpi/api/function.h"
#include "mpi/api/message_arguments.h"
#include "mpi/io/access.h"
#include "mpi/io/call_check.h"
#include "mpi/io/collective_access.h"
#include "mpi/io/file.h"
#include "mpi/io/requests.h"
#include "mpi/p2p/request.h"
#include "mpi/p2p/status.h"

namespace ferry::mpi {
namespace {

enum class At : uint8_t { kOffset, kOwn, kShared };

// The arguments of all these calls.
struct Data {
  const char* name;  // of the function
  MPI_File fh;
  const void* buffer;
  int64_t count;
  MPI_Datatype datatype;
  bool is_write;
  At at = At::kOwn;
  int64_t offset = 0;  // At::kOffset
};

Data Read(const char* name, MPI_File fh, void* buffer, int64_t count, MPI_Datatype datatype) {
  return {name, fh, buffer, count, datatype, false};
}

Data Write(const char* name, MPI_File fh, const void* buffer, int64_t count,
           MPI_Datatype datatype) {
  return {name, fh, buffer, count, datatype, true};
}

Data AtOffset(Data data, MPI_Offset offset) {
  data.at = At::kOffset;
  data.offset = offset;
  return data;
}

Data AtShared(Data data) {
  data.at = At::kShared;
  return data;
}

Failure CheckDirection(const File& file, bool is_write) {
  if (is_write && !file.may_write()) {
    return {MPI_ERR_READ_ONLY, "the file was opened with MPI_MODE_RDONLY"};
  }
  if (!is_write && !file.may_read()) {
    return {MPI_ERR_ACCESS, "the file was opened with MPI_MODE_WRONLY: it cannot be read"};
  }
  return {};
}

// Finds out how the data are in the file, of a view that converts.
Failure FindConversion(const Data& data, const Datatype& type, Access* access) {
  Conversion& conversion = access->conversion;
  conversion.datarep = access->view->program_datarep();
  conversion.buffer = const_cast<void*>(data.buffer);
  conversion.count = data.count;
  conversion.type = Ref<const Datatype>::Share(&type);
  conversion.handle = data.datatype;
  conversion.file_bytes = type.signature().external_bytes;
  if (conversion.datarep != nullptr) {
    Result<Ref<Datatype>> in_file = TypeInFile(const_cast<Datatype&>(type), conversion.datarep);
    FERRY_RETURN_FAILURE(in_file.failure());
    conversion.file_bytes = in_file.value()->size_bytes();
  }
  return __builtin_mul_overflow(data.count, conversion.file_bytes, &access->file_bytes)
             ? Failure{MPI_ERR_ARG, "the data have more than 2^63 bytes in the file"}
             : Failure();
}

// Checks the arguments, and finds the memory; not the position.
Failure FindData(const Data& data, File& file, Access* access) {
  FERRY_RETURN_FAILURE(CheckDirection(file, data.is_write));
  if (data.at != At::kShared) {
    FERRY_RETURN_FAILURE(CheckNotSequential(file));
  }
  const Datatype* const type = datatypes.Find(data.datatype);
  if (type == nullptr) {
    return {MPI_ERR_TYPE, NoSuchHandle("MPI_Datatype", data.datatype)};
  }
  FERRY_RETURN_FAILURE(CheckData(data.buffer, data.count, *type));
  access->view = file.view();
  access->payload = Payload(const_cast<void*>(data.buffer), data.count, *type);
  access->is_write = data.is_write;
  access->file_bytes = access->payload.size_bytes();
  if (access->converts()) {
    FERRY_RETURN_FAILURE(FindConversion(data, *type, access));
  }
  const int64_t etype_bytes = access->view->etype_bytes();
  if (access->bytes() % etype_bytes != 0) {
    return {MPI_ERR_ARG, "the data are " + std::to_string(access->bytes()) +
                             " bytes, which are no whole etypes of " + std::to_string(etype_bytes) +
                             " bytes"};
  }
  return {};
}

// The byte of the file at which an access begins; -1: the file has no offsets.
int64_t FirstByte(const File& file, const Access& access) {
  return file.is_sequential() || access.bytes() == 0 ? -1 : access.view->PlaceOf(access.position);
}

// Sets the position, and moves the pointer that the call uses.
Failure FindPosition(const Data& data, File& file, Access* access) {
  const int64_t etypes = access->bytes() / access->view->etype_bytes();
  int64_t offset = data.offset;
  if (data.at == At::kOwn) {
    const Result<int64_t> own = file.TakePosition(etypes);
    FERRY_RETURN_FAILURE(own.failure());
    offset = own.value();
  } else if (data.at == At::kShared) {
    file.SetUsedShared(true);
    FERRY_RETURN_FAILURE(file.shared().Add(etypes, &offset));
  }
  const Result<int64_t> position = access->view->PositionOf(offset);
  FERRY_RETURN_FAILURE(position.failure());
  access->position = position.value();
  return access->view->CheckReach(position.value(), access->bytes());
}

void NoteWrite(File& file, const Access& access) {
  if (access.is_write && !file.is_written()) {
    file.SetWritten(true);
  }
}

void PutStatus(MPI_Status* status, int64_t moved_bytes) {
  SetStatus(status, MPI_ANY_SOURCE, MPI_ANY_TAG, moved_bytes);
}

// ---- Calls of one rank --------------------------------------------------------------------------

int Move(const Data& data, MPI_Status* status) {
  FileCall call(data.name);
  File* const file = FindFile(call, data.fh);
  return call.Then([&]() -> Failure {
    Access access;
    FERRY_RETURN_FAILURE(FindData(data, *file, &access));
    FERRY_RETURN_FAILURE(FindPosition(data, *file, &access));
    NoteWrite(*file, access);
    call.Plan(FirstByte(*file, access), access.payload.size_bytes());
    call.Use(*file);
    int64_t moved = 0;
    Failure failure = CarryIn(*file, access, &moved);
    call.NoteMoved(moved);
    PutStatus(status, moved);
    return failure;
  });
}

Failure Start(Ref<TransferRequest> begun, MPI_Request* request) {
  FERRY_RETURN_FAILURE(begun->Begin());
  *request = begun.Leave()->Publish();
  return {};
}

int BeginMove(const Data& data, MPI_Request* request) {
  FileCall call(data.name);
  File* const file = FindFile(call, data.fh);
  call.NeedPlace(request, "the address for the request is null");
  return call.Then([&]() -> Failure {
    Access access;
    FERRY_RETURN_FAILURE(FindData(data, *file, &access));
    FERRY_RETURN_FAILURE(FindPosition(data, *file, &access));
    NoteWrite(*file, access);
    call.Plan(FirstByte(*file, access), access.payload.size_bytes());
    call.Use(*file);
    return Start(MakeRef<TransferRequest>(data.name, *file, std::move(access)), request);
  });
}

// ---- Calls of all ranks -------------------------------------------------------------------------

// This rank's part of a collective call.
struct Moved {
  int64_t bytes = 0;
  bool is_refused = false;  // for its arguments: nothing was moved
};

// Checks the arguments, and finds the position of data that do not lie at the shared pointer.
CollectivePart FindPart(const Data& data, File& file, Failure refused) {
  CollectivePart part;
  part.access.is_write = data.is_write;
  part.view = file.view();
  part.hints = file.hints();
  part.refused = std::move(refused);
  if (part.refused.ok()) {
    part.refused = FindData(data, file, &part.access);
  }
  if (part.refused.ok() && data.at != At::kShared) {
    part.refused = FindPosition(data, file, &part.access);
  }
  NoteWrite(file, part.access);
  return part;
}

Failure MoveTogether(FileCall& call, const Data& data, File& file, Moved* moved) {
  Failure other = CheckSameCall(data.name, file);
  if (!other.ok()) {
    moved->is_refused = true;
    return other;
  }
  const bool is_ordered = data.at == At::kShared;
  CollectivePart part = FindPart(data, file, CheckNoSplit(file));
  moved->is_refused = !part.refused.ok();
  if (part.refused.ok()) {
    call.Plan(is_ordered ? -1 : FirstByte(file, part.access), part.access.payload.size_bytes());
  }
  call.Use(file);
  if (is_ordered) {
    file.SetUsedShared(true);
  }
  Failure failure = is_ordered ? CarryInOrder(data.name, file, &part, &moved->bytes)
                               : CarryTogether(data.name, file, part, &moved->bytes);
  call.NoteMoved(moved->bytes);
  return failure;
}

int MoveAll(const Data& data, MPI_Status* status) {
  FileCall call(data.name);
  File* const file = FindFile(call, data.fh);
  return call.Then([&] {
    Moved moved;
    Failure failure = MoveTogether(call, data, *file, &moved);
    PutStatus(status, moved.bytes);
    return failure;
  });
}

// A rank that is refused here still takes part, so that the others' requests end, and fail.
int BeginMoveAll(const Data& data, MPI_Request* request) {
  FileCall call(data.name);
  File* const file = FindFile(call, data.fh);
  return call.Then([&]() -> Failure {
    CollectivePart part =
        FindPart(data, *file,
                 request != nullptr ? Failure()
                                    : Failure{MPI_ERR_ARG, "the address for the request is null"});
    if (part.refused.ok()) {
      call.Plan(FirstByte(*file, part.access), part.access.payload.size_bytes());
    }
    call.Use(*file);
    if (file->size() == 1) {
      FERRY_RETURN_FAILURE(part.refused);
      return Start(MakeRef<TransferRequest>(data.name, *file, std::move(part.access)), request);
    }
    Ref<TogetherRequest> begun = MakeRef<TogetherRequest>(data.name, *file, std::move(part));
    Failure refused = begun->Begin();
    if (!refused.ok()) {
      Abandon(begun.Leave());
      return refused;
    }
    *request = begun.Leave()->Publish();
    return {};
  });
}

// The begin of a split collective does all of it: the standard lets it wait for the other ranks'
// begins, and so no end waits for anything. The end reports a failure of the transfer, or of
// another rank; if this rank's arguments are wrong, the begin fails, and there is no end.
int Begin(const Data& data, SplitKind kind) {
  FileCall call(data.name);
  File* const file = FindFile(call, data.fh);
  return call.Then([&]() -> Failure {
    Moved moved;
    Failure failure = MoveTogether(call, data, *file, &moved);
    if (moved.is_refused) {
      return failure;
    }
    Split split;
    split.kind = kind;
    split.moved_bytes = moved.bytes;
    split.failure = std::move(failure);
    file->split() = std::move(split);
    return {};
  });
}

int End(const char* name, MPI_File fh, SplitKind kind, MPI_Status* status) {
  Call call(name);
  File* const file = FindFile(call, fh);
  if (call.ok() && file->split().kind != kind) {
    call.Refuse(MPI_ERR_IO, file->split().kind == SplitKind::kNone
                                ? "no split collective of this file has begun"
                                : "the split collective that has begun is one of another kind");
  }
  return call.Then([&] {
    const Split split = std::exchange(file->split(), Split());
    PutStatus(status, split.moved_bytes);
    return split.failure;
  });
}

}  // namespace

// ---- The functions ------------------------------------------------------------------------------

#define FERRY_READ_DATA MPI_File fh, void *buf, Count count, MPI_Datatype datatype
#define FERRY_WRITE_DATA MPI_File fh, const void *buf, Count count, MPI_Datatype datatype
#define FERRY_READ_DATA_AT \
  MPI_File fh, MPI_Offset offset, void *buf, Count count, MPI_Datatype datatype
#define FERRY_WRITE_DATA_AT \
  MPI_File fh, MPI_Offset offset, const void *buf, Count count, MPI_Datatype datatype
#define FERRY_READ Read(FERRY_MPI_NAME, fh, buf, count, datatype)
#define FERRY_WRITE Write(FERRY_MPI_NAME, fh, buf, count, datatype)

FERRY_MPI_TWINS(MPI_File_read_at, (FERRY_READ_DATA_AT, MPI_Status* status),
                Move(AtOffset(FERRY_READ, offset), status));
FERRY_MPI_TWINS(MPI_File_write_at, (FERRY_WRITE_DATA_AT, MPI_Status* status),
                Move(AtOffset(FERRY_WRITE, offset), status));
FERRY_MPI_TWINS(MPI_File_read, (FERRY_READ_DATA, MPI_Status* status), Move(FERRY_READ, status));
FERRY_MPI_TWINS(MPI_File_write, (FERRY_WRITE_DATA, MPI_Status* status), Move(FERRY_WRITE, status));
FERRY_MPI_TWINS(MPI_File_read_shared, (FERRY_READ_DATA, MPI_Status* status),
                Move(AtShared(FERRY_READ), status));
FERRY_MPI_TWINS(MPI_File_write_shared, (FERRY_WRITE_DATA, MPI_Status* status),
                Move(AtShared(FERRY_WRITE), status));

FERRY_MPI_TWINS(MPI_File_iread_at, (FERRY_READ_DATA_AT, MPI_Request* request),
                BeginMove(AtOffset(FERRY_READ, offset), request));
FERRY_MPI_TWINS(MPI_File_iwrite_at, (FERRY_WRITE_DATA_AT, MPI_Request* request),
                BeginMove(AtOffset(FERRY_WRITE, offset), request));
FERRY_MPI_TWINS(MPI_File_iread, (FERRY_READ_DATA, MPI_Request* request),
                BeginMove(FERRY_READ, request));
FERRY_MPI_TWINS(MPI_File_iwrite, (FERRY_WRITE_DATA, MPI_Request* request),
                BeginMove(FERRY_WRITE, request));
FERRY_MPI_TWINS(MPI_File_iread_shared, (FERRY_READ_DATA, MPI_Request* request),
                BeginMove(AtShared(FERRY_READ), request));
FERRY_MPI_TWINS(MPI_File_iwrite_shared, (FERRY_WRITE_DATA, MPI_Request* request),
                BeginMove(AtShared(FERRY_WRITE), request));
FERRY_MPI_TWINS(MPI_File_iread_at_all, (FERRY_READ_DATA_AT, MPI_Request* request),
                BeginMoveAll(AtOffset(FERRY_READ, offset), request));
FERRY_MPI_TWINS(MPI_File_iwrite_at_all, (FERRY_WRITE_DATA_AT, MPI_Request* request),
                BeginMoveAll(AtOffset(FERRY_WRITE, offset), request));
FERRY_MPI_TWINS(MPI_File_iread_all, (FERRY_READ_DATA, MPI_Request* request),
                BeginMoveAll(FERRY_READ, request));
FERRY_MPI_TWINS(MPI_File_iwrite_all, (FERRY_WRITE_DATA, MPI_Request* request),
                BeginMoveAll(FERRY_WRITE, request));

FERRY_MPI_TWINS(MPI_File_read_at_all, (FERRY_READ_DATA_AT, MPI_Status* status),
                MoveAll(AtOffset(FERRY_READ, offset), status));
FERRY_MPI_TWINS(MPI_File_write_at_all, (FERRY_WRITE_DATA_AT, MPI_Status* status),
                MoveAll(AtOffset(FERRY_WRITE, offset), status));
FERRY_MPI_TWINS(MPI_File_read_all, (FERRY_READ_DATA, MPI_Status* status),
                MoveAll(FERRY_READ, status));
FERRY_MPI_TWINS(MPI_File_write_all, (FERRY_WRITE_DATA, MPI_Status* status),
                MoveAll(FERRY_WRITE, status));
FERRY_MPI_TWINS(MPI_File_read_ordered, (FERRY_READ_DATA, MPI_Status* status),
                MoveAll(AtShared(FERRY_READ), status));
FERRY_MPI_TWINS(MPI_File_write_ordered, (FERRY_WRITE_DATA, MPI_Status* status),
                MoveAll(AtShared(FERRY_WRITE), status));

// ---- Split collectives --------------------------------------------------------------------------

FERRY_MPI_TWINS(MPI_File_read_at_all_begin, (FERRY_READ_DATA_AT),
                Begin(AtOffset(FERRY_READ, offset), SplitKind::kReadAtAll));
FERRY_MPI_TWINS(MPI_File_write_at_all_begin, (FERRY_WRITE_DATA_AT),
                Begin(AtOffset(FERRY_WRITE, offset), SplitKind::kWriteAtAll));
FERRY_MPI_TWINS(MPI_File_read_all_begin, (FERRY_READ_DATA), Begin(FERRY_READ, SplitKind::kReadAll));
FERRY_MPI_TWINS(MPI_File_write_all_begin, (FERRY_WRITE_DATA),
                Begin(FERRY_WRITE, SplitKind::kWriteAll));
FERRY_MPI_TWINS(MPI_File_read_ordered_begin, (FERRY_READ_DATA),
                Begin(AtShared(FERRY_READ), SplitKind::kReadOrdered));
FERRY_MPI_TWINS(MPI_File_write_ordered_begin, (FERRY_WRITE_DATA),
                Begin(AtShared(FERRY_WRITE), SplitKind::kWriteOrdered));

// The end needs no buffer: it is the begin's.
#define FERRY_END(name, buffer, kind)                                     \
  FERRY_MPI_CALL(int, name, (MPI_File fh, buffer, MPI_Status * status)) { \
    return End(FERRY_MPI_NAME, fh, kind, status);                         \
  }                                                                       \
  static_assert(true)

FERRY_END(MPI_File_read_at_all_end, void* /*buf*/, SplitKind::kReadAtAll);
FERRY_END(MPI_File_write_at_all_end, const void* /*buf*/, SplitKind::kWriteAtAll);
FERRY_END(MPI_File_read_all_end, void* /*buf*/, SplitKind::kReadAll);
FERRY_END(MPI_File_write_all_end, const void* /*buf*/, SplitKind::kWriteAll);
FERRY_END(MPI_File_read_ordered_end, void* /*buf*/, SplitKind::kReadOrdered);
FERRY_END(MPI_File_write_ordered_end, const void* /*buf*/, SplitKind::kWriteOrdered);

}  // namespace ferry::mpi
