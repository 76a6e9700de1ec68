// Packets of a node that a daemon takes for one (LyingNode): of every kind, with the keys that make
// them genuine, and answers to what the daemon says, which are right, wrong, doubled, late and in
// any order.
//
// One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "internode/wire/wire.h"
#include "tests/hostile/dice.h"
#include "tests/hostile/lying_node.h"
#include "transports/api/transport.h"

namespace ferry::hostile {

// The keys that make a packet genuine.
struct PacketKeys {
  uint64_t send_key = 0;
  uint64_t job_key = 0;
};

inline constexpr size_t kPacketKinds = static_cast<size_t>(progress::PacketKind::kParted) + 1;

class PeerPackets final : public transport::CompletionSink {
 public:
  PeerPackets(LyingNode& node, Dice& dice);
  ~PeerPackets() override;
  PeerPackets(const PeerPackets&) = delete;
  PeerPackets& operator=(const PeerPackets&) = delete;

  // From now on they go to that daemon. False: it has no address on the fabric.
  bool Face(const daemon::NodeContact& daemon, const PacketKeys& keys);

  // ---- Packets that it sends ----
  // Any kind, with words of which some are as they should be.
  void SayAnything();
  // Something about the oldest, or another, of what the daemon has said. False: it has said nothing
  // that can be answered.
  bool AnswerSomething();
  // Reads of the rank's region 1, each of which earns an answer. Returns how many: as many as fit
  // into one message of the transport.
  uint32_t SayGets(uint32_t bytes_of_each);
  // An RTS of so many bytes for a long put, which the daemon then reads from here, if it is let.
  void SayLongPut(uint64_t bytes);
  // Wants so many bytes of the rank's region 1: the daemon announces them, and keeps the RTS.
  void SayLongGet(uint64_t bytes);
  // Reads a word of the rank's region 1. Returns true if the packet was sent.
  bool SayGet();
  // True if the transport took the last packet only later, if at all: too many are under way.
  bool is_full() const { return is_full_; }
  void ClearFull() { is_full_ = false; }

  // ---- Packets that it receives ----
  // Reads what has come, and finishes what is under way.
  void Listen(int budget);
  // Writes what waits, and reads nothing.
  void Push();

  uint64_t sent() const { return sent_; }
  // Packets of the daemon, of this job, that only answer what it took from us.
  uint64_t answers() const { return answers_; }
  // Of these: with the word that SayGet wanted.
  uint64_t words_read() const { return words_read_; }

  // ---- transport::CompletionSink ----
  void OnReceive(transport::PeerId, std::span<const std::byte> message) override;
  void OnComplete(uint64_t, ErrorCode) override {}

 private:
  struct Heard {
    progress::PacketHeader header;
    std::vector<std::byte> body;
  };

  progress::PacketHeader Header(progress::PacketKind kind);
  template <typename Body>
  void Say(progress::PacketKind kind, const Body& body, std::span<const std::byte> data = {});
  void Send(progress::PacketHeader header, std::span<const std::byte> body);
  void Answer(const Heard& heard);
  void AnswerOneSided(const Heard& heard);
  uint32_t Request() { return dice_.Mostly<uint32_t>(static_cast<uint32_t>(dice_.Below(64))); }
  progress::WireRts Rts();
  progress::WireOneSided Operation(bool is_long);
  void SayOneSided();
  uint64_t NextNumber();

  LyingNode& node_;
  Dice& dice_;
  transport::PeerId peer_ = transport::kUnknownPeer;
  std::string fabric_address_;
  PacketKeys keys_;
  std::vector<std::byte> memory_;  // that the daemon may read and write
  transport::MemoryRegion region_;
  std::deque<Heard> unanswered_;
  uint64_t number_ = 0;  // of our operations
  uint64_t sent_ = 0;
  uint64_t answers_ = 0;
  uint64_t words_read_ = 0;
  bool is_full_ = false;
};

}  // namespace ferry::hostile
