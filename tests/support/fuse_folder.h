// A folder of a FUSE file system whose files are those of another folder, as a network file system
// shows a server's: what one mount has in its cache it does not see change through another. Its
// calls fail, or are not answered, when a test or a program says so.
//
// It speaks the kernel's protocol (<linux/fuse.h>) by itself, so it needs /dev/fuse, the right to
// mount, and nothing else. Regular files alone; no links, no folders below it.
//
// A program that sees the folder tells it what to do by looking for a name there, which is never
// found: "fault:CALL:ERRNO" lets all such calls fail from then on, "fault:CALL:0" ends that, and
// "hang:CALL" leaves them without an answer. CALL is one of lookup, getattr, setattr, unlink, open,
// read, write, statfs, release, fsync, flush, create, fallocate.
//
// Calling thread: that of the test whose mount namespace is to see the folder.
#pragma once

#include <linux/fuse.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/unique_fd.h"

namespace ferry::tests {

class FuseFolder {
 public:
  struct Options {
    bool direct_io = false;  // the kernel caches no data
    uint64_t cached_s = 0;   // for so long it believes what it knows of names, sizes and data
    bool allocates = true;   // it knows fallocate(2)
  };

  // Mounts the files of `origin` on `mount_point`. Null: *refusal says why that cannot be done.
  static std::unique_ptr<FuseFolder> Mount(const std::string& mount_point,
                                           const std::string& origin, const Options& options,
                                           std::string* refusal);
  // Ends it; processes that still use its files get errors.
  ~FuseFolder();
  FuseFolder(const FuseFolder&) = delete;
  FuseFolder& operator=(const FuseFolder&) = delete;

  // Gives all calls under way up, and those that come, as `umount -f` does: ENOTCONN.
  void Abort();
  // The number of calls that were left without an answer.
  int unanswered() const { return unanswered_.load(std::memory_order_acquire); }

 private:
  struct Request;
  static constexpr uint32_t kMostCalls = 64;  // of enum fuse_opcode
  static constexpr int kHangs = -1;

  FuseFolder(UniqueFd device, UniqueFd origin, std::string mount_point, const Options& options);

  void Serve();
  void Answer(const Request& request);
  void Reply(const Request& request, int error, const void* data = nullptr, size_t bytes = 0) const;
  template <typename Data>
  void Reply(const Request& request, const Data& data) const {
    Reply(request, 0, &data, sizeof(data));
  }

  void Init(const Request& request) const;
  void Lookup(const Request& request);
  bool Obey(const std::string& name);
  void GetAttr(const Request& request) const;
  void SetAttr(const Request& request) const;
  void Open(const Request& request) const;
  void Create(const Request& request);
  void Read(const Request& request) const;
  void Write(const Request& request) const;
  void ReadDirectory(const Request& request) const;
  void StatFs(const Request& request) const;

  int FillEntry(const std::string& name, fuse_entry_out* entry);
  int FillAttributes(uint64_t node, fuse_attr* attributes) const;
  const char* NameOf(uint64_t node) const;

  const UniqueFd device_;
  const UniqueFd origin_;
  const std::string mount_point_;
  const Options options_;
  std::array<std::atomic<int>, kMostCalls> faults_{};  // by opcode: an errno, or kHangs
  std::atomic<int> unanswered_{0};
  // A file is known by its name and its number, since a name may be that of another file later.
  std::map<std::pair<std::string, uint64_t>, uint64_t> nodes_;
  std::vector<std::string> names_;  // by node, less the root's number
  std::thread server_;
};

}  // namespace ferry::tests
