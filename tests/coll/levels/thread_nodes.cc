#include "tests/coll/levels/thread_nodes.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace ferry::collective {

// The messages of one rank: sends are over at once.
class ThreadNodes::Mail : public Messenger {
 public:
  Mail(ThreadNodes* nodes, int self) : nodes_(*nodes), self_(self) {}

  ErrorCode StartSend(int peer, uint32_t tag, const void* data, size_t size_bytes,
                      Ticket* ticket) override {
    const auto* const bytes = static_cast<const char*>(data);
    std::lock_guard lock(nodes_.mutex_);
    nodes_.messages_[{self_, peer, tag}].emplace_back(bytes, bytes + size_bytes);
    *ticket = 0;
    return ErrorCode::kOk;
  }
  ErrorCode StartReceive(int peer, uint32_t tag, void* data, size_t size_bytes, Ticket* ticket,
                         size_t* /*received_bytes*/) override {
    *ticket = ++last_ticket_;
    receives_[*ticket] = {{peer, self_, tag}, data, size_bytes};
    return ErrorCode::kOk;
  }
  ErrorCode Test(Ticket ticket, size_t* received_bytes) override {
    const Receive receive = receives_.at(ticket);
    // Before the look for messages: what it has sent counts.
    const bool is_dead = nodes_.dead_[static_cast<size_t>(std::get<0>(receive.key))];
    std::lock_guard lock(nodes_.mutex_);
    std::deque<std::vector<char>>& waiting = nodes_.messages_[receive.key];
    if (waiting.empty()) {
      if (is_dead) {
        receives_.erase(ticket);
      }
      return is_dead ? ErrorCode::kPeerDied : ErrorCode::kWouldBlock;
    }
    const std::vector<char>& message = waiting.front();
    *received_bytes = std::min(message.size(), receive.size_bytes);
    const bool is_whole = message.size() <= receive.size_bytes;
    if (*received_bytes != 0) {
      std::memcpy(receive.data, message.data(), *received_bytes);
    }
    waiting.pop_front();
    receives_.erase(ticket);
    return is_whole ? ErrorCode::kOk : ErrorCode::kTruncated;
  }
  ErrorCode Copy(void* to, const void* from, size_t size_bytes) override {
    std::memcpy(to, from, size_bytes);
    return ErrorCode::kOk;
  }
  void* AllocateScratch(size_t size_bytes, int /*device*/) override {
    return std::aligned_alloc(64, (size_bytes + 64) / 64 * 64);
  }
  void FreeScratch(void* scratch) override { std::free(scratch); }

 private:
  struct Receive {
    Key key;
    void* data;
    size_t size_bytes;
  };

  ThreadNodes& nodes_;
  const int self_;
  Ticket last_ticket_ = 0;
  std::map<Ticket, Receive> receives_;
};

struct ThreadNodes::Rank : PartsByMessages {
  Rank(ThreadNodes* the_nodes, int rank, Board* board, const BoardLimits& limits)
      : nodes(*the_nodes),
        self(rank),
        mail(the_nodes, rank),
        runner(&mail),
        kept(&runner, rank, the_nodes->node_of_),
        levels(the_nodes->node_of_, rank, board, limits, &mail) {}

  RunFailure Run(const Problem& part, const Binding& binding, const RunFailure& before) override {
    DieAt(Moment::kBeforeMessages);
    KeptRuns::Taken taken = kept.Take(part, table);
    runner.Start(taken.run(), binding, static_cast<uint32_t>(nodes.number_), before);
    while (!taken.run()->is_done()) {
      if (!runner.Advance()) {
        std::this_thread::yield();
      }
    }
    const RunFailure failure = taken.run()->failure();
    kept.GiveBack(std::move(taken));
    DieAt(Moment::kAfterMessages);
    return failure;
  }
  void DieAt(Moment moment) {
    if (nodes.moments_[static_cast<size_t>(self)] == moment) {
      nodes.Kill(self);
      throw Death();
    }
  }

  ThreadNodes& nodes;
  const int self;
  Mail mail;
  Runner runner;
  KeptRuns kept;
  TwoLevels levels;
  SelectionTable table;
};

ThreadNodes::ThreadNodes(std::vector<int> node_of, std::map<int, bool> has_board)
    : node_of_(std::move(node_of)),
      dead_(std::make_unique<std::atomic<bool>[]>(node_of_.size())),
      moments_(node_of_.size(), Moment::kNever) {
  std::map<int, int> members;  // by node, so far
  for (const int node : node_of_) {
    members[node]++;
  }
  for (const auto& [node, count] : members) {
    const auto told = has_board.find(node);
    if (count > 1 && (told == has_board.end() || told->second)) {
      nodes_[node] = std::make_unique<ThreadNode>(count, true);
    }
  }
  BoardLimits limits;
  limits.direct_min_bytes.fill(20000);
  members.clear();
  for (int rank = 0; rank < size(); ++rank) {
    const int node = node_of_[static_cast<size_t>(rank)];
    const auto board = nodes_.find(node);
    ranks_.push_back(std::make_unique<Rank>(
        this, rank, board == nodes_.end() ? nullptr : &board->second->board(members[node]),
        limits));
    members[node]++;
  }
}

ThreadNodes::~ThreadNodes() = default;

bool ThreadNodes::Takes(int rank, const Problem& problem, const SelectionTable& table) {
  return ranks_[static_cast<size_t>(rank)]->levels.Takes(problem, table);
}

void ThreadNodes::RunAll(const std::function<void(int rank)>& part,
                         const std::vector<int>& without) {
  number_++;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size(); ++rank) {
    if (std::find(without.begin(), without.end(), rank) == without.end()) {
      threads.emplace_back([&part, rank] {
        try {
          part(rank);
        } catch (const Death&) {  // the others find out
        }
      });
    }
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

RunFailure ThreadNodes::Run(int rank, const Problem& problem, const Binding& binding) {
  Rank& self = *ranks_[static_cast<size_t>(rank)];
  return self.levels.Run(number_, problem, binding, &self);
}

void ThreadNodes::Skip(int rank) { ranks_[static_cast<size_t>(rank)]->levels.Skip(number_); }

void ThreadNodes::Renounce(int rank) {
  ranks_[static_cast<size_t>(rank)]->levels.Renounce(number_);
}

void ThreadNodes::Kill(int rank) {
  dead_[static_cast<size_t>(rank)] = true;
  const int node = node_of_[static_cast<size_t>(rank)];
  if (const auto found = nodes_.find(node); found != nodes_.end()) {
    found->second->Kill(
        static_cast<int>(std::count(node_of_.begin(), node_of_.begin() + rank, node)));
  }
}

size_t ThreadNodes::left_over() const {
  size_t count = 0;
  for (const auto& [key, waiting] : messages_) {
    count += waiting.size();
  }
  return count;
}

}  // namespace ferry::collective
