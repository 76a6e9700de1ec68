// Rtrs: receives of ranks here into which their sources on other nodes may write (receiver-first
// rendezvous; engine/rendezvous/rtr.h has the rules).
//
// A rank's kRtr goes on to the source's daemon with the address and key that an RMA write needs.
// That daemon says in order which message it writes (kPut, which is passed on to the rank), writes,
// and says how it ended (kPutDone): then the receive is over (kRndvGetDone). The rank's kWithdraw
// asks for an RTR back; the other daemon agrees (kWithdrawn) unless it has said kPut before.
//
// Peers write by a key of its own for each region, its *window*, which is made when the region is
// first announced by RTR. Device memory has one where the NIC reaches it; else no RTR leaves, and
// messages are fetched. So no peer writes into memory that is used for something else: where the
// end of a write will not be reported any more (the link was cut, or a write was given up), the
// window is closed, the RTRs of other peers in it are withdrawn, and those receives end only when
// its key is invalid. The next RTR opens another window.
//
// Calling thread: the progress thread. Does not block.
#pragma once

#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "internode/delivery/directory.h"
#include "internode/delivery/outbound.h"
#include "internode/delivery/reports.h"
#include "internode/registration/pinned_memory.h"
#include "internode/staging/staging_depot.h"

namespace ferry::progress {

class Rtrs {
 public:
  // All references outlive this.
  Rtrs(Registrar& registrar, Outbound& outbound, StagingDepot& depot, uint64_t timeout_ns)
      : registrar_(registrar), outbound_(outbound), depot_(depot), timeout_ns_(timeout_ns) {}

  // Carry out a rank's commands. An RTR is a hint: one that cannot leave now is dropped. Return
  // an error text when no correct rank writes such a command.
  std::optional<std::string> SendRtr(ServedRank& rank, const shm::Descriptor& command,
                                     uint64_t now_ns);
  std::optional<std::string> Withdraw(ServedRank& rank, const shm::Descriptor& command,
                                      uint64_t now_ns);
  // Ends the RTR of a receive that was matched with an RTS.
  void OnRndvGet(ServedRank& rank, uint32_t request, uint32_t generation);

  // Take the messages of a source's daemon. False: the rank has announced by RTR no such receive to
  // `source`.
  bool OnPut(ServedRank& rank, uint32_t source, const WirePut& put, uint64_t now_ns);
  void OnPutDone(ServedRank& rank, uint32_t source, const WirePutDone& done, uint64_t now_ns);
  void OnWithdrawn(ServedRank& rank, uint32_t source, const WireReceive& receive);
  // Ends the RTRs to a rank whose link has failed. Nothing more comes from there, but writes may be
  // on their way.
  void OnLinkFailed(Job& job, uint32_t source, ErrorCode error, uint64_t now_ns);
  // Ends the RTRs of one rank here to `source`, where writes may be on their way, too.
  void FailBetween(ServedRank& rank, uint32_t source, ErrorCode error, uint64_t now_ns);

  // Prepares the removal of a region. False: peers may write into it, or the NIC has not released
  // it yet; try again. From the deadline on returns true: the memory is then kept for a while, for
  // peers that may still write.
  bool TryRemoveRegion(ServedRank& rank, ServedRegion& region, uint64_t deadline_ns,
                       uint64_t now_ns);

  // Forgets a rank that is about to go, once its regions have gone.
  void Forget(ServedRank& rank);

  // Goes on with the windows that are being closed.
  void Advance();
  // Closes the windows of RTRs whose source is gone and whose daemon has not answered for a while:
  // that daemon may have forgotten the job.
  void CheckDeadlines(Directory& directory, uint64_t now_ns);
  bool awaits_answers() const { return waiting_ != 0; }
  bool closes_windows() const { return closing_ != 0; }
  // How many receives are being written.
  uint32_t written() const { return written_; }

  void Report(const ServedRank& rank, uint64_t now_ns, std::vector<TransferReport>* reports);

 private:
  struct Window {
    enum class State {
      kOpen,       // open once it is pinned
      kClosing,    // until no RTR uses it
      kUnpinning,  // until its key is invalid
    };
    State state = State::kOpen;
    ServedRank* rank = nullptr;
    ServedRegion* region = nullptr;
    PinnedMemory pinned;
    uint32_t live = 0;  // RTRs in it, without the lost ones
    std::future<void> unpinned;
  };

  static RtrReceive* Find(ServedRank& rank, const WireReceive& receive);
  Window* WindowOf(ServedRank& rank, ServedRegion& region);
  void Ask(ServedRank& rank, uint32_t request, RtrReceive& entry, uint64_t now_ns);
  void Lose(RtrReceive& entry, ErrorCode error);
  void Close(uint64_t id, Window& window, uint64_t now_ns);
  void Release(Window& window);
  void EndLost(uint64_t id, ServedRank& rank);
  void End(ServedRank& rank, uint32_t request, RtrReceive& entry, ErrorCode error);
  void Drop(RtrReceive& entry);

  Registrar& registrar_;
  Outbound& outbound_;
  StagingDepot& depot_;  // which counts ends in device memory
  const uint64_t timeout_ns_;
  std::map<uint64_t, Window> windows_;
  uint64_t last_window_ = 0;
  uint32_t closing_ = 0;  // windows that are not open
  uint32_t written_ = 0;
  uint32_t waiting_ = 0;  // receives whose ranks wait for the end of the RTR
};

}  // namespace ferry::progress
