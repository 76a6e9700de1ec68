#include "tests/coll/simulated_world.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace ferry::collective {
namespace {

constexpr int kRubbish = 0xee;
constexpr size_t kScratchAlignment = 64;

}  // namespace

class SimulatedWorld::Endpoint : public Messenger {
 public:
  Endpoint(SimulatedWorld* world, int rank) : world_(world), rank_(rank) {}

  ErrorCode StartSend(int peer, uint32_t tag, const void* data, size_t size_bytes,
                      Ticket* ticket) override {
    if (world_->may_stall && world_->Chance(5)) {
      return ErrorCode::kWouldBlock;
    }
    if (const ErrorCode error = world_->Fault(rank_); error != ErrorCode::kOk) {
      return error;  // and nothing was sent
    }
    Message message{.from = rank_, .to = peer, .size = size_bytes};
    const bool is_over = world_->Chance(2);
    if (is_over) {
      const auto* bytes = static_cast<const char*>(data);
      message.copy.assign(bytes, bytes + size_bytes);
    } else {
      message.data = data;
      message.send_ticket = *ticket = world_->next_ticket_++;
      world_->ends_[*ticket] = {};
    }
    world_->unexpected_[{rank_, peer, tag}].push_back(std::move(message));
    world_->Match({rank_, peer, tag});
    return ErrorCode::kOk;
  }

  ErrorCode StartReceive(int peer, uint32_t tag, void* data, size_t size_bytes, Ticket* ticket,
                         size_t* /*received_bytes*/) override {
    if (world_->may_stall && world_->Chance(5)) {
      return ErrorCode::kWouldBlock;
    }
    if (size_bytes != 0) {
      std::memset(data, kRubbish, size_bytes);
    }
    *ticket = world_->next_ticket_++;
    world_->ends_[*ticket] = {};
    world_->posted_[{peer, rank_, tag}].push_back({data, size_bytes, *ticket});
    world_->Match({peer, rank_, tag});
    return ErrorCode::kOk;
  }

  ErrorCode Test(Ticket ticket, size_t* received_bytes) override {
    const auto end = world_->ends_.find(ticket);
    if (end->second.error == ErrorCode::kWouldBlock) {
      return ErrorCode::kWouldBlock;
    }
    ErrorCode error = end->second.error;
    *received_bytes = end->second.bytes;
    world_->ends_.erase(end);
    if (const ErrorCode fault = world_->Fault(rank_); fault != ErrorCode::kOk) {
      error = fault;
    }
    return error;
  }

  ErrorCode Copy(void* to, const void* from, size_t size_bytes) override {
    std::memcpy(to, from, size_bytes);
    return world_->Fault(rank_);
  }

  void* AllocateScratch(size_t size_bytes, int device) override {
    world_->scratch_devices_.push_back(device);
    if (world_->Fault(rank_) != ErrorCode::kOk) {
      return nullptr;
    }
    auto block = std::make_unique<char[]>(size_bytes + kScratchAlignment);
    void* start = block.get();
    size_t space = size_bytes + kScratchAlignment;
    std::align(kScratchAlignment, size_bytes, start, space);
    std::memset(start, kRubbish, size_bytes);
    world_->scratch_[start] = std::move(block);
    return start;
  }

  void FreeScratch(void* scratch) override { world_->scratch_.erase(scratch); }

 private:
  SimulatedWorld* const world_;
  const int rank_;
};

SimulatedWorld::SimulatedWorld(int size, uint64_t seed) : random_(seed) {
  for (int rank = 0; rank < size; ++rank) {
    endpoints_.push_back(std::make_unique<Endpoint>(this, rank));
    runners_.push_back(std::make_unique<Runner>(endpoints_.back().get()));
  }
}

SimulatedWorld::~SimulatedWorld() = default;

void SimulatedWorld::Match(const Key& key) {
  std::deque<Message>& sent = unexpected_[key];
  std::deque<Posted>& posted = posted_[key];
  while (!sent.empty() && !posted.empty()) {
    Message message = std::move(sent.front());
    message.into = posted.front().into;
    message.capacity = posted.front().capacity;
    message.receive_ticket = posted.front().ticket;
    sent.pop_front();
    posted.pop_front();
    matched_.push_back(std::move(message));
  }
}

void SimulatedWorld::DeliverOne() {
  const size_t index = random_() % matched_.size();
  std::swap(matched_[index], matched_.back());
  const Message message = std::move(matched_.back());
  matched_.pop_back();
  const size_t bytes = std::min(message.size, message.capacity);
  if (bytes != 0) {
    std::memcpy(message.into, message.data != nullptr ? message.data : message.copy.data(), bytes);
  }
  ends_[message.receive_ticket] = {
      message.size > message.capacity ? ErrorCode::kTruncated : ErrorCode::kOk, bytes};
  if (message.send_ticket != 0) {
    ends_[message.send_ticket] = {ErrorCode::kOk, message.size};
  }
}

bool SimulatedWorld::Play(const std::function<void(int rank)>& start,
                          const std::function<bool(int rank)>& is_done,
                          const std::function<void()>& look) {
  std::vector<int> waiting(runners_.size());
  std::iota(waiting.begin(), waiting.end(), 0);
  std::shuffle(waiting.begin(), waiting.end(), random_);
  const auto all_done = [&] {
    for (int rank = 0; rank < size(); ++rank) {
      if (!is_done(rank)) {
        return false;
      }
    }
    return true;
  };
  for (int idle = 0;;) {
    idle++;
    if (!waiting.empty() && (Chance(4) || idle > 2 * size())) {
      start(waiting.back());
      waiting.pop_back();
      idle = 0;
    } else if (!matched_.empty() && Chance(2)) {
      DeliverOne();
      idle = 0;
    } else if (runners_[random_() % runners_.size()]->Advance()) {
      idle = 0;
    } else if (idle > 2 * size()) {
      // The random turns are over: every rank looks once.
      bool any = !matched_.empty();
      for (const auto& runner : runners_) {
        any = runner->Advance() || any;
      }
      if (waiting.empty() && all_done()) {
        return true;
      }
      if (!any && waiting.empty() && !may_stall) {
        return false;
      }
    }
    if (look) {
      look();
    }
  }
}

size_t SimulatedWorld::left_over() const {
  size_t count = matched_.size();
  for (const auto& [key, messages] : unexpected_) {
    count += messages.size();
  }
  for (const auto& [key, posted] : posted_) {
    count += posted.size();
  }
  return count;
}

Runs PrepareRuns(SimulatedWorld* world, const Algorithm& algorithm,
                 const std::vector<CaseRank>& ranks) {
  Runs runs;
  for (const CaseRank& rank : ranks) {
    runs.push_back(
        world->runner(rank.problem.rank)
            .Prepare(std::make_shared<const Schedule>(MakeSchedule(algorithm, rank.problem))));
  }
  return runs;
}

bool PlayRuns(SimulatedWorld* world, const Runs& runs, std::vector<CaseRank>* ranks,
              Reducer* reducer, uint32_t sequence) {
  return world->Play(
      [&](int rank) {
        CaseRank& mine = (*ranks)[rank];
        world->runner(rank).Start(runs[rank].get(),
                                  {mine.input.data(), mine.output.data(), reducer}, sequence);
      },
      [&](int rank) { return runs[rank]->is_done(); });
}

}  // namespace ferry::collective
