#include "internode/core/core_state.h"

#include <utility>

namespace ferry::progress {
namespace {

RegistrationOptions RegistrationOptionsOf(const CoreOptions& options, const CoreHooks& hooks) {
  RegistrationOptions registrations;
  registrations.limits = options.registrations;
  registrations.piece_bytes = options.registration_piece_bytes;
  registrations.timeout_ns = options.operation_timeout_ns;
  registrations.on_refused = hooks.on_memory_refused;
  return registrations;
}

}  // namespace

CoreState::CoreState(const CoreOptions& core_options, CoreParts parts, CoreHooks core_hooks,
                     std::function<void()> ring)
    : options(core_options),
      hooks(std::move(core_hooks)),
      registrations(registrar, RegistrationOptionsOf(options, hooks)),
      depot(registrar, options.staging),
      transport(std::move(parts.transport)),
      registrar(*transport, std::move(ring)),
      home(parts.home),
      copies(std::move(parts.copies)),
      device_copies(std::move(parts.device_copies)),
      outbound(*transport, directory, hooks),
      private_memory(*transport, registrar, registrations, parts.home),
      rndv_gets(*transport, outbound, depot, registrations, private_memory, options.pipeline,
                options.operation_timeout_ns),
      staged_sends(outbound, depot, options.pipeline, options.operation_timeout_ns),
      pushes(outbound, options.push_max_bytes),
      landings(rndv_gets, *transport),
      rtrs(registrar, outbound, depot, options.operation_timeout_ns),
      rndv_puts(*transport, outbound, depot, registrations),
      one_sided(outbound, rndv_gets, staged_sends, registrations, private_memory),
      extension(parts.extend ? parts.extend({*transport, outbound, registrar, registrations,
                                             one_sided.rings(), options.operation_timeout_ns})
                             : nullptr) {}

TraceCounters CoreState::Counters() const {
  TraceCounters counters;
  counters.operations = rndv_gets.reads() + rndv_puts.writes();
  for (const auto& [number, link] : directory.links()) {
    counters.operations += link->outstanding;
  }
  const StagingStatistics staging = depot.Statistics();
  counters.staging_busy = staging.busy;
  counters.staging_waits = staging.waits;
  return counters;
}

}  // namespace ferry::progress
