// The links of a registry whose jobs are all of one node, and need none.
#pragma once

#include <string>

#include "daemon/jobs/job_registry.h"

namespace ferry::daemon {

class NoLinks final : public NodeLinks {
 public:
  Status Acquire(const std::string&, uid_t) override { return {}; }
  void Release(const std::string&, uid_t) override {}
  uint64_t Incarnation() const override { return 1; }
  void SendJoined(const std::string&, const control::JoinedRequest&, Done) override {}
  void SendLeft(const std::string&, const control::LeftRequest&, Done) override {}
  void SendPairs(const std::string&, const control::PairNewsRequest&, NewsDone) override {}
  void SendLinkNews(const std::string&, const control::LinkNewsRequest&, NewsDone) override {}
};

}  // namespace ferry::daemon
