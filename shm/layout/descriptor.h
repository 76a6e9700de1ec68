// The 64-byte descriptor that travels through a lane: one message, or one step of a protocol.
#pragma once

#include <cstdint>

#include "shm/layout/layout_check.h"

namespace ferry::shm {

inline constexpr uint32_t kInlineBytes = 32;

enum class DescriptorKind : uint8_t {
  kNone = 0,
  kEager = 1,        // a whole message: inline, or in one slab cell of the same lane
  kRts = 2,          // request to send, same node: `payload` is LocalRts
  kRemoteRts = 3,    // request to send to another node: `payload` is RemoteRts
  kRndvGet = 4,      // rank -> daemon: fetch a matched remote message; `payload` is RndvGetCommand
  kRndvGetDone = 5,  // daemon -> receiving rank: `payload` is TransferResult
  kSendDone = 6,     // daemon -> sending rank: `payload` is TransferResult
  kCredit = 7,       // to a remote sender: `payload` is CreditReturn
  kAccuse = 8,       // rank -> daemon: `payload` is Accusation
  // Receiver-first rendezvous (engine/rendezvous/rtr.h), between ranks of two nodes.
  kRtr = 9,         // receiver -> its daemon, the other one -> the sender: `payload` is RtrWords
  kWithdraw = 10,   // the same way: the RTR is to be given back; `payload` is RtrWords
  kWithdrawn = 11,  // daemon -> receiving rank: it is; `payload` is TransferResult
  kPut = 12,        // sender -> its daemon, the other one -> the receiver: a message in its place,
                    // written into a receive that an RTR names; `payload` is PutCommand
  // A send that is cancelled, between ranks of two nodes: the payload of both is RemoteRts.
  kRetract = 13,    // sender -> its daemon, the other one -> the receiver: the RTS is taken back,
                    // unless a receive has matched it; `key` names it to the receiver
  kRetracted = 14,  // receiver -> its daemon: it was, and is `key`
  kLeft = 15,       // daemon -> rank: the source, of another node, has left; it says no more
  kOneSided = 16,   // rank -> daemon: an operation in the memory of a rank of another node;
                    // `payload` is OneSidedCommand (one_sided_layout.h)
  // Direct links (docs/protocol.md).
  kSwitch = 17,  // sender -> core, the other one -> receiver: the last packet of the source on
                 // this path; `payload` is SwitchMarker
  kLinkWanted =
      18,  // rank -> daemon: about the direct link to `destination`; `payload` is LinkCommand
};

// Descriptor::flags.
inline constexpr uint8_t kFlagCell = 1;           // kEager: the data lies in cell `cell`
inline constexpr uint8_t kFlagSourcePrivate = 2;  // kRemoteRts: source is the rank's private memory
inline constexpr uint8_t kFlagSynchronous = 4;    // kRemoteRts to the daemon: as an RTS only
inline constexpr uint8_t kFlagMatched = 8;        // kWithdraw: another message came for the receive
// kRemoteRts: its sender has counted size_bytes in PeerWords::pushed, so the data may follow the
// RTS at once. The engine that matches the RTS gives the bytes back. Cores pass the flag on,
// however they move the data.
inline constexpr uint8_t kFlagPushed = 16;
// Only in MatchEntry::flags: the direct link by which the RTS came is down.
inline constexpr uint8_t kFlagLinkDown = 32;

struct alignas(64) Descriptor {
  uint32_t stamp;  // lap of the ring; stored last by the producer (see lane.h)
  uint8_t kind;    // DescriptorKind
  uint8_t flags;
  uint16_t cell;         // slab cell index, with kFlagCell
  uint32_t source;       // global rank of the sender
  uint32_t destination;  // global rank of the receiver
  uint32_t context;      // communicator context id
  int32_t tag;
  uint64_t size_bytes;  // of the whole message
  uint8_t payload[kInlineBytes];
};
FERRY_ASSERT_LAYOUT(Descriptor, 64);
FERRY_ASSERT_OFFSET(Descriptor, stamp, 0);
FERRY_ASSERT_OFFSET(Descriptor, kind, 4);
FERRY_ASSERT_OFFSET(Descriptor, flags, 5);
FERRY_ASSERT_OFFSET(Descriptor, cell, 6);
FERRY_ASSERT_OFFSET(Descriptor, source, 8);
FERRY_ASSERT_OFFSET(Descriptor, destination, 12);
FERRY_ASSERT_OFFSET(Descriptor, context, 16);
FERRY_ASSERT_OFFSET(Descriptor, tag, 20);
FERRY_ASSERT_OFFSET(Descriptor, size_bytes, 24);
FERRY_ASSERT_OFFSET(Descriptor, payload, 32);

// Location: bytes inside a registered region (region != 0, `address` is an offset in it) or in the
// private memory of the owning rank (region == 0, `address` is a virtual address there).
inline constexpr uint32_t kLocationByStream = 1;  // Location::flags

struct Location {
  uint32_t region;
  uint32_t flags;  // for the owner's own use: others know their peers' regions from the daemon
  uint64_t address;
};
FERRY_ASSERT_LAYOUT(Location, 16);
FERRY_ASSERT_OFFSET(Location, region, 0);
FERRY_ASSERT_OFFSET(Location, address, 8);

// Payload of kRts: the transfer slot with this index in the sender's inbox describes the message.
struct LocalRts {
  uint32_t transfer;
  uint32_t generation;
  uint64_t reserved[3];
};
FERRY_ASSERT_LAYOUT(LocalRts, 32);

// Payload of kRemoteRts. Rank -> daemon: `where` is the source buffer and `key` is 0. Between
// daemons and daemon -> rank: `where.address` and `key` are those that an RMA read of the buffer
// needs.
struct RemoteRts {
  uint32_t send_request;  // index of the sender's request
  uint32_t send_generation;
  uint64_t key;
  Location where;
};
FERRY_ASSERT_LAYOUT(RemoteRts, 32);

// Payload of kRndvGet: the transfer slot with this index in the caller's own inbox describes the
// message.
struct RndvGetCommand {
  uint32_t transfer;
  uint32_t generation;
  uint64_t reserved[3];
};
FERRY_ASSERT_LAYOUT(RndvGetCommand, 32);

// Payload of kRndvGetDone and kSendDone.
struct TransferResult {
  uint32_t request;
  uint32_t generation;
  int32_t error;  // ErrorCode
  uint32_t reserved0;
  uint64_t reserved[2];
};
FERRY_ASSERT_LAYOUT(TransferResult, 32);

inline constexpr uint32_t kCreditAll = 1;  // CreditReturn::flags: answers the marker `epoch`

// Payload of kCredit, from the rank `source` that returns the credits. The counts are totals since
// the two ranks began, so that one return may overtake another, or be lost. Cores pass all four
// words on.
struct CreditReturn {
  uint32_t count;  // messages drained (PeerWords::returned)
  uint32_t flags;
  uint32_t bytes;  // pushed, and matched (PeerWords::pushed_returned)
  uint32_t epoch;
  uint64_t reserved[2];
};
FERRY_ASSERT_LAYOUT(CreditReturn, 32);
FERRY_ASSERT_OFFSET(CreditReturn, flags, 4);
FERRY_ASSERT_OFFSET(CreditReturn, bytes, 8);
FERRY_ASSERT_OFFSET(CreditReturn, epoch, 12);

// Payload of kSwitch: the sender's markers are numbered (PeerWords::path_epoch).
struct SwitchMarker {
  uint32_t epoch;
  uint32_t reserved0;
  uint64_t reserved[3];
};
FERRY_ASSERT_LAYOUT(SwitchMarker, 32);

// Payload of kLinkWanted.
enum class LinkMatter : uint32_t {
  kWanted = 0,    // there is much traffic: a direct link would help
  kBroken = 1,    // the link is down: the two have to begin anew
  kReturned = 2,  // neither direction uses it any more, as far as this rank knows
};
struct LinkCommand {
  uint32_t matter;  // LinkMatter
  uint32_t reserved0;
  uint64_t reserved[3];
};
FERRY_ASSERT_LAYOUT(LinkCommand, 32);

// Payload of kAccuse: the head of this lane of the caller's inbox holds words that no correct peer
// writes. The caller reads that lane no more; the daemon checks it itself.
struct Accusation {
  uint32_t lane;
  uint32_t reserved0;
  uint64_t reserved[3];
};
FERRY_ASSERT_LAYOUT(Accusation, 32);

// Payload of kRtr and kWithdraw: a receive of `size_bytes` at most. The sender gets it without
// `where`.
struct RtrWords {
  uint32_t receive;  // the receiver's request
  uint32_t generation;
  uint64_t seen;  // kRtr: RTR::seen
  Location where;
};
FERRY_ASSERT_LAYOUT(RtrWords, 32);

// Payload of kPut. `where` is the source, in a region; the receiver gets the descriptor without it.
struct PutCommand {
  uint32_t send_request;
  uint32_t send_generation;
  uint32_t receive;  // the one that the RTR names
  uint32_t generation;
  Location where;
};
FERRY_ASSERT_LAYOUT(PutCommand, 32);

}  // namespace ferry::shm
