#include "tools/ferrysim/network.h"

#include <algorithm>

namespace ferry::sim {
namespace {

uint64_t BitOf(uint32_t run) { return uint64_t{1} << run % 64; }

}  // namespace

Network::Network(const Machine* machine, EventQueue* queue, uint32_t nics)
    : machine_(*machine), queue_(*queue), nics_(nics) {}

Route Network::RouteOf(uint32_t from_nic, uint32_t to_nic) const {
  return RouteBetween(machine_.topology, from_nic / machine_.nics_per_node,
                      to_nic / machine_.nics_per_node);
}

Time Network::AcknowledgementLatency(uint32_t from_nic, uint32_t to_nic) const {
  return machine_.nic.latency + RouteOf(from_nic, to_nic).switches * machine_.switch_latency;
}

uint32_t Network::NewFlight(const Flight& flight) {
  if (free_flights_.empty()) {
    free_flights_.push_back(static_cast<uint32_t>(flights_.size()));
    flights_.emplace_back();
  }
  const uint32_t id = free_flights_.back();
  free_flights_.pop_back();
  flights_[id] = flight;
  return id;
}

void Network::Send(uint32_t from_nic, uint32_t to_nic, uint64_t bytes, const Action& delivered) {
  sent_++;
  sent_bytes_ += bytes;
  const Route route = RouteOf(from_nic, to_nic);
  Time begin = nics_[from_nic].out.Reserve(queue_.now(), machine_.nic.Occupancy(bytes));
  if (route.link != kNoLink) {
    begin = links_[route.link].Reserve(
        begin, bytes * machine_.nic.gap_per_byte_ps / machine_.topology.links_between);
  }
  const Time arrival = begin + machine_.nic.latency + route.switches * machine_.switch_latency;
  queue_.At(arrival, {OnArrival, this, NewFlight({to_nic, bytes, delivered}), 0});
}

void Network::OnArrival(void* self, uint64_t flight, uint64_t) {
  auto& network = *static_cast<Network*>(self);
  const Flight& arrived = network.flights_[flight];
  const Time occupancy = network.machine_.nic.Occupancy(arrived.bytes);
  const Time begin = network.nics_[arrived.to_nic].in.Reserve(network.queue_.now(), occupancy);
  network.queue_.At(begin + occupancy, {OnDelivery, self, flight, 0});
}

void Network::OnDelivery(void* self, uint64_t flight, uint64_t) {
  auto& network = *static_cast<Network*>(self);
  const Action delivered = network.flights_[flight].delivered;
  network.free_flights_.push_back(static_cast<uint32_t>(flight));
  network.delivered_++;
  delivered();
}

void Network::Atomic(uint32_t nic, const Action& done) {
  const Time begin = nics_[nic].out.Reserve(queue_.now(), machine_.nic.gap);
  queue_.At(begin + machine_.nic.gap + machine_.atomic_latency, done);
}

void EntryPool::Arm(const Want& want) {
  want.slot->armed |= BitOf(want.run);
  used_++;
  peak_ = std::max(peak_, used_);
}

void EntryPool::Start(Slot* slot) {
  const Want want{slot, slot->started++};
  if (used_ < limit_ && line_.empty()) {
    Arm(want);
  } else {
    line_.push_back(want);
  }
}

bool EntryPool::Begin(Slot* slot) {
  const uint64_t bit = BitOf(slot->begun++);
  const bool armed = (slot->armed & bit) != 0;
  slot->armed &= ~bit;
  return armed;
}

void EntryPool::End() {
  used_--;
  while (!line_.empty() && used_ < limit_) {
    const Want want = line_.front();
    line_.pop_front();
    if (want.slot->begun <= want.run) {  // else it has run in software meanwhile
      Arm(want);
    }
  }
}

}  // namespace ferry::sim
