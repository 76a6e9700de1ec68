// Copies between staging memory and the memory of the rank's own program, at once, by the CPU.
//
// Calling thread: the holder of the lease.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "internode/staging/copier.h"
#include "shm/word_copy.h"

namespace ferry::client {

class LocalCopier final : public progress::Copier {
 public:
  void Open(progress::StagingPool& /*pool*/) override {}
  void Close(progress::StagingPool& /*pool*/) override {}
  bool Submit(const progress::CopyTask& task) override {
    auto* const own = reinterpret_cast<std::byte*>(task.remote_address);
    const bool is_out = task.direction == progress::CopyTask::Direction::kFromProcess;
    shm::CopyWords(is_out ? task.local : own, is_out ? own : task.local, task.size_bytes);
    done_.push_back(task);
    return true;
  }
  uint32_t Collect(progress::CopySink& sink) override {
    const std::vector<progress::CopyTask> done = std::exchange(done_, {});
    for (const progress::CopyTask& task : done) {
      sink.OnCopied(task);
    }
    return static_cast<uint32_t>(done.size());
  }
  bool Abandon(uint32_t /*lane*/, progress::CopySink& sink) override {
    (void)Collect(sink);
    return true;
  }
  uint32_t pending() const override { return static_cast<uint32_t>(done_.size()); }

 private:
  std::vector<progress::CopyTask> done_;
};

}  // namespace ferry::client
