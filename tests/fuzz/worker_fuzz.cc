// A worker process, which is its user's, writes anything into the memory that it shares with ferryd
// and into its socket. Every copy ends once, its memory comes back, and only ranks that were asked
// about are answered for.
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "daemon/worker/worker_channel.h"
#include "daemon/worker/worker_supervisor.h"
#include "internode/staging/staging_pool.h"
#include "shm/atomic.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/internode/registration/test_registrar.h"

namespace ferry::daemon {
namespace {

using fuzz::FuzzInput;

constexpr uint32_t kMaxSteps = 64;
constexpr uint32_t kCapacity = 8;
constexpr uint32_t kRanks = 3;
constexpr uint64_t kBlockBytes = 4096;

template <typename T>
T Must(StatusOr<T> value) {
  if (!value.ok()) {
    abort();
  }
  return std::move(*value);
}

void Require(bool condition) {
  if (!condition) {
    abort();
  }
}

class WorkerFuzz final : progress::CopySink {
 public:
  WorkerFuzz() {
    JobPlan plan;
    plan.node_of_rank = {0, 0, 0};
    plan.local_index = {0, 1, 2};
    channel_ = Must(WorkerChannel::Create(plan, kCapacity));
    pool_ = registrar_.MakePool({kBlockBytes, 4});
    copier_ = std::make_unique<RemoteCopier>(
        channel_, [](progress::StagingPool&, uint32_t) {},
        [this](const std::string&) { Condemn(); });
    copier_->Open(*pool_);
    attention_ = MakeRemoteAttention(channel_, 1);
  }

  void Run(FuzzInput& input) {
    for (uint32_t step = 0; step < kMaxSteps && !input.empty(); ++step) {
      Step(input);
    }
    Read();
    copier_->Fail();
    copier_->Collect(*this);
    Require(copier_->pending() == 0 && under_way_.empty() && pool_->busy() == 0);
    Require(condemned_ <= 1);
  }

 private:
  void Step(FuzzInput& input) {
    switch (input.Below(10)) {
      case 0:
      case 1:
        Submit(input);
        break;
      case 2:
      case 3:
        Answer(input);
        break;
      case 4:
        Scribble(input);
        break;
      case 5:
        Say(input);
        break;
      case 6:
        Read();
        break;
      case 7:
        copier_->Collect(*this);
        break;
      case 8:
        Ask(input.Below(kRanks));
        break;
      default:
        if (input.Below(4) == 0) {
          copier_->Abandon(input.Below(kRanks), *this);
        } else {
          attention_->Raise();
        }
        break;
    }
  }

  // ---- ferryd

  void Submit(FuzzInput& input) {
    progress::StagingBlock* block =
        failed_ ? nullptr : pool_->Take(progress::StagingUse::kOutgoing, 0);
    if (block == nullptr) {
      return;
    }
    progress::CopyTask task;
    task.lane = input.Below(kRanks);
    task.local = block->base;
    task.size_bytes = kBlockBytes;
    task.context = block;
    Require(copier_->Submit(task));
    under_way_.insert(block);
  }
  void OnCopied(const progress::CopyTask& task) override {
    auto* const block = static_cast<progress::StagingBlock*>(task.context);
    Require(under_way_.erase(block) == 1);
    if (!task.abandoned) {
      pool_->Give(block);
    }
  }
  void Ask(uint32_t rank) {
    auto session = std::make_shared<Session>();
    session->rank = rank;
    replies_.Expect(session);
    asked_.insert(rank);
    replies_.ExpectImport(rank, rank);
    imports_.insert(rank);
  }
  // As the supervisor does.
  void Read() {
    StatusOr<Received> received = Received::kPacket;
    while (!failed_ && received.ok() && *received == Received::kPacket) {
      WorkerNews news;
      news.on_reach = [this](uint32_t rank) { Require(asked_.erase(rank) == 1); };
      news.on_import = [this](uint32_t rank, uint32_t region, const Status& status) {
        const auto asked = imports_.find(rank);
        Require(region == rank && asked != imports_.end());
        Require(status.message().size() <= sizeof(WorkerMessage::text));
        imports_.erase(asked);
      };
      received = replies_.Read(channel_->socket(), geteuid(), news);
    }
    if (!received.ok()) {
      failed_ = true;
      copier_->Fail();
    }
  }
  void Condemn() {
    failed_ = true;
    ++condemned_;
  }

  // ---- The worker

  // A correct result, more or less spoilt.
  void Answer(FuzzInput& input) {
    CopyResult result{};
    result.id = channel_->commands()[input.Below(kCapacity)].id;
    result.error = -static_cast<int32_t>(input.Below(30));
    if (input.Below(4) == 0) {
      input.Spoil(&result);
    }
    channel_->results()[results_ % kCapacity] = result;
    shm::StoreRelease(channel_->control()->results_tail, ++results_);
  }
  void Scribble(FuzzInput& input) {
    WorkerControlLayout& control = *channel_->control();
    const uint64_t value = input.Below(2) == 0 ? input.Below(20) : input.Take<uint64_t>();
    switch (input.Below(4)) {
      case 0:
        control.sleeping = static_cast<uint32_t>(value);
        break;
      case 1:
        control.results_tail = value;
        break;
      case 2:
        control.wanted[1].word = static_cast<uint32_t>(value);
        break;
      default: {
        const uint64_t word = input.Take<uint16_t>() % (channel_->control_bytes() / 8);
        std::memcpy(reinterpret_cast<std::byte*>(&control) + word * 8, &value, sizeof(value));
        break;
      }
    }
  }
  void Say(FuzzInput& input) {
    constexpr WorkerMessageKind kKinds[] = {WorkerMessageKind::kReady, WorkerMessageKind::kReach,
                                            WorkerMessageKind::kReach, WorkerMessageKind::kTrouble,
                                            WorkerMessageKind::kImport};
    WorkerMessage message = MakeWorkerMessage(kKinds[input.Below(std::size(kKinds))]);
    message.rank = input.Below(kRanks);
    message.region = message.rank;
    if (input.Below(4) == 0) {
      input.Spoil(&message);
    }
    const std::vector<int> fds(input.Below(8) == 0 ? input.Below(kMaxPacketFds + 1) : 0,
                               channel_->bell());
    const size_t bytes = input.Below(16) == 0 ? input.Below(200) : sizeof(message);
    (void)SendPacket(channel_->worker_socket().get(),
                     std::as_bytes(std::span(&message, 1)).first(std::min(bytes, sizeof(message))),
                     fds)
        .ok();
  }

  TestRegistrar registrar_;
  std::unique_ptr<progress::StagingPool> pool_;
  std::shared_ptr<WorkerChannel> channel_;
  std::unique_ptr<RemoteCopier> copier_;
  progress::AttentionPtr attention_;
  WorkerReplies replies_;
  std::set<progress::StagingBlock*> under_way_;
  std::set<uint32_t> asked_;
  std::multiset<uint32_t> imports_;  // requests by rank
  uint64_t results_ = 0;
  uint32_t condemned_ = 0;
  bool failed_ = false;
};

}  // namespace
}  // namespace ferry::daemon

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ferry::fuzz::FuzzInput input(data, size);
  ferry::daemon::WorkerFuzz().Run(input);
  return 0;
}
