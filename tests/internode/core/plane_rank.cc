#include "tests/internode/core/plane_rank.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/transfer.h"
#include "shm/atomic.h"

namespace ferry::daemon {
namespace {

constexpr uint32_t kHolder = 7;  // the id of this rank's thread in its lease

}  // namespace

shm::Location InHeap(uint64_t offset) { return {kHeapRegion, 0, offset}; }
shm::Location InDevice(uint64_t offset) { return {kDeviceRegion, shm::kLocationByStream, offset}; }
shm::Location Private(const void* address) { return {0, 0, reinterpret_cast<uint64_t>(address)}; }

std::shared_ptr<Region> MakeRegion(uint32_t id, uint64_t bytes) {
  auto region = std::make_shared<Region>();
  region->id = id;
  region->fd = std::move(*shm::CreateSegment("test-region", bytes));
  region->mapping = MapAll(region->fd.get());
  return region;
}

std::vector<std::byte> Pattern(uint64_t size_bytes, uint32_t seed) {
  std::vector<std::byte> bytes(size_bytes);
  for (uint64_t i = 0; i < size_bytes; ++i) {
    bytes[i] = static_cast<std::byte>(i * 7 + i / 251 + seed);
  }
  return bytes;
}

shm::Mapping MapAll(int fd) {
  StatusOr<shm::Mapping> mapping = shm::MapSegment(fd, 0);
  EXPECT_TRUE(mapping.ok()) << mapping.status().ToString();
  return std::move(*mapping);
}

PlaneRank::PlaneRank(std::shared_ptr<Session> session, const JobPlan& plan,
                     shm::Mapping session_map, shm::Mapping inbox_map)
    : session_(std::move(session)),
      plan_(plan),
      session_map_(std::move(session_map)),
      inbox_map_(std::move(inbox_map)) {
  StatusOr<engine::SessionView> view = engine::ViewSession(
      session_map_.base(), session_map_.size_bytes(), inbox_map_.base(), inbox_map_.size_bytes());
  EXPECT_TRUE(view.ok()) << view.status().ToString();
  view_ = *view;
  lease_ = shm::Lease(&view_.layout->lease);
}

void PlaneRank::BuildEngine(const std::vector<PlaneRank*>& local_ranks,
                            const engine::EngineOptions& options) {
  local_ranks_ = local_ranks;
  peers_.by_rank = ZeroedArray<engine::Peer>(plan_.size());
  peers_.rank_of_local.resize(local_ranks.size());
  for (uint32_t rank = 0; rank < plan_.size(); ++rank) {
    peers_.by_rank[rank].local = plan_.node_of_rank[rank] == plan_.node;
    peers_.by_rank[rank].local_index = plan_.local_index[rank];
  }
  for (PlaneRank* local : local_ranks) {
    peers_.by_rank[local->rank()].SetInbox(local->view_.inbox);
    peers_.rank_of_local[local->session().local_index] = local->rank();
  }
  engine_ = std::make_unique<engine::RankEngine>(view_, peers_, options, engine::Runner::kRank);
}

std::shared_ptr<const Region> PlaneRank::MakeHeap() {
  std::shared_ptr<Region> region = MakeRegion(kHeapRegion, kHeapBytes);
  heap_ = MapAll(region->fd.get());
  return region;
}

std::shared_ptr<Region> PlaneRank::MakeDevice(gpu::GpuBackend& gpu) {
  const StatusOr<void*> memory = gpu.AllocateDevice(0, kDeviceBytes);
  EXPECT_TRUE(memory.ok()) << memory.status().ToString();
  device_ = static_cast<std::byte*>(*memory);
  StatusOr<gpu::IpcHandle> handle = gpu.ExportIpc(device_);
  EXPECT_TRUE(handle.ok()) << handle.status().ToString();
  auto region = std::make_shared<Region>();
  region->id = kDeviceRegion;
  region->kind = RegionKind::kDevice;
  region->by_stream = true;
  region->device_bytes = handle->size_bytes;
  region->allocation_id = handle->allocation_id;
  region->fd = std::move(handle->fd);
  return region;
}

std::byte* PlaneRank::At(const shm::Location& where) {
  if (where.region == 0) {
    return reinterpret_cast<std::byte*>(where.address);
  }
  return (where.region == kDeviceRegion ? device_ : heap_.base()) + where.address;
}

void PlaneRank::Lock() {
  while (!lease_.TryAcquire(kHolder)) {
    sched_yield();
  }
}

void PlaneRank::Unlock(const engine::Effects& effects) {
  lease_.Release(kHolder);
  const uint32_t own_lane = session_->local_index;
  effects.lanes.ForEach([&](uint32_t lane) { local_ranks_[lane]->wake().PublishLane(own_lane); });
  effects.wakes.ForEach([&](uint32_t lane) { local_ranks_[lane]->wake().Publish(); });
  bool ring = effects.to_daemon;
  effects.urgent.ForEach([&](uint32_t lane) {
    if (local_ranks_[lane]->wake().MustAttend() &&
        shm::Wake(&view_.layout->daemon_wake).AnnounceLane(lane)) {
      ring = true;
    }
  });
  if (ring) {
    RingDaemon();
  }
  if (effects.to_link) {
    RingLink();
  }
}

void PlaneRank::RingLink() {
  if (shm::Wake(&view_.layout->link_wake).AnnounceLane(shm::LinkLane(session_->local_size))) {
    const uint64_t one = 1;
    ASSERT_EQ(write(session_->doorbell.get(), &one, sizeof(one)), sizeof(one));
  }
}

void PlaneRank::RingDaemon() {
  if (shm::Wake(&view_.layout->daemon_wake).AnnounceLane(session_->local_size)) {
    const uint64_t one = 1;
    ASSERT_EQ(write(session_->doorbell.get(), &one, sizeof(one)), sizeof(one));
  }
}

uint32_t PlaneRank::NewRequest() {
  const uint32_t fresh = view_.layout->request_fresh;
  for (uint32_t request = 1; request < fresh; ++request) {
    if (shm::LoadRelaxed(Slot(request).state) == static_cast<uint32_t>(shm::RequestState::kFree)) {
      return request;
    }
  }
  shm::StoreRelease(view_.layout->request_fresh, fresh + 1);
  return fresh;
}

uint32_t PlaneRank::Prepare(shm::RequestKind kind, int32_t peer, int32_t tag,
                            const shm::Location& where, uint64_t size_bytes) {
  const uint32_t request = NewRequest();
  shm::RequestLayout& slot = Slot(request);
  slot.generation += 1;
  slot.kind = static_cast<uint32_t>(kind);
  slot.context = 0;
  slot.peer = peer;
  slot.tag = tag;
  slot.buffer = where;
  slot.size_bytes = size_bytes;
  slot.error = 0;
  shm::StoreRelease(slot.state, static_cast<uint32_t>(shm::RequestState::kInactive));
  return request;
}

uint32_t PlaneRank::Send(uint32_t destination, int32_t tag, const void* data, uint64_t size_bytes) {
  const engine::SendArguments send{destination, 0, tag, size_bytes};
  engine::Effects effects;
  engine_->sends().OpenLane(destination);
  Lock();
  bool sent = false;
  if (size_bytes <= shm::kInlineBytes) {
    sent = engine_->sends().TrySendInline(send, data, effects);
  } else if (size_bytes <= shm::kCellBytes) {
    const uint32_t cell = engine_->sends().TryTakeCell(destination);
    if (cell != shm::kNoCell) {
      std::memcpy(engine_->sends().CellBytes(destination, cell), data, size_bytes);
      sent = engine_->sends().TrySendCell(send, cell, effects);
    }
  }
  Unlock(effects);
  return sent ? 0 : SendFrom(destination, tag, Private(data), size_bytes);
}

uint32_t PlaneRank::SendFrom(uint32_t destination, int32_t tag, const shm::Location& where,
                             uint64_t size_bytes, uint32_t flags) {
  engine_->sends().OpenLane(destination);
  const uint32_t request =
      Prepare(shm::RequestKind::kSend, static_cast<int32_t>(destination), tag, where, size_bytes);
  shm::RequestLayout& slot = Slot(request);
  slot.flags = flags;
  slot.descriptor_kind = static_cast<uint8_t>(shm::DescriptorKind::kRts);
  if (size_bytes <= shm::kInlineBytes) {
    slot.descriptor_kind = static_cast<uint8_t>(shm::DescriptorKind::kEager);
    std::memcpy(slot.payload, At(where), size_bytes);
  }
  engine::Effects effects;
  Lock();
  engine_->sends().StartSend(request, effects);
  Unlock(effects);
  return request;
}

uint32_t PlaneRank::Receive(int32_t source, int32_t tag, const shm::Location& where,
                            uint64_t size_bytes) {
  const uint32_t request = Prepare(shm::RequestKind::kReceive, source, tag, where, size_bytes);
  engine::Effects effects;
  Lock();
  EXPECT_EQ(engine_->receives().StartReceive(request, effects), ErrorCode::kOk);
  Unlock(effects);
  return request;
}

bool PlaneRank::Cancel(uint32_t request) {
  engine::Effects effects;
  Lock();
  const bool cancelled = engine_->Cancel(request, effects);
  Unlock(effects);
  return cancelled;
}

bool PlaneRank::Progress() {
  if (!lease_.TryAcquire(kHolder)) {
    return false;
  }
  engine::Effects effects;
  engine_->Progress(effects);
  Unlock(effects);
  return true;
}

void PlaneRank::FinishLanded(shm::RequestLayout& slot) {
  const uint64_t size_bytes = std::min(slot.message_bytes, slot.size_bytes);
  shm::LaneConsumer lane(view_.inbox.lane(slot.lane));
  const bool in_cell = (slot.descriptor_flags & shm::kFlagCell) != 0;
  std::memcpy(At(slot.buffer), in_cell ? lane.Cell(slot.cell) : slot.payload, size_bytes);
  if (in_cell) {
    lane.ReleaseCells(slot.cell, slot.message_bytes);
  }
  shm::StoreRelease(slot.state, static_cast<uint32_t>(shm::RequestState::kComplete));
}

bool PlaneRank::Test(uint32_t request) {
  if (request == 0) {
    return true;
  }
  shm::RequestLayout& slot = Slot(request);
  switch (static_cast<shm::RequestState>(shm::LoadAcquire(slot.state))) {
    case shm::RequestState::kLanded:
      FinishLanded(slot);
      return true;
    case shm::RequestState::kTransferring: {
      shm::TransferLayout* transfer =
          peers_.by_rank[slot.transfer_rank].inbox.transfer(slot.transfer_index);
      const engine::TransferProgress look = engine::Look(*transfer, slot.transfer_generation);
      if (!look.done) {
        return false;
      }
      slot.error = static_cast<int32_t>(look.error);
      if (look.error != ErrorCode::kOk &&
          slot.kind == static_cast<uint32_t>(shm::RequestKind::kReceive)) {
        engine::Release(*transfer, slot.transfer_generation);
      }
      shm::StoreRelease(slot.state, static_cast<uint32_t>(shm::RequestState::kComplete));
      return true;
    }
    case shm::RequestState::kComplete:
      return true;
    default:
      return false;
  }
}

ErrorCode PlaneRank::Wait(uint32_t request) {
  const bool done = Eventually([&] {
    Progress();
    return Test(request);
  });
  EXPECT_TRUE(done) << "rank " << rank() << " waits for ever for request " << request;
  if (request == 0 || !done) {
    return done ? ErrorCode::kOk : ErrorCode::kInternal;
  }
  const auto error = static_cast<ErrorCode>(shm::LoadRelaxed(Slot(request).error));
  shm::StoreRelease(Slot(request).state, static_cast<uint32_t>(shm::RequestState::kFree));
  return error;
}

uint64_t PlaneRank::MessageBytes(uint32_t request) const {
  return view_.request(request)->message_bytes;
}

void PlaneRank::PushToDaemon(const shm::Descriptor& descriptor) {
  shm::LaneProducer lane(&view_.layout->to_daemon);
  lane.Open(rank());
  ASSERT_TRUE(lane.TryPush(descriptor));
  RingDaemon();
}

}  // namespace ferry::daemon
