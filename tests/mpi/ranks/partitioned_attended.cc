// A thread that waits for a partitioned send moves the partitions that kernels ready, alone: the
// library's thread, which looks now and then, moves none. Run by two ranks on two nodes.
#include <ferry/ferry.h>
#include <ferry/stream.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "client/api/front_end.h"
#include "tests/mpi/ranks/partitioned_kernels.h"
#include "tests/support/patience.h"

namespace {

using ferry::client::FrontEnd;
using ferry::client::NodePeers;
using ferry::tests::kPatience;

constexpr int kRounds = 5;

std::atomic<bool> may_ready = false;    // the kernel may begin
std::atomic<bool> has_readied = false;  // it has, all partitions

uint64_t OperationsInMemoryOfOthers() {
  for (int i = 0; i < ferry_counter_count(); ++i) {
    if (std::string_view(ferry_counter_name(i)) == "one_sided_operations") {
      return ferry_counter_value(i);
    }
  }
  abort();
}

std::string WordsOf(const std::filesystem::path& file) {
  std::ifstream words(file);
  return {std::istreambuf_iterator<char>(words), {}};
}

// How often the library's thread has gone to sleep: the only one without a name of its own.
long SleepsOfHelper() {
  const std::string name_of_all = WordsOf("/proc/self/comm");
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    if (task.path().filename() != std::to_string(getpid()) &&
        WordsOf(task.path() / "comm") == name_of_all) {
      const std::string status = WordsOf(task.path() / "status");
      const std::string count = "\nvoluntary_ctxt_switches:";
      return std::atol(status.c_str() + status.find(count) + count.size());
    }
  }
  return -1;
}

// Waits for `condition`, of which other threads are the cause.
template <typename Condition>
void Await(Condition&& condition) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    CHECK(std::chrono::steady_clock::now() < end);
    sched_yield();
  }
}

// Waits until the library's thread has looked, and gone to sleep, `count` times more.
void AwaitLooks(long count) {
  const long sleeps = SleepsOfHelper();
  CHECK(sleeps >= 0);
  Await([&] { return SleepsOfHelper() >= sleeps + count; });
}

// Passes calls on to libferry's peers, but holds the next Poll of the program's thread up, so that
// the library's thread has time to look.
class HeldUpPeers final : public NodePeers {
 public:
  explicit HeldUpPeers(NodePeers* real) : real_(*real) {}

  // Once a thread waits in that round.
  void HoldUpNext(const ferry_partitioned_state* state, int round) {
    state_ = state;
    round_ = static_cast<uint64_t>(round);
  }
  uint64_t polls_of_others() const { return polls_of_others_.load(); }

  bool Poll() override {
    if (gettid() != getpid()) {
      polls_of_others_.fetch_add(1);
    } else if (state_ != nullptr && ferry_device_load_acquire(&state_->attended) == round_) {
      state_ = nullptr;
      HoldUp();
    }
    return real_.Poll();
  }
  void SetThreads(bool allowed) override { real_.SetThreads(allowed); }
  void WaitFor(bool (*done)(void*), void* argument, int32_t peer, uint64_t end_ns) override {
    real_.WaitFor(done, argument, peer, end_ns);
  }
  void WakeThreads() override { real_.WakeThreads(); }
  uint32_t Expose(void* base, uint64_t size_bytes, ferry::shm::ElementLock* lock) override {
    return real_.Expose(base, size_bytes, lock);
  }
  void Unexpose(uint32_t segment) override { real_.Unexpose(segment); }
  ferry::ErrorCode CopyFromPeer(uint32_t rank, const ferry::shm::Location& from, void* to,
                                uint64_t size_bytes) override {
    return real_.CopyFromPeer(rank, from, to, size_bytes);
  }
  ferry::ErrorCode CopyToPeer(uint32_t rank, const ferry::shm::Location& to, const void* from,
                              uint64_t size_bytes) override {
    return real_.CopyToPeer(rank, to, from, size_bytes);
  }
  ferry::ErrorCode CopyEach(uint32_t rank, ferry::client::CopyDirection direction,
                            std::span<const ferry::ProcessCopy> copies) override {
    return real_.CopyEach(rank, direction, copies);
  }
  bool IsPrivateMemoryReachable(uint32_t rank) const override {
    return real_.IsPrivateMemoryReachable(rank);
  }
  ferry::StatusOr<std::shared_ptr<std::byte>> MapPeer(uint32_t rank,
                                                      const ferry::shm::Location& where,
                                                      uint64_t size_bytes,
                                                      bool* is_by_stream) override {
    return real_.MapPeer(rank, where, size_bytes, is_by_stream);
  }
  ferry::ErrorCode PeerState(uint32_t rank) const override { return real_.PeerState(rank); }
  void WakePeer(uint32_t rank) override { real_.WakePeer(rank); }
  void Rest(uint64_t longest_ns) override { real_.Rest(longest_ns); }
  ferry::Status Explain(ferry::ErrorCode error) const override { return real_.Explain(error); }

 private:
  void HoldUp() {
    AwaitLooks(2);  // one may have begun before
    const uint64_t operations = OperationsInMemoryOfOthers();
    const uint64_t polls = polls_of_others();
    may_ready.store(true);
    Await([] { return has_readied.load(); });
    AwaitLooks(10);
    CHECK(OperationsInMemoryOfOthers() == operations);
    CHECK(polls_of_others() == polls);
  }

  NodePeers& real_;
  const ferry_partitioned_state* state_ = nullptr;  // null: nothing is held up
  uint64_t round_ = 0;
  std::atomic<uint64_t> polls_of_others_ = 0;
};

struct Later {
  Half* send;
  int round;
};

// While a thread waits.
void ReadyAll(void* argument) {
  const Later& its = *static_cast<Later*>(argument);
  while (!may_ready.load()) {
    sched_yield();
  }
  for (int i = 0; i < its.send->partitions(); ++i) {
    its.send->Fill(i, its.round, Alone());
    KERNEL_CHECK(MPIX_Pready(i, its.send->prequest()) == MPIX_DEVICE_SUCCESS);
  }
  has_readied.store(true);
}

void WhoWaitsIsAlone(HeldUpPeers* peers, int bytes) {
  const Half::Shape shape{.partitions = 4, .bytes = bytes, .min_bytes = "1"};
  Half send(true, shape);
  Half receive(false, shape);
  send.MakePrequest();
  ferry_stream stream = nullptr;
  CHECK(ferry_stream_create(0, &stream) == FERRY_SUCCESS);
  for (int round = 1; round <= kRounds; ++round) {
    receive.Start();
    send.Start();
    OK(MPIX_Pbuf_prepare(send.request()));
    may_ready.store(false);
    has_readied.store(false);
    Later later{&send, round};
    peers->HoldUpNext(ferry_partitioned_state_of(send.prequest()), round);
    CHECK(ferry_stream_launch(stream, ReadyAll, &later) == FERRY_SUCCESS);
    send.Wait();
    CHECK(ferry_stream_synchronize(stream) == FERRY_SUCCESS);
    receive.Wait();
    for (int i = 0; i < shape.partitions; ++i) {
      CHECK(receive.IsFilled(i, round));
    }
    CHECK(send.prequest()->moved == 0);  // by kernels, or by ferryd for them
  }
  CHECK(ferry_stream_destroy(&stream) == FERRY_SUCCESS);
}

}  // namespace

int main(int argc, char** argv) {
  begin(&argc, &argv);
  CHECK(size == 2);
  FrontEnd* const front_end = ferry_front_end(ferry::client::kFrontEndVersion);
  NodePeers* const real = front_end->peers;
  HeldUpPeers peers(real);
  front_end->peers = &peers;
  WhoWaitsIsAlone(&peers, 1000);
  WhoWaitsIsAlone(&peers, 300'000);
  OK(MPI_Barrier(MPI_COMM_WORLD));
  front_end->peers = real;
  return end_well("who waited was alone");
}
