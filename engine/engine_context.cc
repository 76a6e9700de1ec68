#include "engine/engine_context.h"

#include "shm/atomic.h"

namespace ferry::engine {

using shm::Descriptor;
using shm::RequestLayout;
using shm::RequestState;

EngineState::EngineState(const SessionView& view, const PeerTable& peers)
    : journal(&view.layout->journal, view.base(), view.size_bytes, view.inbox.base(),
              view.inbox.size_bytes) {
  const uint32_t own_lane = peers.by_rank[view.rank].local_index;
  for (uint32_t rank : peers.rank_of_local) {
    const Peer& peer = peers.by_rank[rank];
    producers.emplace_back(peer.is_mapped() ? peer.inbox.lane(own_lane) : nullptr);
  }
  producers.emplace_back(&view.layout->to_daemon);
  producers.emplace_back(&view.layout->to_link);
  for (uint32_t lane = 0; lane < shm::LaneCount(view.inbox.local_size); ++lane) {
    consumers.emplace_back(view.inbox.lane(lane));
  }
}

EngineContext::EngineContext(const SessionView& view, const PeerTable& peers,
                             const EngineOptions& options, Runner runner, EngineState& state)
    : view_(view),
      peers_(peers),
      producers_(state.producers),
      consumers_(state.consumers),
      journal_(state.journal),
      statistics_(view.layout->counters),
      wake_(view.inbox.wake()),
      is_alarmed_(state.is_alarmed),
      options_(options),
      runner_(runner) {}

shm::TransferLayout* EngineContext::TransferOf(const RequestLayout& slot) const {
  const uint32_t owner = shm::LoadRelaxed(slot.transfer_rank);
  return owner < view_.job_size
             ? peers_.Inbox(owner).transfer(shm::LoadRelaxed(slot.transfer_index))
             : nullptr;
}

bool EngineContext::StageTo(Core core, const Descriptor& descriptor, Effects& effects) {
  shm::LaneProducer& producer = ProducerOf(core);
  Descriptor* slot = producer.TryReserve();
  if (slot == nullptr) {
    producer.AskForRoom();
    slot = producer.TryReserve();
    if (slot == nullptr) {
      return false;
    }
  }
  constexpr uint32_t kStampBytes = sizeof(descriptor.stamp);
  const bool by_link = core == Core::kLink;
  uint64_t* const tail = &(by_link ? view_.layout->to_link : view_.layout->to_daemon).producer.tail;
  journal_.SetBytes(reinterpret_cast<std::byte*>(slot) + kStampBytes,
                    reinterpret_cast<const std::byte*>(&descriptor) + kStampBytes,
                    sizeof(Descriptor) - kStampBytes);
  journal_.Set(&slot->stamp, shm::StampOf(*tail));
  journal_.Set(tail, *tail + 1);
  (by_link ? effects.to_link : effects.to_daemon) = true;
  return true;
}

void EngineContext::Complete(RequestLayout& slot, ErrorCode error) {
  shm::StoreRelaxed(slot.error, static_cast<int32_t>(error));
  // Pairs with the rank's test and wait: publishes the status words.
  journal_.Set(&slot.state, static_cast<uint32_t>(RequestState::kComplete));
  journal_.Commit();
}

void EngineContext::Poison(ErrorCode error) {
  journal_.Abandon();
  wake_.Poison(error);
}

void EngineContext::PoisonCorrupt(const shm::Fault& fault) {
  shm::NoteFault(&view_.layout->fault, fault);
  // Pairs with the daemon's look: publishes the note.
  shm::StoreRelease(view_.layout->daemon_wake.poison, static_cast<int32_t>(ErrorCode::kCorrupt));
  is_alarmed_ = true;
  Poison(ErrorCode::kCorrupt);
}

}  // namespace ferry::engine
