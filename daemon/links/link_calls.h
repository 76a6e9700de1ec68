// The calls of a job's LinkBook to its surroundings: to other nodes, to the ranks here and to the
// data plane.
//
// Calling thread: the control thread.
#pragma once

#include <cstdint>

#include "common/status.h"
#include "daemon/session/session.h"
#include "proto/attach_protocol.h"
#include "proto/control.pb.h"

namespace ferry::daemon {

class LinkCalls {
 public:
  virtual ~LinkCalls() = default;
  // Hands news on to another node of the job. LinkBook::OnRefused follows only if the node refuses
  // them.
  virtual void Tell(uint32_t node, const control::LinkNews& news) = 0;
  // Gives an order to a rank here; its header is filled in on the way.
  virtual void Order(uint32_t rank, const attach::LinkOrder& order) = 0;
  // Ok if ranks here and there may have links, or why not.
  virtual Status MayLink(uint32_t node) const = 0;
  // Takes one link of the job's user. kLimitExceeded.
  virtual StatusOr<QuotaHold> TakeQuota() = 0;
  // A number that changes with every message between a rank here and one elsewhere.
  virtual uint64_t Traffic(uint32_t rank, uint32_t peer) const = 0;
  // True while their link has long messages under way, which change that number only as they begin.
  virtual bool HasTransfers(uint32_t rank, uint32_t peer) const = 0;
  // Fails what a rank here has under way with a rank elsewhere, as after a cut.
  virtual void Part(uint32_t rank, uint32_t peer) = 0;
  // True once that is over.
  virtual bool IsParted(uint32_t rank, uint32_t peer) = 0;
  // True once messages pass between two parted ranks again.
  virtual bool AreRejoined(uint32_t rank, uint32_t peer) = 0;
};

}  // namespace ferry::daemon
