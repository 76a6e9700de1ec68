// Reads and writes over several rails.
#include <algorithm>
#include <cassert>

#include "transports/api/accounting.h"
#include "transports/api/rail_choice.h"
#include "transports/rails/rail_set.h"

namespace ferry::transport {

std::optional<Stripe> RailSet::NextStripe(const RailOperation& operation) const {
  if (!operation.again.empty()) {
    return operation.again.back();
  }
  const uint64_t left = operation.request.bytes - operation.next_offset;
  if (left == 0) {
    return std::nullopt;
  }
  return Stripe{operation.next_offset, std::min(left, options_.stripe_bytes), /*tried=*/0};
}

// `full`: rails, by bit, that have no room.
std::optional<size_t> RailSet::RailFor(const RailOperation& operation, const RailPeer& peer,
                                       const Stripe& stripe, uint32_t full) const {
  assert(peer.rails != 0);  // there is the first
  std::array<RailState, kMaxRails> states;
  const uint32_t usable = peer.up & ~stripe.tried & ~full;
  for (uint32_t rail = 0; rail < peer.rails; rail++) {
    states[rail] = {
        .open = operation.on_rail[rail] < kPostedStripesPerRail && (usable >> rail & 1) != 0,
        .load_bytes = load_bytes_[rail]};
  }
  return ChooseRail({states.data(), peer.rails}, operation.request.rail % peer.rails);
}

// Posts as many stripes as the rails take.
void RailSet::Advance(RailOperation* operation) {
  uint32_t full = 0;
  while (operation->result == ErrorCode::kOk) {
    const std::optional<Stripe> stripe = NextStripe(*operation);
    if (!stripe) {
      break;
    }
    const RailPeer* peer = peers_.Find(operation->request.peer);
    const std::optional<size_t> rail = RailFor(*operation, *peer, *stripe, full);
    if (!rail) {
      if (full != 0 && !operation->parked) {
        operation->parked = true;
        parked_.push_back(IndexOf(*operation));
      }
      if (full == 0 && operation->in_flight == 0) {
        Fail(operation, ErrorCode::kNodeUnreachable);  // the rails that have not failed it are down
      }
      break;  // or each has its share: it goes on when a stripe ends
    }
    const ErrorCode code = PostStripe(operation, *peer, *stripe, *rail);
    if (code == ErrorCode::kWouldBlock) {
      full |= 1U << *rail;
      continue;
    }
    if (operation->again.empty()) {
      operation->next_offset += stripe->bytes;
    } else {
      operation->again.pop_back();
    }
    if (code != ErrorCode::kOk) {
      OnStripeFailed(operation, *stripe, *rail, code);
    }
  }
  EndIfDone(operation);
}

ErrorCode RailSet::PostStripe(RailOperation* operation, const RailPeer& peer, const Stripe& stripe,
                              size_t rail) {
  const RailRegion* region = memory_.Find(operation->request.region);
  const uint32_t index = free_posted_stripes_.back();  // there are enough for all
  RmaRequest request = operation->request;
  request.peer = peer.of_rail[rail];
  request.local = static_cast<std::byte*>(request.local) + stripe.offset;
  request.region = region->handles[rail];
  request.remote_address += operation->keys[rail].remote_base + stripe.offset;
  request.key = operation->keys[rail].key;
  request.bytes = stripe.bytes;
  request.context = uint64_t{index} << 1 | kPostedStripeBit;
  const ErrorCode code = operation->kind == RailOperation::Kind::kRead
                             ? rails_[rail]->Read(request, now_ns_)
                             : rails_[rail]->Write(request, operation->placement, now_ns_);
  if (code == ErrorCode::kOk) {
    free_posted_stripes_.pop_back();
    posted_stripes_[index] = {IndexOf(*operation), static_cast<uint32_t>(rail), stripe};
    operation->in_flight++;
    operation->on_rail[rail]++;
    load_bytes_[rail] += stripe.bytes;
  }
  return code;
}

void RailSet::OnStripeFailed(RailOperation* operation, Stripe stripe, size_t rail, ErrorCode code) {
  RailPeer* peer = peers_.Find(operation->request.peer);
  last_error_ = nullptr;
  if (code == ErrorCode::kNodeUnreachable || code == ErrorCode::kTimeout) {
    Doubt(peer, rail);
  } else if (code == ErrorCode::kInvalidBuffer) {
    peer->keys.Forget(operation->request.key);
  }
  stripe.tried |= 1U << rail;
  const bool another = (peer->up & ~stripe.tried) != 0;
  // kNodeUnreachable: the NIC has let go of it.
  if (operation->kind == RailOperation::Kind::kRead && code == ErrorCode::kNodeUnreachable &&
      another && operation->result == ErrorCode::kOk && peer->failure == ErrorCode::kOk) {
    operation->again.push_back(stripe);
  } else {
    Fail(operation, code);
  }
}

// Fails the operation: nothing more of it is posted.
void RailSet::Fail(RailOperation* operation, ErrorCode code) {
  if (operation->result == ErrorCode::kOk) {
    operation->result = code;
    std::erase(asking_, IndexOf(*operation));
  }
}

// Ends the operation when all of it is done or, if it has failed, when no rail has any of it.
void RailSet::EndIfDone(RailOperation* operation) {
  const bool all_posted =
      operation->next_offset == operation->request.bytes && operation->again.empty();
  if (operation->in_flight != 0 || (operation->result == ErrorCode::kOk && !all_posted)) {
    return;
  }
  operation->active = false;
  if (operation->parked) {
    operation->parked = false;
    std::erase(parked_, IndexOf(*operation));
  }
  if (operation->attached) {
    memory_.Find(operation->request.region)->users--;
    operation->attached = false;
  }
  ended_.push_back(IndexOf(*operation));
}

int RailSet::ReportEnded(CompletionSink& sink, int budget) {
  int events = 0;
  while (reported_ < ended_.size() && events < budget) {
    const uint32_t index = ended_[reported_++];
    const RailOperation& operation = operations_[index];
    if (operation.result == ErrorCode::kOk) {
      CountSuccess(operation.kind, operation.request.bytes, &statistics_);
    } else {
      failures_++;
    }
    RailPeer* peer = peers_.Find(operation.request.peer);
    busy_peers_ -= --peer->outstanding == 0 ? 1 : 0;
    ForgetIfIdle(peer);
    const uint64_t context = operation.request.context;
    const ErrorCode result = operation.result;
    free_operations_.push_back(index);
    sink.OnComplete(context, result);
    events++;
  }
  if (reported_ == ended_.size()) {
    ended_.clear();
    reported_ = 0;
  }
  return events;
}

}  // namespace ferry::transport
