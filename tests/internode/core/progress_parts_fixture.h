// The parts of a daemon's core that one-sided operations pass, without the core, its thread and a
// network: so a test says when each of them does its part.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <numeric>

#include "internode/delivery/core_hooks.h"
#include "internode/delivery/directory.h"
#include "internode/delivery/outbound.h"
#include "internode/registration/registrar.h"
#include "internode/registration/registrations.h"
#include "internode/rma/one_sided.h"
#include "internode/rndv/rndv_get.h"
#include "internode/rndv/rndv_staged.h"
#include "internode/staging/staging_depot.h"
#include "tests/internode/core/fake_transport.h"
#include "tests/internode/core/progress_fixture.h"

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
    job_ = std::make_unique<progress::Job>(PlanFor(0));
    const std::shared_ptr<Session> session = MakeSession(0);
    rank_ = std::make_unique<progress::ServedRank>(session, progress::DaemonSeat(*session),
                                                   job_.get(), 1024, 1 << 20, job_->hold_budget);
    job_->served[0] = rank_.get();
  }
  // From now on what is said to the other node is in transport_.messages().
  progress::Link& OpenWay() {
    transport_.TakeMessages();
    return *(job_->routes[1].link = directory_.AddLink(NodeRoute{}, transport::PeerId{}));
  }

  std::unique_ptr<progress::Job> job_;  // outlives all that counts there
  // Declared in the order in which the core has them.
  progress::Registrations registrations_{registrar_, progress::RegistrationOptions{}};
  progress::Directory directory_;
  progress::StagingDepot depot_{registrar_};
  FakeTransport transport_;
  progress::Registrar registrar_{transport_, [] {}};
  progress::CoreHooks hooks_;  // none is called
  progress::Outbound outbound_{transport_, directory_, hooks_};
  progress::PrivateMemory private_memory_{transport_, registrar_, registrations_, nullptr};
  progress::RndvGets rndv_gets_{transport_,     outbound_,       depot_,
                                registrations_, private_memory_, progress::PipelineRules{},
                                kTimeoutNs};
  progress::StagedSends staged_sends_{outbound_, depot_, progress::PipelineRules{}, kTimeoutNs};
  progress::OneSided one_sided_{outbound_, rndv_gets_, staged_sends_, registrations_,
                                private_memory_};
  std::unique_ptr<progress::ServedRank> rank_;
};

}  // namespace ferry::daemon
