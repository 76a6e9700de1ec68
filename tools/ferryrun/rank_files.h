// The files of --output: for each rank one with its standard output, and one with its standard
// error, in a directory of ferryrun's host.
//
// Main thread. Writing blocks for as long as the file system takes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/status.h"
#include "common/unique_fd.h"

namespace ferry::tools {

class RankFiles {
 public:
  // Makes the directory, if it is not there, and in it rank.0.out, rank.0.err and so on, all
  // empty. If one of them is there already, also as a link, this changes nothing: kAlreadyExists.
  // kPermissionDenied and others: the directory, or a file in it, cannot be made.
  static StatusOr<RankFiles> Create(const std::string& directory, uint32_t ranks);

  // Removes the files, and the directory if it was made for them: no rank has run.
  void Withdraw();
  // Appends the bytes. After an error, which is returned once, it drops what comes for that file.
  Status Write(uint32_t rank, bool is_error, std::string_view bytes);

 private:
  explicit RankFiles(std::string directory) : directory_(std::move(directory)) {}

  std::string PathOf(size_t file) const;

  const std::string directory_;
  bool made_directory_ = false;
  std::vector<UniqueFd> files_;  // two for each rank: standard output and error
};

}  // namespace ferry::tools
