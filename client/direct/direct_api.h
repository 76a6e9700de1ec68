// What libferry sees of libferry_direct.so and libferry_direct_ofi.so, the other home of the
// progress core: the rank's own endpoint, and its direct links to ranks of other nodes. The former
// has sockets of Ferry's own, the latter libfabric, which no rank opens without need.
//
// libferry opens one of the two with dlopen (RTLD_NOW | RTLD_LOCAL) when its daemon first orders a
// direct link, and calls ferry_direct_entry, its only exported symbol. All are built and installed
// together: they share classes, and `version` is compared before anything of them is used.
//
// The library has no thread and no lock. It is turned by whoever holds the rank's progress lease:
// a thread that is inside libferry or, while the program computes, the link thread. Nothing here
// blocks. The daemon decides which links there are; the paths of messages belong to the engine.
//
// A link to `peer` begins with Connect and ends with End, or with OnLinkLost. Between these the
// core takes what the engine puts into SessionLayout::to_link, and puts what comes from the peer
// into LinkLane of the rank's inbox. Commands for a peer without a link are dropped: they are left
// over from one that was lost, and the engine has ended what they are about, or will. One-sided
// operations among them end with kLinkDown.
//
// Calling thread: the holder of the lease, unless a function says "any thread".
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "common/error_code.h"
#include "common/status.h"
#include "engine/session_view.h"
#include "shm/element_lock.h"

namespace ferry::client {

inline constexpr uint32_t kDirectApiVersion = 5;
inline constexpr char kDirectEntryName[] = "ferry_direct_entry";
inline constexpr uint32_t kLinkAddressBytes = 64;

// The address of a rank's endpoint for one peer: Transport::AddressFor. It holds the random bytes
// by which the two prove who they are, so it is as secret as a key.
struct LinkAddress {
  uint32_t size_bytes = 0;
  std::byte bytes[kLinkAddressBytes] = {};
};

// What each packet that one end sends to the other must have, folded to 64 bits. The daemon of the
// end that receives draws it.
struct LinkKey {
  uint64_t words[2] = {};
};

// The way to a rank of another node.
struct LinkRoute {
  LinkAddress address;
  LinkKey send_key;
  LinkKey receive_key;
  uint64_t serial = 0;  // of the link: later ones of the same pair have larger numbers
};

// Memory of the rank that its descriptors name by region and offset.
struct HostRegion {
  std::byte* base = nullptr;
  uint64_t size_bytes = 0;
  bool by_stream = false;  // neither CPUs nor sockets reach it
  bool lent = false;       // no other rank puts there, or gets
  // Unless null, who changes elements there holds it (progress::Home::LockOf).
  shm::ElementLock* lock = nullptr;
};

// What the library asks of libferry. Called from within DirectLinks::Turn (OnViolation and
// FindRegion also from within Connect and End), so the caller holds the lease; it must call nothing
// of DirectLinks in turn.
class DirectHost {
 public:
  // Lets the rank's engine take what has been delivered, now. What the engine answers lies in
  // to_link on return.
  virtual void LetMatch() = 0;
  // The connection to the peer is lost, or the peer sent what no correct core sends. All that was
  // under way with it has ended, as after End. The peer itself may live.
  virtual void OnLinkLost(uint32_t peer, ErrorCode error, const char* text) = 0;
  // This rank wrote what no correct library writes: it is to be poisoned.
  virtual void OnViolation(const char* text) = 0;
  // False: the rank has no such region (any more).
  virtual bool FindRegion(uint32_t region, HostRegion* found) const = 0;

 protected:
  ~DirectHost() = default;
};

struct DirectSetup {
  engine::SessionView view;  // the rank's own segments, which outlive the links
  const char* job_id = "";
  // As transport::TransportOptions has them.
  const char* provider = "";
  const char* domain = "";
  const char* source_address = "";
  uint64_t operation_timeout_ns = 0;
  uint64_t peer_timeout_ns = 0;       // TransportOptions::silence_timeout_ns
  uint64_t push_max_bytes = 1 << 20;  // EngineOptions::push_max_bytes of the rank's engine
};

class DirectLinks {
 public:
  // Closes the endpoint and all links without a word to anybody. No other call is under way. Not
  // for a forked child.
  virtual ~DirectLinks() = default;

  // Of this rank's endpoint, for links with that rank only; it never changes. Any thread.
  virtual LinkAddress AddressFor(uint32_t peer) const = 0;

  // From now on packets of the peer are taken, and commands for it are sent: none should be before
  // ConnectionTo is ok. kAlreadyExists: there is a link to it; kInvalidArgument: the address is
  // none; kInvalidRank; kWouldBlock: commands wait that may be about an earlier link, try again
  // after a turn.
  virtual Status Connect(uint32_t peer, const LinkRoute& route) = 0;
  // Whether the two are connected: kOk; kWouldBlock: not yet; kLinkDown: they cannot be, or there
  // is no link. `why`, unless it is null, gets words for what is not kOk. One of the two `calls`
  // the other one, by its first such question; the other one waits to be called.
  virtual ErrorCode ConnectionTo(uint32_t peer, bool calls, std::string* why) = 0;
  // Ends the link. What is under way with the peer ends with `error`, if that says that the peer is
  // gone for good (kPeerDied and the like: there is no link to it any more, ever), else with
  // kLinkDown. The results are in LinkLane on return, or wait for room there. Without a link it
  // does nothing.
  virtual void End(uint32_t peer, ErrorCode error) = 0;
  // Whether no RTS, rendezvous get or answer is open with the peer, and nothing for it waits to be
  // written.
  virtual bool IsIdle(uint32_t peer) const = 0;
  // Whether the link carries one-sided operations of this rank with the peer, or may: commands have
  // not been taken.
  virtual bool WantsOf(uint32_t peer) const = 0;
  // The memory of a region is about to go: peers reach it no more.
  virtual void ForgetRegion(uint32_t region) = 0;

  // One round: takes commands of to_link, reads and writes sockets, delivers. Returns how much was
  // done; 0: there was nothing to do. Counts in SessionLayout::counters (Statistic::kLink...) what
  // it has moved. `now_ns`: MonotonicNs.
  virtual uint32_t Turn(uint64_t now_ns) = 0;
  // Whether something is under way that a later turn has to carry on: bytes that sockets have not
  // taken, RTSs and rendezvous gets. Without it only new commands and arrivals need turns.
  virtual bool HasWork() const = 0;

  // For a thread that is going to sleep on WaitFd: as the holder of the lease, which it then gives
  // back. False: a turn would find something. It looks at the core alone; so the last step before
  // it has found nothing for the engine, either. Others may turn while it sleeps.
  virtual bool PrepareToSleep() = 0;
  // Readable when there may be something to do; level-triggered. Any thread.
  virtual int WaitFd() const = 0;
  // When to turn again even if nothing comes, as of the last PrepareToSleep; UINT64_MAX: never. Any
  // thread.
  virtual uint64_t NextTurnNs(uint64_t now_ns) const = 0;
};

struct DirectApi {
  uint32_t version = kDirectApiVersion;
  uint32_t layout_version = 0;  // kLayoutVersion
  // Opens the endpoint. `host` outlives the links. The caller need not hold the lease.
  // kInvalidArgument or kNotFound: the source address; kUnsupported: what the system or the library
  // lacks.
  StatusOr<std::unique_ptr<DirectLinks>> (*open)(const DirectSetup& setup,
                                                 DirectHost* host) = nullptr;
};

// The type of ferry_direct_entry, which has C linkage.
using DirectEntry = const DirectApi* (*)();

}  // namespace ferry::client
