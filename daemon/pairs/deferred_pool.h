// Shares a NIC's entries for deferred operations, of which there are few, among the jobs by weight.
//
// While jobs want more than there is, each holds its share, to within an operation or two; what one
// does not want is lent to others, and comes back as their operations end. A refusal means "let the
// software engine do it", so nobody ever waits for an entry. Where there are more jobs than
// entries, they take turns.
//
// Pure: no clock, one thread.
#pragma once

#include <cstdint>
#include <map>

namespace ferry::daemon {

// The administrator's rules.
struct DeferredRules {
  uint32_t most_entries = UINT32_MAX;         // whatever the NIC has; 0: it is given nothing
  std::map<uint32_t, uint32_t> weights = {};  // of jobs, by their owners' uids; else 1

  uint32_t WeightOf(uint32_t owner) const {
    const auto found = weights.find(owner);
    return found == weights.end() ? 1 : found->second;
  }
};

class DeferredPool {
 public:
  using Job = uint64_t;  // the user's own number
  enum class Place : uint8_t { kNic, kSoftware };
  struct Counts {  // operations, ever
    uint64_t on_nic = 0;
    uint64_t in_software = 0;
  };

  explicit DeferredPool(uint32_t entries) : entries_(entries) {}

  // A job is known from here to Leave, by which its operations have ended. Its weight is 1 or more.
  void Join(Job job, uint32_t weight);
  void Leave(Job job);

  // Where an operation of the job runs. Each Begin has its End.
  Place Begin(Job job);
  void End(Job job, Place place);
  // The NIC did not take an operation that was to run there: it runs in software.
  void Refused(Job job);

  uint32_t entries() const { return entries_; }
  uint32_t in_use() const { return in_use_; }
  uint32_t HeldBy(Job job) const;
  Counts CountsOf(Job job) const;
  const Counts& counts() const { return counts_; }

 private:
  struct Member {
    uint32_t weight = 1;
    uint32_t held = 0;         // entries
    uint32_t in_software = 0;  // operations under way that were refused one
    double served = 0;         // entries given by weight, to take turns
    Counts counts;

    bool is_active() const { return held != 0 || in_software != 0; }
  };

  bool Grants(const Member& member) const;
  uint64_t ActiveWeight(const Member& member) const;
  uint32_t ShareOf(const Member& member, uint64_t active_weight) const;
  void CatchUp(Member* member) const;

  const uint32_t entries_;
  uint32_t in_use_ = 0;
  std::map<Job, Member> members_;
  Counts counts_;
};

}  // namespace ferry::daemon
