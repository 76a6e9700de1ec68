// The rank's, or launcher's, end of the attach socket (proto/attach_protocol.h): all that it asks
// of its daemon.
//
// Calling thread: any, several at a time; none waits for another's answer. Calls block until the
// daemon answers. One that says nothing for the timeout given at Connect, or for longer where it
// has memory to pin, is given up: kTimeout. Once it has hung up all calls fail, with the reason
// that it gave or kDaemonDied. The connection stays open for the rank's life: its hang-up tells the
// daemon.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/status.h"
#include "common/unique_fd.h"
#include "proto/attach_protocol.h"

namespace ferry::client {

// The daemon's answer to a request about segments or regions.
struct AttachAnswer {
  uint64_t size_bytes = 0;
  attach::Reply reply{};  // the whole reply, for what else it says about a region
  std::vector<UniqueFd> descriptors;
};

// A job that a launcher asks for.
struct NewJob {
  std::string id;
  std::string secret;
  uint32_t node = 0;                   // the daemon's own
  std::vector<uint32_t> node_of_rank;  // by rank
  std::vector<std::string> addresses;  // by node, host:port
  uint32_t tree_radix = 0;             // the same on all nodes; 0: they are no tree
};

class AttachConnection {
 public:
  // Connects to RUN_DIRECTORY/attach.sock. kNoDaemon, with advice: nothing listens there. Errors of
  // ConnectToDaemon: what listens there is not a ferryd for this user.
  Status Connect(const std::string& run_directory, uint64_t timeout_ms,
                 const std::string& daemon_user = "");

  // ---- Before the job ----
  // The first exchange of a rank: identity and versions.
  StatusOr<attach::AttachReply> Attach(const attach::AttachRequest& request);
  // The first exchange of a launcher: its daemon's address, and the token for the gRPC service
  // Launcher.
  StatusOr<attach::UserReply> IdentifyUser();
  // Creates a job, as a launcher does; the job ends with this connection.
  Status CreateJob(const NewJob& job);
  StatusOr<AttachAnswer> SendSegments(uint64_t session_bytes, int session_fd, uint64_t inbox_bytes,
                                      int inbox_fd);

  // ---- The job (attach_calls.cc) ----
  struct Membership {
    uint32_t node = 0;
    uint32_t node_count = 0;
    std::vector<attach::PeerPlace> peers;  // of some ranks in a row
  };
  // Waits until every rank has joined, for as long as the daemon says that it lives. Calls `waits`
  // meanwhile, after `first_ms` or so (0: later) and again and again, with the ranks that are
  // missing, or with "" if another rank of the job is told. Returns the places of the first ranks.
  using Waits = std::function<void(const std::string& missing)>;
  StatusOr<Membership> Join(uint64_t first_ms, const Waits& waits);
  // Returns the nodes and places of rank `first` and of as many ranks behind it as one answer has
  // room for.
  StatusOr<Membership> Peers(uint32_t first);
  // Calls `take` for the `size` ranks of the job, in order; `first` is what Join has returned. Asks
  // for the places of some at a time, so that the memory for those suffices. kCorrupt: the daemon
  // does not place all of them.
  using TakePlace = std::function<void(uint32_t rank, const attach::PeerPlace& place)>;
  Status TakePlaces(Membership first, uint32_t size, const TakePlace& take);
  // Leaves the job in good order. Waits, for as long as the daemon says that it lives, until the
  // daemon no longer touches this rank's memory.
  Status Detach();
  // Returns a sentence that says what this rank waits for, and why.
  StatusOr<std::string> Why();
  // Leaves what this rank measures with the daemon: a sealed memfd of `size_bytes`. kLimitExceeded:
  // the daemon keeps no more of this job.
  Status LeaveProfile(int fd, uint64_t size_bytes);
  // Fails the whole job. `reason` may be null.
  Status Abort(int exit_code, const char* reason);

  // ---- Memory ----
  // Registers a region of this rank's memory with the daemon; fills in the request's header. `fd`
  // is -1 where the handle alone describes the region; `dmabuf` is -1 without kRegionDmabuf. On
  // success messages may use the region.
  StatusOr<AttachAnswer> SendRegion(attach::RegionRequest request, int fd, int dmabuf = -1);
  // Ends a region of `size_bytes`. On success the daemon does not use it any more.
  Status EndRegion(uint32_t region, uint64_t size_bytes);
  // Returns true if the daemon wants dma-bufs of device memory.
  bool takes_dmabufs() const { return takes_dmabufs_.load(std::memory_order_relaxed); }
  StatusOr<AttachAnswer> PeerInbox(uint32_t rank);
  StatusOr<AttachAnswer> PeerRegion(uint32_t rank, uint32_t region);
  // Returns the file from which the pages of that NIC's counters are mapped
  // (shm::CounterPageWords).
  StatusOr<UniqueFd> CounterPages(uint32_t nic);

  // ---- Persistent requests ----
  // Offers at most kMostOffers requests, all sends or all receives, to be matched; all or none are
  // taken. The outcome of each appears in its PairWords (shm/layout/pair_layout.h).
  Status OfferPairs(bool sends, std::span<const attach::PairOffer> offers);
  // Takes back an offered request, after `rounds` complete messages.
  Status WithdrawPair(bool send, const attach::PairKey& key, uint64_t rounds);

  // The attach socket, for the watcher's poll: readable, or hung up.
  int fd() const { return socket_.get(); }

  // ---- Direct links: what the daemon says unasked ----
  // Returns the rules for direct links, if they have come. They come behind the answer to
  // SendSegments; a daemon that sends none gives no orders. Does not block.
  std::optional<attach::LinkRules> TakeRules();
  // Returns the next order that has come. Does not block.
  std::optional<attach::LinkOrder> TakeOrder();
  // Readable when a thread that waited for its answer has read an order in its place.
  int orders_fd() const { return orders_event_.get(); }
  // Answers an order, or tells the daemon of a link unasked. Does not wait for an answer.
  Status SendLinkReply(const attach::LinkReply& reply);

  // Sends question `number`, whether the daemon turns; the answer appears in the session. Returns
  // false if the socket has no room, because the daemon has not read what is there. Does not block.
  bool AskForLife(uint32_t number);
  // Call it when the daemon hangs: ends all calls, also those under way, with kDaemonDied.
  void GiveUp();

  // Returns, after a hang-up, why the daemon ended the session, or kDaemonDied if it gave no
  // reason.
  Status Goodbye();

 private:
  struct Packet {
    std::vector<std::byte> bytes;
    std::vector<UniqueFd> descriptors;

    // Returns the packet's first bytes, as a T.
    template <typename T>
    T As() const {
      T message{};
      std::copy_n(bytes.data(), std::min(sizeof(T), bytes.size()),
                  reinterpret_cast<std::byte*>(&message));
      return message;
    }
  };
  // A question that a thread has asked; lies on that thread's stack.
  struct Question {
    uint32_t serial = 0;
    std::optional<Packet> answer = {};
  };
  struct CallAnswer {
    attach::CallReply reply{};
    std::vector<attach::PeerPlace> peers;
    std::string text;
  };

  StatusOr<Packet> Exchange(attach::Kind kind, std::span<std::byte> request,
                            const std::vector<int>& descriptors, uint64_t timeout_ms);
  Status Await(Question* question, uint64_t timeout_ms);
  void ReadForAll(std::unique_lock<std::mutex>& lock, uint64_t patience_ns);
  template <typename Request, typename Reply>
  StatusOr<Packet> ExchangeFor(attach::Kind kind, Request* request,
                               const std::vector<int>& descriptors, attach::Kind reply_kind,
                               Reply* reply);
  template <typename Request>
  StatusOr<AttachAnswer> Ask(attach::Kind kind, Request* request,
                             const std::vector<int>& descriptors);
  StatusOr<CallAnswer> Call(attach::Kind kind, std::span<std::byte> request, uint64_t timeout_ms,
                            const std::vector<int>& descriptors = {});
  template <typename Request>
  StatusOr<CallAnswer> Call(attach::Kind kind, Request* request, uint64_t timeout_ms,
                            const std::vector<int>& descriptors = {}) {
    return Call(kind, std::as_writable_bytes(std::span(request, 1)), timeout_ms, descriptors);
  }
  uint64_t PollMs() const { return timeout_ms_ / 2; }
  uint64_t PollTimeoutMs() const { return timeout_ms_ + PollMs(); }

  Status LastWords() const;
  void TakeAll();
  void TakeBeside();
  void Take(Packet packet);
  bool KeepUnasked(const Packet& packet);

  std::string path_;
  uint64_t timeout_ms_ = 0;
  UniqueFd socket_;
  UniqueFd orders_event_;  // eventfds
  UniqueFd reader_event_;  // another thread has read what the reader waits for
  std::atomic<bool> takes_dmabufs_{false};

  std::mutex mutex_;
  std::condition_variable changed_;  // there are answers, or no reader, or the daemon is gone
  std::vector<Question*> questions_;
  uint32_t next_serial_ = 1;
  bool has_reader_ = false;  // a thread waits for packets
  bool is_over_ = false;     // the daemon has hung up
  Status goodbye_;
  std::optional<attach::LinkRules> rules_;
  std::deque<attach::LinkOrder> orders_;
};

}  // namespace ferry::client
