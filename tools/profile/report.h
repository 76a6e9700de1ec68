// The report of a job: sums over its measured ranks, and what they mean
// (`ferryrun --report`).
//
// Plain data and pure functions; any thread, nothing blocks.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "shm/layout/call_names.h"
#include "tools/profile/node_clock.h"
#include "tools/profile/rank_profile.h"

namespace ferry::tools {

struct NodeFacts {
  std::string name;
  uint64_t cpu_ns = 0;  // that its ferryd used since the first rank was measured
  NodeClock clock = {};
  std::string trouble = {};  // why nothing came from it; empty: it has answered
};

// The job as its launcher knows it, and what has come of its ranks.
struct JobProfile {
  std::string id;
  std::string name;  // that its user gave it; empty: none
  std::string program;
  uint64_t wall_ns = 0;
  int exit_code = 0;
  uint64_t eager_max_bytes = 0;  // of the ranks' options
  bool is_bound = false;         // ranks were placed on CPUs of their own
  std::vector<NodeFacts> nodes;
  std::vector<uint32_t> node_of_rank;
  std::vector<RankProfile> ranks;  // by rank
};

// Sums of one function on one communicator, over all ranks.
struct CallLine {
  shm::CallName name = shm::CallName::kNone;
  shm::CallName inner = shm::CallName::kNone;
  std::string group;  // the communicator, as people call it; empty: none
  uint64_t count = 0;
  uint64_t bytes = 0;
  uint64_t time_ns = 0;
  uint64_t waited_ns = 0;
  uint64_t longest_ns = 0;
  uint32_t longest_rank = 0;
  uint32_t ranks = 0;  // that called it
  // Of its time, and of its payload, in one rank.
  uint64_t most_ns = 0;
  uint32_t most_rank = 0;
  uint64_t most_bytes = 0;
  uint32_t most_bytes_rank = 0;
};

// One rank waited for another: of messages, its receives for a late sender, or its sends for a late
// receiver.
struct LatePair {
  uint32_t waiter = 0;
  uint32_t late = 0;
  bool is_sender = true;  // the late one sends
  uint64_t waits = 0;
  uint64_t waited_ns = 0;
};

// A function with its target, by rank: of locks of windows, sends, receives.
struct PeerLine {
  shm::CallName name = shm::CallName::kNone;
  uint32_t rank = 0;
  int32_t peer = 0;
  uint64_t count = 0;
  uint64_t bytes = 0;
  uint64_t time_ns = 0;
  uint64_t waited_ns = 0;
  uint64_t longest_ns = 0;
};

// A collective of one communicator, compared over its ranks.
struct MeetingLine {
  shm::CallName name = shm::CallName::kNone;
  std::string group;
  uint64_t compared = 0;      // times that at least two ranks' arrivals are known
  uint64_t lost_ns = 0;       // that ranks had come before the last one, all together
  uint32_t last_rank = 0;     // that came last most often,
  uint64_t last_times = 0;    // so often,
  uint64_t last_lost_ns = 0;  // and made the others lose so much by it
  uint64_t bytes = 0;
  uint64_t most_bytes = 0;  // of one rank in the compared ones
  uint32_t most_bytes_rank = 0;
  uint32_t ranks = 0;
};

// A file, over all ranks.
struct FileLine {
  std::string name;
  uint64_t opens = 0;  // by ranks
  uint64_t reads = 0;
  uint64_t read_bytes = 0;
  uint64_t writes = 0;
  uint64_t written_bytes = 0;
  uint64_t calls = 0;  // all on it
  uint64_t time_ns = 0;
  uint64_t waited_ns = 0;
  uint64_t longest_ns = 0;
  uint32_t longest_rank = 0;
  uint32_t ranks = 0;  // that used it
};

struct RankLine {
  uint32_t rank = 0;
  bool is_measured = false;
  std::string note;  // why it is not, or that it was cut off
  uint64_t life_ns = 0;
  uint64_t ferry_ns = 0;
  uint64_t waited_ns = 0;
  uint64_t polled_ns = 0;
  uint64_t sent_bytes = 0;
  uint64_t messages = 0;
};

struct PathLine {
  std::string path;
  uint64_t messages = 0;
  uint64_t bytes = 0;
};

// A cause of lost time, the worst first.
struct Advice {
  std::string cause;     // a word for programs, such as "late_sender"
  std::string sentence;  // what was seen, and where
  std::string remedy;    // what to change; names the option where there is one
  uint64_t lost_ns = 0;  // at most so much could be won, of all ranks together; 0: unknown
};

struct Report {
  std::vector<RankLine> ranks;
  uint32_t measured = 0;
  uint64_t life_ns = 0;  // sums over the measured ranks
  uint64_t ferry_ns = 0;
  uint64_t waited_ns = 0;
  uint64_t polled_ns = 0;
  std::vector<CallLine> calls;        // those with most time first
  std::vector<PeerLine> peers;        // likewise, some
  std::vector<LatePair> late;         // those with most waits first
  std::vector<MeetingLine> meetings;  // those that cost most first
  std::vector<PathLine> paths;
  std::vector<FileLine> files;       // those with most time first
  uint64_t unlisted_file_calls = 0;  // on further files
  std::array<uint64_t, shm::kProfilePowers> sent_sizes{};
  std::vector<std::vector<uint64_t>> traffic;  // bytes sent, by rank and rank; empty: too many
  std::vector<Advice> advice;
};

Report MakeReport(const JobProfile& job);

// The sentences of what was slow, and why (advice.cc). Called by MakeReport.
std::vector<Advice> Advise(const JobProfile& job, const Report& report);

// ---- Writers ----

// For people, at the end of a job: some lines, and at most `most_lines` of each table.
std::string ReportText(const JobProfile& job, const Report& report);
// All of it, for programs; one object. docs/observability.md describes it.
std::string ReportJson(const JobProfile& job, const Report& report);
// A page for browsers: one file without scripts, fonts or anything from elsewhere.
std::string ReportHtml(const JobProfile& job, const Report& report);

// "MPI_Wait of MPI_Irecv".
std::string CallWords(shm::CallName name, shm::CallName inner);
// "1.23 s", "45.1 ms", "7.80 us".
std::string TimeWords(uint64_t ns);

}  // namespace ferry::tools
