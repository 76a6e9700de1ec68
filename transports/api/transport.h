// The services that the daemon needs from a network: ordered messages and one-sided reads and
// writes between the nodes of a job. One Transport is one NIC domain with one reliable datagram
// endpoint, or several that work as one (transports/rails).
//
// Thread: one Transport belongs to one progress thread, which makes every call; nothing here locks.
// Only WaitFd, Describe, capabilities and Address (they never change) and PrepareMemory, with the
// end of a Registration, may be called by other threads. Time is passed in (`now_ns`, any monotonic
// clock), so that tests need no sleeps.
//
// After set-up (creation, AddPeer, memory) nothing here allocates, logs or blocks.
//
// An accepted operation (a post that returned kOk) ends in exactly one OnComplete, which comes from
// within Poll. A post that returned anything else has no completion: kWouldBlock means "no slot,
// Poll and try again"; every other code is a refusal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/error_code.h"
#include "common/status.h"

namespace ferry::transport {

// Names a peer of one Transport. Never reused while the Transport lives.
enum class PeerId : uint64_t {};
inline constexpr PeerId kUnknownPeer{UINT64_MAX};

// A bit set in the context of every operation that is posted directly to one of several NICs
// (Transport::Rails), and of no other.
inline constexpr uint64_t kDirectContext = uint64_t{1} << 63;

// Names a registered region of one Transport. Never reused while the Transport lives.
enum class RegionHandle : uint64_t {};

class DeferredWork;  // deferred_work.h

inline constexpr char kTcpProvider[] = "ferry-tcp";  // transports/tcp; all others are libfabric's

struct TransportOptions {
  // "auto" takes the best provider present; any other name is taken or refused, never replaced.
  std::string provider = "auto";
  // Address to bind and to listen on, for providers that are addressed by IP.
  std::string source_address = "127.0.0.1";
  // Port to listen on, for providers that are addressed by IP; 0 takes a free one.
  uint16_t port = 0;
  // NIC domain, such as "mlx5_0" or "cxi0"; empty takes the provider's first.
  std::string domain;
  // Further NICs, each by its IP address or its domain: transports/rails. One NIC takes none.
  std::vector<std::string> rails;
  // Reads and writes of more than this are split among the NICs, in pieces of this size.
  uint64_t stripe_bytes = 512ULL * 1024;

  // The most operations accepted and not yet completed: in all, and to one peer (0 = half of all).
  // Each peer has a part beyond these when others have all of them (accounting.h), so that silent
  // peers never keep the others from being served.
  uint32_t max_outstanding = 256;
  uint32_t max_outstanding_per_peer = 0;

  uint32_t receive_buffers = 64;
  // Largest message, header and payload together.
  uint32_t receive_buffer_bytes = 16 * 1024 + 64;
  // The most that SendMessageFrom may add to such a message.
  uint32_t attachment_bytes = 64 * 1024;

  // Reaches memory of devices, too, where the provider offers that (libfabric's FI_HMEM).
  bool reach_devices = false;

  // Operations that the NIC may have deferred (deferred_work.h); 0 asks the NIC.
  uint32_t deferred_entries = 0;

  // Reads and writes travel in pieces of at most this size (or the provider's limit, if smaller).
  uint64_t fragment_bytes = 4ULL << 20;
  // How long an operation, or one fragment of a long one, may take from its acceptance on. Periods
  // without a Poll that are longer than half of this do not count.
  uint64_t post_timeout_ns = 10'000'000'000ULL;
  // For TCP: a connection is over when the peer's kernel has answered nothing for so long, though
  // data were sent. A peer that is only stopped keeps it. 0: when our own kernel gives up, after a
  // quarter of an hour.
  uint64_t silence_timeout_ns = 0;
};

struct Capabilities {
  bool wait_fd = false;              // WaitFd and PrepareToSleep work; otherwise keep polling
  bool progress_needs_poll = false;  // data move only while a thread calls Poll
  bool receive_names_peer = false;   // OnReceive knows the sender, if AddPeer has named it
  bool pins = true;                  // PrepareMemory may take long; else it and the end of a
                                     // Registration are quick
  uint64_t max_message_bytes = 0;
  uint64_t max_attachment_bytes = 0;  // 0: no SendMessageFrom
  bool lands_in_place = false;        // asks OnHead where attachments go
  bool reaches_devices = false;       // PrepareDeviceMemory may do it,
  bool takes_dmabufs = false;         // also by DeviceMemory::dmabuf
};

// For `ferryctl nics`.
struct Description {
  std::string provider;        // "tcp;ofi_rxm"
  std::string fabric;          // "127.0.0.0/8"
  std::string domain;          // "lo"
  std::string version;         // of the library and of the provider
  std::string address;         // readable form of Address()
  std::string pci_address;     // of the NIC: "0000:3b:00.0"; empty where the provider does not tell
  std::string source_address;  // as TransportOptions has it
};

// The accesses of peers to a region, beside the owner's own Write and Read. Combine with |.
enum class Access : uint32_t { kLocal = 0, kRemoteRead = 1, kRemoteWrite = 2 };
constexpr Access operator|(Access a, Access b) {
  return static_cast<Access>(static_cast<uint32_t>(a) | static_cast<uint32_t>(b));
}
constexpr bool Includes(Access set, Access bit) {
  return (static_cast<uint32_t>(set) & static_cast<uint32_t>(bit)) != 0;
}

struct MemoryRegion {
  RegionHandle handle{};     // for local use in Write and Read
  uint64_t key = 0;          // the key that peers need; random where the provider lets us choose
  uint64_t remote_base = 0;  // byte i of the region is remote address remote_base + i
};

// The description of device memory that a NIC gets, since CPUs do not reach that memory.
struct DeviceMemory {
  enum class Interface : uint8_t { kNone, kCuda, kRocr, kLevelZero };
  Interface interface = Interface::kNone;  // by which it was allocated; kNone: no NIC reaches it
  int device = 0;                          // its number there
  bool is_mapped = false;                  // it has its address by that interface in this process
  // A descriptor of it for other drivers (a dma-buf), which is open while the memory is there; -1:
  // none. `dmabuf_begin`: the address that the beginning of the dma-buf would have.
  int dmabuf = -1;
  uintptr_t dmabuf_begin = 0;
};

// Memory that a NIC has pinned. Its end unpins it, which may take long: any thread, but before the
// end of the Transport.
class Registration {
 public:
  virtual ~Registration() = default;
};

// One Read or Write. [local, local + bytes) must lie within the region of `region`.
struct RmaRequest {
  PeerId peer{};
  void* local = nullptr;  // Write only reads from it
  RegionHandle region{};
  uint64_t remote_address = 0;  // the peer's remote_base + offset
  uint64_t key = 0;             // the peer's key
  uint64_t bytes = 0;           // 1 or more
  uint64_t context = 0;         // handed back by OnComplete
  uint32_t rail = 0;            // which of several NICs is the nearest
};

// Bytes that a message takes along from where they are. They must lie within the region.
struct Attachment {
  const void* data = nullptr;
  uint64_t bytes = 0;
  RegionHandle region{};
};

// The meaning of a Write's completion.
enum class Placement {
  kLocal,   // `local` may be reused; the data may still be on its way
  kRemote,  // besides, the data is in the peer's memory
};

// The numbers only ever grow, except `abandoned`.
struct Statistics {
  uint64_t messages_sent = 0;
  uint64_t messages_received = 0;
  uint64_t message_bytes_sent = 0;
  uint64_t message_bytes_received = 0;
  uint64_t writes = 0;
  uint64_t write_bytes = 0;
  uint64_t reads = 0;
  uint64_t read_bytes = 0;
  uint64_t served_bytes = 0;  // that peers have read here, where the transport itself sends them
  uint64_t errors = 0;    // operations failed, posts the provider refused, messages too long for us
  uint64_t timeouts = 0;  // of these, failed by their deadline
  uint64_t misfits = 0;   // of these, messages too long for us
  uint64_t would_block = 0;  // posts refused for want of a slot
  uint64_t eagain = 0;       // posts that the provider put off (tried again, in order)
  uint64_t abandoned = 0;    // operations reported as failed that the NIC still holds, now
};

// The place for an attachment as it comes from the network: any memory of this process.
struct Landing {
  std::byte* to = nullptr;  // null: nowhere, OnReceive gets the whole message
  uint64_t bytes = 0;       // of it, at most; what does not fit is dropped
  uint64_t context = 0;     // handed back by OnLanded
};

// Receives the events that Poll finds. The calls come on the progress thread, from within Poll.
// They may post, and call FailPeer and RemovePeer, but not Poll.
class CompletionSink {
 public:
  virtual ~CompletionSink() = default;
  // `message` is valid during the call only. `sender` may be kUnknownPeer: put the sender's
  // identity into the message.
  virtual void OnReceive(PeerId sender, std::span<const std::byte> message) = 0;
  // The header of a message with an attachment has come, valid during the call only, and so many
  // bytes of attachment follow. They go to the result's memory, which belongs to the transport
  // until OnLanded; OnReceive does not get this message then. Only if `lands_in_place`.
  virtual Landing OnHead(PeerId /*sender*/, std::span<const std::byte> /*header*/,
                         uint64_t /*attachment_bytes*/) {
    return {};
  }
  // An attachment is where OnHead said (kOk); or it is not, nor will it be: its connection broke
  // (kNodeUnreachable), or the memory cannot be written (kInvalidBuffer). After FailPeer or
  // RemovePeer of the sender it does not come, and the memory is let go of at once.
  virtual void OnLanded(uint64_t /*context*/, ErrorCode /*code*/) {}
  // The connection to a peer that AddPeer has named has ended, not by FailPeer or RemovePeer.
  // `lossless`: completed messages have reached the peer, or its system at least, and none of the
  // peer's was cut off, as when it closes an idle connection. Else completed messages of either
  // side may not have arrived. Comes after the ends of the operations that were under way. For
  // transports with connections of their own; others leave it to the next operation.
  virtual void OnConnectionEnded(PeerId /*peer*/, bool /*lossless*/) {}
  // `code` is kOk, or:
  //  kNodeUnreachable  the connection broke (it may come back: one operation cannot tell if the
  //                    node is dead), or never took the operation before its deadline
  //  kTimeout          the NIC took the operation and did not finish it before its deadline
  //  kInvalidBuffer    the peer refused the key, the address or the length
  //  kSystem           anything else the provider reports; LastError() has its words
  //  or the code given to FailPeer (kCancelled after RemovePeer).
  virtual void OnComplete(uint64_t context, ErrorCode code) = 0;
};

class Transport {
 public:
  virtual ~Transport() = default;  // drops outstanding operations, without OnComplete

  virtual const Capabilities& capabilities() const = 0;
  virtual const Description& Describe() const = 0;
  // Opaque bytes for AddPeer at the other side; they do not change while the Transport lives. Where
  // addresses hold a secret, they are AddressFor(0), by which a caller is not identified.
  virtual const std::vector<std::byte>& Address() const = 0;
  // The address for one peer only, which is number `guest` here: a transport whose addresses hold a
  // secret has another one for each peer, and identifies callers by it. Any thread. Send it to the
  // peer in a way that no other process can read, once the peer has proved its identity.
  virtual std::vector<std::byte> AddressFor(uint64_t /*guest*/) const { return Address(); }
  virtual const Statistics& statistics() const = 0;
  // The provider's words for the last failed operation, for a log line; empty if none failed.
  virtual std::string LastError() const = 0;

  // Names a peer. Sends nothing: a peer that does not answer is noticed by the first operation's
  // deadline. `guest` is the number for which the peer got its AddressFor; 0: it has Address().
  // Errors: kInvalidArgument (not an address of this provider).
  virtual StatusOr<PeerId> AddPeer(std::span<const std::byte> address, uint64_t guest = 0) = 0;
  // Calls FailPeer(peer, kCancelled) and forgets the peer. Errors: kNotFound.
  virtual Status RemovePeer(PeerId peer) = 0;
  // Completes all pending operations to the peer with `code` in the next Poll; later posts return
  // `code` (which must be a failure). Ignores unknown peers: the peer is gone either way.
  virtual void FailPeer(PeerId peer, ErrorCode code) = 0;

  // Makes the connection to the peer, in transports that have connections of their own; without
  // this call the first post makes it, and waits for it. Does nothing if there is one, or one is
  // being made.
  virtual void Connect(PeerId /*peer*/, uint64_t /*now_ns*/) {}
  // Returns the state of the connection to the peer: kOk, also where a transport has none of its
  // own; kWouldBlock: there is none yet; kNodeUnreachable: the last try has failed; kNotFound; the
  // code given to FailPeer. `why`, unless it is null, gets the reason for any code but kOk.
  virtual ErrorCode ConnectionTo(PeerId /*peer*/, std::string* /*why*/) { return ErrorCode::kOk; }

  // Pins [base, base + bytes) for the NIC. Any thread; may take long (20 s for 192 GB). The memory
  // stays the caller's, and stays mapped for as long as the Registration lives.
  // Errors: kInvalidArgument, kOutOfMemory, kLimitExceeded, kSystem.
  virtual StatusOr<std::unique_ptr<Registration>> PrepareMemory(void* base, uint64_t bytes,
                                                                Access access) = 0;
  // Pins memory of a device, as PrepareMemory does; `base` is its address in Write and Read.
  // Errors: those of PrepareMemory, and kUnsupported.
  virtual StatusOr<std::unique_ptr<Registration>> PrepareDeviceMemory(
      const DeviceMemory& /*memory*/, void* /*base*/, uint64_t /*bytes*/, Access /*access*/) {
    return Status(ErrorCode::kUnsupported, "this network reaches no device memory");
  }
  // Makes prepared memory of this Transport usable here and, by its key, to peers. Quick. Errors:
  // those of PrepareMemory, where the provider pins nothing and registers only now.
  virtual StatusOr<MemoryRegion> AdoptMemory(std::unique_ptr<Registration> registration) = 0;
  // Takes a region out of use; destroying the result unpins it, and peers' accesses with its key
  // fail from then on. Quick. Errors: kNotFound; kWouldBlock while an operation uses the region,
  // even one reported as failed (see "After a failure"): Poll, try again later, and keep the memory
  // mapped until then.
  virtual StatusOr<std::unique_ptr<Registration>> ReleaseMemory(RegionHandle region) = 0;

  // PrepareMemory and AdoptMemory in one call, for small memory.
  StatusOr<MemoryRegion> RegisterMemory(void* base, uint64_t bytes, Access access);
  Status DeregisterMemory(RegionHandle region) { return ReleaseMemory(region).status(); }

  // Sends header and payload as one message; both may be reused once the call has returned.
  // Messages to one peer arrive in the order of acceptance: one that the provider puts off
  // (-FI_EAGAIN) waits in the peer's queue, and later posts to that peer wait behind it.
  // Completion means that the NIC took the message, not that the peer has read it: if the
  // connection breaks, messages that have completed may be lost. Number them if that matters.
  // Errors: kWouldBlock, kLimitExceeded, kInvalidArgument (longer than max_message_bytes),
  // kNotFound (peer), the code given to FailPeer.
  virtual ErrorCode SendMessage(PeerId peer, std::span<const std::byte> header,
                                std::span<const std::byte> payload, uint64_t context,
                                uint64_t now_ns) = 0;

  // Sends header and attachment as one message; the header may be reused once the call has
  // returned, the attachment belongs to the transport until OnComplete (as the local memory of a
  // Write). Errors: those of SendMessage (kInvalidArgument also for an attachment longer than
  // max_attachment_bytes), kInvalidBuffer (not within the region).
  virtual ErrorCode SendMessageFrom(PeerId peer, std::span<const std::byte> header,
                                    const Attachment& attachment, uint64_t context,
                                    uint64_t now_ns) = 0;

  // Write puts to, Read gets from, the peer's registered memory; long ones travel in fragments.
  // `local` belongs to the transport until OnComplete. No order holds among reads and writes, nor
  // between them and messages: to announce data by a message, wait for the completion of a
  // Placement::kRemote write first.
  // Errors: kWouldBlock, kLimitExceeded, kInvalidBuffer (local range or region), kInvalidArgument
  // (no bytes), kNotFound (peer), the code given to FailPeer.
  //
  // After a failure. When an operation ends by its deadline or by FailPeer, the NIC may still hold
  // it ("abandoned"): its late end is not reported, but until then the NIC may read the local
  // buffer of a Write and write into that of a Read, here and at the peer. So treat the contents of
  // both as undefined, and free the local memory only after DeregisterMemory has returned kOk. A
  // peer protects its own memory by deregistering it. Abandoned operations keep their slots; posts
  // return kLimitExceeded if none is left (there are spare ones): create the Transport anew then.
  virtual ErrorCode Write(const RmaRequest& request, Placement placement, uint64_t now_ns) = 0;
  virtual ErrorCode Read(const RmaRequest& request, uint64_t now_ns) = 0;

  // Drops the rest of an attachment that is landing: its memory is released at once, and OnLanded
  // does not come. `context` is the landing's; unknown ones are ignored.
  virtual void DropLanding(uint64_t /*context*/) {}

  // Sends the messages that posts have left to be sent together with others. Poll and
  // PrepareToSleep do so, too: call it when no more posts come, and neither of these soon.
  virtual void Flush(uint64_t /*now_ns*/) {}

  // Moves data, retries operations that were put off, ends overdue ones, and hands up to `budget`
  // events (OnReceive, OnLanded, OnConnectionEnded or OnComplete) to `sink`. Returns how many; or 1
  // if there was none, but a part of a long message or transfer has come or gone: a thread that
  // waits for the rest is not idle.
  virtual int Poll(CompletionSink& sink, int budget, uint64_t now_ns) = 0;

  // Sleeping: add WaitFd() to an epoll set once, level-triggered, for reading. Then, whenever Poll
  // returned 0: if PrepareToSleep(), wait for the descriptor, but no longer than until
  // NextPollNs(); else Poll again. WaitFd is -1, and PrepareToSleep false, if
  // !capabilities().wait_fd. The descriptor stays the transport's.
  virtual int WaitFd() const = 0;
  virtual bool PrepareToSleep() = 0;
  // The time of the next deadline or retry; UINT64_MAX if none is pending.
  virtual uint64_t NextPollNs(uint64_t now_ns) const = 0;

  // Operations that the NIC carries out by itself, for as long as the Transport lives; null where
  // it has none, and where there are several NICs: each has its own.
  virtual DeferredWork* deferred_work() { return nullptr; }

  // Returns the Transport of each NIC, the first of which carries the messages; a Transport of one
  // NIC returns itself. For reports, and for reads, writes and memory that are to be that NIC's
  // alone: their contexts have kDirectContext, they end in the Poll of the whole, and count in the
  // NIC's statistics only. Messages, peers, Poll and sleeping are the whole's. The NICs live as
  // long as it does.
  virtual std::vector<Transport*> Rails() { return {this}; }
  // Returns the number by which one NIC knows a peer of the whole, for as long as that is a peer:
  // NIC i of a node talks to NIC i of the others. kUnknownPeer: they do not both have such a NIC.
  virtual PeerId PeerOn(PeerId peer, size_t rail) { return rail == 0 ? peer : kUnknownPeer; }
  // Returns kOk if a NIC is known to reach the peer, else: kWouldBlock (the peer was asked now, or
  // a moment ago: Poll, and call again); kNodeUnreachable (no answer, or it was doubted: it is
  // asked from time to time); kNotFound (PeerOn knows none); the code given to FailPeer.
  virtual ErrorCode Reaches(PeerId /*peer*/, size_t rail) {
    return rail == 0 ? ErrorCode::kOk : ErrorCode::kNotFound;
  }
  // Call it when an operation that a NIC should have carried out at the peer by itself has failed:
  // the NIC then does not count as reaching the peer until the peer has given a sign of life there.
  // Has no effect for the first NIC.
  virtual void Doubt(PeerId /*peer*/, size_t /*rail*/) {}
};

inline StatusOr<MemoryRegion> Transport::RegisterMemory(void* base, uint64_t bytes, Access access) {
  StatusOr<std::unique_ptr<Registration>> prepared = PrepareMemory(base, bytes, access);
  FERRY_RETURN_IF_ERROR(prepared.status());
  return AdoptMemory(std::move(*prepared));
}

}  // namespace ferry::transport
