// The attach socket: RUN_DIRECTORY/attach.sock, a Unix seqpacket socket, and all that a rank and
// its daemon say to each other outside shared memory.
//
// It carries what gRPC cannot: the caller's uid (SO_PEERCRED) and file descriptors (SCM_RIGHTS). A
// rank keeps the connection open for life: its hang-up is the rank's end, the daemon's hang-up the
// daemon's. A launcher identifies itself here too, and keeps its connection while its jobs run. One
// packet is one message; every message starts with AttachHeader, and its answer carries the same
// `serial`. Only the rank asks, several things at once if it likes; answers come in any order.
// Unasked the daemon says kGoodbye and, about direct links,
// kLinkRules and kLink; the rank answers kLink with kLinkReply, which may take its time and has no
// answer. Nor has kLifeQuestion: it is answered in the rank's session.
#pragma once

#include <cstdint>

namespace ferry::attach {

inline constexpr uint64_t kMagic = 0x4843'4154'5446'4641ULL;
inline constexpr uint32_t kMaxText = 256;
inline constexpr uint32_t kTokenBytes = 32;
inline constexpr uint32_t kMaxPacketBytes = 16 << 10;
inline constexpr uint32_t kHandleBytes = 64;
inline constexpr uint32_t kMaxBackend = 16;        // the name of a GPU backend, with a null byte
inline constexpr uint32_t kMaxHost = 256;          // a host name, with its final null byte
inline constexpr uint32_t kMaxAddress = 288;       // host:port, likewise
inline constexpr uint32_t kMaxNic = 64;            // a provider or a NIC domain, likewise
inline constexpr uint32_t kLinkAddressBytes = 64;  // of the address of a rank's own endpoint

// RegionRequest::flags, and those of the Reply to it and to kPeerRegion.
// The region is device memory that neither CPUs nor the network reach: no process maps its
// descriptor. A user imports it with the GPU backend (`handle`) and copies by streams. Vendors
// whose handle says it all have no descriptor.
inline constexpr uint32_t kRegionByStream = 1;
// In the Reply to kRegion: ferryd itself copies between such a region and the network. Without
// this the rank stages what goes to other nodes and comes from there.
inline constexpr uint32_t kRegionStaged = 2;

// The region is memory of the program itself, such as malloc's: peers map it to read. Its file may
// be longer than the region, and grow.
inline constexpr uint32_t kRegionLent = 4;

// In RegionRequest::flags, with kRegionByStream: the last descriptor is the memory for NICs, a
// dma-buf. In the flags of the Reply to kSegments: this daemon's NIC takes such.
inline constexpr uint32_t kRegionDmabuf = 8;
// In the flags of the Reply to kSegments: this daemon's NIC carries out deferred operations.
inline constexpr uint32_t kNicDefers = 16;

enum class Kind : uint32_t {
  kAttach = 1,      // AttachRequest -> AttachReply; no descriptors
  kSegments = 2,    // SegmentsRequest + [session memfd, inbox memfd] -> Reply + [doorbell eventfd,
                    // daemon pidfd (if the system has such)]
  kRegion = 3,      // RegionRequest + [memfd; of device memory: none or one, and perhaps a dma-buf]
                    // -> Reply: messages may use it
  kPeerInbox = 4,   // PeerRequest -> Reply + [inbox memfd]: of a rank of the same job and node
  kPeerRegion = 5,  // PeerRequest -> Reply + [what came with it]; kInvalidBuffer: the rank has no
                    // such region
  kReply = 6,
  kAttachReply = 7,
  kGoodbye = 8,  // Reply: the daemon ends this session; `code` and `text` say why
  kUser = 9,     // UserRequest -> UserReply: who starts jobs; the connection is his launcher
  kUserReply = 10,
  kLink = 11,          // LinkOrder, unasked: the daemon says what becomes of a direct link
  kLinkReply = 12,     // LinkReply: what became of it, or that it broke
  kLinkRules = 13,     // LinkRules, unasked, behind the Reply to kSegments: the rank may ask for
                       // direct links (SessionLayout, kLinkWanted)
  kLifeQuestion = 14,  // LifeQuestion, from a rank that waits: does the daemon still turn? Each of
                       // its two threads stores the number (SessionLayout::life_read,
                       // life_answered)
  kCounterPages = 15,  // NicRequest -> Reply + [what the pages of that NIC's counters are mapped
                       // from]; kNotFound: ranks are given none (shm::CounterPageWords)

  // ---- Calls; each is answered by a CallReply, without descriptors ----
  kCallReply = 16,
  // JoinRequest: enters the job and waits until all its ranks have joined, on all nodes, however
  // long that takes; or until it is known that one of them never will. A long poll. The answer has
  // the first peers.
  kJoin = 17,
  kPeers = 18,      // PeersRequest: where ranks live, as many as the answer has room for
  kRegionEnd = 19,  // RegionEndRequest: answered when nothing here uses the region any more
  // DetachRequest, an orderly leave: the daemon does not report a death. Answered when nothing here
  // touches the caller's memory any more. A long poll, too.
  kDetach = 20,
  kAbort = 21,     // AbortRequest: the whole job fails
  kOffer = 22,     // OfferRequest + PairOffers: persistent requests that are to be matched with
                   // others'. All are taken or none; what becomes of each is told in its end's
                   // PairWords (shm/layout/pair_layout.h)
  kWithdraw = 23,  // WithdrawRequest: takes one back, matched or not: the other side fails, or will
  kWhy = 24,       // WhyRequest: what the caller itself waits for, as Launcher.Why tells it
  kCreateJob = 25,  // JobRequest + [memfd], from a launcher: as Launcher.CreateJob
  // ProfileRequest + [memfd]: what a measured rank writes about itself, which outlives the rank.
  // kLimitExceeded: the job's ranks here have left as much as the daemon keeps.
  kProfile = 26,
};

struct AttachHeader {
  uint64_t magic;
  uint32_t kind;  // Kind
  uint32_t serial;
  uint32_t layout_version;
  uint32_t protocol_version;
};

// Instead of its pid namespace, from a rank that the system refuses process_vm calls (a filter of
// system calls). No namespace has this inode.
inline constexpr uint32_t kNoProcessCopies = 1;

struct AttachRequest {
  AttachHeader header;
  uint32_t pid;
  uint32_t rank;
  uint32_t size;
  uint32_t pid_namespace;  // inode of /proc/self/ns/pid; 0: unknown; or kNoProcessCopies
  char job_id[64];
  uint8_t job_secret[64];
  uint32_t job_secret_bytes;
  uint32_t user_namespace;  // inode of /proc/self/ns/user; 0: unknown
};

// The first answer: what the rank needs to make its segments. On failure `code` != 0 and `text`
// says why.
struct AttachReply {
  AttachHeader header;
  int32_t code;  // ErrorCode
  uint32_t daemon_pid;
  uint32_t local_size;
  uint32_t local_index;
  uint8_t reserved[kTokenBytes];
  char text[kMaxText];  // stays here: ranks of all versions read why they are refused
};

struct UserRequest {
  AttachHeader header;
};

// The token is good for the gRPC service Launcher as long as this connection is open; the jobs that
// it started end with the connection.
struct UserReply {
  AttachHeader header;
  int32_t code;  // ErrorCode
  uint32_t daemon_pid;
  uint32_t uid;  // the caller's, as the kernel told the daemon
  uint32_t reserved;
  uint8_t token[kTokenBytes];  // metadata "ferry-token", as hexadecimal text
  char text[kMaxText];
  char control_address[kMaxAddress];  // host:port at which other daemons reach this one
};

struct SegmentsRequest {
  AttachHeader header;
  uint64_t session_bytes;
  uint64_t inbox_bytes;
};

enum class MemoryKind : uint32_t { kHostHeap = 1, kDevice = 2 };

struct RegionRequest {
  AttachHeader header;
  uint32_t region;  // chosen by the rank, unique within it, never 0
  uint32_t flags;   // kRegionByStream, kRegionLent, kRegionDmabuf
  uint64_t size_bytes;
  // With kRegionByStream: what the backend's import needs beside the descriptor.
  uint64_t allocation_id;
  uint32_t device;
  uint32_t kind;  // MemoryKind
  uint8_t handle[kHandleBytes];
  // With kRegionDmabuf: where in that the region begins, and the GPU backend that made it.
  uint64_t dmabuf_offset;
  char backend[kMaxBackend];
};

struct PeerRequest {
  AttachHeader header;
  uint32_t rank;
  uint32_t region;  // kPeerRegion
};

struct Reply {
  AttachHeader header;
  int32_t code;         // ErrorCode
  uint32_t flags;       // of a region; kRegionDmabuf, kNicDefers
  uint64_t size_bytes;  // of the object whose descriptor comes with it
  char text[kMaxText];  // stays here: ranks of all versions read why they are refused
  // For a kPeerRegion with kRegionByStream, as in RegionRequest.
  uint64_t allocation_id;
  uint32_t device;
  uint32_t peer_timeout_ms;  // to kSegments: a daemon that has not moved for so long hangs
  uint8_t handle[kHandleBytes];
};

struct NicRequest {
  AttachHeader header;
  uint32_t nic;  // CounterPageWords::nic
  uint32_t reserved[3];
};

struct LifeQuestion {
  AttachHeader header;
  uint32_t number;  // of the rank's questions; wraps
  uint32_t reserved;
};

// ---- Calls ----

// CallReply::flags. A long poll is answered after `wait_ms` at the latest, with this flag if what
// the caller waits for has not come; then it asks again. So whoever waits for long knows that its
// daemon lives. 0: the answer is the last one, however long it takes.
inline constexpr uint32_t kStillWaiting = 1;

// Where a rank lives.
struct PeerPlace {
  uint32_t node;
  uint32_t local_index;  // its lane on its node
  uint32_t pid;          // only for ranks of the caller's node, and only if they share namespaces
  uint32_t private_memory_reachable;  // process_vm calls are allowed between the node's ranks: 0, 1
};

// Behind it are `peer_count` PeerPlaces, by rank, and then `text_bytes` of text: why the call was
// refused, or what it asked for. For kJoin with kStillWaiting these are the ranks that are missing
// and what is known of them; of those that wait only one rank is told, so that they do not all say
// it to the user.
struct CallReply {
  AttachHeader header;
  int32_t code;  // ErrorCode
  uint32_t flags;
  // To kJoin and kPeers.
  uint32_t node;  // the daemon's own
  uint32_t node_count;
  uint32_t job_size;
  uint32_t peer_count;
  uint32_t text_bytes;
  uint32_t reserved;
};
inline constexpr uint32_t kMostPeers = (kMaxPacketBytes - sizeof(CallReply)) / sizeof(PeerPlace);
inline constexpr uint32_t kMostCallText = 1024;

struct JoinRequest {
  AttachHeader header;
  uint64_t wait_ms;
};

struct PeersRequest {
  AttachHeader header;
  uint32_t first;  // a rank: it, and those that follow
  uint32_t reserved;
};

struct RegionEndRequest {
  AttachHeader header;
  uint32_t region;
  uint32_t reserved;
};

struct DetachRequest {
  AttachHeader header;
  uint64_t wait_ms;
};

struct AbortRequest {
  AttachHeader header;
  int32_t exit_code;
  uint32_t reserved;
  char reason[kMaxText];
};

struct WhyRequest {
  AttachHeader header;
};

// Once in the life of a rank. The memfd is sealed against shrinking and growing, and holds what
// shm/layout/profile_layout.h says.
struct ProfileRequest {
  AttachHeader header;
  uint64_t segment_bytes;  // of the memfd
};

// The requests that make a pair have the same key.
struct PairKey {
  uint32_t context;  // of the communicator
  uint32_t source;   // ranks of the job
  uint32_t destination;
  int32_t tag;
  uint64_t ordinal;  // of the persistent sends, or receives, that its rank has made with all that
};
struct MemoryPlace {
  uint32_t region;  // 0: none
  uint32_t reserved;
  uint64_t offset;
};
struct PairOffer {
  PairKey key;
  uint64_t size_bytes;  // to send, or that may be received
  uint32_t mode;        // of a send: SendMode of pair_layout.h
  uint32_t cell_count;  // each of `size_bytes`, rounded up to 64
  MemoryPlace end;      // its PairLayout
  MemoryPlace window;   // `size_bytes` that others may read or write
  MemoryPlace cells;    // of a receive: room for messages whose start has not come yet
};
struct OfferRequest {
  AttachHeader header;
  uint32_t sends;  // what they are: 1; else receives
  uint32_t count;  // of PairOffers behind it
};
inline constexpr uint32_t kMostOffers =
    (kMaxPacketBytes - sizeof(OfferRequest)) / sizeof(PairOffer);
struct WithdrawRequest {
  AttachHeader header;
  PairKey key;
  uint64_t rounds;  // messages that are complete at this end
  uint32_t send;    // which side of it
  uint32_t reserved;
};

// The memfd, sealed against shrinking, holds the node of each rank, as common/rank_table.h has it,
// and then the control address of each node, ended by a null byte.
struct JobRequest {
  AttachHeader header;
  uint32_t size;
  uint32_t node;  // the daemon's own
  uint32_t node_count;
  uint32_t list_bytes;  // of the memfd
  char job_id[64];
  uint8_t job_secret[64];
  uint32_t job_secret_bytes;
  uint32_t tree_radix;   // as CreateJobRequest.tree_radix
  uint32_t table_bytes;  // of the memfd: the nodes of ranks
  uint32_t reserved;
};
inline constexpr uint32_t kMostListBytes = 512 << 10;  // as gRPC's messages have (http2_guard.h)

// ---- Direct links (daemon/links/link_book.h) ----

// The provider of links over Ferry's own sockets; libferry_direct.so has no other.
inline constexpr char kOwnSockets[] = "ferry-tcp";

// When a rank asks for direct links, and what its endpoint is.
struct LinkRules {
  AttachHeader header;
  uint64_t min_bytes;     // through the daemons to one rank, after which it asks
  uint32_t min_messages;  // likewise; whichever comes first
  uint32_t idle_ms;       // without a message a direction goes back to the daemons; 0: never
  uint64_t operation_timeout_ms;
  uint64_t peer_timeout_ms;  // a link is broken when its peer's node answers nothing for so long
  // As transport::TransportOptions has them.
  char provider[kMaxNic];
  char domain[kMaxNic];
  char source_address[kMaxHost];
};

// The life of one end: kOpen, then kUse as often as it is used; after each of them kReturned. It
// ends by kEnd. At any time the daemon may take it back by kReturn.
enum class LinkOp : uint32_t {
  kOpen = 1,    // have an endpoint; if there is an address, wait for its call -> kOpened, kRefused
  kUse = 2,     // call the peer if that was not known yet; once the two are connected, the
                // direction to it takes the link -> kUsed, kRefused
  kReturn = 3,  // the direction goes back to the daemons -> kReturned
  kEnd = 4,     // let go of it. With a `code` it is broken, or the peer is gone -> kEnded
  kRefuse = 5,  // there will be none for now: `code` says why -> nothing
};

enum class LinkEvent : uint32_t {
  kOpened = 1,    // with the address of this rank's endpoint
  kRefused = 2,   // there can be no link here: `code` and `text`
  kUsed = 3,      // it is connected; the direction changes its path as soon as it may
  kReturned = 4,  // the direction is back, and nothing is under way at this end. Also unasked
  kEnded = 5,     // with kLinkWasUsed, if so
  kLost = 6,      // unasked: the connection is gone; the rank waits for what the daemon says
};

// LinkReply::flags: messages took the link, so some may be lost, and the two have to be parted.
inline constexpr uint32_t kLinkWasUsed = 1;

struct LinkOrder {
  AttachHeader header;
  uint32_t op;             // LinkOp
  uint32_t peer;           // a rank of another node
  uint64_t link;           // number of the link: of one pair, later ones have larger numbers
  int32_t code;            // ErrorCode
  uint32_t address_bytes;  // kOpen, kUse: the peer's endpoint; 0: not known yet
  uint8_t address[kLinkAddressBytes];
  uint64_t send_key[2];     // in packets to the peer
  uint64_t receive_key[2];  // in packets from it
};

struct LinkReply {
  AttachHeader header;
  uint32_t event;  // LinkEvent
  uint32_t peer;
  uint64_t link;
  int32_t code;  // ErrorCode
  uint32_t flags;
  uint32_t reserved;
  uint32_t address_bytes;
  uint8_t address[kLinkAddressBytes];
  char text[kMaxText];
};

}  // namespace ferry::attach
