#include "transports/rails/striping.h"

#include <algorithm>
#include <cassert>

#include "transports/api/rail_choice.h"

namespace ferry::transport {

Striping::Striping(RailsState& state, RailMessages& messages)
    : state_(state),
      messages_(messages),
      posted_stripes_(state.operations.size() * kPostedStripesPerRail * state.rails.size()) {
  for (auto i = static_cast<uint32_t>(posted_stripes_.size()); i-- > 0;) {
    free_posted_stripes_.push_back(i);
  }
  parked_.reserve(state.operations.size());
  resumed_.reserve(state.operations.size());
}

std::optional<Stripe> Striping::NextStripe(const RailOperation& operation) const {
  if (!operation.again.empty()) {
    return operation.again.back();
  }
  const uint64_t left = operation.request.bytes - operation.next_offset;
  if (left == 0) {
    return std::nullopt;
  }
  return Stripe{operation.next_offset, std::min(left, state_.options.stripe_bytes), /*tried=*/0};
}

// `full`: rails, by bit, that have no room.
std::optional<size_t> Striping::RailFor(const RailOperation& operation, const RailPeer& peer,
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

void Striping::Advance(RailOperation* operation) {
  uint32_t full = 0;
  while (operation->result == ErrorCode::kOk) {
    const std::optional<Stripe> stripe = NextStripe(*operation);
    if (!stripe) {
      break;
    }
    const RailPeer* peer = state_.peers.Find(operation->request.peer);
    const std::optional<size_t> rail = RailFor(*operation, *peer, *stripe, full);
    if (!rail) {
      if (full != 0 && !operation->parked) {
        operation->parked = true;
        parked_.push_back(state_.IndexOf(*operation));
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

ErrorCode Striping::PostStripe(RailOperation* operation, const RailPeer& peer, const Stripe& stripe,
                               size_t rail) {
  const RailRegion* region = state_.memory.Find(operation->request.region);
  const uint32_t index = free_posted_stripes_.back();  // there are enough for all
  RmaRequest request = operation->request;
  request.peer = peer.of_rail[rail];
  request.local = static_cast<std::byte*>(request.local) + stripe.offset;
  request.region = region->handles[rail];
  request.remote_address += operation->keys[rail].remote_base + stripe.offset;
  request.key = operation->keys[rail].key;
  request.bytes = stripe.bytes;
  request.context = uint64_t{index} << 1 | kPostedStripeBit;
  const ErrorCode code =
      operation->kind == RailOperation::Kind::kRead
          ? state_.rails[rail]->Read(request, state_.now_ns)
          : state_.rails[rail]->Write(request, operation->placement, state_.now_ns);
  if (code == ErrorCode::kOk) {
    free_posted_stripes_.pop_back();
    posted_stripes_[index] = {state_.IndexOf(*operation), static_cast<uint32_t>(rail), stripe};
    operation->in_flight++;
    operation->on_rail[rail]++;
    load_bytes_[rail] += stripe.bytes;
  }
  return code;
}

void Striping::OnStripeEnd(uint32_t index, ErrorCode code) {
  const PostedStripe posted_stripe = posted_stripes_[index];
  free_posted_stripes_.push_back(index);
  RailOperation* operation = &state_.operations[posted_stripe.operation];
  load_bytes_[posted_stripe.rail] -= posted_stripe.stripe.bytes;
  operation->in_flight--;
  operation->on_rail[posted_stripe.rail]--;
  if (code != ErrorCode::kOk) {
    OnStripeFailed(operation, posted_stripe.stripe, posted_stripe.rail, code);
  }
  Advance(operation);
}

void Striping::OnStripeFailed(RailOperation* operation, Stripe stripe, size_t rail,
                              ErrorCode code) {
  RailPeer* peer = state_.peers.Find(operation->request.peer);
  state_.last_error = nullptr;
  if (code == ErrorCode::kNodeUnreachable || code == ErrorCode::kTimeout) {
    messages_.Doubt(peer, rail);
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

void Striping::Fail(RailOperation* operation, ErrorCode code) {
  if (operation->result == ErrorCode::kOk) {
    operation->result = code;
  }
}

void Striping::EndIfDone(RailOperation* operation) {
  const bool all_posted =
      operation->next_offset == operation->request.bytes && operation->again.empty();
  if (operation->in_flight != 0 || (operation->result == ErrorCode::kOk && !all_posted)) {
    return;
  }
  operation->active = false;
  if (operation->parked) {
    operation->parked = false;
    std::erase(parked_, state_.IndexOf(*operation));
  }
  if (operation->attached) {
    state_.memory.Find(operation->request.region)->users--;
    operation->attached = false;
  }
  state_.ended.push_back(state_.IndexOf(*operation));
}

void Striping::AdvanceParked() {
  resumed_.swap(parked_);
  for (const uint32_t index : resumed_) {
    state_.operations[index].parked = false;
    Advance(&state_.operations[index]);
  }
  resumed_.clear();
}

}  // namespace ferry::transport
