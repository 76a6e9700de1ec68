// Brings messages and answers from other nodes into one rank's inbox, through the core's lane.
//
// A packet that finds no room waits in daemon memory, in order; remote senders' credits bound how
// much that can be. A medium message that finds no cell although the rank has drained all that hold
// one (they are unexpected: their cells stay taken until they are received) is parked: its bytes
// stay here, and the rank gets an RTS for them, so that cells cannot run out for good.
//
// An RTS that carries its data becomes an eager message if there are cells for it. If the rank
// holds all cells, the data are dropped and the RTS is passed on: its sender still has them.
//
// Calling thread: the progress thread. Does not block; allocates only for what waits, is parked or
// is an RTS.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/slot_map.h"
#include "shm/lane.h"
#include "shm/layout/inbox_layout.h"
#include "shm/wake.h"

namespace ferry::progress {

// A descriptor with the data that will be inline or in a cell (kEager only).
struct Message {
  shm::Descriptor descriptor{};
  std::vector<std::byte> data;
};

// A message whose bytes have not come into the rank's inbox: announced by a remote rank, or parked.
// The rank gets only the id, so it can neither choose nor change the memory that the NIC reads.
enum class IncomingId : uint64_t {};

// The bytes of a parked message. Not initialised: only the data that arrive fill them.
class ParkedBytes {
 public:
  ParkedBytes() = default;
  explicit ParkedBytes(uint64_t size)
      : bytes_(std::make_unique_for_overwrite<std::byte[]>(size)), size_(size) {}
  std::byte* data() { return bytes_.get(); }
  const std::byte* data() const { return bytes_.get(); }
  uint64_t size() const { return size_; }

 private:
  std::unique_ptr<std::byte[]> bytes_;
  uint64_t size_ = 0;
};

struct Incoming {
  // kArriving: pushed (internode/rndv/eager_long_send.h), its bytes are on their way; it becomes
  // parked if the rank does not ask for it at once. The sender of an arriving or parked message
  // gets no further answer.
  enum class Kind { kHeap, kPrivate, kParked, kArriving };
  Kind kind = Kind::kHeap;
  uint32_t source = 0;  // rank
  uint32_t send_request = 0;
  uint32_t send_generation = 0;
  uint64_t key = 0;  // kHeap: by which an RMA read finds it
  uint64_t address = 0;
  uint64_t size_bytes = 0;
  bool retracting = false;  // the rank was asked to give it back
  uint64_t rndv_get = 0;  // kArriving: the TransferId that waits for it; 0: the rank has not asked
  ParkedBytes parked;

  bool is_fetched() const { return kind == Kind::kHeap || kind == Kind::kPrivate; }
};

// Bounds the bytes that the daemon holds for all ranks of a job together: parked messages, waiting
// data, and notes of RTSs.
struct HoldBudget {
  uint64_t most_bytes = 2ULL << 30;  // as much as eight ranks that take nothing may have
  uint64_t held_bytes = 0;
};

class Delivery {
 public:
  enum class Result {
    kTaken,     // delivered, or waiting for its turn
    kOverflow,  // more waits, or is announced, than correct senders can cause
    kQuota,     // more would be held than the quota allows
  };

  // `inbox` outlives this. Opens lane `lane` of it (touches its pages). At most `max_waiting`
  // messages of remote ranks may wait, `max_answers` other descriptors, and `max_held_bytes` be
  // held: data that is parked or waits, and notes of RTSs (kNoteBytes each). `budget` is that of
  // the job.
  Delivery(shm::InboxLayout* inbox, uint32_t lane, uint64_t max_waiting, uint64_t max_answers,
           uint64_t max_held_bytes, std::shared_ptr<HoldBudget> budget);
  ~Delivery() { budget_->held_bytes -= counted_bytes_; }
  Delivery(const Delivery&) = delete;
  Delivery& operator=(const Delivery&) = delete;
  // About the size of a note, with its place in the tables.
  static constexpr uint64_t kNoteBytes = 192;

  // Delivers a descriptor, in order. `descriptor` is as the rank will see it, except for the place
  // of a kEager's data; the payload of a kRemoteRts holds the wire's RTS, whose data may come with
  // it. A kRetract names the request of an RTS of its source; the rank is asked once for each, and
  // not at all for an RTS that is not there any more: that has, or had, another answer.
  Result Deliver(const shm::Descriptor& descriptor, std::span<const std::byte> data = {});
  // Delivers a pushed message all of whose data have come: it is parked.
  Result DeliverPushed(const shm::Descriptor& rts, std::span<const std::byte> data);
  // Delivers a pushed message whose data are still on their way; *id is its note.
  Result DeliverArriving(const shm::Descriptor& rts, IncomingId* id);
  // Returns memory for the data of an arriving message, which stays until its note is forgotten.
  // Null: more would be parked than may be, or there is no such note.
  std::byte* TryHold(IncomingId id);
  // Marks an arriving message, all of whose data have come, as parked.
  void Park(IncomingId id) { incoming_.Find(id)->kind = Incoming::Kind::kParked; }
  Incoming* FindArriving(IncomingId id);
  // Reserves neighbouring cells of the lane for the data of an RTS that are on their way; *cell is
  // the first. Null: there are none, or the RTS must wait. Once all data have come DeliverReserved
  // ends the reservation; if they will not come, ReturnReserved does.
  std::byte* TryReserve(uint64_t size_bytes, uint32_t* cell);
  Result DeliverReserved(const shm::Descriptor& rts, uint32_t cell);
  void ReturnReserved(uint32_t cell, uint64_t size_bytes);
  // Delivers a descriptor that may be lost: only if the lane has plenty of room, and without
  // urgency.
  void Hint(const shm::Descriptor& descriptor);
  // Moves waiting messages into the lane. Returns only kTaken or kQuota.
  Result Flush();

  // Lets an engine that this process now runs for the rank find the news in the lane; wakes no
  // thread.
  void ShowLane() { wake_.RestoreActivity(lane_index_); }
  // Wakes the rank if its lane has news. True: no thread of the rank is inside Ferry, and the news
  // cannot wait for one.
  bool Announce();

  // Calls visit(landed) for each RTS whose data have gone into the inbox since the last call: the
  // caller tells its sender that it is done.
  struct Landed {
    uint32_t source = 0;  // rank
    uint32_t send_request = 0;
    uint32_t send_generation = 0;
  };
  template <typename Visitor>
  void ReportLanded(Visitor&& visit) {
    for (const Landed& landed : landed_) {
      visit(landed);
    }
    landed_.clear();
    landed_bytes_ = 0;
    unreported_turns_ = 0;
  }
  // Called once in a turn: returns true if ReportLanded is to be called at its end. While more
  // messages come in, and while a rank that waits may answer them, the reports wait to leave
  // together; not for long, and not once so much has landed that the senders may be waiting for
  // them.
  bool MustReport(bool more_came);
  bool has_landed() const { return !landed_.empty(); }

  bool empty() const { return waiting_.empty(); }
  uint64_t waiting() const { return waiting_.size(); }
  bool has_news() const { return news_; }
  // Notes that there is news outside the lane: the rank is woken if it sleeps.
  void NoteNews() { news_ = true; }
  // Notes that the rank's memory was changed, on which it may rest.
  void NoteChange() { changed_ = true; }
  bool TakeChange() { return std::exchange(changed_, false); }
  // True if answers were dropped: more came, while the rank read none, than a correct rank can ask
  // for.
  bool flooded() const { return flooded_; }
  shm::Wake& wake() { return wake_; }

  // Returns the note, null if `id` names none.
  const Incoming* Find(IncomingId id) { return incoming_.Find(id); }
  void Forget(IncomingId id);
  // Forgets a parked message, whose bytes are the caller's from then on.
  ParkedBytes TakeParked(IncomingId id);
  // Returns true if `source` has announced a message that the rank here may fetch.
  bool HasRtsOf(uint32_t source);
  // Forgets the RTSs of a rank that is gone; its parked messages stay.
  void ForgetRtsOf(uint32_t source);
  // Forgets the waiting messages and credits of a rank that was cut off: they count as lost on the
  // way.
  void DropWaitingOf(uint32_t source);

 private:
  Result Retract(const shm::Descriptor& retract);
  Result DeliverCarried(const shm::Descriptor& rts, std::span<const std::byte> data);
  bool TryLand(const shm::Descriptor& rts, std::span<const std::byte> data);
  void NoteLanded(const shm::Descriptor& rts);
  void PushInCells(const shm::Descriptor& descriptor, uint32_t cell);
  void DropData(Message& message);
  static uint64_t HeldBytes(const Message& message);
  void Count();
  bool IsOverBudget(uint64_t more_bytes = 0);
  Result Pass(Message& next);
  bool TryPush(const shm::Descriptor& descriptor, std::span<const std::byte> data);
  bool TryPushInCell(const shm::Descriptor& descriptor, std::span<const std::byte> data);
  bool RankHoldsAllCells() const;
  bool ShouldPark(const Message& message);
  Result Park(Message& message);
  Result PassRetraction(const shm::Descriptor& retract);
  void Pop();
  void ForgetPushed(const shm::Descriptor& noted);
  void EraseRts(IncomingId id, const Incoming& incoming);
  shm::Descriptor Note(const shm::Descriptor& rts);
  shm::Descriptor NotePushed(const shm::Descriptor& rts, IncomingId* id);
  void NotePushed(const shm::Descriptor& descriptor);

  shm::LaneLayout* layout_;
  uint32_t lane_index_;
  shm::LaneProducer lane_;
  shm::Wake wake_;
  const uint64_t max_waiting_;
  const uint64_t max_answers_;
  const uint64_t max_held_bytes_;
  const std::shared_ptr<HoldBudget> budget_;
  uint64_t counted_bytes_ = 0;  // there
  std::deque<Message> waiting_;
  uint64_t waiting_messages_ = 0;  // of these, messages of remote ranks
  uint64_t waiting_retractions_ = 0;
  uint64_t carried_bytes_ = 0;  // data that came with RTSs, and waits
  uint64_t held_bytes_ = 0;     // data of eager messages that wait
  std::vector<Landed> landed_;
  uint64_t landed_bytes_ = 0;
  uint32_t unreported_turns_ = 0;
  SlotMap<IncomingId, Incoming> incoming_;
  std::unordered_map<uint64_t, IncomingId> by_send_;  // those announced, by RtsKey
  uint64_t parked_bytes_ = 0;
  uint64_t after_last_cell_;  // number of the descriptor behind the last one that took a cell
  bool news_ = false;
  bool changed_ = false;
  bool urgent_ = false;
  bool flooded_ = false;
};

}  // namespace ferry::progress
