#include "internode/rndv/eager_long_receive.h"

#include <utility>

namespace ferry::progress {
namespace {

constexpr uint64_t kNowhere = UINT64_MAX;  // the context of data that no rank takes

}  // namespace

transport::Landing Landings::Nowhere() {
  static std::byte nothing{};  // is not written to
  return {&nothing, 0, kNowhere};
}

transport::Landing Landings::Begin(Link& link, ServedRank& rank, IncomingId id, uint64_t now_ns,
                                   bool* over_quota) {
  *over_quota = false;
  One one{.link = &link, .rank = &rank};
  if (RndvGets::Place place; rndv_gets_.TakePlace(rank, id, now_ns, &place)) {
    one.fragment = place.fragment;
    return Add(std::move(one), place.to, place.bytes);
  }
  std::byte* const memory = rank.delivery.TryHold(id);
  if (memory == nullptr) {
    *over_quota = rank.delivery.Find(id) != nullptr;
    return Nowhere();
  }
  one.where = One::Where::kParked;
  one.parked = id;
  return Add(std::move(one), memory, rank.delivery.Find(id)->size_bytes);
}

transport::Landing Landings::BeginCarried(Link& link, ServedRank& rank,
                                          const shm::Descriptor& rts) {
  One one{.link = &link, .rank = &rank, .where = One::Where::kCells, .rts = rts};
  std::byte* memory = rank.delivery.TryReserve(rts.size_bytes, &one.cell);
  if (memory == nullptr) {
    one.where = One::Where::kHeld;
    one.held.resize(rts.size_bytes);
    memory = one.held.data();
  }
  return Add(std::move(one), memory, rts.size_bytes);
}

transport::Landing Landings::Add(One one, std::byte* to, uint64_t bytes) {
  ++one.rank->operations;
  const LandingId id = landings_.Insert();
  *landings_.Find(id) = std::move(one);
  return {to, bytes, static_cast<uint64_t>(id)};
}

void Landings::OnLanded(uint64_t context, ErrorCode code, uint64_t now_ns) {
  if (context != kNowhere) {
    End(LandingId{context}, code, now_ns);
  }
}

void Landings::End(LandingId id, ErrorCode code, uint64_t now_ns) {
  const One one = std::move(*landings_.Find(id));
  landings_.Erase(id);
  --one.rank->operations;
  Delivery& delivery = one.rank->delivery;
  switch (one.where) {
    case One::Where::kRndvGet:
      return rndv_gets_.OnPlaced(one.fragment, code, now_ns);
    case One::Where::kParked:
      return rndv_gets_.OnArrived(*one.rank, one.parked, code, now_ns);
    case One::Where::kCells:
      if (code != ErrorCode::kOk || one.rank->ended) {
        return delivery.ReturnReserved(one.cell, one.rts.size_bytes);
      }
      return on_carried(*one.rank, one.rts.source, delivery.DeliverReserved(one.rts, one.cell));
    case One::Where::kHeld:
      if (code == ErrorCode::kOk && !one.rank->ended) {
        on_carried(*one.rank, one.rts.source, delivery.Deliver(one.rts, one.held));
      }
      return;
  }
}

void Landings::EndOf(const Link& link, ErrorCode error, uint64_t now_ns) {
  landings_.ForEach([&](LandingId id, const One& one) {
    if (one.link == &link) {
      End(id, error, now_ns);
    }
  });
}

void Landings::FailOf(const ServedRank& rank, ErrorCode error, uint64_t now_ns) {
  landings_.ForEach([&](LandingId id, const One& one) {
    if (one.rank == &rank) {
      transport_.DropLanding(static_cast<uint64_t>(id));
      End(id, error, now_ns);
    }
  });
}

bool Landings::IsIdleWith(const Link& link) {
  bool any = false;
  landings_.ForEach([&](LandingId, const One& one) { any |= one.link == &link; });
  return !any;
}

}  // namespace ferry::progress
