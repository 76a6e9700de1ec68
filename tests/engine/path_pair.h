// Two ranks of two nodes with their engines, and the two paths between them: the daemons, and a
// direct link. Each rank is 0 to itself, and 1 to the other.
//
// The test decides when something happens: when a packet arrives, when a rank looks, when the
// daemons notice a cut, when the link is lost. Commands leave the ranks' lanes at once (how long
// they lie there makes no difference that the network could not make). Both cores number RTSs
// from 1, so that one that reached the other core would be mistaken. Data moves when it is asked
// for.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/engine/rank_fixture.h"

namespace ferry::engine {

inline constexpr std::array<Core, 2> kCores = {Core::kDaemon, Core::kLink};

class PathPair {
 public:
  static constexpr uint32_t kPeer = 1;

  explicit PathPair(const EngineOptions& options = {}, const NodeOptions& node = Small());
  // As if it were made anew.
  void Restart();
  static NodeOptions Small() {
    return {.local_ranks = 1, .remote_ranks = 1, .request_limit = 24, .unexpected_limit = 24};
  }

  TestRank& rank(uint32_t side) { return (*nodes_[side])[0]; }
  TestRank& worker(uint32_t side) { return *workers_[side]; }
  RankEngine& engine(uint32_t side) { return rank(side).engine(); }
  const shm::PeerWords& words(uint32_t side) const {
    return nodes_[side]->view(0).by_rank.peers[kPeer];
  }
  const shm::LinkWords& link(uint32_t side) const {
    return nodes_[side]->view(0).by_rank.links[kPeer];
  }
  const SessionView& view(uint32_t side) const { return nodes_[side]->view(0); }

  void UseLink(uint32_t side);
  void LeaveLink(uint32_t side);
  // Returns true if the next packet on its way to this side could arrive there. Deliver lets it
  // arrive.
  bool CanDeliver(Core core, uint32_t to) const;
  void Deliver(Core core, uint32_t to);
  // Does what both cores would do with what the side's rank has told them. After each step of it.
  void TakeCommands(uint32_t side);
  // Delivers everything and lets both ranks look until nothing moves.
  void Settle();

  // ---- Faults ----------------------------------------------------------------------------------
  // The process is gone. Its daemon says so behind what it has said; its sockets still bring that,
  // and end then.
  void Die(uint32_t side);
  bool is_dead(uint32_t side) const { return state_.is_dead[side]; }
  // The daemons are cut off from each other (or part the two ranks): what is under way by them is
  // lost. Then each notices; lets go once its rank has acted on that; takes up again once both
  // have.
  void Cut();
  bool CanNotice(uint32_t side) const { return state_.life[side] == Life::kCut; }
  void Notice(uint32_t side);
  bool CanReturn(uint32_t side) const;
  void Return(uint32_t side);
  bool IsUp(uint32_t side) const { return state_.life[side] == Life::kUp; }
  // The connection is lost, with what is under way on it. Then each end notices.
  void LoseLink();
  bool CanNoticeLoss(uint32_t side) const {
    return state_.is_lost && state_.has_end[side] && !state_.is_dead[side] &&
           At(Core::kLink, side).arriving.empty();
  }
  // The end is closed: because it has noticed the loss, or because the daemon has ordered it.
  void EndLink(uint32_t side);
  bool HasEnd(uint32_t side) const { return state_.has_end[side]; }
  // A new one, once both ends are gone.
  void OpenLink();

  // Returns what the side has told its daemon of the link.
  const std::vector<shm::LinkMatter>& told(uint32_t side) const { return state_.told[side]; }

  // Everything that distinguishes this state from others.
  std::string Key() const;

 private:
  enum class Life { kUp, kCut, kDown };

  struct Packet {
    shm::Descriptor descriptor{};
    std::string data;      // of an eager message, or pushed
    uint64_t address = 0;  // of an RTS: where its data lies, in this process
    bool says_death = false;
  };
  // An RTS that its receiver's core knows.
  struct Incoming {
    uint32_t send_request;
    uint32_t send_generation;
    uint64_t address;
    std::string pushed;
    bool is_pushed;
  };
  // One core at one side, for the pair.
  struct Half {
    std::deque<Packet> arriving;
    std::map<uint64_t, Incoming> incoming;
    uint64_t next_key = 1;
    std::vector<shm::TransferResult> by_rts;  // of this side, open
    std::deque<shm::Descriptor> results;      // for this side, once its lane has room
    // Receives by request and generation. Those of this side that may still be written into, and
    // those of the peer's that this side may write into.
    std::set<std::pair<uint32_t, uint32_t>> rtr_receives;
    std::map<std::pair<uint32_t, uint32_t>, uint64_t> rtrs;
  };

  // The knowledge of the cores and daemons.
  struct State {
    std::array<std::array<Half, 2>, 2> halves;
    std::array<Life, 2> life{Life::kUp, Life::kUp};
    std::array<bool, 2> is_dead{};
    std::array<bool, 2> has_end{true, true};
    bool is_lost = false;
    std::array<std::vector<shm::LinkMatter>, 2> told;
  };

  Half& At(Core core, uint32_t side) { return state_.halves[static_cast<uint32_t>(core)][side]; }
  const Half& At(Core core, uint32_t side) const {
    return state_.halves[static_cast<uint32_t>(core)][side];
  }
  bool Passes(Core core, uint32_t side) const;
  void TakeCommand(Core core, uint32_t side, const shm::Descriptor& command);
  void Rts(Core core, uint32_t side, Packet packet);
  void RndvGet(Core core, uint32_t side, const shm::Descriptor& command);
  void Withdraw(uint32_t side, const shm::Descriptor& command);
  void Put(uint32_t side, const shm::Descriptor& command);
  void DeliverRtr(uint32_t to, Packet* packet);
  void Send(Core core, uint32_t side, Packet packet);
  void Result(Core core, uint32_t side, shm::DescriptorKind kind, uint32_t request,
              uint32_t generation, ErrorCode error);
  shm::LaneLayout* LaneTo(Core core, uint32_t side) const;
  void Push(Core core, uint32_t side, const shm::Descriptor& descriptor, const std::string& data);
  void PushResults(Core core, uint32_t side);
  void EndHalf(Core core, uint32_t side, ErrorCode error);
  std::string KeyOf(uint32_t side) const;

  std::array<std::unique_ptr<TestNode>, 2> nodes_;
  std::array<std::unique_ptr<TestRank>, 2> workers_;
  State state_;
};

}  // namespace ferry::engine
