// Brings messages and answers from other nodes into one rank's inbox, through the core's lane.
//
// A packet that finds no room waits in daemon memory, in order; remote senders' credits bound how
// much that can be. A medium message that finds no cell although the rank has drained all that hold
// one (they are unexpected: their cells stay taken until they are received) is parked: its bytes
// stay here, and the rank gets a request-to-send for them, so that cells cannot run out for good.
//
// An RTS that carries its data becomes an eager message if there are cells for it. If the rank
// holds them, the data is dropped and the RTS passed on: its sender has it still.
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
// The rank gets only the id, so it can neither choose nor damage what the NIC is told to read.
enum class IncomingId : uint64_t {};

// The bytes of a parked message. Nothing fills them but what comes.
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
  // parked if the rank does not ask for it at once. Of these and of parked ones the sender hears no
  // more.
  enum class Kind { kHeap, kPrivate, kParked, kArriving };
  Kind kind = Kind::kHeap;
  uint32_t source = 0;  // rank
  uint32_t send_request = 0;
  uint32_t send_generation = 0;
  uint64_t key = 0;  // kHeap: where an RMA read finds it
  uint64_t address = 0;
  uint64_t size_bytes = 0;
  bool retracting = false;  // the rank was asked to give it back
  uint64_t rndv_get = 0;  // kArriving: what waits for it (a TransferId); 0: the rank has not asked
  ParkedBytes parked;

  bool is_fetched() const { return kind == Kind::kHeap || kind == Kind::kPrivate; }
};

// Bounds what the daemon holds for all ranks of a job together: parked messages, data that waits,
// and notes of RTSs.
struct HoldBudget {
  uint64_t most_bytes = 2ULL << 30;  // as much as eight ranks may have that take nothing
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
  // About what a note takes, with its place in the tables.
  static constexpr uint64_t kNoteBytes = 192;

  // `descriptor`: as the rank will see it, but for where the data of a kEager lies, and with what
  // is in the wire's RTS in the payload of a kRemoteRts, which may have its data with it.
  // A kRetract names the request of an RTS of its source; the rank is asked once for each, and
  // not at all for one that is not there any more: that has, or had, another answer.
  Result Deliver(const shm::Descriptor& descriptor, std::span<const std::byte> data = {});
  // The same for a pushed message, with all of its data: it is parked,
  Result DeliverPushed(const shm::Descriptor& rts, std::span<const std::byte> data);
  // or with its data on its way: *id is the note of it.
  Result DeliverArriving(const shm::Descriptor& rts, IncomingId* id);
  // Memory for that data, which stays until the note is forgotten. Null: it would be more than may
  // be parked, or there is no such note.
  std::byte* TryHold(IncomingId id);
  // It is all there: it is parked from now on.
  void Park(IncomingId id) { incoming_.Find(id)->kind = Incoming::Kind::kParked; }
  Incoming* FindArriving(IncomingId id);
  // Neighbouring cells of the lane for the data of an RTS that is on its way; *cell is the first.
  // Null: there are none, or it must wait. They are given back by one of the two that follow: it is
  // all there, or will not be.
  std::byte* TryReserve(uint64_t size_bytes, uint32_t* cell);
  Result DeliverReserved(const shm::Descriptor& rts, uint32_t cell);
  void ReturnReserved(uint32_t cell, uint64_t size_bytes);
  // The same for what may be lost: it goes only where there is plenty of room, and is not urgent.
  void Hint(const shm::Descriptor& descriptor);
  // Moves on what waits. Only kTaken or kQuota.
  Result Flush();

  // Has an engine that looks now, by this process, find what is new; wakes nobody.
  void ShowLane() { wake_.RestoreActivity(lane_index_); }
  // Wakes the rank if there is something new. True: nobody is inside the rank, and what is new
  // cannot wait for it.
  bool Announce();

  // Calls visit(landed) for each RTS whose data has gone into the inbox since the last call: its
  // sender is to be told that it is done.
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
  // Once in a turn: whether their senders are to be told at its end. While more comes in, and while
  // a rank that waits may have something to say to it, the answers wait to leave together; not for
  // long, and not when so much has landed that the senders may be waiting for them.
  bool MustReport(bool more_came);
  bool has_landed() const { return !landed_.empty(); }

  bool empty() const { return waiting_.empty(); }
  uint64_t waiting() const { return waiting_.size(); }
  bool has_news() const { return news_; }
  // There is something new outside the lane: the rank is to look up, if it sleeps.
  void NoteNews() { news_ = true; }
  // Its memory was changed, for which it may rest.
  void NoteChange() { changed_ = true; }
  bool TakeChange() { return std::exchange(changed_, false); }
  // More answers came than a correct rank can ask for, and were dropped: it has not read the
  // others.
  bool flooded() const { return flooded_; }
  shm::Wake& wake() { return wake_; }

  // Null when `id` names none.
  const Incoming* Find(IncomingId id) { return incoming_.Find(id); }
  void Forget(IncomingId id);
  // Forgets a parked message, whose bytes are the caller's from then on.
  ParkedBytes TakeParked(IncomingId id);
  // Whether it has announced something that the rank here may fetch.
  bool HasRtsOf(uint32_t source);
  // Forgets the RTSs of a rank that is gone; what it parked stays.
  void ForgetRtsOf(uint32_t source);
  // Forgets the messages and credits of a rank that was cut off which still wait: they count as
  // lost on the way.
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
