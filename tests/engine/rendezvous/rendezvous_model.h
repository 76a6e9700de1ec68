// Ranks that exchange messages by the protocols of engine/rendezvous, small enough to try every
// order of events.
//
// Each rank runs a script of sends, receives and cancels. Packets travel in order between two ranks
// and arrive at any time; data moves at any time. Whenever a message and a receive are matched, the
// model checks that MPI would have matched them; whenever data is written, it checks that the
// receive belongs to that message.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "engine/rendezvous/receiver_side.h"
#include "engine/rendezvous/sender_side.h"

namespace ferry::engine {

struct Action {
  enum class Kind : uint8_t { kSend, kReceive, kCancel };
  Kind kind;
  int32_t peer = 0;      // kReceive: may be any
  int32_t tag = 0;       // kReceive: may be any
  bool large = false;    // kSend
  uint32_t receive = 0;  // kCancel: the index in the script
};

using Script = std::vector<Action>;

class RendezvousModel {
 public:
  RendezvousModel(std::vector<Script> scripts, bool with_cut);

  // The number of events that could happen next, and one of them made to happen.
  size_t Choices() const;
  void Do(size_t choice);
  // Everything that distinguishes this state from others.
  std::string Key() const;
  // Empty, or the first thing that went wrong.
  const std::string& problem() const { return problem_; }
  // Called when nothing can happen any more: checks that nothing is left undone without reason.
  void CheckEnd();

  // How often each way was taken, to check that all were.
  struct Ways {
    uint64_t eager = 0;
    uint64_t read = 0;
    uint64_t written = 0;
    uint64_t cancelled = 0;
  };
  const Ways& ways() const { return ways_; }

 private:
  enum class ReceiveState : uint8_t { kPosted, kMatched, kDone, kCancelled, kCut };
  struct Receive {
    ReceivePattern pattern;
    ReceiveByRtr rtr;
    ReceiveState state = ReceiveState::kPosted;
    int32_t message = -1;
  };
  enum class MessageState : uint8_t { kSent, kArrived, kMatched, kDone, kCut };
  struct Message {
    uint32_t from, to;
    int32_t tag;
    bool large;
    MessageState state = MessageState::kSent;
    bool sender_done = false;
  };
  struct Packet {
    enum class Kind : uint8_t {
      kEager,
      kRts,
      kPut,  // an announcement
      kPutDone,
      kReadDone,
      kRtr,
      kWithdraw,
      kAcknowledge
    };
    Kind kind;
    uint32_t message = 0;
    uint32_t receive = 0;
    Rtr rtr;
  };
  struct Copy {  // of the data of a large message
    bool write;
    uint32_t message;
    uint32_t receive;
  };
  struct Rank {
    size_t next = 0;                   // in its script
    std::vector<Receive> receives;     // in the order of posting
    std::vector<uint32_t> unexpected;  // messages, in the order of arrival
    std::vector<SenderSide> sending;   // by peer
    std::vector<uint64_t> seen;        // by peer
  };

  std::deque<Packet>& Channel(uint32_t from, uint32_t to) {
    return channels_[from * ranks_.size() + to];
  }
  void Step(uint32_t rank);
  void Send(uint32_t rank, const Action& action);
  void Post(uint32_t rank, const Action& action);
  void Cancel(uint32_t rank, uint32_t receive);
  void Deliver(uint32_t from, uint32_t to);
  void Arrive(uint32_t rank, uint32_t message, bool rts);
  void SendRtrsThatMay(uint32_t rank);
  void Match(uint32_t rank, uint32_t receive, uint32_t message);
  void Finish(const Copy& copy);
  void Cut();
  void Wrong(const std::string& what);

  std::vector<Script> scripts_;
  std::vector<Rank> ranks_;
  std::vector<std::deque<Packet>> channels_;
  std::vector<Message> messages_;
  std::vector<Copy> copies_;
  bool may_cut_;
  Ways ways_;
  std::string problem_;
};

}  // namespace ferry::engine
