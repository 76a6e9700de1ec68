// The matched pairs between nodes of which this daemon has one end: watches the doorbells that
// ranks, or their streams, write, and has the messages moved (docs/stream_triggered.md,
// docs/protocol.md).
//
// Each pair has a mover. Where the nodes' NICs have deferred work, they move the messages of pairs
// without cells. The receiver's daemon proposes that, and which NIC, when the receive is first
// started, because the other daemon surely knows the pair by then; until it has agreed, or refused,
// nothing moves. If either NIC cannot, the daemons' software does it.
//
// Ranks have thousands of pairs, and start a few: only those that may have to do something are
// looked at. One place keeps the deadlines of all, and one ends a pair that fails.
//
// A send may follow receives of its rank (shm::FollowWords): then it moves once their messages have
// come. If one of them fails, so does the send, after the messages that it may still move, and its
// other end is told: so a failure goes along a chain without the ranks.
//
// A wrong word of a rank can harm only that rank: the doorbell may grow by one for each message
// that is done; a rank that breaks this loses the pair.
//
// Calling thread: the progress thread. Does not block; only Add, and a change of movers, allocate.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/status.h"
#include "daemon/plane/data_plane.h"
#include "daemon/triggered/deferred_nics.h"
#include "daemon/triggered/nic_mover.h"
#include "daemon/triggered/pair.h"
#include "daemon/triggered/software_mover.h"
#include "internode/delivery/directory.h"
#include "internode/delivery/outbound.h"
#include "internode/registration/registrations.h"
#include "internode/wire/wire.h"
#include "transports/api/transport.h"

namespace ferry::daemon {

class Pairs final : private PairKeeper, private transport::DeferredSink {
 public:
  // All arguments outlive this object. A message that takes longer than `timeout_ns` from the
  // moment that it may move fails.
  Pairs(transport::Transport& transport, progress::Outbound& outbound,
        progress::Registrar& registrar, progress::Registrations& registrations, uint64_t timeout_ns,
        DeferredRules deferred_rules = {});
  ~Pairs() override;

  // Has the NIC take device memory of this rank, by `claim`. kOk: the NIC has it, for as long as
  // the claim is held. kWouldBlock: ask again after a turn. Any other error: the memory has to be
  // staged.
  ErrorCode Reach(progress::ServedRank& rank, const NicWindow& window, progress::Claim* claim);
  // Adds one end of a pair, of a rank that is served here. kUnsupported: its window is device
  // memory that the NIC does not reach.
  Status Add(progress::ServedRank& rank, const PairPlan& plan);
  void End(const PairName& name, uint64_t rounds, ErrorCode error);
  // Removes a pair that its own rank takes back. Afterwards, only a message that has failed may
  // still be read: it counts in the users of its region and the operations of its rank.
  void Remove(const PairName& name);
  void RemoveOf(const progress::ServedRank& rank);
  // Fails the pairs that have their long messages in a region that is about to go.
  void Release(const progress::ServedRegion& region);
  // Starts, for a device, the matched request of this rank whose end lies at `end`: rings its
  // doorbell. *start: the number of that start. kInvalidRequest: no matched request there goes to
  // another node, or its rank has not armed it. Other errors: why the pair has failed.
  ErrorCode StartByRing(progress::ServedRank& rank, const shm::Location& end, uint64_t* start);
  // Fails the pairs with a rank to which there is no way any more.
  void FailTo(const progress::Job& job, uint32_t peer, ErrorCode error);

  // Take the messages of the other daemon.
  void OnWindow(progress::Job& job, const progress::PacketHeader& header,
                const progress::WirePairWindow& window);
  void OnClear(progress::Job& job, const progress::PacketHeader& header,
               const progress::WirePair& clear);
  // Takes a message that has come, with its data, or whose data is in the window already.
  void OnMessage(progress::Job& job, const progress::PacketHeader& header,
                 const progress::WirePair& message, std::span<const std::byte> data);
  void OnEnd(progress::Job& job, const progress::PacketHeader& header,
             const progress::WirePairEnd& end);
  void OnNic(progress::Job& job, const progress::PacketHeader& header,
             const progress::WirePairNic& nic);
  // Takes the end of an operation whose context has kPairContext.
  void OnComplete(uint64_t context, ErrorCode code);

  // Call it once in a turn. Returns how much was done.
  uint32_t Advance(uint64_t now_ns);
  // Returns true if a rank may write a doorbell at any moment, which wakes no thread.
  bool is_armed() const;
  // Returns true if a rank has armed pairs since the last Advance. Call it before a sleep: it is
  // ordered with the rank, which rings after it has armed.
  bool any_newly_armed() const;
  // Returns the number of ends of messages in device memory that the NIC reached itself.
  uint64_t device_direct() const { return device_direct_; }
  // Returns the bytes of long messages that are on their way, from or to this node.
  uint64_t transfer_bytes() const { return network_.transfer_bytes; }
  // Returns the time at which to advance even if nothing happens; UINT64_MAX: never.
  uint64_t next_ns() const;
  // Returns the pool of one of Transport::Rails; null where it has no deferred work.
  const DeferredPool* deferred_pool(size_t nic) const { return nics_.pool(nic); }
  // Returns DeferredNics::PageDescriptor of that NIC. Any thread.
  int PageDescriptor(uint32_t nic) const { return nics_.PageDescriptor(nic); }

 private:
  // A mover whose pair is gone, or has another mover; kept until the NIC uses none of the memory.
  struct Leaving {
    uint64_t number;
    std::unique_ptr<PairMover> mover;
  };
  // The pairs of a rank, and the value of SessionLayout::pairs_armed when all of them were last
  // looked at.
  struct OfRank {
    uint64_t armed_seen = 0;
    std::vector<Pair*> pairs;
    std::map<std::pair<uint32_t, uint64_t>, Pair*> by_end;  // region and offset of their ends
  };

  Pair* Find(const PairName& name);
  Pair* FindFor(const progress::Job& job, const progress::PacketHeader& header, uint64_t number);
  SoftwareMover* SoftwareFor(const progress::Job& job, const progress::PacketHeader& header,
                             uint64_t number, bool is_send);
  void Forget(Pair& pair);
  void ReadFollows(Pair& pair);
  Pair* FindFollowed(const Pair& send, uint64_t end) const;
  void EndByOther(Pair& pair, uint64_t rounds, ErrorCode error);
  void EndAfter(Pair& pair, uint64_t rounds, ErrorCode error);
  void PostEnd(const Pair& pair, ErrorCode error, uint64_t rounds);

  // Movers.
  static NicMover* NicOf(const Pair& pair);
  void MoveBySoftware(Pair& pair, bool is_agreed = false);
  void LeaveMover(Pair& pair);
  uint32_t Decide(Pair& pair);
  bool MoveByNic(Pair& pair, uint32_t nic);
  void RefuseNic(const Pair& pair);

  void Fail(Pair& pair, ErrorCode error);
  uint32_t FailLate();
  static void Wake(const Pair& pair);
  void WatchArmed();
  static bool IsDue(const Pair& pair);

  // PairKeeper.
  void Watch(Pair& pair) override;
  void SetDeadline(Pair& pair, uint64_t deadline_ns, ErrorCode error) override;
  void OnRounds(Pair& pair, uint64_t rounds) override;
  void OnBroken(Pair& pair, ErrorCode error) override;
  void OnNicOpen(Pair& pair, NicPlace place) override;
  void OnNicRefused(Pair& pair) override;
  // DeferredSink.
  void OnDeferredEnd(uint64_t context, ErrorCode code) override { OnComplete(context, code); }

  const DeferredRules deferred_rules_;
  PairNetwork network_;
  DeferredNics nics_;
  uint64_t device_direct_ = 0;
  std::vector<Leaving> leaving_;
  std::unordered_map<uint64_t, std::unique_ptr<Pair>> pairs_;  // by number
  std::map<progress::ServedRank*, OfRank> by_rank_;
  std::vector<Pair*> watched_;              // may have to do something in this turn
  uint64_t next_deadline_ns_ = UINT64_MAX;  // none is before
};

}  // namespace ferry::daemon
