// The parts of a daemon's core that one-sided operations pass, without the core, its thread and a
// network: so a test says when each of them does its part.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <numeric>

#include "daemon/progress/feeds.h"
#include "daemon/progress/one_sided.h"
#include "daemon/progress/pulls.h"
#include "daemon/registration/registrar.h"
#include "daemon/registration/registrations.h"
#include "daemon/staging/staging_depot.h"
#include "daemon/traffic/directory.h"
#include "daemon/traffic/outbound.h"
#include "tests/daemon/fake_transport.h"
#include "tests/daemon/progress_fixture.h"

namespace ferry::daemon {

class ProgressPartsTest : public PlaneTest {
 protected:
  static constexpr uint64_t kTimeoutNs = 1'000'000'000;

  // Rank 0, alone on its node; so many others are on another one, to which there is no way yet.
  void ServeRank(uint32_t others) {
    local_size_ = {1, others};
    node_of_rank_.assign(1 + others, 1);
    node_of_rank_[0] = 0;
    local_index_.assign(1 + others, 0);
    std::iota(local_index_.begin() + 1, local_index_.end(), 0U);
    job_ = std::make_unique<Job>(PlanFor(0));
    rank_ = std::make_unique<ServedRank>(MakeSession(0), job_.get(), 1024, 1 << 20);
    job_->served[0] = rank_.get();
  }
  // From now on what is said to the other node is in transport_.messages().
  Link& OpenWay() {
    transport_.TakeMessages();
    return *(job_->routes[1].link = directory_.AddLink(NodeRoute{}, transport::PeerId{}));
  }

  // Declared in the order in which the core has them.
  Registrations registrations_{registrar_, RegistrationOptions{}};
  Directory directory_;
  StagingDepot depot_{registrar_};
  FakeTransport transport_;
  Registrar registrar_{transport_, [] {}};
  Outbound outbound_{transport_, directory_};
  Pulls pulls_{transport_, outbound_, depot_, registrations_, PipelineRules{}, kTimeoutNs};
  Feeds feeds_{outbound_, depot_, PipelineRules{}, kTimeoutNs};
  OneSided one_sided_{outbound_, pulls_, feeds_, registrations_};
  std::unique_ptr<Job> job_;
  std::unique_ptr<ServedRank> rank_;
};

}  // namespace ferry::daemon
