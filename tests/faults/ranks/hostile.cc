// Rank 0 scribbles over the shared memory that Ferry has mapped for it; the others, in pairs, go on
// and wait for a message from it.
//
//   hostile own|all SEED
//   hostile command|cycle
//   hostile barrier
//
// own: its session, its inbox, its lanes in its peers' inboxes; all: their whole inboxes, too.
// command: only one wrong command to its daemon; cycle: only a cycle in its match table; barrier:
// wrong words in barriers to rank 1, which names them, and prints "all right" at the end. Peers
// print "rank R: error CODE at NS: text" when a message from rank 0 fails, and "pair all right"
// once they have exchanged more messages afterwards.
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "client/api/front_end.h"
#include "ferry/ferry.h"
#include "shm/atomic.h"
#include "shm/lane.h"
#include "shm/layout/inbox_layout.h"
#include "shm/layout/match_layout.h"
#include "shm/layout/session_layout.h"
#include "tests/e2e/ranks/check.h"
#include "tests/faults/ranks/mapped.h"
#include "tests/faults/ranks/say.h"

namespace {

namespace shm = ferry::shm;

using ferry::ranks::Area;
using ferry::ranks::Mapped;
using ferry::ranks::NowNs;
using ferry::ranks::Say;
using ferry::ranks::StopOnError;

constexpr int kFromHostile = 77'000;
constexpr int kFromNobody = 99'000;
constexpr int kPairTag = 88'000;
constexpr size_t kSizes[] = {8, 300'000, 4096, 1 << 20, 64};
constexpr size_t kLargest = 1 << 20;
constexpr long kRoundsAfterwards = 20;
constexpr uint64_t kScribbleNs = 1'000'000'000;
constexpr uint64_t kLingerNs = 2'000'000'000;

// ---- Rank 0 -------------------------------------------------------------------------------------

// The event descriptors of a process, each with what the kernel calls it in all processes.
std::map<std::string, int> EventDescriptorsOf(const std::filesystem::path& process) {
  std::map<std::string, int> descriptors;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(process / "fdinfo", ignored)) {
    std::ifstream lines(entry.path());
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("eventfd-id:")) {
        descriptors[line] = std::stoi(entry.path().filename());
      }
    }
  }
  return descriptors;
}

// Wakes the daemon by the event descriptor that this process shares with it.
class Doorbell {
 public:
  explicit Doorbell(shm::SessionLayout* session) : wake_(&session->daemon_wake) {
    const std::map<std::string, int> own = EventDescriptorsOf("/proc/self");
    for (const auto& process : std::filesystem::directory_iterator("/proc")) {
      std::string name;
      std::ifstream(process.path() / "comm") >> name;
      if (name != "ferryd") {
        continue;
      }
      for (const auto& [id, theirs] : EventDescriptorsOf(process)) {
        if (const auto found = own.find(id); found != own.end()) {
          fd_ = found->second;
        }
      }
    }
  }
  void Ring() {
    shm::FetchOr(wake_->activity[0], ~uint64_t{0}, std::memory_order_seq_cst);
    const uint64_t one = 1;
    (void)!write(fd_, &one, sizeof(one));
  }

 private:
  shm::WakeLayout* wake_;
  int fd_ = -1;
};

class Scribbler {
 public:
  Scribbler(bool everything, uint64_t seed)
      : seed_(seed),
        daemon_(reinterpret_cast<shm::SessionLayout*>(Mapped("ferry-session").at(0).base)) {
    const Area session = Mapped("ferry-session").at(0);
    areas_.push_back(session);
    areas_.push_back({session.base, 16'384});
    areas_.push_back({session.base + offsetof(shm::SessionLayout, to_daemon), 20'480});
    const auto& header = reinterpret_cast<shm::SessionLayout*>(session.base)->header;
    const auto at = shm::PlacesOfSession(header.job_size, header.request_limit);
    areas_.push_back({session.base + at.peers, at.match - at.peers});
    for (const Area& inbox : Mapped("ferry-inbox")) {
      auto* layout = reinterpret_cast<shm::InboxLayout*>(inbox.base);
      const bool own = layout->header.rank == static_cast<uint32_t>(ferry_rank());
      uint8_t* lane = inbox.base + shm::InboxLaneOffset(0);  // rank 0 is the first here
      if (own || everything) {
        areas_.push_back(inbox);
        areas_.push_back({inbox.base, 4096});
      }
      areas_.push_back({lane, 20'480});
      if (!own) {
        peers_.push_back(&layout->wake);
      }
    }
  }

  void Run() {
    const uint64_t end_ns = NowNs() + kScribbleNs;
    while (NowNs() < end_ns) {
      for (int n = 0; n < 200; ++n) {
        WriteOne();
      }
      WakeAll();
      usleep(500);
    }
  }

 private:
  uint64_t Next(uint64_t bound) {
    seed_ = seed_ * 6'364'136'223'846'793'005U + 1'442'695'040'888'963'407U;
    return (seed_ >> 33) % bound;
  }
  void WriteOne() {
    const Area& area = areas_[Next(areas_.size())];
    const size_t offset = Next(area.size_bytes / 4) * 4;
    const uint32_t values[] = {0, static_cast<uint32_t>(Next(4)), static_cast<uint32_t>(Next(256)),
                               ~uint32_t{0}, static_cast<uint32_t>(Next(uint64_t{1} << 31))};
    std::memcpy(area.base + offset, &values[Next(std::size(values))], sizeof(uint32_t));
  }
  // Wakes all sleepers.
  void WakeAll() {
    daemon_.Ring();
    for (shm::WakeLayout* wake : peers_) {
      shm::FetchOr(wake->activity[0], 1, std::memory_order_seq_cst);
      shm::FetchAdd(wake->sequence, 1, std::memory_order_seq_cst);
      syscall(SYS_futex, &wake->sequence, FUTEX_WAKE, 1 << 30, nullptr, nullptr, 0);
    }
  }

  uint64_t seed_;
  std::vector<Area> areas_;
  Doorbell daemon_;
  std::vector<shm::WakeLayout*> peers_;
};

[[noreturn]] void BeHostile(bool everything, uint64_t seed) {
  Scribbler scribbler(everything, seed);
  Say("under way");
  scribbler.Run();
  std::printf("rank 0: scribbled until %llu\n", static_cast<unsigned long long>(NowNs()));
  std::fflush(stdout);
  usleep(kLingerNs / 1000);  // it stays alive: the daemon must end it
  std::_Exit(9);
}

// Makes one mistake, and waits for the consequences.
[[noreturn]] void BeWrong(bool in_command) {
  static char bytes[2 * shm::kCellBytes];  // too many for the receive
  ferry_request request{};
  // A message of rank 1 finds the cycle; after the command nothing but the daemon may end the wait.
  StopOnError(
      ferry_irecv(bytes, sizeof(bytes), 1, in_command ? kFromNobody : kFromHostile, &request));
  auto* session = reinterpret_cast<shm::SessionLayout*>(Mapped("ferry-session").at(0).base);
  if (in_command) {
    shm::Descriptor command{};
    command.kind = static_cast<uint8_t>(shm::DescriptorKind::kEager);
    command.destination = 2;  // that rank is here, and not the daemon's concern
    command.size_bytes = uint64_t{1} << 40;
    shm::LaneProducer(&session->to_daemon).TryPush(command);
    Doorbell(session).Ring();
  } else {
    auto* table = reinterpret_cast<shm::MatchTableLayout*>(
        reinterpret_cast<uint8_t*>(session) +
        shm::PlacesOfSession(session->header.job_size, session->header.request_limit).match);
    auto* entries = reinterpret_cast<shm::MatchEntry*>(table + 1);
    for (uint32_t entry = 1; entry < table->fresh; ++entry) {
      if (entries[entry].state == static_cast<uint32_t>(shm::MatchState::kPosted)) {
        entries[entry].tag = 0;  // another tag than it was posted with, but in the same chain
        entries[entry].next[0] = entry;
      }
    }
  }
  Say("under way");
  (void)ferry_barrier();
  ferry_status status{};
  const int code = ferry_wait(&request, &status);
  StopOnError(code != FERRY_SUCCESS ? code : status.error);
  std::_Exit(1);
}

// ---- Both of two ranks --------------------------------------------------------------------------

// Rank 0 tells the other one, ahead of its message in each barrier, that it has failed there.
void LieInBarriers() {
  struct Lie {
    int32_t error;
    size_t size_bytes;
  };
  int32_t barrier = 0;  // that of main was the first
  for (const Lie& lie : {Lie{12'345, 4}, Lie{-1, 4}, Lie{INT32_MIN, 4}, Lie{FERRY_SUCCESS, 4},
                         Lie{FERRY_PENDING, 4}, Lie{FERRY_ERR_PEER_DIED, 3}}) {
    ++barrier;
    if (ferry_rank() == 0) {
      ferry::client::FrontEnd* const front_end = ferry_front_end(ferry::client::kFrontEndVersion);
      ferry::client::RequestHandle send = 0;
      int32_t error = lie.error;
      const ferry::client::Message words{&error, lie.size_bytes, 1, barrier << 8,
                                         ferry::client::kInternalContext};
      ferry::client::Completion sent;
      CHECK_EQ(front_end->messages->StartSend(words, &send) == ferry::ErrorCode::kOk, true);
      front_end->messages->Wait(send, &sent);
      CHECK_OK(ferry_barrier());
      continue;
    }
    CHECK_EQ(ferry_barrier(), FERRY_ERR_CORRUPT);
    const std::string said = ferry_last_error();
    CHECK_EQ(said.find("rank 0 says that the barrier has failed with error " +
                       std::to_string(lie.error) + " in " + std::to_string(lie.size_bytes) +
                       " bytes, which is none") != std::string::npos,
             true);
  }
  Say("all right");
  CHECK_OK(ferry_finalize());
}

// ---- The others --------------------------------------------------------------------------------

// Prints the error once, without ending the program.
void Report(int code) {
  std::printf("rank %d: error %d at %llu: %s\n", ferry_rank(), code,
              static_cast<unsigned long long>(NowNs()), ferry_last_error());
  std::fflush(stdout);
}

class Neighbour {
 public:
  // Runs before anything is wrong.
  void WarmUp() {
    for (; round_ < 3; ++round_) {
      Exchange();
    }
    Say("under way");
  }
  void Run() {
    StopOnError(ferry_irecv(from_hostile_.data(), kLargest, 0, kFromHostile, &receive_));
    StopOnError(ferry_isend(to_hostile_.data(), kLargest, 0, kFromHostile, &send_));
    waits_ = true;
    while (!Exchange()) {
      ++round_;
    }
    Say("pair all right");
    std::fflush(stdout);
    std::_Exit(0);  // the whole job cannot finalize any more
  }

 private:
  // The last four bytes of each message say whether its sender has seen enough.
  bool Exchange() {
    const int partner = ferry_rank() % 2 == 1 ? ferry_rank() + 1 : ferry_rank() - 1;
    const size_t size = kSizes[static_cast<size_t>(round_) % std::size(kSizes)];
    const uint64_t number = static_cast<uint64_t>(round_);
    const int32_t mine = SeenEnough() ? 1 : 0;
    int32_t theirs = 0;
    ferry::ranks::Fill(out_.data(), size, number);
    std::memcpy(out_.data() + size, &mine, sizeof(mine));
    ferry_request requests[2];
    ferry_status statuses[2];
    StopOnError(ferry_irecv(in_.data(), in_.size(), partner, kPairTag, &requests[0]));
    StopOnError(ferry_isend(out_.data(), size + 4, partner, kPairTag, &requests[1]));
    StopOnError(ferry_waitall(2, requests, statuses));
    CHECK_EQ(statuses[0].size_bytes, size + 4);
    CHECK_BYTES(in_.data(), size, number);
    std::memcpy(&theirs, in_.data() + size, sizeof(theirs));
    return mine != 0 && theirs != 0;
  }
  bool SeenEnough() {
    if (waits_ && !failed_) {
      int done = 0;
      ferry_status status{};
      const int code = ferry_test(&receive_, &done, &status);
      if (code != FERRY_SUCCESS || done != 0) {
        failed_ = true;
        Report(code != FERRY_SUCCESS ? code : status.error);
      }
    }
    return failed_ && ++afterwards_ > kRoundsAfterwards;
  }

  std::vector<uint8_t> from_hostile_ = std::vector<uint8_t>(kLargest);
  std::vector<uint8_t> to_hostile_ = std::vector<uint8_t>(kLargest);
  std::vector<uint8_t> in_ = std::vector<uint8_t>(kLargest + 4);
  std::vector<uint8_t> out_ = std::vector<uint8_t>(kLargest + 4);
  ferry_request receive_{};
  ferry_request send_{};
  long round_ = 0;
  bool waits_ = false;
  bool failed_ = false;
  long afterwards_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const uint64_t seed = argc > 2 ? std::stoull(argv[2]) : 1;
  CHECK_OK(ferry_init(FERRY_THREAD_SINGLE, nullptr));
  CHECK_OK(ferry_barrier());  // so that every rank has joined
  const std::string mode = argc > 1 ? argv[1] : "own";
  if (ferry_rank() == 0 && (mode == "command" || mode == "cycle")) {
    BeWrong(mode == "command");
  }
  if (mode == "barrier") {
    LieInBarriers();
    return 0;
  }
  Neighbour neighbour;
  if (ferry_rank() != 0) {
    neighbour.WarmUp();
  }
  (void)ferry_barrier();  // a rank that was wrong may be gone
  if (ferry_rank() == 0) {
    BeHostile(mode == "all", seed);
  }
  neighbour.Run();
}
