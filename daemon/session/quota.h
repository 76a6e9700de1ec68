// Counts what each user of the node holds of the daemon's resources, and limits it.
//
// A resource is taken before it is made, all parts of it or none, and the hold lives in the thing
// it was taken for (Session, Region, Job): what is destroyed, however it came to that, is given
// back, exactly once.
//
// Any thread; one short lock. Holds may outlive the ledger.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <span>

#include "common/status.h"

namespace ferry::daemon {

struct QuotaAmounts {
  uint64_t sessions = 0;
  uint64_t regions = 0;
  uint64_t pinned_bytes = 0;  // of regions, which are registered with the NIC
  uint64_t jobs = 0;
  uint64_t requests = 0;  // slots of ranks, for each of which the daemon may have to keep something
  bool operator==(const QuotaAmounts&) const = default;
};

// One quota: its option, and words for messages about it.
struct QuotaLabel {
  uint64_t QuotaAmounts::*member;
  const char* option;
  const char* unit;
  const char* remedy;  // what the user can do
};
std::span<const QuotaLabel> QuotaLabels();

class QuotaLedger;

// The amounts that one thing holds; gives them back when destroyed or told to.
class QuotaHold {
 public:
  QuotaHold() = default;
  QuotaHold(QuotaHold&& other) noexcept;
  QuotaHold& operator=(QuotaHold&& other) noexcept;
  ~QuotaHold() { Release(); }
  void Release();

 private:
  friend class QuotaLedger;
  struct Book;
  QuotaHold(std::shared_ptr<Book> book, uid_t uid, const QuotaAmounts& amounts);

  std::shared_ptr<Book> book_;
  uid_t uid_ = 0;
  QuotaAmounts amounts_;
};

class QuotaLedger {
 public:
  // `limits`: the most that each user may hold; 0: as much as he likes.
  explicit QuotaLedger(const QuotaAmounts& limits);

  // kLimitExceeded names the quota, its value, what is used, and what to do; nothing is taken then.
  StatusOr<QuotaHold> Take(uid_t uid, const QuotaAmounts& wanted);
  // The amounts that each user holds; users who hold nothing are left out.
  std::map<uid_t, QuotaAmounts> Used() const;
  const QuotaAmounts& limits() const { return limits_; }

 private:
  const QuotaAmounts limits_;
  std::shared_ptr<QuotaHold::Book> book_;
};

}  // namespace ferry::daemon
