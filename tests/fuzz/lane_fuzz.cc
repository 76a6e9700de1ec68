// A rank drains lanes that its peer and its daemon fill with anything, while it sends and receives.
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "tests/engine/rank_fixture.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/open_lanes.h"

namespace ferry::engine {
namespace {

using fuzz::FuzzInput;

constexpr NodeOptions kNode{
    .local_ranks = 2, .remote_ranks = 1, .request_limit = 24, .unexpected_limit = 16};
constexpr uint32_t kMaxSteps = 64;

class LaneFuzz {
 public:
  LaneFuzz() {
    fuzz::OpenLanes(node_.view(0).inbox);
    fuzz::OpenLanes(node_.view(1).inbox);
  }
  void Run(FuzzInput& input) {
    for (uint32_t step = 0; step < kMaxSteps && !input.empty(); ++step) {
      Step(input);
    }
    for (uint32_t n = 0; node_[0].Progress() != 0; ++n) {
      if (n > 1000) {
        abort();  // it never comes to rest
      }
      daemon_.Take();
    }
  }

 private:
  void Step(FuzzInput& input) {
    switch (input.Below(8)) {
      case 0:
        PushAnything(input);
        break;
      case 1:
        if (CanStart(1)) {
          node_[1].Isend(0, static_cast<int32_t>(input.Below(3)),
                         std::string(input.Take<uint16_t>() % 20'000, 'x'));
        }
        break;
      case 2:
        if (CanStart(0)) {
          node_[0].Irecv(static_cast<int32_t>(input.Below(4)) - 1,
                         static_cast<int32_t>(input.Below(4)) - 1, input.Take<uint16_t>());
        }
        break;
      case 3:
        if (CanStart(0)) {
          node_[0].Isend(1 + input.Below(2), static_cast<int32_t>(input.Below(3)),
                         std::string(input.Take<uint16_t>() % 20'000, 'x'));
        }
        break;
      case 4:
        node_[0].Progress();
        break;
      case 5:
        node_[1].Progress();
        break;
      case 6:
        TestAll();
        break;
      default:
        node_.MarkDead(0, 1 + input.Below(2));
        break;
    }
  }
  // A correct descriptor, more or less spoilt.
  void PushAnything(FuzzInput& input) {
    const uint32_t lane = input.Below(3);
    shm::Descriptor descriptor{};
    descriptor.kind = static_cast<uint8_t>(1 + input.Below(8));
    descriptor.source = lane;
    descriptor.tag = static_cast<int32_t>(input.Below(3));
    descriptor.payload[0] = static_cast<uint8_t>(input.Below(kNode.request_limit));
    descriptor.payload[4] = 1;
    input.Spoil(&descriptor);
    shm::LaneProducer(node_.view(0).inbox.lane(lane)).TryPush(descriptor);
    shm::Wake(node_.view(0).inbox.wake()).PublishLane(lane);
  }
  bool CanStart(uint32_t rank) const {
    return node_.view(rank).layout->request_fresh + 1 < kNode.request_limit;
  }
  void TestAll() {
    for (uint32_t request = 1; request < node_.view(0).layout->request_fresh; ++request) {
      node_[0].Test(request);
    }
  }

  TestNode node_{kNode};
  FakeDaemon daemon_{node_.view(0)};
};

}  // namespace
}  // namespace ferry::engine

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ferry::fuzz::FuzzInput input(data, size);
  ferry::engine::LaneFuzz().Run(input);
  return 0;
}
