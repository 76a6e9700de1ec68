#include "tests/e2e/shown_calls.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <filesystem>

#include "common/unique_fd.h"
#include "shm/layout/session_layout.h"
#include "tests/support/processes.h"

namespace ferry::e2e {
namespace {

namespace fs = std::filesystem;

// A session of another process, to read.
class OtherSession {
 public:
  explicit OtherSession(const std::string& path) : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    struct stat info {};
    if (!fd_.valid() || fstat(fd_.get(), &info) != 0 ||
        info.st_size < static_cast<off_t>(sizeof(shm::SessionLayout))) {
      return;
    }
    void* const base =
        mmap(nullptr, sizeof(shm::SessionLayout), PROT_READ, MAP_SHARED, fd_.get(), 0);
    layout_ = base == MAP_FAILED ? nullptr : static_cast<const shm::SessionLayout*>(base);
  }
  ~OtherSession() {
    if (layout_ != nullptr) {
      munmap(const_cast<shm::SessionLayout*>(layout_), sizeof(shm::SessionLayout));
    }
  }
  OtherSession(const OtherSession&) = delete;
  OtherSession& operator=(const OtherSession&) = delete;

  bool IsOf(uint32_t rank) const { return layout_ != nullptr && layout_->header.rank == rank; }
  const shm::SessionLayout& layout() const { return *layout_; }

 private:
  UniqueFd fd_;
  const shm::SessionLayout* layout_ = nullptr;
};

// Calls use(layout) for the rank's session, if some daemon of the job has it.
template <typename Use>
void WithSession(const Command& job, uint32_t rank, Use&& use) {
  for (const pid_t pid : job.Find("daemon/ferryd")) {
    for (const std::string& path : tests::MemfdsOf(pid)) {
      std::error_code ignored;
      if (!fs::read_symlink(path, ignored).string().starts_with("/memfd:ferry-session")) {
        continue;
      }
      const OtherSession session(path);
      if (session.IsOf(rank)) {
        use(session.layout());
        return;
      }
    }
  }
}

}  // namespace

shm::CallsView ShownCalls(const Command& job, uint32_t rank) {
  shm::CallsView found;
  WithSession(job, rank, [&](const shm::SessionLayout& layout) {
    found = shm::ReadCalls(layout.calls, layout.header.job_size);
  });
  return found;
}

std::string ShownPhrases(const Command& job, uint32_t rank) {
  std::string text;
  for (const shm::CallView& view : ShownCalls(job, rank).calls) {
    text += shm::CallPhrase(view) + "\n";
  }
  return text;
}

shm::CallTotals ShownTotals(const Command& job, uint32_t rank, shm::CallName name) {
  shm::CallTotals totals{};
  WithSession(job, rank, [&](const shm::SessionLayout& layout) {
    totals = layout.calls.totals[static_cast<size_t>(name)];
  });
  return totals;
}

}  // namespace ferry::e2e
