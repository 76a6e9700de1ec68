#include "tests/coll/board/thread_node.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>

#include "coll/board/board_run.h"

namespace ferry::collective {

class ThreadNode::Link : public NodeLink {
 public:
  Link(ThreadNode* node, int self, bool has_pauses)
      : node_(node), self_(self), has_pauses_(has_pauses) {}

  bool HasPauses() const override { return has_pauses_; }
  // Mostly, so that members wait in either way.
  bool IsAwake() const override {
    is_awake_ = has_pauses_ && ++looks_ % 4 != 0;
    return is_awake_;
  }

  void WaitFor(bool (*done)(void*), void* argument) override {
    if (std::exchange(is_awake_, false)) {
      std::this_thread::yield();
      return;
    }
    std::unique_lock lock(mutex_);
    has_slept_ = true;
    woken_.notify_all();
    for (uint64_t seen = wakes_; !done(argument); seen = wakes_) {
      woken_.wait(lock, [&] { return wakes_ != seen; });
    }
  }
  void Wake(int member) override { node_->links_[static_cast<size_t>(member)]->WakeThis(); }
  void WakeThis() {
    {
      std::lock_guard lock(mutex_);
      wakes_++;
    }
    woken_.notify_all();
  }
  void AwaitSleep() {
    std::unique_lock lock(mutex_);
    woken_.wait(lock, [&] { return has_slept_; });
  }
  uint64_t wakes() {
    std::lock_guard lock(mutex_);
    return wakes_;
  }
  ErrorCode StateOf(int member) override {
    return node_->dead_[static_cast<size_t>(member)] ? ErrorCode::kPeerDied : ErrorCode::kOk;
  }
  NodeAddress Locate(const void* pointer, size_t /*size_bytes*/) override {
    const uint32_t by_stream = node_->IsByStream(pointer) ? 1 : 0;
    return {by_stream, by_stream, reinterpret_cast<uintptr_t>(pointer)};
  }
  ErrorCode Read(int member, const NodeAddress& from, void* to, size_t size_bytes) override {
    return Move(member, to, reinterpret_cast<const void*>(from.address), size_bytes);
  }
  ErrorCode Write(int member, const NodeAddress& to, const void* from, size_t size_bytes) override {
    return Move(member, reinterpret_cast<void*>(to.address), from, size_bytes);
  }
  ErrorCode Spread(std::span<const NodeAddress> blocks, std::span<const NodeAddress> places,
                   size_t block_bytes) override {
    node_->spreads_++;
    if (node_->refuses_spreads_) {
      return ErrorCode::kUnsupported;
    }
    for (const NodeAddress& place : places) {
      for (size_t i = 0; i < blocks.size(); ++i) {
        std::memmove(reinterpret_cast<std::byte*>(place.address) + i * block_bytes,
                     reinterpret_cast<const void*>(blocks[i].address), block_bytes);
      }
    }
    return ErrorCode::kOk;
  }
  ErrorCode Reduce(std::span<const NodeAddress> vectors, std::span<const MemberAddress> places,
                   int self, const gpu::Reduction& reduction) override {
    EXPECT_EQ(self, self_);
    EXPECT_EQ(reduction.type, gpu::ReductionType::kU64);
    EXPECT_EQ(reduction.op, gpu::ReductionOp::kSum);
    node_->reductions_++;
    if (node_->reductions_end_ != ErrorCode::kOk) {
      return node_->reductions_end_;
    }
    if (node_->before_reductions_) {
      node_->before_reductions_();
    }
    for (uint64_t at = 0; at < reduction.size_bytes(); at += sizeof(uint64_t)) {
      uint64_t sum = 0;
      for (const NodeAddress& vector : vectors) {
        uint64_t operand = 0;
        std::memcpy(&operand, reinterpret_cast<const void*>(vector.address + at), sizeof(operand));
        sum += operand;
      }
      for (const MemberAddress& place : places) {
        EXPECT_TRUE(node_->IsByStream(reinterpret_cast<void*>(place.address.address)));
        std::memcpy(reinterpret_cast<void*>(place.address.address + at), &sum, sizeof(sum));
      }
    }
    return ErrorCode::kOk;
  }
  bool IsByStream(const void* pointer) override { return node_->IsByStream(pointer); }
  ErrorCode Copy(void* to, const void* from, size_t size_bytes) override {
    node_->copies_++;
    std::memcpy(to, from, size_bytes);
    return ErrorCode::kOk;
  }
  void* TakeStaging(size_t size_bytes) override { return std::malloc(size_bytes); }
  void GiveStaging(void* memory) override { std::free(memory); }

 private:
  ErrorCode Move(int member, void* to, const void* from, size_t size_bytes) {
    if (node_->protected_[static_cast<size_t>(member)]) {
      return ErrorCode::kInvalidBuffer;
    }
    if (node_->IsByStream(to) || node_->IsByStream(from)) {
      if (node_->apart_[static_cast<size_t>(self_)]) {
        return ErrorCode::kUnsupported;
      }
      node_->moves_++;
    }
    std::memcpy(to, from, size_bytes);
    return ErrorCode::kOk;
  }

  ThreadNode* const node_;
  const int self_;
  const bool has_pauses_;
  std::mutex mutex_;
  std::condition_variable woken_;
  mutable uint32_t looks_ = 0;  // the member's own
  mutable bool is_awake_ = false;
  uint64_t wakes_ = 0;
  bool has_slept_ = false;
};

void ThreadNode::Free::operator()(std::byte* memory) const { std::free(memory); }

ThreadNode::ThreadNode(int members, bool crowded, bool has_pauses)
    : memory_(static_cast<std::byte*>(
          std::aligned_alloc(alignof(BoardLayout), ShapeFor(members, crowded).SizeBytes()))),
      dead_(std::make_unique<std::atomic<bool>[]>(static_cast<size_t>(members))),
      protected_(std::make_unique<std::atomic<bool>[]>(static_cast<size_t>(members))),
      apart_(std::make_unique<std::atomic<bool>[]>(static_cast<size_t>(members))) {
  const BoardShape shape = ShapeFor(members, crowded);
  std::memset(memory_.get(), 0, shape.SizeBytes());
  auto* const layout = reinterpret_cast<BoardLayout*>(memory_.get());
  for (int member = 0; member < members; ++member) {
    links_.push_back(std::make_unique<Link>(this, member, has_pauses));
    boards_.push_back(std::make_unique<Board>(layout, shape, links_.back().get(), member, crowded));
  }
  parts_.resize(static_cast<size_t>(members));
  for (int member = 0; member < members; ++member) {
    threads_.emplace_back([this, member] { RunParts(member); });
  }
}

ThreadNode::~ThreadNode() {
  {
    std::lock_guard lock(parts_mutex_);
    is_ending_ = true;
  }
  parts_change_.notify_all();
  for (std::thread& thread : threads_) {
    thread.join();
  }
}

void ThreadNode::RunParts(int member) {
  std::unique_lock lock(parts_mutex_);
  const std::function<void(int)>*& own = parts_[static_cast<size_t>(member)];
  while (true) {
    parts_change_.wait(lock, [&] { return is_ending_ || own != nullptr; });
    if (own == nullptr) {
      return;
    }
    const std::function<void(int)>& part = *own;
    lock.unlock();
    part(member);
    lock.lock();
    own = nullptr;
    parts_change_.notify_all();
  }
}

void ThreadNode::Run(const std::function<void(int member)>& part, const std::vector<int>& without) {
  std::unique_lock lock(parts_mutex_);
  for (int member = 0; member < members(); ++member) {
    if (std::find(without.begin(), without.end(), member) == without.end()) {
      parts_[static_cast<size_t>(member)] = &part;
    }
  }
  parts_change_.notify_all();
  parts_change_.wait(lock, [&] {
    return std::all_of(parts_.begin(), parts_.end(), [](const auto* each) { return !each; });
  });
}

void ThreadNode::AwaitSleep(int member) { links_[static_cast<size_t>(member)]->AwaitSleep(); }

uint64_t ThreadNode::Wakes(int member) { return links_[static_cast<size_t>(member)]->wakes(); }

void ThreadNode::Kill(int member) {
  dead_[static_cast<size_t>(member)] = true;
  for (const auto& link : links_) {
    link->WakeThis();
  }
}

void ThreadNode::Protect(int member) { protected_[static_cast<size_t>(member)] = true; }

void ThreadNode::SetApart(int member) { apart_[static_cast<size_t>(member)] = true; }

void ThreadNode::SetByStream(const void* memory, size_t bytes) {
  by_stream_.clear();
  AddByStream(memory, bytes);
}

void ThreadNode::AddByStream(const void* memory, size_t bytes) {
  by_stream_.emplace_back(reinterpret_cast<uintptr_t>(memory), bytes);
}

bool ThreadNode::IsByStream(const void* pointer) const {
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  return std::any_of(by_stream_.begin(), by_stream_.end(),
                     [&](const auto& range) { return address - range.first < range.second; });
}

}  // namespace ferry::collective
