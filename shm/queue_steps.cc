#include "shm/queue_steps.h"

#include <algorithm>

#include "shm/atomic.h"

namespace ferry::shm {
namespace {

constexpr int kOffsetBits = 40;
constexpr uint64_t kOffsetMask = (uint64_t{1} << kOffsetBits) - 1;

// Returns false for an entry without a step, or with one that is being changed.
bool Read(const QueueStepLayout& entry, QueueStep* step) {
  // All pair with WriteQueueStep: whoever sees a word of a later step sees its position 0 as well,
  // or the later one.
  step->position = LoadAcquire(entry.position);
  step->round = LoadAcquire(entry.round);
  step->end.region = LoadAcquire(entry.end.region);
  step->end.address = LoadAcquire(entry.end.address);
  const uint32_t kind = LoadAcquire(entry.kind);
  step->kind = static_cast<QueueStepKind>(kind);
  return step->position != 0 && step->position == LoadRelaxed(entry.position) &&
         (kind == static_cast<uint32_t>(QueueStepKind::kStart) ||
          kind == static_cast<uint32_t>(QueueStepKind::kWait));
}

}  // namespace

void WriteQueueStep(QueueStepsLayout* steps, const QueueStep& step) {
  QueueStepLayout& entry = steps->steps[step.position % kQueueSteps];
  StoreRelaxed(entry.position, 0);
  // All pair with Read.
  StoreRelease(entry.round, step.round);
  StoreRelease(entry.end.region, step.end.region);
  StoreRelease(entry.end.address, step.end.address);
  StoreRelease(entry.kind, static_cast<uint32_t>(step.kind));
  StoreRelease(entry.position, step.position);
}

void ClearQueueStep(QueueStepsLayout* steps, uint64_t position) {
  StoreRelaxed(steps->steps[position % kQueueSteps].position, 0);
}

std::vector<QueueStep> ReadQueueSteps(const QueueStepsLayout& steps) {
  std::vector<QueueStep> read;
  if (LoadRelaxed(steps.magic) != kQueueStepsMagic) {
    return read;
  }
  for (const QueueStepLayout& entry : steps.steps) {
    if (QueueStep step; Read(entry, &step)) {
      read.push_back(step);
    }
  }
  std::ranges::sort(read, {}, &QueueStep::position);
  return read;
}

uint64_t ObjectOf(const Location& place) {
  const bool fits = place.region != 0 && place.region < (uint32_t{1} << (64 - kOffsetBits)) &&
                    place.address <= kOffsetMask;
  return fits ? uint64_t{place.region} << kOffsetBits | place.address : 0;
}

std::optional<Location> PlaceOf(uint64_t object) {
  const auto region = static_cast<uint32_t>(object >> kOffsetBits);
  return region == 0 ? std::nullopt : std::optional(Location{region, 0, object & kOffsetMask});
}

}  // namespace ferry::shm
