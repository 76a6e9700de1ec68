// A registrar that a test waits for, with the transport whose memory it pins, and staging memory
// that is ready.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <semaphore>

#include "internode/registration/pinned_memory.h"
#include "internode/staging/staging_pool.h"
#include "tests/internode/core/fake_transport.h"

namespace ferry::daemon {

class TestRegistrar {
 public:
  FakeTransport& transport() { return transport_; }
  progress::Registrar& operator*() { return registrar_; }
  progress::Registrar* operator->() { return &registrar_; }

  // Waits until it has nothing left to report.
  void Collect() {
    while (registrar_.pending() != 0) {
      done_.acquire();
      registrar_.Collect();
    }
  }
  // Waits until it has done all that it was asked for.
  void Finish() {
    const progress::PinnedMemory last(registrar_, {});  // all is done in its order
    Collect();
  }

  // With its first blocks free, unless the transport refuses memory.
  std::unique_ptr<progress::StagingPool> MakePool(const progress::StagingShape& shape) {
    auto pool = progress::StagingPool::Create(registrar_, shape);
    if (!pool.ok()) {
      std::fprintf(stderr, "%s\n", pool.status().ToString().c_str());
      std::abort();
    }
    Collect();
    return std::move(*pool);
  }

 private:
  FakeTransport transport_;
  std::counting_semaphore<> done_{0};
  progress::Registrar registrar_{transport_, [this] { done_.release(); }};
};

}  // namespace ferry::daemon
