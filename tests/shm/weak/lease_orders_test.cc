// The orders of memory that the lease and counters rely on.
#include <gtest/gtest.h>

#include <vector>

#include "shm/counter.h"
#include "shm/fence.h"
#include "shm/lease.h"
#include "tests/shm/weak/orders.h"

namespace ferry::shm {
namespace {

using weak::Body;
using weak::ExpectOrders;
using weak::Order;
using weak::Without;

constexpr uint32_t kOwner = 1;

LeaseLayout layout;
uint32_t guarded = 0;

// The holder of the lease may do this, and no other thread meanwhile.
void UseGuarded() {
  weak::Read(&guarded, sizeof(guarded));
  const uint32_t before = guarded;
  weak::Write(&guarded, sizeof(guarded));
  guarded = before + 1;
}

Body UsesLease(uint32_t holder) {
  return [holder] {
    Lease lease(&layout);
    for (int i = 0; i < 2; ++i) {
      lease.Acquire(holder);
      UseGuarded();
      lease.Release(holder);
    }
  };
}

TEST(LeaseOrdersTest, OneHolderSeesWhatTheOneBeforeDid) {
  ExpectOrders(
      [] {
        layout = {};
        return std::vector<Body>{UsesLease(1), UsesLease(2), UsesLease(kLeaseWorker)};
      },
      {{"Lease::GiveBack", Without(Order::kRelease, layout.word)},
       {"Lease::TryTake", Without(Order::kAcquire, layout.word)}});
}

// Others give up at once while the owner of a biased lease is in it, so they try again.
TEST(LeaseOrdersTest, ABiasedLeaseHasOneHolder) {
  EnableLightFence();
  ExpectOrders(
      [] {
        layout = {};
        return std::vector<Body>{[] {
                                   Lease lease(&layout);
                                   lease.Bias(kOwner);
                                   for (int i = 0; i < 3; ++i) {
                                     if (lease.TryAcquire(kOwner)) {
                                       UseGuarded();
                                       lease.Release(kOwner);
                                     }
                                   }
                                 },
                                 [] {
                                   Lease lease(&layout);
                                   for (int i = 0; i < 3; ++i) {
                                     if (lease.TryAcquire(kLeaseWorker)) {
                                       UseGuarded();
                                       lease.Release(kLeaseWorker);
                                     }
                                   }
                                 }};
      },
      {{"the fences of Lease::TryEnter and Revoke", Without(Order::kHeavyFence)},
       {"Lease::Release", Without(Order::kRelease, layout.owner)},
       {"Lease::Revoke", Without(Order::kAcquire, layout.owner)},
       {"Lease::GiveBack", Without(Order::kRelease, layout.word)},
       {"Lease::TryEnter", Without(Order::kAcquire, layout.word)}});
  weak::EndLightFences();
}

TEST(LeaseOrdersTest, TheEndOfABiasLosesNoHolder) {
  EnableLightFence();
  ExpectOrders(
      [] {
        layout = {};
        return std::vector<Body>{[] {
                                   Lease lease(&layout);
                                   lease.Bias(kOwner);
                                   if (lease.TryAcquire(kOwner)) {
                                     UseGuarded();
                                     lease.Release(kOwner);
                                   }
                                   lease.Unbias(kOwner);
                                   lease.Acquire(kOwner);
                                   UseGuarded();
                                   lease.Release(kOwner);
                                 },
                                 UsesLease(kLeaseWorker)};
      },
      {{"the fences of Lease::TryEnter and Revoke", Without(Order::kHeavyFence)},
       {"Lease::GiveBack", Without(Order::kRelease, layout.word)},
       {"Lease::TryTake", Without(Order::kAcquire, layout.word)}});
  weak::EndLightFences();
}

// ---- Counters -----------------------------------------------------------------------------------

CounterLayout counter;

TEST(CounterOrdersTest, AReaderOfACountSeesWhatIsCounted) {
  static uint32_t data[2];
  const auto count = [](uint32_t* own) {
    return [own] {
      weak::Write(own, sizeof(*own));
      Counter(&counter).Add(1);
    };
  };
  ExpectOrders(
      [&] {
        counter = {};
        return std::vector<Body>{count(&data[0]), count(&data[1]), [] {
                                   while (!Counter(&counter).Reached(2)) {
                                     weak::Yield();
                                   }
                                   weak::Read(data, sizeof(data));
                                 }};
      },
      {{"Counter::Add", Without(Order::kRelease, counter.value)},
       {"Counter::Value", Without(Order::kAcquire, counter.value)}});
}

TEST(CounterOrdersTest, AFailedCounterHasTheFirstError) {
  static int32_t seen = 0;
  const auto fail = [](ErrorCode error) { return [error] { Counter(&counter).Fail(error); }; };
  ExpectOrders(
      [&] {
        counter = {};
        return std::vector<Body>{
            fail(ErrorCode::kPeerDied), fail(ErrorCode::kCancelled), [] {
              ErrorCode error = Counter(&counter).error();
              while (error == ErrorCode::kOk && !Counter(&counter).Reached(kCounterFailure)) {
                weak::Yield();
                error = Counter(&counter).error();
              }
              seen = static_cast<int32_t>(Counter(&counter).error());
              weak::Check(seen != 0, "a failed counter without an error");
              weak::Check(error == ErrorCode::kOk || seen == static_cast<int32_t>(error),
                          "another error");
              weak::Check(counter.value == kCounterFailure, "it has failed twice");
            }};
      },
      {{"Counter::Fail", Without(Order::kRelease, counter.value)},
       {"Counter::Value", Without(Order::kAcquire, counter.value)}});
}

}  // namespace
}  // namespace ferry::shm
