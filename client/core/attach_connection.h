// The rank's, or launcher's, end of the attach socket (proto/attach_protocol.h).
//
// Calling thread: any; one exchange at a time (a lock). Calls block until the daemon answers, at
// most the timeout given at Connect. The connection stays open for the rank's life: its hang-up
// tells the daemon.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "common/status.h"
#include "common/unique_fd.h"
#include "proto/attach_protocol.h"

namespace ferry::client {

// The answer to any request but the first.
struct AttachAnswer {
  uint64_t size_bytes = 0;
  attach::Reply reply{};  // the whole reply, for what else it says about a region
  std::vector<UniqueFd> descriptors;
};

class AttachConnection {
 public:
  // Connects to RUN_DIRECTORY/attach.sock. kNoDaemon, with advice, when nothing listens there;
  // errors as of ConnectToDaemon when somebody else than a ferryd for this user does.
  Status Connect(const std::string& run_directory, uint64_t timeout_ms,
                 const std::string& daemon_user = "");

  // The first exchange of a rank: identity and versions.
  StatusOr<attach::AttachReply> Attach(const attach::AttachRequest& request);
  // The only exchange of a launcher: the token for the gRPC service Launcher.
  StatusOr<attach::UserReply> IdentifyUser();
  StatusOr<AttachAnswer> SendSegments(uint64_t session_bytes, int session_fd, uint64_t inbox_bytes,
                                      int inbox_fd);
  // Fills in the request's header. `fd` is -1 where the handle alone describes the region; `dmabuf`
  // is -1 without kRegionDmabuf.
  StatusOr<AttachAnswer> SendRegion(attach::RegionRequest request, int fd, int dmabuf = -1);
  // Whether the daemon wants dma-bufs of device memory.
  bool takes_dmabufs() const { return takes_dmabufs_.load(std::memory_order_relaxed); }
  StatusOr<AttachAnswer> PeerInbox(uint32_t rank);
  StatusOr<AttachAnswer> PeerRegion(uint32_t rank, uint32_t region);
  // What the pages of that NIC's counters are mapped from (shm::CounterPageWords).
  StatusOr<UniqueFd> CounterPages(uint32_t nic);

  // For the watcher: readable or hung up.
  int fd() const { return socket_.get(); }

  // ---- Direct links: what the daemon says unasked ----
  // The rules, if they have come. They come behind the answer to SendSegments; without them the
  // daemon gives no orders. Does not block.
  std::optional<attach::LinkRules> TakeRules();
  // The next order that has come; waits for an exchange under way, but for nothing else.
  std::optional<attach::LinkOrder> TakeOrder();
  // Readable when an exchange has come across an order that was not for it.
  int orders_fd() const { return orders_event_.get(); }
  // Answers an order, or says what nobody has asked. Does not wait for an exchange under way.
  Status SendLinkReply(const attach::LinkReply& reply);

  // Asks whether the daemon turns; the session has the answer. False: there is no room, since the
  // daemon has not read what is there. Does not block, nor wait for an exchange under way.
  bool AskForLife(uint32_t number);
  // The daemon hangs: ends exchanges, those under way too, with kDaemonDied.
  void GiveUp();

  // After a hang-up: returns why the daemon ended the session, or kDaemonDied if it gave no reason.
  Status Goodbye();

 private:
  Status LastWords();
  bool KeepUnasked(const void* packet, size_t size_bytes);
  void ReadUnasked();
  Status Exchange(attach::Kind kind, void* request, size_t request_bytes,
                  const std::vector<int>& descriptors, void* reply, size_t reply_bytes,
                  attach::Kind reply_kind, std::vector<UniqueFd>* received);
  StatusOr<AttachAnswer> Ask(attach::Kind kind, void* request, size_t request_bytes,
                             const std::vector<int>& descriptors);

  std::atomic<bool> takes_dmabufs_{false};
  std::mutex mutex_;
  UniqueFd socket_;
  uint32_t next_serial_ = 1;
  Status goodbye_;
  std::optional<attach::LinkRules> rules_;
  std::deque<attach::LinkOrder> orders_;
  UniqueFd orders_event_;  // eventfd
};

}  // namespace ferry::client
