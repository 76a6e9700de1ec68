// A PMIx server's client: the few calls of libpmix that ranks need to find each other (PMIx
// standard, versions 3 to 5: client initialisation, key-value exchange, fence, abort).
//
// libpmix.so.2 is opened when it is needed, so Ferry does not need it installed; the source
// declares the part of its binary interface that is used. Calling thread: one at a time. Open
// blocks until the server answers.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/status.h"

namespace ferry::client {

// Lets ranks exchange values before they have a job: each puts values under names, and after a
// fence every rank can get them.
//
// Calling thread: one at a time. Fence blocks until all ranks have called it.
class Exchange {
 public:
  virtual ~Exchange() = default;

  virtual uint32_t rank() const = 0;
  virtual uint32_t size() const = 0;
  // The ranks on this one's node, itself included, in order.
  virtual const std::vector<uint32_t>& local_ranks() const = 0;

  virtual Status Put(const std::string& name, const std::string& words) = 0;
  virtual Status Fence() = 0;
  // What `rank` put before a fence, or kNotFound.
  virtual StatusOr<std::string> Get(uint32_t rank, const std::string& name) = 0;
};

class PmixLibrary : public Exchange {
 public:
  // Whether the process was started by a PMIx server: it has PMIX_NAMESPACE and PMIX_RANK.
  static bool IsAround(const char* const* environment);

  // kNotFound: there is no libpmix. kUnsupported: it lacks something. kSystem: the server.
  static StatusOr<std::unique_ptr<PmixLibrary>> Open();
  ~PmixLibrary() override;  // leaves the server

  uint32_t rank() const override { return rank_; }
  uint32_t size() const override { return size_; }
  const std::vector<uint32_t>& local_ranks() const override { return local_ranks_; }
  // Which of the job's programs this is, and how many ranks there is room for, where the server
  // says so; and how many ranks are known to run the program.
  std::optional<uint32_t> app() const { return app_; }
  std::optional<uint32_t> universe_size() const { return universe_size_; }
  uint32_t app_size() const { return app_size_; }

  Status Put(const std::string& name, const std::string& words) override;
  Status Fence() override;
  StatusOr<std::string> Get(uint32_t rank, const std::string& name) override;
  // Has the server end all ranks with this exit code.
  void Abort(int exit_code, const std::string& text);

 private:
  struct Calls;  // of the library

  PmixLibrary();
  Status Load();
  Status Enter();
  Status Explain(int status, const std::string& what) const;
  StatusOr<uint32_t> GetNumber(const char* key);
  std::optional<uint32_t> FindNumber(const char* key, uint32_t of_rank);

  std::unique_ptr<Calls> calls_;
  bool entered_ = false;
  uint32_t rank_ = 0;
  uint32_t size_ = 0;
  std::vector<uint32_t> local_ranks_;
  std::optional<uint32_t> app_;
  std::optional<uint32_t> universe_size_;
  uint32_t app_size_ = 0;
};

// The ranks of "0,1,5", in order. kCorrupt for anything else.
StatusOr<std::vector<uint32_t>> ParseRankList(const std::string& text);

}  // namespace ferry::client
