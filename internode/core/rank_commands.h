// Reads a rank's commands from its lane to the daemon: copies each descriptor once, checks it
// against what only the daemon can write, and carries it out.
//
// Messages leave in their order: all others wait behind one that is held. A command that is no
// message (a rendezvous get, an RTS or credit given back) does not wait: the peer whose answer the
// held message needs may itself be waiting for that command.
//
// Calling thread: the progress thread. Does not block.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "internode/delivery/core_hooks.h"
#include "internode/delivery/directory.h"
#include "internode/delivery/outbound.h"
#include "internode/rma/one_sided.h"
#include "internode/rndv/eager_long_send.h"
#include "internode/rndv/private_memory.h"
#include "internode/rndv/rndv_get.h"
#include "internode/rndv/rndv_put.h"
#include "internode/rndv/rndv_rtr.h"
#include "internode/rndv/rndv_staged.h"

namespace ferry::progress {

class RankCommands {
 public:
  // All outlive this.
  RankCommands(Outbound& outbound, RndvGets& rndv_gets, StagedSends& staged_sends,
               Registrations& registrations, const PrivateMemory& private_memory, Pushes& pushes,
               Rtrs& rtrs, RndvPuts& puts, OneSided& one_sided, const CoreHooks& hooks)
      : outbound_(outbound),
        rndv_gets_(rndv_gets),
        staged_sends_(staged_sends),
        registrations_(registrations),
        private_memory_(private_memory),
        pushes_(pushes),
        rtrs_(rtrs),
        rndv_puts_(puts),
        one_sided_(one_sided),
        hooks_(hooks) {}

  // The result of a look into a lane that a rank has complained about.
  struct Verdict {
    ServedRank* accused = nullptr;
    bool guilty = false;  // it still lies there: end the accused; else part the two
    std::string text;
  };

  struct Outcome {
    uint32_t handled = 0;
    bool made_room = false;                // the rank waits for room in the lane
    std::optional<std::string> violation;  // no correct rank writes this: stop listening
    std::optional<Verdict> verdict;        // on another rank, that this one has accused
  };
  // Carries out up to `budget` commands. Sets rank.held when the next one cannot leave yet.
  Outcome Drain(ServedRank& rank, uint32_t budget, uint64_t now_ns);

 private:
  // The result of one attempt to carry out a command: done, or held until a later turn.
  enum class Step { kDone, kHeld };

  void LookAhead(ServedRank& rank, uint64_t now_ns, Outcome* outcome);
  std::optional<std::string> Check(const ServedRank& rank, const shm::Descriptor& command) const;
  std::optional<std::string> Judge(const ServedRank& rank, const shm::Accusation& accusation,
                                   std::optional<Verdict>* verdict) const;
  Step Forward(ServedRank& rank, const shm::Descriptor& command, uint64_t now_ns);
  ErrorCode SendEager(ServedRank& rank, const shm::Descriptor& command, uint64_t now_ns);
  ErrorCode SendRts(ServedRank& rank, const shm::Descriptor& command, uint64_t now_ns);
  bool StartLongPut(ServedRank& rank, const shm::Descriptor& command, uint64_t now_ns);
  ErrorCode StartPut(ServedRank& rank, const shm::Descriptor& command, uint64_t now_ns);
  std::optional<std::string> StartRndvGet(ServedRank& rank, const shm::Descriptor& command,
                                          uint64_t now_ns);
  ErrorCode SendRetraction(ServedRank& rank, const shm::Descriptor& command, uint64_t now_ns);
  std::optional<std::string> EndRetracted(ServedRank& rank, const shm::Descriptor& command,
                                          uint64_t now_ns);
  std::optional<std::string> EndRts(ServedRank& rank, const shm::Descriptor& command,
                                    uint64_t now_ns);
  ErrorCode SendMarker(ServedRank& rank, const shm::Descriptor& command, uint64_t now_ns);
  ErrorCode SendCredit(ServedRank& rank, const shm::Descriptor& command, uint64_t now_ns);
  void RefuseRts(ServedRank& rank, const shm::Descriptor& command, ErrorCode error);
  bool NoticeRoom(ServedRank& rank);

  Outbound& outbound_;
  RndvGets& rndv_gets_;
  StagedSends& staged_sends_;
  Registrations& registrations_;
  const PrivateMemory& private_memory_;
  Pushes& pushes_;
  Rtrs& rtrs_;
  RndvPuts& rndv_puts_;
  OneSided& one_sided_;
  const CoreHooks& hooks_;
};

}  // namespace ferry::progress
