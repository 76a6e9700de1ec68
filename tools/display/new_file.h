// A file that appears whole or not at all, and that replaces no other unless asked to.
//
// One thread; it blocks for the disk.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/status.h"
#include "common/unique_fd.h"

namespace ferry::tools {

class NewFile {
 public:
  // Checks that `path` can be written, before there is anything to write. Opens a temporary file
  // beside it, until Commit. kAlreadyExists where a file is there and `replace` is false;
  // kPermissionDenied, kNotFound, kSystem.
  static StatusOr<NewFile> Create(const std::string& path, bool replace);
  ~NewFile();
  NewFile(NewFile&& other) noexcept;
  NewFile& operator=(NewFile&&) = delete;

  // Writes `text`, in front of what Commit writes.
  Status Add(std::string_view text);
  // Writes `text` and puts the file in its place. Once.
  Status Commit(std::string_view text);

  const std::string& path() const { return path_; }

 private:
  NewFile(std::string path, std::string temporary, UniqueFd fd, bool replace)
      : path_(std::move(path)),
        temporary_(std::move(temporary)),
        fd_(std::move(fd)),
        replace_(replace) {}

  std::string path_;
  std::string temporary_;  // empty once it is gone
  UniqueFd fd_;
  bool replace_;
};

// As Create; returns nothing where no path is given.
StatusOr<std::optional<NewFile>> FileIfNamed(const std::string& path, bool replace);

}  // namespace ferry::tools
