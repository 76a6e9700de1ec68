// Conformance: events, within a stream and between streams.
#include <vector>

#include "tests/conformance/gpu_backend_conformance.h"

namespace ferry::gpu {
namespace {

constexpr auto kAtLeast = WaitCondition::kGreaterOrEqual;

TEST_P(GpuBackendConformance, EventNeverRecordedIsComplete) {
  const std::unique_ptr<Event> event = NewEvent();
  FERRY_EXPECT_OK(event->Query());
  FERRY_EXPECT_OK(event->Synchronize());
  FERRY_EXPECT_OK(stream().WaitEvent(event.get()));
  FERRY_EXPECT_OK(stream().Synchronize());
}

TEST_P(GpuBackendConformance, EventCompletesAfterWhatIsBeforeIt) {
  const Memory word = Pinned(8);
  const std::unique_ptr<Event> event = NewEvent();
  bool ran = false;
  FERRY_EXPECT_OK(stream().WaitValue64(word.words(), 1, kAtLeast));
  FERRY_EXPECT_OK(stream().LaunchHost([&ran] {
    ran = true;
    return Status();
  }));
  FERRY_EXPECT_OK(stream().RecordEvent(event.get()));
  FERRY_EXPECT_CODE(kWouldBlock, event->Query());
  StoreFromCpu(word.words(), 1);
  FERRY_EXPECT_OK(event->Synchronize());
  EXPECT_TRUE(ran);
  FERRY_EXPECT_OK(event->Query());
}

TEST_P(GpuBackendConformance, EventDoesNotWaitForWhatIsBehindIt) {
  const Memory word = Pinned(8);
  const std::unique_ptr<Event> event = NewEvent();
  FERRY_EXPECT_OK(stream().RecordEvent(event.get()));
  FERRY_EXPECT_OK(stream().WaitValue64(word.words(), 1, kAtLeast));
  FERRY_EXPECT_OK(event->Synchronize());
  FERRY_EXPECT_CODE(kWouldBlock, stream().Query());
  StoreFromCpu(word.words(), 1);
  FERRY_EXPECT_OK(stream().Synchronize());
}

TEST_P(GpuBackendConformance, EventOrdersTwoStreams) {
  const Memory word = Pinned(8);
  const std::unique_ptr<Stream> first = NewStream();
  const std::unique_ptr<Stream> second = NewStream();
  const std::unique_ptr<Event> event = NewEvent();
  std::vector<int> order;
  const auto append = [&order](int number) {
    return [&order, number] {
      order.push_back(number);
      return Status();
    };
  };
  FERRY_EXPECT_OK(first->WaitValue64(word.words(), 1, kAtLeast));
  FERRY_EXPECT_OK(first->LaunchHost(append(1)));
  FERRY_EXPECT_OK(first->RecordEvent(event.get()));
  FERRY_EXPECT_OK(second->WaitEvent(event.get()));
  FERRY_EXPECT_OK(second->LaunchHost(append(2)));
  FERRY_EXPECT_CODE(kWouldBlock, second->Query());
  StoreFromCpu(word.words(), 1);
  FERRY_EXPECT_OK(second->Synchronize());
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

TEST_P(GpuBackendConformance, WaitKeepsThePointThatItCaptured) {
  const Memory words = Pinned(16);
  const std::unique_ptr<Stream> recorder = NewStream();
  const std::unique_ptr<Stream> waiter = NewStream();
  const std::unique_ptr<Event> event = NewEvent();
  FERRY_EXPECT_OK(recorder->WaitValue64(words.words(), 1, kAtLeast));
  FERRY_EXPECT_OK(recorder->RecordEvent(event.get()));
  FERRY_EXPECT_OK(waiter->WaitEvent(event.get()));
  FERRY_EXPECT_OK(recorder->WaitValue64(words.words() + 1, 1, kAtLeast));
  FERRY_EXPECT_OK(recorder->RecordEvent(event.get()));
  StoreFromCpu(words.words(), 1);
  FERRY_EXPECT_OK(waiter->Synchronize());  // though the event's new point is not reached
  FERRY_EXPECT_CODE(kWouldBlock, event->Query());
  StoreFromCpu(words.words() + 1, 1);
  FERRY_EXPECT_OK(event->Synchronize());
}

TEST_P(GpuBackendConformance, EventMayBeDestroyedWhileItIsAwaited) {
  const Memory word = Pinned(8);
  const std::unique_ptr<Stream> recorder = NewStream();
  const std::unique_ptr<Stream> waiter = NewStream();
  std::unique_ptr<Event> event = NewEvent();
  FERRY_EXPECT_OK(recorder->WaitValue64(word.words(), 1, kAtLeast));
  FERRY_EXPECT_OK(recorder->RecordEvent(event.get()));
  FERRY_EXPECT_OK(waiter->WaitEvent(event.get()));
  event.reset();
  FERRY_EXPECT_CODE(kWouldBlock, waiter->Query());
  StoreFromCpu(word.words(), 1);
  FERRY_EXPECT_OK(waiter->Synchronize());
}

TEST_P(GpuBackendConformance, FailureReachesEventsAndTheirWaiters) {
  const Memory word = Pinned(8);
  const std::unique_ptr<Stream> failing = NewStream();
  const std::unique_ptr<Stream> waiter = NewStream();
  const std::unique_ptr<Event> before = NewEvent();
  const std::unique_ptr<Event> after = NewEvent();
  FERRY_EXPECT_OK(failing->WaitValue64(word.words(), 1, kAtLeast));  // so that all are queued
  FERRY_EXPECT_OK(failing->RecordEvent(before.get()));
  FERRY_EXPECT_OK(failing->LaunchHost([] { return Status(ErrorCode::kInternal, "on purpose"); }));
  FERRY_EXPECT_OK(failing->RecordEvent(after.get()));
  FERRY_EXPECT_OK(waiter->WaitEvent(after.get()));
  StoreFromCpu(word.words(), 1);
  FERRY_EXPECT_OK(before->Synchronize());
  FERRY_EXPECT_CODE(kInternal, after->Synchronize());
  FERRY_EXPECT_CODE(kInternal, after->Query());
  FERRY_EXPECT_CODE(kInternal, waiter->Synchronize());
}

TEST_P(GpuBackendConformance, EventOfADestroyedStreamIsCancelled) {
  const Memory word = Pinned(8);
  const std::unique_ptr<Event> event = NewEvent();
  const std::unique_ptr<Stream> waiter = NewStream();
  std::unique_ptr<Stream> stream = NewStream();
  FERRY_EXPECT_OK(stream->WaitValue64(word.words(), 1, kAtLeast));
  FERRY_EXPECT_OK(stream->RecordEvent(event.get()));
  FERRY_EXPECT_OK(waiter->WaitEvent(event.get()));
  stream.reset();
  FERRY_EXPECT_CODE(kCancelled, event->Synchronize());
  FERRY_EXPECT_CODE(kCancelled, waiter->Synchronize());
  StoreFromCpu(word.words(), 1);
}

TEST_P(GpuBackendConformance, DestroyingAStreamAbandonsItsEventWait) {
  const Memory word = Pinned(8);
  const std::unique_ptr<Event> event = NewEvent();
  const std::unique_ptr<Stream> recorder = NewStream();
  std::unique_ptr<Stream> waiter = NewStream();
  FERRY_EXPECT_OK(recorder->WaitValue64(word.words(), 1, kAtLeast));
  FERRY_EXPECT_OK(recorder->RecordEvent(event.get()));
  FERRY_EXPECT_OK(waiter->WaitEvent(event.get()));
  waiter.reset();  // would hang if it waited for the event
  StoreFromCpu(word.words(), 1);
  FERRY_EXPECT_OK(recorder->Synchronize());
}

TEST_P(GpuBackendConformance, RejectsANullEvent) {
  FERRY_EXPECT_CODE(kInvalidArgument, stream().RecordEvent(nullptr));
  FERRY_EXPECT_CODE(kInvalidArgument, stream().WaitEvent(nullptr));
}

TEST_P(GpuBackendConformance, RejectsAnEventOfAnotherBackend) {
  class ForeignEvent final : public Event {
   public:
    Status Query() override { return {}; }
    Status Synchronize() override { return {}; }
  };
  ForeignEvent foreign;
  FERRY_EXPECT_CODE(kInvalidArgument, stream().RecordEvent(&foreign));
  FERRY_EXPECT_CODE(kInvalidArgument, stream().WaitEvent(&foreign));
}

}  // namespace
}  // namespace ferry::gpu
