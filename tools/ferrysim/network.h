// Messages between NICs, and how they delay each other on the way.
//
// A message holds the sending NIC for its occupancy (time.h), a shared link, if there is one on
// its route, for the link's, and the receiving NIC for its own again, each in the order of arrival
// there.
//
// Calling thread: one. Nothing blocks.
#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "tools/ferrysim/event_queue.h"
#include "tools/ferrysim/machine.h"
#include "tools/ferrysim/time.h"

namespace ferry::sim {

class Network {
 public:
  // Both outlive it.
  Network(const Machine* machine, EventQueue* queue, uint32_t nics);

  // Sends a message, from now on. `delivered` happens when the last byte is there.
  void Send(uint32_t from_nic, uint32_t to_nic, uint64_t bytes, const Action& delivered);
  // Makes one atomic operation of a NIC on memory of its own node.
  void Atomic(uint32_t nic, const Action& done);
  // Returns how long an acknowledgement takes; it delays no message.
  Time AcknowledgementLatency(uint32_t from_nic, uint32_t to_nic) const;

  uint64_t sent() const { return sent_; }
  uint64_t delivered() const { return delivered_; }
  uint64_t sent_bytes() const { return sent_bytes_; }

 private:
  struct Nic {
    FifoServer out;
    FifoServer in;
  };
  struct Flight {
    uint32_t to_nic = 0;
    uint64_t bytes = 0;
    Action delivered;
  };
  static void OnArrival(void* self, uint64_t flight, uint64_t);
  static void OnDelivery(void* self, uint64_t flight, uint64_t);
  Route RouteOf(uint32_t from_nic, uint32_t to_nic) const;
  uint32_t NewFlight(const Flight& flight);

  const Machine& machine_;
  EventQueue& queue_;
  std::vector<Nic> nics_;
  std::unordered_map<uint64_t, FifoServer> links_;
  std::vector<Flight> flights_;
  std::vector<uint32_t> free_flights_;
  uint64_t sent_ = 0;
  uint64_t sent_bytes_ = 0;
  uint64_t delivered_ = 0;
};

// The deferred-work entries of a NIC. They limit the operations that may wait in it for their
// trigger, or be under way.
//
// Entries are one-shot. Each start of an operation asks for one. A start that finds none waits in
// line and gets the next free entry, unless its trigger comes first: then it runs in software,
// without an entry.
class EntryPool {
 public:
  // The starts of one operation, which run in order.
  struct Slot {
    uint64_t armed = 0;    // bit n % 64: run n has an entry
    uint32_t started = 0;  // runs that were asked for
    uint32_t begun = 0;    // of these, those whose trigger came
  };
  // The most starts of an operation that may be ahead of its trigger.
  static constexpr uint32_t kMostAhead = 32;

  explicit EntryPool(uint32_t limit) : limit_(limit) {}

  // Asks for an entry for the next run of `slot`, which outlives the pool.
  void Start(Slot* slot);
  // Called when the trigger of the slot's next run has come. True: the run has an entry, until End.
  bool Begin(Slot* slot);
  // Gives back the entry of a run that is over.
  void End();

  uint32_t used() const { return used_; }
  uint32_t peak() const { return peak_; }

 private:
  struct Want {
    Slot* slot;
    uint32_t run;
  };
  void Arm(const Want& want);

  const uint32_t limit_;
  uint32_t used_ = 0;
  uint32_t peak_ = 0;
  std::deque<Want> line_;
};

}  // namespace ferry::sim
