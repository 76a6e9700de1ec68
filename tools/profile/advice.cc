// Finds out what was slow in a job, and why: see report.h.
#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <utility>

#include "common/counted.h"
#include "shm/call_record.h"
#include "tools/profile/report.h"

namespace ferry::tools {
namespace {

using shm::CallKind;
using shm::CallName;
using shm::Statistic;

// Less than this part of the ranks' time is not worth a sentence.
constexpr double kWorthTelling = 0.05;
// A rank that came last so often, of all times, is the slow one.
constexpr double kMostly = 0.6;
constexpr uint64_t kFewMeetings = 3;
constexpr double kUnequal = 2;             // one rank's payload against the mean
constexpr double kPollsMuch = 0.1;         // of a rank's life; what others took of its core
                                           // is not counted
constexpr uint64_t kSmallPower = 9;        // below 512 B
constexpr uint64_t kManyMessages = 10000;  // of a rank
constexpr double kSmallShare = 0.8;
constexpr double kEagerShare = 0.2;  // of all messages
constexpr double kWorkShare = 0.1;   // of what a rank does not wait: the time of its calls
constexpr double kBusyDaemon = 0.5;  // of a core
constexpr uint64_t kMuchBytes = 64 << 20;
constexpr uint64_t kDefaultEager = 8192;
constexpr double kMigrationsPerSecond = 2;
constexpr uint64_t kMostCulprits = 1;

double Part(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

std::string Percent(uint64_t part, uint64_t whole) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.0f %%", 100 * Part(part, whole));
  return text;
}

std::string RankWord(uint32_t rank) { return "rank " + std::to_string(rank); }

std::string On(const std::string& group) { return group.empty() ? "" : " on " + group; }

class Adviser {
 public:
  Adviser(const JobProfile& job, const Report& report) : job_(job), report_(report) {}

  std::vector<Advice> All() {
    if (report_.measured == 0) {
      return {};
    }
    LookAtMessages();
    LookAtMeetings();
    LookAtUnequalBlocks();
    LookAtLocks();
    LookAtPartitions();
    LookAtPolls();
    LookAtSmallMessages();
    LookAtEager();
    LookAtMemory();
    LookAtPlaces();
    LookAtDaemons();
    std::stable_sort(advice_.begin(), advice_.end(), [](const Advice& one, const Advice& two) {
      return one.lost_ns > two.lost_ns;
    });
    return std::move(advice_);
  }

 private:
  bool IsWorthTelling(uint64_t ns) const { return Part(ns, report_.life_ns) >= kWorthTelling; }

  void Add(std::string cause, std::string sentence, std::string remedy, uint64_t lost_ns) {
    advice_.push_back({std::move(cause), std::move(sentence), std::move(remedy), lost_ns});
  }

  // The ranks that made others wait: by messages where these were counted, else by the calls
  // themselves.
  void LookAtMessages() {
    std::map<std::pair<uint32_t, bool>, std::map<uint32_t, uint64_t>> by_late;
    for (const LatePair& pair : report_.late) {
      by_late[{pair.late, pair.is_sender}][pair.waiter] += pair.waited_ns;
    }
    std::vector<Advice> found;
    for (const auto& [late, waiters] : by_late) {
      uint64_t waited = 0;
      auto worst = waiters.begin();
      for (auto waiter = waiters.begin(); waiter != waiters.end(); ++waiter) {
        waited += waiter->second;
        worst = waiter->second > worst->second ? waiter : worst;
      }
      if (!IsWorthTelling(waited)) {
        continue;
      }
      const auto& [rank, is_sender] = late;
      const std::string whom = Counted(static_cast<int64_t>(waiters.size()), "rank") + " waited " +
                               TimeWords(waited) + " for " + RankWord(rank) +
                               (is_sender ? " to send" : " to receive") + ", " +
                               RankWord(worst->first) + " most (" + TimeWords(worst->second) + ")";
      found.push_back({is_sender ? "late_sender" : "late_receiver", whom,
                       is_sender ? "let " + RankWord(rank) +
                                       " send earlier, or have less to do before; receivers can "
                                       "compute between MPI_Irecv and MPI_Wait"
                                 : "let " + RankWord(rank) +
                                       " post its receives earlier (MPI_Irecv); the senders can "
                                       "use MPI_Isend, and go on",
                       waited});
    }
    std::stable_sort(found.begin(), found.end(), [](const Advice& one, const Advice& two) {
      return one.lost_ns > two.lost_ns;
    });
    // Those behind the first wait for it, as often as not.
    found.resize(std::min<size_t>(found.size(), kMostCulprits + 1));
    std::move(found.begin(), found.end(), std::back_inserter(advice_));
  }

  void LookAtMeetings() {
    for (const MeetingLine& line : report_.meetings) {
      if (!IsWorthTelling(line.lost_ns)) {
        continue;
      }
      const std::string where = std::string(shm::CallText(line.name)) + On(line.group);
      if (line.compared >= kFewMeetings && Part(line.last_times, line.compared) >= kMostly) {
        Add("slow_rank",
            RankWord(line.last_rank) + " came last to " + std::to_string(line.last_times) + " of " +
                std::to_string(line.compared) + " " + where + ", and the others waited " +
                TimeWords(line.last_lost_ns) + " for it",
            "give " + RankWord(line.last_rank) +
                " less to do, or look at what its core shares (ferryrun --report-bindings); a "
                "nonblocking collective lets the others go on meanwhile",
            line.last_lost_ns);
      } else {
        Add("imbalance",
            "the ranks come to " + where + " at different times, no one always last, and waited " +
                TimeWords(line.lost_ns) + " for each other",
            "share the work before it more evenly, or use the nonblocking form", line.lost_ns);
      }
    }
  }

  // Collectives in which each rank has blocks of its own size.
  void LookAtUnequalBlocks() {
    for (const CallLine& line : report_.calls) {
      const std::string name = shm::CallText(line.name);
      const bool has_sizes = name.ends_with("v") || name.ends_with("w");
      if (line.name == CallName::kNone || shm::KindOf(line.name) != CallKind::kCollective ||
          !has_sizes || line.ranks < 2 || !IsWorthTelling(line.time_ns)) {
        continue;
      }
      const double mean = static_cast<double>(line.bytes) / line.ranks;
      if (mean > 0 && static_cast<double>(line.most_bytes) >= kUnequal * mean) {
        char times[32];
        std::snprintf(times, sizeof(times), "%.1f", static_cast<double>(line.most_bytes) / mean);
        Add("unequal_blocks",
            RankWord(line.most_bytes_rank) + " moves " + times +
                " times as many bytes as the mean "
                "in " +
                name + On(line.group) + ", which took " + TimeWords(line.time_ns) + " of all ranks",
            "share the data out more evenly: the rank with most of them decides how long it takes",
            line.time_ns - std::min(line.time_ns, line.time_ns / line.ranks));
      }
    }
  }

  void LookAtLocks() {
    uint64_t waited = 0;
    std::map<int32_t, uint64_t> by_target;
    for (const CallLine& line : report_.calls) {
      waited += IsLock(line.name) ? line.waited_ns : 0;
    }
    for (const PeerLine& line : report_.peers) {
      if (IsLock(line.name)) {
        by_target[line.peer] += line.waited_ns;
      }
    }
    if (!IsWorthTelling(waited)) {
      return;
    }
    std::string target;
    const auto most =
        std::max_element(by_target.begin(), by_target.end(),
                         [](const auto& one, const auto& two) { return one.second < two.second; });
    if (most != by_target.end() && most->second != 0) {
      target = ", most for that of " + RankWord(static_cast<uint32_t>(most->first));
    }
    Add("window_lock", "ranks waited " + TimeWords(waited) + " for locks of windows" + target,
        "hold locks for less time, take MPI_LOCK_SHARED where nobody stores, or use "
        "MPI_Win_lock_all with MPI_Accumulate and MPI_Fetch_and_op",
        waited);
  }

  static bool IsLock(CallName name) {
    return name == CallName::kMpiWinLock || name == CallName::kMpiWinLockAll ||
           name == CallName::kShmemSetLock;
  }

  // Waits for partitioned messages.
  void LookAtPartitions() {
    uint64_t waited = 0;
    uint64_t sends = 0;
    for (const CallLine& line : report_.calls) {
      const bool is_partitioned =
          line.inner != CallName::kNone && shm::KindOf(line.inner) == CallKind::kPartitioned;
      waited += is_partitioned ? line.waited_ns : 0;
      sends += is_partitioned ? line.count : 0;
    }
    if (IsWorthTelling(waited)) {
      Add("late_partitions",
          "ranks waited " + TimeWords(waited) + " in " + std::to_string(sends) +
              " ends of partitioned messages: their partitions came late, one after the other",
          "call MPI_Pready for each partition as soon as it is computed, from the thread that has "
          "computed it, and MPI_Parrived to work on those that are there",
          waited);
    }
  }

  void LookAtPolls() {
    const RankLine* most = nullptr;
    uint64_t polled = 0;
    uint32_t pollers = 0;
    for (const RankLine& line : report_.ranks) {
      if (line.life_ns != 0 && Part(line.polled_ns, line.life_ns) >= kPollsMuch) {
        ++pollers;
        polled += line.polled_ns;
        most = most == nullptr || line.polled_ns > most->polled_ns ? &line : most;
      }
    }
    if (most != nullptr) {
      Add("polling",
          Counted(pollers, "rank") + " looked in vain for messages and requests again and again, " +
              RankWord(most->rank) + " for " + TimeWords(most->polled_ns) + " of " +
              TimeWords(most->life_ns) + " (" +
              std::to_string(job_.ranks[most->rank].totals.polls) +
              " looks of MPI_Test, "
              "MPI_Iprobe and the like)",
          "wait in MPI_Wait, MPI_Waitany or MPI_Probe, which rest, or look less often", polled);
    }
  }

  void LookAtSmallMessages() {
    uint64_t small = 0;
    uint64_t all = 0;
    for (size_t power = 0; power < report_.sent_sizes.size(); ++power) {
      all += report_.sent_sizes[power];
      small += power <= kSmallPower ? report_.sent_sizes[power] : 0;
    }
    // The time of calls without their waits is the cost of each message by itself: a part of the
    // time in which the ranks did something, which is what it is on a crowded machine, too.
    uint64_t work = 0;
    uint64_t waited = 0;
    for (const CallLine& line : report_.calls) {
      waited += line.waited_ns;
      const CallKind kind = line.name == CallName::kNone ? CallKind::kNone : shm::KindOf(line.name);
      work += kind == CallKind::kPointToPoint || kind == CallKind::kCompletion
                  ? line.time_ns - line.waited_ns
                  : 0;
    }
    if (small >= kManyMessages * report_.measured / 2 && Part(small, all) >= kSmallShare &&
        Part(work, report_.life_ns - std::min(waited, report_.life_ns)) >= kWorkShare) {
      Add("many_small_messages",
          std::to_string(small) + " of " + std::to_string(all) +
              " messages have less than 512 B, and calls for messages took " + TimeWords(work) +
              " without waiting, " + Percent(work, report_.life_ns) + " of the ranks' time",
          "put several into one message (a derived datatype, MPI_Pack, or a collective)", work);
    }
  }

  void LookAtEager() {
    if (job_.eager_max_bytes >= kDefaultEager) {
      return;
    }
    uint64_t between = 0;
    uint64_t all = 0;
    for (size_t power = 0; power < report_.sent_sizes.size(); ++power) {
      const uint64_t at_least = power == 0 ? 0 : uint64_t{1} << (power - 1);
      all += report_.sent_sizes[power];
      if (at_least >= job_.eager_max_bytes && at_least < kDefaultEager) {
        between += report_.sent_sizes[power];
      }
    }
    if (Part(between, all) >= kEagerShare) {
      Add("eager_max_bytes",
          std::to_string(between) + " of " + std::to_string(all) +
              " messages are larger than eager_max_bytes (" + std::to_string(job_.eager_max_bytes) +
              " B) but not than 8 KiB: their sends wait "
              "for the receiver",
          "--eager_max_bytes=8192 (docs/tuning.md, Small messages)", 0);
    }
  }

  void LookAtMemory() {
    uint64_t bounce = 0;
    uint64_t pinned = 0;
    uint64_t staged = 0;
    for (const PathLine& line : report_.paths) {
      bounce += line.path == "bounce" ? line.bytes : 0;
      staged += line.path == "staged" ? line.bytes : 0;
      pinned += line.path == "rdma" ? line.bytes : 0;
    }
    if (bounce >= kMuchBytes && bounce > pinned) {
      Add("private_memory",
          std::to_string(bounce >> 20) +
              " MiB between nodes came from private memory, by one more "
              "copy each",
          "ferryrun --malloc, or MPI_Alloc_mem for the buffers (docs/tuning.md, Large messages)",
          0);
    }
    if (staged >= kMuchBytes && staged > pinned) {
      Add("staged_memory",
          std::to_string(staged >> 20) +
              " MiB went through staging memory of ferryd, since the "
              "NIC does not reach the memory they lie in",
          "memory of ferry_alloc or MPI_Alloc_mem, which is pinned; for device memory a provider "
          "with FI_HMEM, else `ferryctl tune` and staging_blocks (docs/tuning.md)",
          0);
    }
  }

  void LookAtPlaces() {
    uint64_t migrations = 0;
    uint32_t anywhere = 0;
    bool is_crowded = false;
    for (const RankProfile& rank : job_.ranks) {
      if (rank.is_measured) {
        migrations += rank.totals.migrations;
        anywhere += rank.cpus > 1 && rank.node_ranks > 1 ? 1 : 0;
        is_crowded = is_crowded || rank.is_crowded;
      }
    }
    const double seconds = static_cast<double>(report_.life_ns) / 1e9;
    if (is_crowded) {
      Add("crowded", "ranks share cores: there are more ranks on a node than it has CPUs for them",
          "fewer ranks for each node; else spin_pauses=0 (docs/tuning.md, Waiting)",
          report_.waited_ns);  // whoever is late may have lacked a core
    } else if (anywhere != 0 && !job_.is_bound &&
               static_cast<double>(migrations) >= kMigrationsPerSecond * seconds) {
      Add("unbound",
          Counted(anywhere, "rank") + " may run on any CPU of the node, and moved " +
              Counted(static_cast<int64_t>(migrations), "time") + " between them",
          "ferryrun --bind-to core (docs/tuning.md, Placement)", 0);
    }
  }

  void LookAtDaemons() {
    for (const NodeFacts& node : job_.nodes) {
      if (job_.wall_ns != 0 && Part(node.cpu_ns, job_.wall_ns) >= kBusyDaemon) {
        Add("daemon_cpu",
            "ferryd of node " + node.name + " used " + TimeWords(node.cpu_ns) +
                " of processor time in " + TimeWords(job_.wall_ns),
            "leave it a core, or direct_links=on where ranks of several nodes talk much "
            "(docs/direct_links.md); daemon_idle_before_sleep_us where it waits (docs/tuning.md)",
            0);
      }
    }
  }

  const JobProfile& job_;
  const Report& report_;
  std::vector<Advice> advice_;
};

}  // namespace

std::vector<Advice> Advise(const JobProfile& job, const Report& report) {
  return Adviser(job, report).All();
}

}  // namespace ferry::tools
