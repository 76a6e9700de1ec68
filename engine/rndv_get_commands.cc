#include "engine/rndv_get_commands.h"

#include <algorithm>
#include <cstring>

#include "engine/transfer.h"
#include "shm/atomic.h"

namespace ferry::engine {

using shm::Descriptor;
using shm::DescriptorKind;
using shm::RequestLayout;

void RndvGetCommands::Describe(RequestLayout& slot, uint32_t request, const Arrival& arrival) {
  shm::RemoteRts rts;
  std::memcpy(&rts, arrival.descriptor.payload, sizeof(rts));
  shm::TransferLayout& transfer = *view_.inbox.transfer(request);
  transfer.remote_key = rts.key;
  transfer.remote_request = rts.send_request;
  transfer.remote_generation = rts.send_generation;
  transfer.remote_flags = arrival.descriptor.flags;
  const uint64_t size_bytes = std::min(slot.message_bytes, slot.size_bytes);
  DescribeTransfer(transfer, slot.generation,
                   {rts.where, size_bytes, options_.chunk_bytes, arrival.source, view_.rank},
                   slot.buffer);
  slot.transfer_rank = view_.rank;
  slot.transfer_index = request;
  slot.transfer_generation = slot.generation;
}

void RndvGetCommands::Stage(uint32_t request, Effects& effects) {
  shm::SessionLayout& session = *view_.layout;
  const bool by_link = CoreOfRndvGet(*view_.request(request)) == Core::kLink;
  uint32_t& first = by_link ? session.link_control_first : session.control_first;
  uint32_t& last = by_link ? session.link_control_last : session.control_last;
  if (first == 0 && TryStage(request, effects)) {
    return;
  }
  view_.request(request)->next = 0;
  if (first == 0) {
    journal_.Set(&first, request);
  } else {
    journal_.Set(&view_.request(last)->next, request);
  }
  journal_.Set(&last, request);
}

bool RndvGetCommands::TryStage(uint32_t request, Effects& effects) {
  const RequestLayout& slot = *view_.request(request);
  Descriptor descriptor{};
  descriptor.kind = static_cast<uint8_t>(DescriptorKind::kRndvGet);
  descriptor.source = view_.rank;
  descriptor.destination = static_cast<uint32_t>(slot.status_source);
  descriptor.context = slot.context;
  descriptor.tag = slot.status_tag;
  descriptor.size_bytes = std::min(slot.message_bytes, slot.size_bytes);
  shm::RndvGetCommand rndv_get{};
  rndv_get.transfer = request;
  rndv_get.generation = slot.generation;
  std::memcpy(descriptor.payload, &rndv_get, sizeof(rndv_get));
  return StageTo(CoreOfRndvGet(slot), descriptor, effects);
}

void RndvGetCommands::FlushControls(Effects& effects) {
  FlushControl(Core::kDaemon, effects);
  if (runner_ == Runner::kRank) {
    FlushControl(Core::kLink, effects);
  }
}

// A request that leaves the chain loses its link, so that a chain that bites its tail ends, too.
void RndvGetCommands::FlushControl(Core core, Effects& effects) {
  uint32_t& first =
      core == Core::kLink ? view_.layout->link_control_first : view_.layout->control_first;
  for (uint32_t n = 0; n < kDrainBudget; ++n) {
    const uint32_t request = shm::LoadRelaxed(first);
    if (request == 0) {
      return;
    }
    if (request >= view_.request_limit) {
      PoisonCorrupt({shm::FaultKind::kRequestChain, request, 0});
      return;
    }
    if (!TryStage(request, effects)) {
      return;
    }
    journal_.Set(&first, view_.request(request)->next);
    journal_.Set(&view_.request(request)->next, 0);
    journal_.Commit();
  }
}

}  // namespace ferry::engine
