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

#include "client/bootstrap/exchange.h"
#include "common/status.h"

namespace ferry::client {

class PmixLibrary : public Exchange {
 public:
  // Returns true if a PMIx server started this process: it has PMIX_NAMESPACE and PMIX_RANK.
  static bool IsAround(const char* const* environment);

  // Opens libpmix, and connects to the server. kNotFound: there is no libpmix. kUnsupported:
  // libpmix lacks a function. kSystem: the server cannot be reached, or refuses.
  static StatusOr<std::unique_ptr<PmixLibrary>> Open();
  ~PmixLibrary() override;  // leaves the server

  uint32_t rank() const override { return rank_; }
  uint32_t size() const override { return size_; }
  const std::vector<uint32_t>& local_ranks() const override { return local_ranks_; }
  std::optional<uint32_t> app() const override { return app_; }
  std::optional<uint32_t> universe_size() const override { return universe_size_; }

  Status Put(const std::string& name, const std::string& words) override;
  Status Fence() override;
  StatusOr<std::string> Get(uint32_t rank, const std::string& name) override;
  void Abort(int exit_code, const std::string& text) override;

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
};

// Returns the ranks of a list such as "0,1,5", in order. kCorrupt for anything else.
StatusOr<std::vector<uint32_t>> ParseRankList(const std::string& text);

}  // namespace ferry::client
