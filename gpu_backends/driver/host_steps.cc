#include "gpu_backends/driver/host_steps.h"

#include <memory>
#include <mutex>
#include <unordered_map>

namespace ferry::gpu {
namespace {

struct HeldStep {
  HostStep step;
  void* argument;
};

// Reachable for as long as the process lives: steps that never run are no leaks.
struct HeldSteps {
  std::mutex mutex;
  std::unordered_map<void*, std::unique_ptr<HeldStep>> steps;
};

HeldSteps& Instance() {
  static HeldSteps& held_steps = *new HeldSteps;  // vendors' threads may outlive static objects
  return held_steps;
}

std::unique_ptr<HeldStep> Take(void* held) {
  HeldSteps& all = Instance();
  std::lock_guard lock(all.mutex);
  auto node = all.steps.extract(held);
  return node.empty() ? nullptr : std::move(node.mapped());
}

}  // namespace

void* HoldHostStep(HostStep step, void* argument) {
  auto held = std::make_unique<HeldStep>(HeldStep{step, argument});
  void* key = held.get();
  HeldSteps& all = Instance();
  std::lock_guard lock(all.mutex);
  all.steps.emplace(key, std::move(held));
  return key;
}

void RunHostStep(void* held) {
  if (const std::unique_ptr<HeldStep> step = Take(held); step != nullptr) {
    (void)step->step(step->argument);
  }
}

void DropHostStep(void* held) { (void)Take(held); }

}  // namespace ferry::gpu
