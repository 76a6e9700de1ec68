#include "tests/engine/rank_fixture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <thread>
#include <utility>

#include "common/clock.h"
#include "shm/atomic.h"
#include "tests/support/patience.h"

namespace ferry::engine {

using shm::Descriptor;
using shm::DescriptorKind;
using shm::RequestKind;
using shm::RequestLayout;
using shm::RequestState;

namespace {

constexpr uint32_t kQuickRounds = 10'000;
using tests::kPatienceNs;

void Zero(void* start, uint64_t size_bytes) { std::memset(start, 0, size_bytes); }

// Leaves the cells as they are: each is read only after it was written.
void ZeroLane(shm::LaneLayout* lane) { Zero(lane, offsetof(shm::LaneLayout, cells)); }

}  // namespace

Reach FlatMemory::Resolve(uint32_t, const shm::Location& where, uint64_t) {
  return {reinterpret_cast<std::byte*>(where.address), 0, where.address};
}

ErrorCode FlatMemory::Copy(const Reach& destination, const Reach& source, uint64_t size_bytes) {
  std::memcpy(destination.mapped, source.mapped, size_bytes);
  return ErrorCode::kOk;
}

// ---- TestRank --------------------------------------------------------------------------------

TestRank::TestRank(TestNode& node, uint32_t rank, Runner runner)
    : node_(node),
      rank_(rank),
      engine_(node.view(rank), node.peers(), node.engine_options(), runner),
      buffers_(node.view(rank).request_limit) {}

RequestState TestRank::state(uint32_t request) {
  return static_cast<RequestState>(shm::LoadAcquire(slot(request).state));
}

uint32_t TestRank::NewRequest(RequestKind kind, int32_t peer, int32_t tag, uint32_t context,
                              std::string data) {
  uint32_t request = 0;
  const auto reusable = std::find_if(free_.begin(), free_.end(), [this](uint32_t candidate) {
    return IsReusable(*view().inbox.transfer(candidate));
  });
  if (reusable != free_.end()) {
    request = *reusable;
    free_.erase(reusable);
  } else {
    uint32_t& fresh = view().layout->request_fresh;
    request = shm::LoadRelaxed(fresh);
    if (request >= view().request_limit) {
      ADD_FAILURE() << "the test needs more request slots";
      std::abort();
    }
    shm::StoreRelease(fresh, request + 1);
  }
  RequestLayout& slot = this->slot(request);
  slot.generation += 1;
  slot.kind = static_cast<uint32_t>(kind);
  slot.flags = 0;
  slot.context = context;
  slot.peer = peer;
  slot.tag = tag;
  slot.descriptor_kind = 0;
  slot.error = 0;
  slot.descriptor_flags = 0;
  buffers_[request] = std::move(data);
  slot.buffer = {0, 0, reinterpret_cast<uint64_t>(buffers_[request].data())};
  slot.size_bytes = buffers_[request].size();
  shm::StoreRelease(slot.state, static_cast<uint32_t>(RequestState::kInactive));
  return request;
}

uint32_t TestRank::Isend(uint32_t destination, int32_t tag, const std::string& data,
                         uint32_t context) {
  engine_.sends().OpenLane(destination);
  const SendArguments send{destination, context, tag, data.size()};
  const uint32_t request =
      NewRequest(RequestKind::kSend, static_cast<int32_t>(destination), tag, context, data);
  Effects effects;
  bool sent = false;
  if (data.size() <= shm::kInlineBytes) {
    const Peer& peer = node_.peers().by_rank[destination];
    if (peer.local) {
      sent = engine_.sends().TrySendLocal(send, data.data(), shm::kNoCell);
      if (sent) {
        effects.lanes.Add(peer.local_index);
      }
    } else {
      sent = engine_.sends().TrySendInline(send, data.data(), effects);
    }
    std::memcpy(slot(request).payload, data.data(), data.size());
    slot(request).descriptor_kind = static_cast<uint8_t>(DescriptorKind::kEager);
  } else if (data.size() <= node_.engine_options().eager_max_bytes) {
    const uint32_t cell = engine_.sends().TryTakeCell(destination);
    if (cell != shm::kNoCell) {
      std::memcpy(engine_.sends().CellBytes(destination, cell), data.data(), data.size());
      sent = engine_.sends().TrySendCell(send, cell, effects);
    }
  }
  if (sent) {
    slot(request).error = 0;
    shm::StoreRelease(slot(request).state, static_cast<uint32_t>(RequestState::kComplete));
  } else {
    engine_.sends().StartSend(request, effects);
  }
  Perform(effects);
  return request;
}

uint32_t TestRank::IsendByRequest(uint32_t destination, int32_t tag, const std::string& data,
                                  uint32_t flags) {
  engine_.sends().OpenLane(destination);
  const uint32_t request =
      NewRequest(RequestKind::kSend, static_cast<int32_t>(destination), tag, 0, data);
  slot(request).flags |= flags;
  Effects effects;
  engine_.sends().StartSend(request, effects);
  Perform(effects);
  return request;
}

uint32_t TestRank::Irecv(int32_t source, int32_t tag, uint64_t capacity_bytes, uint32_t context) {
  const uint32_t request =
      NewRequest(RequestKind::kReceive, source, tag, context, std::string(capacity_bytes, '\0'));
  Effects effects;
  start_error_ = engine_.receives().StartReceive(request, effects);
  Perform(effects);
  return request;
}

// Takes the message as if it had been matched.
void TestRank::Take(RequestLayout& slot, const EagerMessage& message) {
  const bool in_cell = message.cell != shm::kNoCell;
  slot.status_source = static_cast<int32_t>(message.source);
  slot.status_tag = message.tag;
  slot.message_bytes = message.size_bytes;
  slot.error = static_cast<int32_t>(message.size_bytes > slot.size_bytes ? ErrorCode::kTruncated
                                                                         : ErrorCode::kOk);
  slot.descriptor_kind = static_cast<uint8_t>(DescriptorKind::kEager);
  slot.descriptor_flags = in_cell ? shm::kFlagCell : 0;
  slot.lane = message.lane;
  slot.cell = static_cast<uint16_t>(message.cell);
  std::memcpy(slot.payload, message.payload, shm::kInlineBytes);
  shm::StoreRelease(slot.state, static_cast<uint32_t>(RequestState::kLanded));
}

void TestRank::Take(RequestLayout& slot, const AnnouncedMessage& rts) {
  slot.status_source = static_cast<int32_t>(rts.source);
  slot.status_tag = rts.tag;
  slot.message_bytes = rts.size_bytes;
  const uint64_t size_bytes = std::min(rts.size_bytes, slot.size_bytes);
  slot.error = static_cast<int32_t>(rts.size_bytes > slot.size_bytes ? ErrorCode::kTruncated
                                                                     : ErrorCode::kOk);
  slot.descriptor_kind = static_cast<uint8_t>(DescriptorKind::kRts);
  const Reach source = memory_.Resolve(rts.source, rts.where, size_bytes);
  std::memcpy(reinterpret_cast<void*>(slot.buffer.address), source.mapped, size_bytes);
  EXPECT_EQ(EndChunk(*rts.transfer, rts.generation, 1, ErrorCode::kOk), ChunkResult::kFinished);
  shm::StoreRelease(slot.state, static_cast<uint32_t>(RequestState::kComplete));
}

uint32_t TestRank::IrecvDirect(int32_t source, int32_t tag, uint64_t capacity_bytes,
                               uint32_t context) {
  const uint32_t request =
      NewRequest(RequestKind::kReceive, source, tag, context, std::string(capacity_bytes, '\0'));
  Effects effects;
  start_error_ = ErrorCode::kOk;
  EagerMessage message;
  AnnouncedMessage rts;
  const uint32_t lane = engine_.LaneOf(source);
  if (engine_.TakeTurn() &&
      engine_.receives().TryTakeEager(lane, {context, source, tag}, capacity_bytes, &message)) {
    Take(slot(request), message);
  } else if (engine_.receives().FindRts(lane, {context, source, tag}, &rts) &&
             engine_.receives().TakeWhole(rts, capacity_bytes)) {
    Take(slot(request), rts);
  } else if (!engine_.receives().ReceiveNow(request, effects)) {
    start_error_ = engine_.receives().StartReceive(request, effects);
  }
  Perform(effects);
  return request;
}

bool TestRank::Cancel(uint32_t request) {
  Effects effects;
  const bool cancelled = engine_.Cancel(request, effects);
  Perform(effects);
  return cancelled;
}

uint32_t TestRank::Progress() {
  Effects effects;
  const uint32_t handled = engine_.Progress(effects);
  Perform(effects);
  return handled;
}

void TestRank::Perform(const Effects& effects) {
  const PeerTable& peers = node_.peers();
  const uint32_t own_lane = peers.by_rank[rank_].local_index;
  const auto inbox_of = [&peers](uint32_t local) {
    return peers.by_rank[peers.rank_of_local[local]].inbox;
  };
  effects.lanes.ForEach(
      [&](uint32_t local) { shm::Wake(inbox_of(local).wake()).PublishLane(own_lane); });
  effects.wakes.ForEach([&](uint32_t local) {
    shm::Wake(inbox_of(local).wake()).Publish();
    wakes.Add(local);
  });
  effects.urgent.ForEach([&](uint32_t local) { urgent.Add(local); });
  rang_daemon |= effects.to_daemon;
}

bool TestRank::Test(uint32_t request) {
  RequestLayout& slot = this->slot(request);
  switch (state(request)) {
    case RequestState::kLanded:
      Land(slot);
      return true;
    case RequestState::kTransferring:
      Transfer(slot);
      return state(request) == RequestState::kComplete;
    case RequestState::kComplete:
      return true;
    default:
      return false;
  }
}

void TestRank::Land(RequestLayout& slot) {
  const uint64_t size_bytes = std::min(slot.message_bytes, slot.size_bytes);
  const bool in_cell = (slot.descriptor_flags & shm::kFlagCell) != 0;
  shm::LaneConsumer lane(view().inbox.lane(slot.lane));
  std::memcpy(reinterpret_cast<void*>(slot.buffer.address),
              in_cell ? lane.Cell(slot.cell) : slot.payload, size_bytes);
  if (in_cell) {
    lane.ReleaseCell(slot.cell);
  }
  shm::StoreRelease(slot.state, static_cast<uint32_t>(RequestState::kComplete));
}

void TestRank::Transfer(RequestLayout& slot) {
  shm::TransferLayout* transfer =
      node_.peers().by_rank[slot.transfer_rank].inbox.transfer(slot.transfer_index);
  ASSERT_NE(transfer, nullptr);
  while (CopyChunk(*transfer, slot.transfer_generation, memory_) == ChunkResult::kCopied) {
  }
  const TransferProgress progress = Look(*transfer, slot.transfer_generation);
  if (!progress.done) {
    return;
  }
  const bool receives = slot.kind == static_cast<uint32_t>(RequestKind::kReceive);
  if (progress.error != ErrorCode::kOk || !receives) {
    slot.error = static_cast<int32_t>(progress.error);
  }
  if (receives && progress.error != ErrorCode::kOk) {
    Release(*transfer, slot.transfer_generation);
  }
  shm::StoreRelease(slot.state, static_cast<uint32_t>(RequestState::kComplete));
}

Outcome TestRank::Finish(uint32_t request) {
  EXPECT_EQ(state(request), RequestState::kComplete);
  const RequestLayout& slot = this->slot(request);
  Outcome outcome;
  outcome.error = static_cast<ErrorCode>(slot.error);
  outcome.source = slot.status_source;
  outcome.tag = slot.status_tag;
  outcome.message_bytes = slot.message_bytes;
  outcome.data = std::move(buffers_[request]);
  if (slot.kind == static_cast<uint32_t>(RequestKind::kReceive)) {
    outcome.data.resize(std::min<uint64_t>(slot.message_bytes, outcome.data.size()));
  }
  buffers_[request].clear();
  shm::StoreRelease(this->slot(request).state, static_cast<uint32_t>(RequestState::kFree));
  free_.push_back(request);
  return outcome;
}

Outcome TestRank::Wait(uint32_t request) {
  // Some tests' helpers are threads, which the system may stop for a while.
  const uint64_t end_ns = MonotonicNs() + kPatienceNs;
  for (uint32_t i = 0; !Test(request) && (i < kQuickRounds || MonotonicNs() < end_ns); ++i) {
    if (i >= kQuickRounds) {
      std::this_thread::yield();
    }
    for (uint32_t rank = 0; rank < node_.local_ranks(); ++rank) {
      node_[rank].Progress();
    }
  }
  return Finish(request);
}

Outcome TestRank::Receive(int32_t source, int32_t tag, uint64_t capacity_bytes, uint32_t context) {
  return Wait(Irecv(source, tag, capacity_bytes, context));
}

// ---- TestNode --------------------------------------------------------------------------------

TestNode::TestNode(const NodeOptions& options, const EngineOptions& engine_options)
    : options_(options), engine_options_(engine_options) {
  const uint32_t job_size = options.local_ranks + options.remote_ranks;
  peers_.by_rank = ZeroedArray<Peer>(job_size);
  for (uint32_t rank = 0; rank < options.local_ranks; ++rank) {
    const SegmentPlan plan{rank, job_size, options.local_ranks, options.request_limit,
                           options.unexpected_limit};
    const shm::SharedMemory& session =
        *memory_.emplace_back(std::make_unique<shm::SharedMemory>(plan.session_bytes()));
    const shm::SharedMemory& inbox =
        *memory_.emplace_back(std::make_unique<shm::SharedMemory>(plan.inbox_bytes()));
    InitializeSegments(plan, 1, session.base(), inbox.base());
    StatusOr<SessionView> view =
        ViewSession(session.base(), plan.session_bytes(), inbox.base(), plan.inbox_bytes());
    EXPECT_TRUE(view.ok()) << view.status().ToString();
    sessions_.push_back(*view);
    peers_.by_rank[rank].local = true;
    peers_.by_rank[rank].local_index = rank;
    peers_.by_rank[rank].SetInbox(view->inbox);
    peers_.rank_of_local.push_back(rank);
  }
  MakeRanks();
}

void TestNode::MakeRanks() {
  ranks_.clear();
  for (uint32_t rank = 0; rank < options_.local_ranks; ++rank) {
    ranks_.push_back(std::make_unique<TestRank>(*this, rank));
  }
}

void TestNode::Restart() {
  const uint32_t job_size = options_.local_ranks + options_.remote_ranks;
  for (uint32_t rank = 0; rank < options_.local_ranks; ++rank) {
    const SessionView& view = sessions_[rank];
    shm::SessionLayout& session = *view.layout;
    Zero(&session, offsetof(shm::SessionLayout, to_daemon));
    ZeroLane(&session.to_daemon);
    ZeroLane(&session.to_link);
    Zero(&session.link_wake, sizeof(session.link_wake));
    Zero(view.request(0), view.size_bytes - shm::SessionRequestsOffset());
    Zero(view.inbox.layout, sizeof(shm::InboxLayout));
    for (uint32_t lane = 0; lane < shm::LaneCount(options_.local_ranks); ++lane) {
      ZeroLane(view.inbox.lane(lane));
    }
    const uint64_t transfers = shm::InboxTransferOffset(options_.local_ranks);
    Zero(view.inbox.base() + transfers, view.inbox.size_bytes - transfers);
    InitializeSegments(
        {rank, job_size, options_.local_ranks, options_.request_limit, options_.unexpected_limit},
        1, view.base(), view.inbox.base());
  }
  MakeRanks();
}

void TestNode::Settle() {
  uint32_t quiet = 0;
  while (quiet < 3) {  // a queue may move although no descriptor was handled
    uint32_t handled = 0;
    for (const auto& rank : ranks_) {
      handled += rank->Progress();
    }
    quiet = handled == 0 ? quiet + 1 : 0;
  }
}

void TestNode::MarkDead(uint32_t observer, uint32_t dead, ErrorCode error) {
  const SessionView& view = sessions_[observer];
  if (error == ErrorCode::kLinkDown) {
    shm::FetchAdd(view.by_rank.rtrs[dead].cuts, 1, std::memory_order_release);
  }
  view.by_rank.StoreDead(dead, error);
  shm::FetchAdd(view.inbox.wake()->death_epoch, 1, std::memory_order_release);
  shm::Wake(view.inbox.wake()).Publish();
}

// ---- FakeDaemon ------------------------------------------------------------------------------

FakeDaemon::FakeDaemon(const SessionView& view, Core core)
    : view_(view),
      commands_(core == Core::kLink ? &view.layout->to_link : &view.layout->to_daemon),
      lane_(core == Core::kLink ? shm::LinkLane(view.inbox.local_size)
                                : shm::DaemonLane(view.inbox.local_size)),
      consumer_(commands_),
      producer_(view.inbox.lane(lane_)) {}

std::vector<Descriptor> FakeDaemon::Take(uint32_t limit) {
  std::vector<Descriptor> taken;
  while (taken.size() < limit) {
    const Descriptor* next = consumer_.Peek();
    if (next == nullptr) {
      break;
    }
    taken.push_back(*next);
    consumer_.Pop();
  }
  return taken;
}

std::vector<Descriptor> FakeDaemon::TakeOf(DescriptorKind kind) {
  std::vector<Descriptor> taken = Take();
  std::erase_if(taken, [kind](const Descriptor& descriptor) {
    return descriptor.kind != static_cast<uint8_t>(kind);
  });
  return taken;
}

void FakeDaemon::FillLane() {
  shm::LaneProducer producer(commands_);
  while (producer.TryPush(Descriptor{})) {
  }
}

bool FakeDaemon::Push(const Descriptor& descriptor) {
  if (!producer_.TryPush(descriptor)) {
    return false;
  }
  shm::Wake(view_.inbox.wake()).PublishLane(lane_);
  return true;
}

bool FakeDaemon::Eager(uint32_t source, int32_t tag, const std::string& data) {
  std::array<char, shm::kInlineBytes> payload{};
  std::copy_n(data.data(), std::min(data.size(), payload.size()), payload.data());
  return Push(DescriptorKind::kEager, source, tag, data.size(), payload);
}

bool FakeDaemon::RemoteRts(uint32_t source, int32_t tag, uint64_t size_bytes) {
  return Push(DescriptorKind::kRemoteRts, source, tag, size_bytes,
              shm::RemoteRts{7, 3, 0x1234, {5, 0, 64}});
}

bool FakeDaemon::Result(DescriptorKind kind, uint32_t request, uint32_t generation,
                        ErrorCode error) {
  return Push(kind, 0, 0, 0,
              shm::TransferResult{request, generation, static_cast<int32_t>(error), 0, {}});
}

bool FakeDaemon::Left(uint32_t source) {
  return Push(DescriptorKind::kLeft, source, 0, 0, std::array<char, shm::kInlineBytes>{});
}

bool FakeDaemon::Credit(uint32_t source, uint32_t count) {
  const auto [credited, first] =
      credited_.try_emplace(source, view_.by_rank.peers[source].credited);
  credited->second += count;
  return Push(DescriptorKind::kCredit, source, 0, 0,
              shm::CreditReturn{credited->second, 0, 0, 0, {}});
}

std::string Pattern(uint64_t size_bytes, uint32_t seed) {
  std::string data(size_bytes, '\0');
  uint32_t value = seed * 2'654'435'761U + 1;
  for (char& byte : data) {
    value = value * 1'664'525U + 1'013'904'223U;
    byte = static_cast<char>(value >> 24);
  }
  return data;
}

}  // namespace ferry::engine
