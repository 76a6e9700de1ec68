#include "tools/ferryrun/rank_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace ferry::tools {
namespace {

std::string NameOf(size_t file) {
  return "rank." + std::to_string(file / 2) + (file % 2 == 0 ? ".out" : ".err");
}

}  // namespace

std::string RankFiles::PathOf(size_t file) const { return directory_ + "/" + NameOf(file); }

StatusOr<RankFiles> RankFiles::Create(const std::string& directory, uint32_t ranks) {
  const auto fail = [&directory](int error_number, const std::string& path) {
    const Status why = StatusFromErrno(error_number, "cannot make " + path);
    return Status(why.code(), "--output " + directory + ": " + why.message());
  };
  RankFiles made(directory);
  made.made_directory_ = mkdir(directory.c_str(), 0777) == 0;
  if (!made.made_directory_ && errno != EEXIST) {
    return fail(errno, "the directory");
  }
  const UniqueFd folder(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid()) {
    const int error_number = errno;
    return Status(StatusFromErrno(error_number, "").code(),
                  "--output " + directory +
                      ": cannot open it as a directory: " + std::strerror(error_number));
  }
  for (size_t file = 0; file < size_t{2} * ranks; ++file) {
    // O_EXCL follows no link, so no file is written that was there before.
    const int fd = openat(folder.get(), NameOf(file).c_str(),
                          O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
    if (fd >= 0) {
      made.files_.emplace_back(fd);
      continue;
    }
    const int error_number = errno;
    made.Withdraw();
    if (error_number == EEXIST) {
      return Status(ErrorCode::kAlreadyExists,
                    "--output " + directory + ": " + NameOf(file) +
                        " is there already, and nothing is overwritten: name another directory");
    }
    return fail(error_number, NameOf(file));
  }
  return made;
}

void RankFiles::Withdraw() {
  for (size_t file = 0; file < files_.size(); ++file) {
    (void)unlink(PathOf(file).c_str());
  }
  files_.clear();
  if (made_directory_) {
    (void)rmdir(directory_.c_str());
  }
}

Status RankFiles::Write(uint32_t rank, bool is_error, std::string_view bytes) {
  const size_t file = size_t{2} * rank + (is_error ? 1 : 0);
  UniqueFd& fd = files_[file];
  while (fd.valid() && !bytes.empty()) {
    const ssize_t size = write(fd.get(), bytes.data(), bytes.size());
    if (size >= 0) {
      bytes.remove_prefix(static_cast<size_t>(size));
    } else if (errno != EINTR) {
      const Status why = StatusFromErrno(errno, "cannot write to " + PathOf(file));
      fd.Reset();
      return why;
    }
  }
  return {};
}

}  // namespace ferry::tools
