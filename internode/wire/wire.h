// The packets that daemons send each other over the transport (docs/protocol.md).
//
// A packet is a header and a body; a message's data follows the header of kEager. Words are
// little-endian, as on every machine that Ferry runs on. An arriving packet is copied out and
// checked before anything in it is believed: magic, version and sizes here, keys and ranks in
// arrivals.h.
//
// Bump kProtocolVersion with any change.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <type_traits>

#include "common/version.h"

namespace ferry::progress {

static_assert(std::endian::native == std::endian::little, "packets are sent as they lie in memory");

inline constexpr uint32_t kPacketMagic = 0x4b50'5246;  // "FRPK"
inline constexpr uint8_t kPacketVersion = kProtocolVersion;

enum class PacketKind : uint8_t {
  kNone = 0,
  kEager = 1,       // body: the whole message
  kRemoteRts = 2,   // body: WireRts
  kCredit = 3,      // body: WireCredit
  kSendDone = 4,    // body: WireResult; receiver's daemon -> sender's
  kRndvGet = 5,     // body: WireRndvGet; receiver's daemon -> sender's: stage the source
  kBlockReady = 6,  // body: WireBlock; sender's daemon -> receiver's
  kBlockDone = 7,   // body: WireBlockDone; receiver's daemon -> sender's
  // Receiver-first rendezvous.
  kRtr = 8,         // body: WireRtr; receiver's daemon -> sender's
  kWithdraw = 9,    // body: WireReceive; receiver's daemon -> sender's: give the RTR back
  kWithdrawn = 10,  // body: WireReceive; sender's daemon -> receiver's: it is
  kPut = 11,        // body: WirePut; a message in its place, whose data is written by RMA
  kPutDone = 12,    // body: WirePutDone; sender's daemon -> receiver's
  // Matched pairs (docs/stream_triggered.md). Source and destination are the pair's ranks, whoever
  // says it about them first.
  kPairWindow = 13,   // body: WirePairWindow; receiver's daemon -> sender's
  kPairClear = 14,    // body: WirePair; receiver's daemon -> sender's: that start was made
  kPairData = 15,     // body: WirePair and the message; sender's daemon -> receiver's
  kPairArrived = 16,  // body: WirePair; the same, the message is in the window
  kPairEnd = 17,      // body: WirePairEnd; either way: it has failed here
  kPairNic = 18,      // body: WirePairNic; receiver's daemon -> sender's, which answers
  // A send that is cancelled. The receiver's daemon answers a kRemoteRts that was not matched by
  // kSendDone with kCancelled; to any other there is another answer, or was.
  kRetract = 19,  // body: WireSend; sender's daemon -> receiver's
  // The source is gone: behind everything that it sent, and ahead of what others say because of
  // that. To the node of the destination, for all its ranks.
  kEnded = 20,  // body: WireEnded
  // Operations in the memory of a rank there (one_sided_layout.h), carried out as they come.
  kOneSided = 21,      // body: WireOneSided and perhaps data, several times (docs/protocol.md)
  kOneSidedDone = 22,  // body: WireOneSidedDone, and the data that it has found; back to the source
  kOneSidedRts = 23,   // body: WireOneSidedRts: the bytes of a long get; back to the source
  // The last that the source says to the destination on this path (docs/protocol.md).
  kSwitch = 24,  // body: WireSwitch; behind all messages
  // The source is parted from the destination, and says no more of what was before
  // (CoreEnds::PartRanks).
  kParted = 25,  // body: WireEnded
};

// A flag in PacketHeader::flags of a kRemoteRts, beside those of a descriptor: all of the data
// comes with the packet, its sender is through with the message, and no later packet says so.
inline constexpr uint8_t kFlagDataPushed = 128;

// `source` and `destination` are ranks: those of the message for kEager, kRemoteRts, kPut and
// kRetract; of the packet itself for the others (a kCredit's source is the rank that gives it, a
// kRtr's the one that receives, a kOneSidedDone's the one whose memory it was).
struct PacketHeader {
  uint32_t magic;
  uint8_t version;
  uint8_t kind;      // PacketKind
  uint8_t flags;     // kEager, kRemoteRts: those of the descriptor; kFlagSourcePrivate of an RTS
  uint8_t stream;    // kOneSided: OneSidedStream: whose `number` it is
  uint64_t key;      // of the sending daemon at the receiving one
  uint64_t job_key;  // JobPlan::key
  uint32_t source_node;
  uint32_t body_bytes;
  uint32_t source;
  uint32_t destination;
  uint32_t context;  // kEager, kRemoteRts, kPut, kRetract: the message's; kRtr: the receive's
  int32_t tag;
  // The size of the whole message; of a kRtr, the most that the receive takes; of a long kOneSided,
  // the size of its data.
  uint64_t size_bytes;
  // kOneSided: its operations are numbered in each stream from source to destination; this is the
  // number of the first one in the packet. 0: a long operation, which has no number.
  uint64_t number;
};
static_assert(sizeof(PacketHeader) == 64 && std::is_trivially_copyable_v<PacketHeader>);
static_assert(offsetof(PacketHeader, key) == 8 && offsetof(PacketHeader, source_node) == 24);
static_assert(offsetof(PacketHeader, source) == 32 && offsetof(PacketHeader, size_bytes) == 48);
static_assert(offsetof(PacketHeader, number) == 56);

struct WireRts {
  uint32_t send_request;
  uint32_t send_generation;
  uint64_t key;  // of an RMA read; 0 with kFlagSourcePrivate: private, or staged by streams
  uint64_t address;
};
static_assert(sizeof(WireRts) == 24);

struct WireEnded {
  uint32_t error;  // an ErrorCode: how it ended; kNotFound: it has left in good order
  uint32_t reserved;
};
static_assert(sizeof(WireEnded) == 8);

// The members are those of shm::CreditReturn.
struct WireCredit {
  uint32_t count;
  uint32_t flags;
  uint32_t bytes;
  uint32_t epoch;
};
static_assert(sizeof(WireCredit) == 16);

struct WireSwitch {
  uint32_t epoch;  // the number of the marker
  uint32_t reserved;
};
static_assert(sizeof(WireSwitch) == 8);

// How the transfer that the sender's request began has ended.
struct WireResult {
  uint32_t send_request;
  uint32_t send_generation;
  int32_t error;  // ErrorCode
  uint32_t reserved;
};
static_assert(sizeof(WireResult) == 16);

struct WireRndvGet {
  uint64_t rndv_get;  // the receiver's daemon's name for it
  uint32_t send_request;
  uint32_t send_generation;
  uint64_t size_bytes;     // wanted: at most what was announced
  uint32_t longest_bytes;  // no block may be longer; at least kShortestBlockBytes
  uint32_t blocks;  // into how many blocks the receiver wants it cut at least; 0: it does not care
};
static_assert(sizeof(WireRndvGet) == 32);

inline constexpr uint32_t kShortestBlockBytes = 4096;

// One block of a private or device source lies in the sending daemon's staging memory, to be read
// by RMA.
struct WireBlock {
  uint64_t rndv_get;
  uint64_t block;   // to be named in WireBlockDone
  uint64_t offset;  // in the message
  uint64_t key;
  uint64_t address;
  uint32_t size_bytes;
  int32_t error;  // ErrorCode: if not kOk, the source failed and no more blocks come
};
static_assert(sizeof(WireBlock) == 48);

struct WireBlockDone {
  uint64_t block;
};
static_assert(sizeof(WireBlockDone) == 8);

// A use of a receive request.
struct WireReceive {
  uint32_t request;
  uint32_t generation;
};
static_assert(sizeof(WireReceive) == 8);

// A use of a send request.
struct WireSend {
  uint32_t request;
  uint32_t generation;
};
static_assert(sizeof(WireSend) == 8);

struct WireRtr {
  WireReceive receive;
  uint64_t seen;  // engine::RTR::seen
  uint64_t key;   // of an RMA write
  uint64_t address;
};
static_assert(sizeof(WireRtr) == 32);

struct WirePut {
  WireReceive receive;
  uint32_t send_request;  // for people who look
  uint32_t send_generation;
};
static_assert(sizeof(WirePut) == 16);

struct WirePutDone {
  WireReceive receive;
  int32_t error;       // ErrorCode
  uint32_t uncertain;  // not 0: a write that failed may still reach the memory
};
static_assert(sizeof(WirePutDone) == 16);

// The sequence in which an operation of a rank with a peer is counted: the rank counts those of its
// lane, its daemon those of its rings of devices.
enum class OneSidedStream : uint8_t { kLane = 0, kRings = 1 };
inline constexpr uint32_t kOneSidedStreams = 2;

// The words of an OneSidedCommand. Behind it lie the data of a put, or the operands of an
// accumulate, filled up to kPacketAlignment, unless they fit into `operand` and `compare`; of a
// long put a WireRts, and perhaps the data.
struct WireOneSided {
  uint8_t operation;
  uint8_t signal;
  uint8_t width;
  uint8_t wants_answer;  // 0: what was found is of no interest
  uint32_t region;
  uint32_t size_bytes;     // of data; not of a long one
  uint32_t signal_region;  // of an accumulate: Accumulation::packed()
  uint64_t offset;
  uint64_t operand;  // of a long get: the request by which the source's daemon knows it,
  uint64_t compare;  // and its generation
};
static_assert(sizeof(WireOneSided) == 40 && sizeof(WireOneSided) % 8 == 0);

// Reports that an operation is over, and all before it. Operations that fail, or have answers, are
// reported one by one.
struct WireOneSidedDone {
  uint64_t number;
  uint64_t value;  // what an atomic operation has found
  int32_t error;   // ErrorCode
  uint32_t stream;
};
static_assert(sizeof(WireOneSidedDone) == 24);

// The RTS for the bytes of a long get, sent by the daemon of the rank whose memory holds them.
struct WireOneSidedRts {
  WireSend get;
  WireRts rts;
};
static_assert(sizeof(WireOneSidedRts) == 32);

// The `round`-th start, or message, of a matched pair.
struct WirePair {
  uint64_t channel;  // the callee's number for it
  uint64_t round;
};
static_assert(sizeof(WirePair) == 16);

// The callee's end fails with `error` once it has moved `rounds` messages: so many are complete at
// the caller's. 0: at once.
struct WirePairEnd {
  uint64_t channel;
  int32_t error;  // ErrorCode
  uint32_t reserved;
  uint64_t rounds;
};
static_assert(sizeof(WirePairEnd) == 24);

// Proposes, or refuses, that the NICs move the messages of a matched pair: which of the nodes'
// NICs, and the place that the other end's NIC writes to.
struct WirePairNic {
  uint64_t channel;  // the callee's number for it
  uint64_t key;
  uint64_t address;
  uint32_t refused;  // 1: they are not
  uint32_t nic;      // of the nodes' NICs, in their order, from 0
};
static_assert(sizeof(WirePairNic) == 32);

struct WirePairWindow {
  uint64_t channel;
  uint64_t key;  // of an RMA write
  uint64_t address;
};
static_assert(sizeof(WirePairWindow) == 24);

template <typename Body>
std::span<const std::byte> BytesOf(const Body& body) {
  return std::as_bytes(std::span<const Body, 1>(&body, 1));
}

// Returns the body of that type; nothing if the bytes do not have that size.
template <typename Body>
std::optional<Body> BodyOf(std::span<const std::byte> bytes) {
  if (bytes.size() != sizeof(Body)) {
    return std::nullopt;
  }
  Body body;
  std::memcpy(&body, bytes.data(), sizeof(body));
  return body;
}

// Returns the body of that type at the beginning of `bytes`, behind which data may follow; nothing
// if they are too few.
template <typename Body>
std::optional<Body> HeadOf(std::span<const std::byte> bytes) {
  return BodyOf<Body>(bytes.first(std::min(bytes.size(), sizeof(Body))));
}

struct Packet {
  PacketHeader header;
  std::span<const std::byte> body;
};

// A message of the transport is a frame: packets one behind the other, each filled up to a multiple
// of this (the last one need not be).
inline constexpr size_t kPacketAlignment = 8;

constexpr size_t PaddingOf(size_t packet_bytes) {
  return (kPacketAlignment - packet_bytes % kPacketAlignment) % kPacketAlignment;
}

// Takes the first packet off a frame. Returns nothing, and leaves the frame as it is, if that does
// not begin with a packet of this version; does not look at keys and ranks.
inline std::optional<Packet> TakePacket(std::span<const std::byte>* frame) {
  Packet packet;
  if (frame->size() < sizeof(packet.header)) {
    return std::nullopt;
  }
  std::memcpy(&packet.header, frame->data(), sizeof(packet.header));
  const std::span<const std::byte> rest = frame->subspan(sizeof(packet.header));
  const size_t body_bytes = packet.header.body_bytes;
  if (packet.header.magic != kPacketMagic || packet.header.version != kPacketVersion ||
      body_bytes > rest.size()) {
    return std::nullopt;
  }
  packet.body = rest.first(body_bytes);
  *frame = rest.subspan(std::min(rest.size(), body_bytes + PaddingOf(body_bytes)));
  return packet;
}

}  // namespace ferry::progress
