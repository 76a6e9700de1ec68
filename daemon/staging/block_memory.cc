#include "daemon/staging/block_memory.h"

#include <fcntl.h>
#include <string.h>

#include <cerrno>
#include <utility>

#include "common/log.h"

namespace ferry::daemon {

BlockMemory::BlockMemory(std::shared_ptr<const StagingMemory> whole, std::byte* base,
                         uint64_t bytes, std::shared_ptr<MemoryUser> user)
    : whole_(std::move(whole)), base_(base), bytes_(bytes), user_(std::move(user)) {}

void BlockMemory::Admit() {
  if (user_ != nullptr && !admitted_) {
    user_->Admit(base_, bytes_);
    admitted_ = true;
  }
}

BlockMemory::~BlockMemory() {
  if (admitted_) {
    user_->Dismiss(base_);
  }
  const auto offset = static_cast<off_t>(base_ - whole_->mapping.base());
  if (fallocate(whole_->fd.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset,
                static_cast<off_t>(bytes_)) != 0) {
    spdlog::warn("a staging block's memory stays with its pool: {}", strerror(errno));
  }
}

}  // namespace ferry::daemon
