#include "mpi/io/open.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "mpi/base/connection.h"
#include "mpi/comm/agree.h"
#include "mpi/comm/creation.h"
#include "mpi/io/background.h"
#include "mpi/io/meeting.h"
#include "mpi/io/node_buffer.h"

namespace ferry::mpi {
namespace {

constexpr mode_t kUsualMode = 0666;  // less the umask

constexpr int kAccessModes = MPI_MODE_RDONLY | MPI_MODE_WRONLY | MPI_MODE_RDWR;
constexpr int kAllModes = kAccessModes | MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_APPEND |
                          MPI_MODE_DELETE_ON_CLOSE | MPI_MODE_UNIQUE_OPEN | MPI_MODE_SEQUENTIAL;

std::string Text(int64_t number) { return std::to_string(number); }

Failure CheckModes(int amode) {
  const int access = amode & kAccessModes;
  if ((amode & ~kAllModes) != 0) {
    return {MPI_ERR_AMODE, "the access mode " + Text(amode) + " has bits that are no modes"};
  }
  if (access != MPI_MODE_RDONLY && access != MPI_MODE_WRONLY && access != MPI_MODE_RDWR) {
    return {MPI_ERR_AMODE,
            "the access mode must have exactly one of MPI_MODE_RDONLY, MPI_MODE_WRONLY and "
            "MPI_MODE_RDWR"};
  }
  if (access == MPI_MODE_RDONLY && (amode & (MPI_MODE_CREATE | MPI_MODE_EXCL)) != 0) {
    return {MPI_ERR_AMODE, "MPI_MODE_RDONLY goes with neither MPI_MODE_CREATE nor MPI_MODE_EXCL"};
  }
  if (access == MPI_MODE_RDWR && (amode & MPI_MODE_SEQUENTIAL) != 0) {
    return {MPI_ERR_AMODE, "MPI_MODE_RDWR does not go with MPI_MODE_SEQUENTIAL"};
  }
  return {};
}

int FlagsOf(int amode) {
  return (amode & MPI_MODE_RDONLY) != 0   ? O_RDONLY
         : (amode & MPI_MODE_WRONLY) != 0 ? O_WRONLY
                                          : O_RDWR;
}

std::vector<int32_t> ClassesOf(const auto& facts) {
  std::vector<int32_t> classes;
  for (const auto& each : facts) {
    classes.push_back(each.error_class);
  }
  return classes;
}

// A number that all ranks have to give alike, with each rank's failure.
struct Given {
  int32_t error_class = MPI_SUCCESS;
  int32_t kind = 0;
  int64_t value = 0;
};

// Fails on all ranks if one of them has failed, or if they have given different numbers.
Failure AgreeOnNumbers(Meeting& meeting, const Failure& own, int64_t value, int32_t kind,
                       const char* what) {
  std::vector<Given> all;
  FERRY_RETURN_FAILURE(meeting.Gather(Given{own.error_class, kind, value}, &all));
  FERRY_RETURN_FAILURE(FirstFailure(ClassesOf(all), meeting.rank(), own));
  for (size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank].value != all[0].value || all[rank].kind != all[0].kind) {
      return {MPI_ERR_NOT_SAME, std::string("the ranks give different values: ") + what + " is " +
                                    Text(all[0].value) + " on rank 0 and " + Text(all[rank].value) +
                                    " on rank " + Text(rank)};
    }
  }
  return {};
}

}  // namespace

// ---- Opening ------------------------------------------------------------------------------------

class FileOpener {
 public:
  FileOpener(const char* call, const OpenWish& wish, Ref<Comm> comm)
      : wish_(wish),
        file_(MakeRef<File>(std::move(comm), wish.amode)),
        meeting_(call, file_->comm()) {}

  Result<Ref<File>> Open() {
    Failure own = wish_.refused.ok() ? CheckModes(wish_.amode) : wish_.refused;
    FERRY_RETURN_FAILURE(AgreeOnNumbers(meeting_, own, wish_.amode, 0, "amode"));
    if (wish_.info != nullptr) {
      file_->TakeHints(wish_.info->entries(), true);
    }
    file_->name_ = WithoutPrefix(wish_.name);
    file_->absolute_name_ = AbsoluteName(file_->name_);
    const bool creates = (wish_.amode & MPI_MODE_CREATE) != 0;
    if (!creates || meeting_.rank() == 0) {
      own = CheckName();
    }
    if (creates) {
      // Failures of other ranks count once rank 0 has made the file: then it is taken back, too.
      Failure made;
      if (meeting_.rank() == 0) {
        made = own.ok() ? Create() : own;
      }
      FERRY_RETURN_FAILURE(meeting_.Agree(made));
    }
    // Others do not look for the name before: a network file system would remember for a while that
    // there is no such file.
    if (creates && meeting_.rank() != 0) {
      own = CheckName();
    }
    if ((!creates || meeting_.rank() != 0) && own.ok()) {
      own = PosixFile::Open(file_->name_, FlagsOf(wish_.amode), &file_->posix_);
    }
    const Failure opened = Finish(own);
    if (!opened.ok()) {
      TakeBack();
      return opened;
    }
    return std::move(file_);
  }

 private:
  struct Facts {
    int32_t error_class = MPI_SUCCESS;
    int32_t is_stream = 0;
    int64_t size_bytes = 0;
    shm::Location shared_word{};
  };

  Failure CheckName() const {
    return file_->is_sequential() ? Failure() : PosixFile::CheckHasOffsets(file_->name_);
  }

  Failure Create() {
    return PosixFile::Create(file_->name_, FlagsOf(wish_.amode),
                             file_->hints()->file_perm().value_or(kUsualMode),
                             (wish_.amode & MPI_MODE_EXCL) != 0, &file_->posix_, &is_new_);
  }

  // Tells the others that the file is open here, or why not.
  Failure Finish(Failure own) {
    Facts facts;
    if (own.ok() && meeting_.rank() == 0) {
      own = file_->shared_.Make(file_->comm());
      facts.shared_word = file_->shared_.location();
    }
    if (own.ok() && !file_->posix_.is_stream()) {
      own = file_->posix_.GetSize(&facts.size_bytes);
    }
    if (own.ok()) {
      own = MakeHandle();
    }
    facts.error_class = own.error_class;
    facts.is_stream = file_->posix_.is_stream() ? 1 : 0;
    std::vector<Facts> all;
    FERRY_RETURN_FAILURE(meeting_.Gather(facts, &all));
    FERRY_RETURN_FAILURE(FirstFailure(ClassesOf(all), meeting_.rank(), own));
    if (meeting_.rank() != 0) {
      file_->shared_.Find(file_->comm(), all[0].shared_word);
    }
    file_->is_stream_somewhere_ =
        std::any_of(all.begin(), all.end(), [](const Facts& each) { return each.is_stream != 0; });
    file_->is_on_several_nodes_ = RanksOfNode(file_->comm()).size() != all.size();
    file_->view_ = View::OfBytes();
    // Both pointers of a file that is appended to stand at its end, as rank 0 has seen it: until
    // all have met, no rank of the file has written anything.
    if ((wish_.amode & MPI_MODE_APPEND) != 0) {
      file_->position_ = all[0].size_bytes;
      file_->SetUsedShared(true);
      if (meeting_.rank() == 0) {
        own = file_->shared_.Set(all[0].size_bytes);
      }
      return meeting_.Agree(own);
    }
    return {};
  }

  // Before the ranks meet: one that had no handle could never close the file with the others.
  Failure MakeHandle() {
    const MPI_File handle = files.Add(file_.get());
    if (handle == nullptr) {
      return {MPI_ERR_NO_MEM, "no memory for another file"};
    }
    file_->SetHandle(handle);
    has_handle_ = true;
    return {};
  }

  void TakeBack() {
    if (has_handle_) {
      (void)files.Remove(file_->handle());
    }
    (void)file_->posix_.Close();
    if (is_new_) {
      (void)PosixFile::Remove(file_->absolute_name_);
    }
    // The call fails on no rank before the file is gone.
    if ((wish_.amode & MPI_MODE_CREATE) != 0) {
      (void)meeting_.Agree({});
    }
  }

  const OpenWish& wish_;
  Ref<File> file_;
  Meeting meeting_;
  bool has_handle_ = false;
  bool is_new_ = false;  // this process has made the file
};

Result<Ref<File>> OpenFile(const char* call, const Comm& comm, const OpenWish& wish) {
  Result<Ref<Comm>> own = Duplicate(comm);
  if (!own.ok()) {
    return own.failure();
  }
  own.value()->SetErrorHandler(NullFileHandler());
  return FileOpener(call, wish, std::move(own).value()).Open();
}

std::string AbsoluteName(const std::string& name) {
  std::array<char, 4096> directory;
  if (name.empty() || name.front() == '/' ||
      getcwd(directory.data(), directory.size()) == nullptr) {
    return name;
  }
  return std::string(directory.data()) + "/" + name;
}

std::string WithoutPrefix(const std::string& name) {
  // File systems whose files the system's calls reach. A name such as "run:1.dat" has none of them.
  constexpr std::array<std::string_view, 13> kPrefixes = {
      "ufs:",   "nfs:",   "xfs:", "lustre:", "gpfs:", "panfs:", "pvfs:",
      "pvfs2:", "piofs:", "pfs:", "sfs:",    "hfs:",  "testfs:"};
  for (const std::string_view prefix : kPrefixes) {
    if (name.starts_with(prefix)) {
      return name.substr(prefix.size());
    }
  }
  return name;
}

// ---- The end ------------------------------------------------------------------------------------

Failure CloseFile(const char* call, File& file, const Failure& refused, bool* is_closed) {
  Meeting meeting(call, file.comm());
  // A rank that cannot close keeps the file open on all, so that they can close it together later.
  // If one is gone they never can.
  std::vector<int32_t> classes;
  if (meeting.Gather(static_cast<int32_t>(refused.error_class), &classes).ok()) {
    FERRY_RETURN_FAILURE(FirstFailure(classes, meeting.rank(), refused));
  }
  *is_closed = true;
  // A program has to complete its requests before; what is under way all the same needs the file.
  if (BackgroundCalls* const calls = BackgroundCalls::Find(file); calls != nullptr) {
    (void)calls->AwaitIdle();
  }
  front_end->peers->WaitFor(
      [](void* argument) { return !static_cast<File*>(argument)->has_transfers(); }, &file);
  const Failure closed = file.posix().Close();
  // No rank uses the file or its shared pointer any more once all have met.
  Failure met = meeting.Agree(closed);
  file.two_phase().reset();
  if (meeting.rank() == 0) {
    file.shared().Free();
  }
  if ((file.amode() & MPI_MODE_DELETE_ON_CLOSE) == 0) {
    return met;
  }
  const Failure removed = meeting.rank() == 0 ? PosixFile::Remove(file.absolute_name()) : Failure();
  Failure agreed = meeting.Agree(removed);
  return met.ok() ? agreed : met;
}

Failure DeleteFile(const std::string& name) { return PosixFile::Remove(WithoutPrefix(name)); }

// ---- What all ranks share -----------------------------------------------------------------------

namespace {

// Has rank 0 change the file, once all ranks have come with the same number.
Failure ChangeSize(const char* call, File& file, int64_t bytes, const Failure& refused,
                   Failure (PosixFile::*change)(int64_t) const) {
  Meeting meeting(call, file.comm());
  FERRY_RETURN_FAILURE(AgreeOnNumbers(meeting, refused, bytes, 0, "the size"));
  Failure met = meeting.Agree(meeting.rank() == 0 ? (file.posix().*change)(bytes) : Failure());
  file.NoteWritesElsewhere();
  return met;
}

}  // namespace

Failure SetFileSize(const char* call, File& file, int64_t bytes, const Failure& refused) {
  return ChangeSize(call, file, bytes, refused, &PosixFile::SetSize);
}

Failure PreallocateFile(const char* call, File& file, int64_t bytes, const Failure& refused) {
  return ChangeSize(call, file, bytes, refused, &PosixFile::Allocate);
}

// Each descriptor hears of an error of writing back once, so each rank that has written asks.
Failure SyncFile(const char* call, File& file) {
  Meeting meeting(call, file.comm());
  const bool is_written = file.is_written();
  file.SetWritten(false);
  const Failure own = is_written ? file.posix().Sync() : Failure();
  if (!own.ok()) {
    file.SetWritten(true);  // the next call tries again
  }
  Failure met = meeting.Agree(own);
  file.NoteWritesElsewhere();
  return met;
}

Failure SetFileAtomicity(const char* call, File& file, bool is_atomic, const Failure& refused) {
  Meeting meeting(call, file.comm());
  FERRY_RETURN_FAILURE(AgreeOnNumbers(meeting, refused, is_atomic ? 1 : 0, 0, "the flag"));
  file.SetAtomic(is_atomic);
  return {};
}

// ---- Views and pointers -------------------------------------------------------------------------

namespace {

struct ViewFacts {
  int32_t error_class = MPI_SUCCESS;
  int32_t has_used_shared = 0;
  uint64_t datarep = 0;  // a hash of its name
  int64_t etype_extent = 0;
};

}  // namespace

Failure SetFileView(const char* call, File& file, Result<std::shared_ptr<const View>> view) {
  Meeting meeting(call, file.comm());
  ViewFacts own;
  own.error_class = view.failure().error_class;
  own.has_used_shared = file.has_used_shared() ? 1 : 0;
  if (view.ok()) {
    own.datarep = std::hash<std::string>()(view.value()->datarep());
    own.etype_extent = view.value()->etype().extent();
  }
  std::vector<ViewFacts> all;
  FERRY_RETURN_FAILURE(meeting.Gather(own, &all));
  FERRY_RETURN_FAILURE(FirstFailure(ClassesOf(all), meeting.rank(), view.failure()));
  bool has_used_shared = false;
  for (const ViewFacts& facts : all) {
    if (facts.datarep != all[0].datarep || facts.etype_extent != all[0].etype_extent) {
      return {MPI_ERR_NOT_SAME,
              "the ranks give different data representations, or etypes of different extents"};
    }
    has_used_shared = has_used_shared || facts.has_used_shared != 0;
  }
  file.SetView(std::move(view).value());
  file.SetUsedShared(false);
  if (!has_used_shared) {
    return {};
  }
  // No rank goes on before the shared pointer is back at the beginning.
  return meeting.Agree(meeting.rank() == 0 ? file.shared().Set(0) : Failure());
}

Result<int64_t> CurrentDisplacement(const char* call, File& file) {
  Meeting meeting(call, file.comm());
  FERRY_RETURN_FAILURE(meeting.Agree({}));  // no rank's earlier access is under way any more
  int64_t offset = 0;
  FERRY_RETURN_FAILURE(file.shared().Get(&offset));
  const std::shared_ptr<const View> view = file.view();
  const Result<int64_t> position = view->PositionOf(offset);
  if (!position.ok() || view->is_empty()) {
    return position.ok() ? Result<int64_t>(view->displacement()) : position;
  }
  FERRY_RETURN_FAILURE(view->CheckReach(position.value(), 1));
  return view->PlaceOf(position.value());
}

Result<int64_t> OffsetOf(File& file, int64_t offset, int whence, int64_t current) {
  int64_t base = 0;
  if (whence == MPI_SEEK_CUR) {
    base = current;
  } else if (whence == MPI_SEEK_END) {
    int64_t bytes = 0;
    FERRY_RETURN_FAILURE(file.posix().GetSize(&bytes));
    base = file.view()->EndOffset(bytes);
  } else if (whence != MPI_SEEK_SET) {
    return Failure{MPI_ERR_ARG, "whence is " + Text(whence) +
                                    ", and neither MPI_SEEK_SET, MPI_SEEK_CUR nor MPI_SEEK_END"};
  }
  int64_t wanted = 0;
  if (__builtin_add_overflow(base, offset, &wanted) || wanted < 0) {
    return Failure{MPI_ERR_ARG,
                   "the pointer would be at " + Text(base) + " + " + Text(offset) + " etypes"};
  }
  FERRY_RETURN_FAILURE(file.view()->PositionOf(wanted).failure());
  return wanted;
}

Failure SeekShared(const char* call, File& file, int64_t offset, int whence,
                   const Failure& refused) {
  Meeting meeting(call, file.comm());
  FERRY_RETURN_FAILURE(AgreeOnNumbers(meeting, refused, offset, whence, "the offset"));
  Failure own;
  if (meeting.rank() == 0) {
    int64_t current = 0;
    own = whence == MPI_SEEK_CUR ? file.shared().Get(&current) : Failure();
    if (own.ok()) {
      const Result<int64_t> wanted = OffsetOf(file, offset, whence, current);
      own = wanted.ok() ? file.shared().Set(wanted.value()) : wanted.failure();
    }
  }
  file.SetUsedShared(true);
  return meeting.Agree(own);
}

}  // namespace ferry::mpi
