// Composes what a job's LinkBook says: news to the daemons of other nodes, and orders to ranks
// here.
//
// Calling thread: the control thread.
#pragma once

#include <cstdint>
#include <string>

#include "common/status.h"
#include "daemon/links/link_calls.h"
#include "daemon/links/link_end.h"
#include "daemon/plane/data_plane.h"
#include "proto/attach_protocol.h"
#include "proto/control.pb.h"

namespace ferry::daemon {

// "the link of rank 3 to rank 4".
std::string LinkText(uint32_t rank, uint32_t peer);
// Text that a rank or another daemon has sent, made fit for terminals and for protobuf's strings.
std::string Printable(std::string text);

class LinkMessages {
 public:
  // Both must outlive it.
  LinkMessages(const JobPlan& plan, LinkCalls& calls) : plan_(plan), calls_(calls) {}

  // ---- News to the daemon of the peer ----
  static control::LinkNews NewsOf(const LinkEnd& end, control::LinkNews::Kind kind);
  void Tell(const LinkEnd& end, const control::LinkNews& news);
  void Tell(const LinkEnd& end, control::LinkNews::Kind kind);
  // Where the rank's endpoint is (in `reply`), and the key that packets to it must carry.
  void TellEnd(const LinkEnd& end, control::LinkNews::Kind kind, const attach::LinkReply& reply);
  // Refuses the link of that number; 0: what was asked for.
  void TellRefusal(const LinkEnd& end, uint64_t link, const Status& why);
  void TellRound(const LinkEnd& end, control::LinkNews::Kind kind);

  // ---- Orders to the rank ----
  void Order(const LinkEnd& end, attach::LinkOp op, ErrorCode code = ErrorCode::kOk);
  // With all that is known of the peer's end.
  void OrderWithPeer(const LinkEnd& end, attach::LinkOp op);
  // kRefuse: the rank's wish is refused, whatever becomes of the link that there may be.
  void OrderRefusal(const LinkEnd& end, ErrorCode code);

 private:
  static attach::LinkOrder OrderOf(const LinkEnd& end, attach::LinkOp op);

  const JobPlan& plan_;
  LinkCalls& calls_;
};

}  // namespace ferry::daemon
