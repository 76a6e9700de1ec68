// Files: how they are opened and closed, what they are, views and pointers (MPI 5.0, sections 14.2
// to 14.4 and 14.6). Collective calls whose arguments are wrong on one rank fail on all of them.
#include "mpi/io/file.h"

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "mpi/api/call.h"
#include "mpi/api/compare_by_name.h"
#include "mpi/api/file_call.h"
#include "mpi/api/function.h"
#include "mpi/comm/comm.h"
#include "mpi/init/fail.h"
#include "mpi/io/call_check.h"
#include "mpi/io/open.h"
#include "mpi/io/representation.h"
#include "mpi/io/requests.h"
#include "mpi/io/view.h"

namespace ferry::mpi {

Failure CheckNotSequential(const File& file) {
  return file.is_sequential()
             ? Failure{MPI_ERR_UNSUPPORTED_OPERATION,
                       "the file was opened with MPI_MODE_SEQUENTIAL: it has the calls at the "
                       "shared pointer alone"}
             : Failure();
}

Failure CheckNoSplit(File& file) {
  return file.split().kind == SplitKind::kNone
             ? Failure()
             : Failure{MPI_ERR_IO, "a split collective of this file has begun, and not ended"};
}

namespace {

// Keeps the first failure of several.
void Keep(Failure* first, Failure other) {
  if (first->ok()) {
    *first = std::move(other);
  }
}

Failure FindInfo(MPI_Info handle, const Info** info) {
  *info = handle == MPI_INFO_NULL ? nullptr : infos.Find(handle);
  return handle == MPI_INFO_NULL || *info != nullptr
             ? Failure()
             : Failure{MPI_ERR_INFO, "info names no info object: was it freed?"};
}

// Transfers that do not block must have ended before the process leaves the job, and files should
// have been closed.
void EndTransfersAtLeave() {
  static std::once_flag registered;
  std::call_once(registered, [] {
    Process::AtLeave([] {
      AwaitFileRequests();
      NameOpenFiles();
      return Failure();
    });
  });
}

// Null: there are none. To be called on all ranks or on none, for hints that are new on some ranks
// alone would have these meet without the others (TwoPhase::Plan).
void TakeHints(File& file, const Info* info) {
  file.TakeHints(info == nullptr ? std::vector<Info::Entry>() : info->entries());
}

// Fails unless the file may be changed.
Failure CheckWritable(const File& file) {
  return file.may_write() ? Failure()
                          : Failure{MPI_ERR_READ_ONLY, "the file was opened with MPI_MODE_RDONLY"};
}

Failure CheckSizeCall(File& file, int64_t bytes) {
  Failure refused = CheckNoSplit(file);
  Keep(&refused, CheckNotSequential(file));
  Keep(&refused, CheckWritable(file));
  if (bytes < 0) {
    Keep(&refused, {MPI_ERR_ARG, "the size is " + std::to_string(bytes)});
  }
  return refused;
}

Comm* FindGroupOf(Call& call, MPI_Comm handle) {
  call.NeedRunning();
  Comm* const comm = call.ok() ? comms.Find(handle) : nullptr;
  if (call.ok() && comm == nullptr) {
    call.Refuse(MPI_ERR_COMM, handle == MPI_COMM_NULL
                                  ? "the communicator is MPI_COMM_NULL"
                                  : "the communicator does not exist: was it freed?");
  }
  if (call.ok() && comm->is_inter()) {
    call.Refuse(MPI_ERR_COMM, "the communicator is an intercommunicator");
  }
  return call.ok() ? comm : nullptr;
}

}  // namespace

// ---- Opening and closing ------------------------------------------------------------------------

FERRY_MPI_CALL(int, MPI_File_open,
               (MPI_Comm comm, const char* filename, int amode, MPI_Info info, MPI_File* fh)) {
  FileCall call(FERRY_MPI_NAME);
  BlameNoFile(call);
  if (fh != nullptr) {
    *fh = MPI_FILE_NULL;  // if it fails
  }
  Comm* const parent = FindGroupOf(call, comm);
  CompareByName(call, parent);
  FERRY_RETURN_ERROR(call.result());
  OpenWish wish;
  wish.amode = amode;
  if (filename == nullptr) {
    wish.refused = {MPI_ERR_ARG, "filename is a null pointer"};
  } else {
    wish.name = filename;
    call.UseByName(AbsoluteName(WithoutPrefix(wish.name)));
  }
  if (fh == nullptr) {
    Keep(&wish.refused, {MPI_ERR_ARG, "fh is a null pointer"});
  }
  Keep(&wish.refused, FindInfo(info, &wish.info));
  EndTransfersAtLeave();
  Result<Ref<File>> opened = OpenFile(FERRY_MPI_NAME, *parent, wish);
  call.Refuse(opened.failure());
  return call.Then([&] { *fh = opened.value().Leave()->handle(); });
}

// The handle is gone, whatever the call returns; but not if a split collective has begun on some
// rank: then the file stays open on all.
FERRY_MPI_CALL(int, MPI_File_close, (MPI_File * fh)) {
  FileCall call(FERRY_MPI_NAME);
  BlameNoFile(call);
  call.Need(fh, "fh");
  File* const file = call.ok() ? FindFile(call, *fh) : nullptr;
  if (call.ok()) {
    call.Refuse(CheckSameCall(FERRY_MPI_NAME, *file));
  }
  FERRY_RETURN_ERROR(call.result());
  call.UseByName(file->absolute_name());
  bool is_closed = false;
  call.Refuse(CloseFile(FERRY_MPI_NAME, *file, CheckNoSplit(*file), &is_closed));
  if (is_closed) {
    files.Remove(*fh)->Release();
    *fh = MPI_FILE_NULL;
  }
  return call.result();
}

FERRY_MPI_CALL(int, MPI_File_delete, (const char* filename, MPI_Info info)) {
  FileCall call(FERRY_MPI_NAME);
  BlameNoFile(call);
  call.NeedRunning();
  call.Need(filename, "filename");
  const Info* hints = nullptr;
  call.Refuse(FindInfo(info, &hints));
  return call.Then([&] {
    call.UseByName(AbsoluteName(WithoutPrefix(filename)));
    return DeleteFile(filename);
  });
}

// ---- What a file is -----------------------------------------------------------------------------

FERRY_MPI_CALL(int, MPI_File_set_size, (MPI_File fh, MPI_Offset size)) {
  FileCall call(FERRY_MPI_NAME);
  File* const file = FindFile(call, fh);
  return call.Then([&] {
    call.Use(*file);
    const char* const name = "MPI_File_set_size";
    FERRY_RETURN_FAILURE(CheckSameCall(name, *file));
    return SetFileSize(name, *file, size, CheckSizeCall(*file, size));
  });
}

FERRY_MPI_CALL(int, MPI_File_preallocate, (MPI_File fh, MPI_Offset size)) {
  FileCall call(FERRY_MPI_NAME);
  File* const file = FindFile(call, fh);
  return call.Then([&] {
    call.Use(*file);
    const char* const name = "MPI_File_preallocate";
    FERRY_RETURN_FAILURE(CheckSameCall(name, *file));
    return PreallocateFile(name, *file, size, CheckSizeCall(*file, size));
  });
}

FERRY_MPI_CALL(int, MPI_File_get_size, (MPI_File fh, MPI_Offset* size)) {
  FileCall call(FERRY_MPI_NAME);
  File* const file = FindFile(call, fh);
  call.Need(size, "size");
  return call.Then([&] {
    call.Use(*file);
    int64_t bytes = 0;
    Failure failure = file->posix().GetSize(&bytes);
    *size = failure.ok() ? bytes : *size;
    return failure;
  });
}

FERRY_MPI_CALL(int, MPI_File_get_group, (MPI_File fh, MPI_Group* group)) {
  Call call(FERRY_MPI_NAME);
  const File* const file = FindFile(call, fh);
  call.Need(group, "group");
  return call.Then([&] { call.Give(MakeRef<Group>(file->comm().group()), group); });
}

FERRY_MPI_CALL(int, MPI_File_get_amode, (MPI_File fh, int* amode)) {
  Call call(FERRY_MPI_NAME);
  const File* const file = FindFile(call, fh);
  call.Need(amode, "amode");
  return call.Then([&] { *amode = file->amode(); });
}

FERRY_MPI_CALL(int, MPI_File_set_info, (MPI_File fh, MPI_Info info)) {
  Call call(FERRY_MPI_NAME);
  File* const file = FindFile(call, fh);
  return call.Then([&] {
    const Info* given = nullptr;
    Failure no_info = FindInfo(info, &given);
    TakeHints(*file, given);
    return no_info;
  });
}

FERRY_MPI_CALL(int, MPI_File_get_info, (MPI_File fh, MPI_Info* info_used)) {
  Call call(FERRY_MPI_NAME);
  const File* const file = FindFile(call, fh);
  call.Need(info_used, "info_used");
  return call.Then([&] { call.Give(MakeRef<Info>(file->hints()->entries()), info_used); });
}

FERRY_MPI_CALL(int, MPI_File_sync, (MPI_File fh)) {
  FileCall call(FERRY_MPI_NAME);
  File* const file = FindFile(call, fh);
  return call.Then([&] {
    call.Use(*file);
    const char* const name = "MPI_File_sync";
    FERRY_RETURN_FAILURE(CheckSameCall(name, *file));
    return SyncFile(name, *file);
  });
}

FERRY_MPI_CALL(int, MPI_File_set_atomicity, (MPI_File fh, int flag)) {
  FileCall call(FERRY_MPI_NAME);
  File* const file = FindFile(call, fh);
  return call.Then([&] {
    call.Use(*file);
    const char* const name = "MPI_File_set_atomicity";
    FERRY_RETURN_FAILURE(CheckSameCall(name, *file));
    return SetFileAtomicity(name, *file, flag != 0, CheckNoSplit(*file));
  });
}

FERRY_MPI_CALL(int, MPI_File_get_atomicity, (MPI_File fh, int* flag)) {
  Call call(FERRY_MPI_NAME);
  const File* const file = FindFile(call, fh);
  call.Need(flag, "flag");
  return call.Then([&] { *flag = file->is_atomic() ? 1 : 0; });
}

// ---- Views --------------------------------------------------------------------------------------

namespace {

struct ViewArguments {
  MPI_Offset displacement;
  MPI_Datatype etype;
  MPI_Datatype filetype;
  const char* datarep;
};

Failure FindType(MPI_Datatype handle, const char* which, Datatype** type) {
  *type = datatypes.Find(handle);
  return *type != nullptr ? Failure()
                          : Failure{MPI_ERR_TYPE, std::string("the ") + which +
                                                      " does not exist: is it null, or was it "
                                                      "freed?"};
}

Result<std::shared_ptr<const View>> MakeView(File& file, const ViewArguments& arguments,
                                             int64_t displacement) {
  Datatype* etype = nullptr;
  Datatype* filetype = nullptr;
  FERRY_RETURN_FAILURE(CheckNoSplit(file));
  FERRY_RETURN_FAILURE(FindType(arguments.etype, "etype", &etype));
  FERRY_RETURN_FAILURE(FindType(arguments.filetype, "filetype", &filetype));
  if (arguments.datarep == nullptr) {
    return Failure{MPI_ERR_ARG, "datarep is a null pointer"};
  }
  if ((arguments.displacement == MPI_DISPLACEMENT_CURRENT) != file.is_sequential()) {
    return Failure{MPI_ERR_ARG, "the displacement is " + std::to_string(arguments.displacement) +
                                    ": MPI_DISPLACEMENT_CURRENT (" +
                                    std::to_string(MPI_DISPLACEMENT_CURRENT) +
                                    ") goes with MPI_MODE_SEQUENTIAL, which needs it"};
  }
  return View::Make(displacement, *etype, *filetype, arguments.datarep, file.may_write());
}

}  // namespace

FERRY_MPI_CALL(int, MPI_File_set_view,
               (MPI_File fh, MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype,
                const char* datarep, MPI_Info info)) {
  FileCall call(FERRY_MPI_NAME);
  File* const file = FindFile(call, fh);
  return call.Then([&]() -> Failure {
    call.Use(*file);
    const char* const name = "MPI_File_set_view";
    FERRY_RETURN_FAILURE(CheckSameCall(name, *file));
    const Result<int64_t> displacement =
        file->is_sequential() ? CurrentDisplacement(name, *file) : Result<int64_t>(int64_t{disp});
    const Info* given = nullptr;
    Failure refused = displacement.failure();
    Keep(&refused, FindInfo(info, &given));
    auto view = refused.ok()
                    ? MakeView(*file, {disp, etype, filetype, datarep}, displacement.value())
                    : Result<std::shared_ptr<const View>>(refused);
    FERRY_RETURN_FAILURE(SetFileView(name, *file, std::move(view)));
    TakeHints(*file, given);
    return {};
  });
}

FERRY_MPI_CALL(int, MPI_File_get_view,
               (MPI_File fh, MPI_Offset* disp, MPI_Datatype* etype, MPI_Datatype* filetype,
                char* datarep)) {
  Call call(FERRY_MPI_NAME);
  const File* const file = FindFile(call, fh);
  call.Need(disp, "disp", etype, "etype", filetype, "filetype", datarep, "datarep");
  return call.Then([&]() -> Failure {
    const std::shared_ptr<const View> view = file->view();
    *disp = view->displacement();
    *etype = HandleOf(view->etype());
    *filetype = HandleOf(view->filetype());
    CopyValue(view->datarep(), MPI_MAX_DATAREP_STRING - 1, datarep);
    return *etype == nullptr || *filetype == nullptr
               ? Failure{MPI_ERR_NO_MEM, "no memory for another datatype"}
               : Failure();
  });
}

namespace {

template <typename Extent>
int GetTypeExtent(Call call, MPI_File fh, MPI_Datatype datatype, Extent* extent) {
  const File* const file = FindFile(call, fh);
  Datatype* const type = call.Find(datatype);
  call.Need(extent, "extent");
  return call.Then([&]() -> Failure {
    const std::shared_ptr<const View> view = file->view();
    if (!view->converts()) {
      *extent = type->extent();
      return {};
    }
    const Result<Ref<Datatype>> in_file = TypeInFile(*type, view->program_datarep());
    if (in_file.ok()) {
      *extent = in_file.value()->extent();
    }
    return in_file.failure();
  });
}

int Register(Call call, const char* name, Datarep datarep) {
  BlameNoFile(call);
  call.NeedRunning();
  call.Need(name, "datarep", reinterpret_cast<const void*>(datarep.extent), "dtype_file_extent_fn");
  if (call.ok() && std::string_view(name).size() >= MPI_MAX_DATAREP_STRING) {
    call.Refuse(MPI_ERR_ARG, "the name of the data representation has " +
                                 std::to_string(std::string_view(name).size()) +
                                 " characters; it may have " +
                                 std::to_string(MPI_MAX_DATAREP_STRING - 1));
  }
  return call.Then([&] {
    datarep.name = name;
    return RegisterDatarep(std::move(datarep));
  });
}

}  // namespace

FERRY_MPI_CALL(int, MPI_File_get_type_extent,
               (MPI_File fh, MPI_Datatype datatype, MPI_Aint* extent)) {
  return GetTypeExtent(FERRY_MPI_NAME, fh, datatype, extent);
}

FERRY_MPI_CALL(int, MPI_File_get_type_extent_c,
               (MPI_File fh, MPI_Datatype datatype, MPI_Count* extent)) {
  return GetTypeExtent(FERRY_MPI_NAME, fh, datatype, extent);
}

FERRY_MPI_CALL(int, MPI_Register_datarep,
               (const char* datarep, MPI_Datarep_conversion_function* read_conversion_fn,
                MPI_Datarep_conversion_function* write_conversion_fn,
                MPI_Datarep_extent_function* dtype_file_extent_fn, void* extra_state)) {
  Datarep made;
  made.read = read_conversion_fn;
  made.write = write_conversion_fn;
  made.extent = dtype_file_extent_fn;
  made.extra_state = extra_state;
  return Register(FERRY_MPI_NAME, datarep, std::move(made));
}

FERRY_MPI_CALL(int, MPI_Register_datarep_c,
               (const char* datarep, MPI_Datarep_conversion_function_c* read_conversion_fn,
                MPI_Datarep_conversion_function_c* write_conversion_fn,
                MPI_Datarep_extent_function* dtype_file_extent_fn, void* extra_state)) {
  Datarep made;
  made.read_c = read_conversion_fn;
  made.write_c = write_conversion_fn;
  made.extent = dtype_file_extent_fn;
  made.extra_state = extra_state;
  return Register(FERRY_MPI_NAME, datarep, std::move(made));
}

// ---- Pointers -----------------------------------------------------------------------------------

FERRY_MPI_CALL(int, MPI_File_seek, (MPI_File fh, MPI_Offset offset, int whence)) {
  Call call(FERRY_MPI_NAME);
  File* const file = FindFile(call, fh);
  if (call.ok()) {
    call.Refuse(CheckNotSequential(*file));
  }
  return call.Then([&] {
    const Result<int64_t> wanted = OffsetOf(*file, offset, whence, file->position());
    if (wanted.ok()) {
      file->SetPosition(wanted.value());
    }
    return wanted.failure();
  });
}

FERRY_MPI_CALL(int, MPI_File_get_position, (MPI_File fh, MPI_Offset* offset)) {
  Call call(FERRY_MPI_NAME);
  const File* const file = FindFile(call, fh);
  call.Need(offset, "offset");
  if (call.ok()) {
    call.Refuse(CheckNotSequential(*file));
  }
  return call.Then([&] { *offset = file->position(); });
}

FERRY_MPI_CALL(int, MPI_File_get_byte_offset, (MPI_File fh, MPI_Offset offset, MPI_Offset* disp)) {
  Call call(FERRY_MPI_NAME);
  const File* const file = FindFile(call, fh);
  call.Need(disp, "disp");
  if (call.ok()) {
    call.Refuse(CheckNotSequential(*file));
  }
  return call.Then([&]() -> Failure {
    const std::shared_ptr<const View> view = file->view();
    const Result<int64_t> position = view->PositionOf(offset);
    FERRY_RETURN_FAILURE(position.failure());
    FERRY_RETURN_FAILURE(view->CheckReach(position.value(), 1));
    *disp = view->PlaceOf(position.value());
    return {};
  });
}

FERRY_MPI_CALL(int, MPI_File_seek_shared, (MPI_File fh, MPI_Offset offset, int whence)) {
  FileCall call(FERRY_MPI_NAME);
  File* const file = FindFile(call, fh);
  return call.Then([&] {
    call.Use(*file);
    const char* const name = "MPI_File_seek_shared";
    FERRY_RETURN_FAILURE(CheckSameCall(name, *file));
    Failure refused = CheckNoSplit(*file);
    Keep(&refused, CheckNotSequential(*file));
    return SeekShared(name, *file, offset, whence, refused);
  });
}

FERRY_MPI_CALL(int, MPI_File_get_position_shared, (MPI_File fh, MPI_Offset* offset)) {
  FileCall call(FERRY_MPI_NAME);
  File* const file = FindFile(call, fh);
  call.Need(offset, "offset");
  return call.Then([&] {
    call.Use(*file);
    int64_t etypes = 0;
    Failure failure = file->shared().Get(&etypes);
    *offset = failure.ok() ? etypes : *offset;
    return failure;
  });
}

}  // namespace ferry::mpi
