// The interface between libferry and the library of its direct links, in both directions. A direct
// link library is the second home of the progress core: it has the rank's own endpoint, and its
// direct links to ranks of other nodes. libferry_direct.so has sockets of Ferry's own,
// libferry_direct_ofi.so has libfabric, which no rank opens without need.
//
// libferry opens one of the two with dlopen (RTLD_NOW | RTLD_LOCAL) when its daemon first orders a
// direct link, and calls ferry_direct_entry, its only exported symbol. All are built and installed
// together: they share classes, and libferry compares `version` before it uses anything of the
// library.
//
// The library has no thread and no lock. The thread that holds the rank's progress lease calls
// Turn: a thread that is inside libferry or, while the program computes, the link thread. Nothing
// here blocks. The daemon decides which links there are; the paths of messages belong to the
// engine.
//
// A link to `peer` begins with Connect and ends with End, or with OnLinkDown. Between these the
// core takes what the engine puts into SessionLayout::to_link, and puts what comes from the peer
// into LinkLane of the rank's inbox. The core drops commands for a peer without a link: they are
// left over from a link that was lost, and the engine has ended what they are about, or will.
// One-sided operations among them end with kLinkDown.
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

inline constexpr uint32_t kDirectApiVersion = 7;
inline constexpr char kDirectEntryName[] = "ferry_direct_entry";
inline constexpr uint32_t kLinkAddressBytes = 64;

// The address of a rank's endpoint for one peer: Transport::AddressFor. It holds the random bytes
// by which the two prove who they are, so it is as secret as a key.
struct LinkAddress {
  uint32_t size_bytes = 0;
  std::byte bytes[kLinkAddressBytes] = {};
};

// The 128 bits that each packet from one end to the other carries, folded to 64. The daemon of the
// receiving end draws them.
struct LinkKey {
  uint64_t words[2] = {};
};

// The way to a rank of another node: where its endpoint is, and the keys of both directions.
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
  // Unless null, a thread that changes elements there holds this lock (progress::Home::LockOf).
  shm::ElementLock* lock = nullptr;
};

// The functions of libferry that the direct link library calls. It calls them from within
// DirectLinks::Turn (OnViolation, FindRegion and TakeLanding also from within Connect and End, and
// OnLinkDown from within ForgetRegion), so the caller holds the lease; the functions must call
// nothing of DirectLinks in turn.
class DirectHost {
 public:
  // Lets the rank's engine take the messages and answers that have been delivered, now. The
  // engine's own answers lie in to_link on return.
  virtual void LetMatch() = 0;
  // The connection to the peer is lost, or the peer sent what no correct core sends. All that was
  // under way with the peer has ended, as after End. The peer itself may live.
  virtual void OnLinkDown(uint32_t peer, ErrorCode error, const char* text) = 0;
  // This rank wrote what no correct library writes: libferry has to poison the rank.
  virtual void OnViolation(const char* text) = 0;
  // Finds a region of the rank by its number. False: the rank has no such region, or none any more.
  virtual bool FindRegion(uint32_t region, HostRegion* found) const = 0;
  // Returns host memory for the data of a receive into memory that only streams reach. The rank
  // copies the data from there once the receive is over. kOutOfMemory; kInvalidBuffer: there is no
  // such receive, or it is shorter.
  virtual ErrorCode TakeLanding(uint32_t request, uint64_t size_bytes, shm::Location* where) = 0;

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
  // Closes the endpoint and all links without telling the peers. No other call may be under way.
  // Not for a forked child.
  virtual ~DirectLinks() = default;

  // Returns the address of this rank's endpoint, for links with that peer only; it never changes.
  // Any thread.
  virtual LinkAddress AddressFor(uint32_t peer) const = 0;

  // From now on the core takes packets of the peer and sends commands for it; the engine should
  // give it none before ConnectionTo is ok. kAlreadyExists: there is a link to the peer;
  // kInvalidArgument: the address is not one; kInvalidRank; kWouldBlock: commands wait that may be
  // about an earlier link, try again after a turn.
  virtual Status Connect(uint32_t peer, const LinkRoute& route) = 0;
  // Returns kOk once the two ranks are connected; kWouldBlock: not yet; kLinkDown: they cannot be,
  // or there is no link. `why`, unless it is null, gets words for any answer but kOk. `calls` is
  // true at one of the two ends: its first ConnectionTo opens the connection, and the other end
  // waits for it.
  virtual ErrorCode ConnectionTo(uint32_t peer, bool calls, std::string* why) = 0;
  // Ends the link. Operations under way with the peer end with `error`, if this error means that
  // the peer is gone for good (kPeerDied and the like, after which there is never a link to it
  // again), else with kLinkDown. The results are in LinkLane on return, or wait for room there.
  // Without a link the call does nothing.
  virtual void End(uint32_t peer, ErrorCode error) = 0;
  // Returns true if no RTS, rendezvous get or answer is open with the peer, and nothing for it
  // waits to be written.
  virtual bool IsIdle(uint32_t peer) const = 0;
  // Returns true if the link carries one-sided operations of this rank with the peer, or may carry
  // some: there are commands in to_link that the core has not taken.
  virtual bool WantsOf(uint32_t peer) const = 0;
  // The memory of a region, which FindRegion does not find any more, is about to go: over
  // transports/tcp no put of a peer writes there after this. Such a put that is under way, however
  // slowly its peer goes on, costs that peer the link: it was not complete when the program let go
  // of the memory, so the program is wrong, or another rank has failed. Over libfabric this does
  // nothing: its providers take no read back.
  virtual void ForgetRegion(const HostRegion& region) = 0;

  // Runs one round: takes commands of to_link, reads and writes sockets, delivers. Returns how much
  // it has done; 0: there was nothing to do. Counts in SessionLayout::counters
  // (Statistic::kLink...) what it has moved. `now_ns`: MonotonicNs.
  virtual uint32_t Turn(uint64_t now_ns) = 0;
  // Returns true if a later turn has to carry something on: bytes that sockets have not taken, RTSs
  // and rendezvous gets. If it returns false, only new commands and arrivals need turns.
  virtual bool HasWork() const = 0;

  // Prepares a thread to sleep on WaitFd. The thread calls it as the holder of the lease, which it
  // then gives back. False: a turn would find something to do. The call looks at the core alone, so
  // the last step before it must have found nothing for the engine, either. Other threads may call
  // Turn while this one sleeps.
  virtual bool PrepareToSleep() = 0;
  // Readable when there may be something to do; level-triggered. Any thread.
  virtual int WaitFd() const = 0;
  // Returns the time of the next turn that is due even if nothing comes, as of the last
  // PrepareToSleep; UINT64_MAX: none is. Any thread.
  virtual uint64_t NextTurnNs(uint64_t now_ns) const = 0;
};

struct DirectApi {
  uint32_t version = kDirectApiVersion;
  uint32_t layout_version = 0;  // kLayoutVersion
  // Opens the endpoint. `host` outlives the links. The caller need not hold the lease.
  // kInvalidArgument or kNotFound: the source address; kUnsupported: the system or the library
  // lacks something.
  StatusOr<std::unique_ptr<DirectLinks>> (*open)(const DirectSetup& setup,
                                                 DirectHost* host) = nullptr;
};

// The type of ferry_direct_entry, which has C linkage.
using DirectEntry = const DirectApi* (*)();

}  // namespace ferry::client
