// The attach socket: RUN_DIRECTORY/attach.sock, a Unix seqpacket socket that comes before gRPC.
//
// It carries what gRPC cannot: the caller's uid (SO_PEERCRED) and file descriptors (SCM_RIGHTS). A
// rank keeps the connection open for life: its hang-up is the rank's end, the daemon's hang-up the
// daemon's. A launcher identifies itself here too, and keeps its connection while its jobs run. One
// packet is one message; every message starts with AttachHeader, and its answer carries the same
// `serial`. Only the rank asks. Unasked the daemon says kGoodbye and, about direct links,
// kLinkRules and kLink; the rank answers kLink with kLinkReply, which may take its time and has no
// answer. Nor has kLifeQuestion: it is answered in the rank's session.
#pragma once

#include <cstdint>

namespace ferry::attach {

inline constexpr uint64_t kMagic = 0x4843'4154'5446'4641ULL;
inline constexpr uint32_t kMaxText = 256;
inline constexpr uint32_t kTokenBytes = 32;
inline constexpr uint32_t kMaxPacketBytes = 1024;
inline constexpr uint32_t kHandleBytes = 64;
inline constexpr uint32_t kMaxBackend = 16;        // the name of a GPU backend, with a null byte
inline constexpr uint32_t kMaxHost = 256;          // a host name, with its final null byte
inline constexpr uint32_t kMaxNic = 64;            // a provider or a NIC domain, likewise
inline constexpr uint32_t kLinkAddressBytes = 64;  // of the address of a rank's own endpoint

// RegionRequest::flags, and those of the Reply to it and to kPeerRegion.
// The region is device memory that neither CPUs nor the network reach: nobody maps its descriptor.
// A user imports it with the GPU backend (`handle`) and copies by streams. Vendors whose handle
// says it all have no descriptor.
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
                    // -> Reply (then Client.RegisterRegion activates it)
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
  uint8_t token[kTokenBytes];  // metadata "ferry-token" of every gRPC call, as hexadecimal text
  char text[kMaxText];
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
};

struct SegmentsRequest {
  AttachHeader header;
  uint64_t session_bytes;
  uint64_t inbox_bytes;
};

struct RegionRequest {
  AttachHeader header;
  uint32_t region;
  uint32_t flags;  // kRegionByStream, kRegionLent, kRegionDmabuf
  uint64_t size_bytes;
  // With kRegionByStream: what the backend's import needs beside the descriptor.
  uint64_t allocation_id;
  uint32_t device;
  uint32_t reserved;
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

// ---- Direct links (daemon/control/link_book.h) ----

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
