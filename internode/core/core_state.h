// The objects of a core, which all of its parts work on, and what its home makes for them.
//
// Thread: the progress thread, but for Registrations::Statistics.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "internode/core/extension.h"
#include "internode/delivery/attention.h"
#include "internode/delivery/core_hooks.h"
#include "internode/delivery/directory.h"
#include "internode/delivery/home.h"
#include "internode/delivery/outbound.h"
#include "internode/registration/registrar.h"
#include "internode/registration/registrations.h"
#include "internode/rma/one_sided.h"
#include "internode/rndv/eager_long_receive.h"
#include "internode/rndv/eager_long_send.h"
#include "internode/rndv/private_memory.h"
#include "internode/rndv/rndv_get.h"
#include "internode/rndv/rndv_put.h"
#include "internode/rndv/rndv_rtr.h"
#include "internode/rndv/rndv_staged.h"
#include "internode/staging/copier.h"
#include "internode/staging/staging_depot.h"
#include "internode/trace/tracer.h"
#include "transports/api/transport.h"

namespace ferry::progress {

struct CoreOptions {
  uint64_t staging_block_bytes = 256 << 10;
  uint32_t staging_blocks = 16;       // at most; 0: there is no staging
  uint32_t staging_least_blocks = 0;  // see StagingShape
  StagingRules staging;
  uint64_t device_block_bytes = 1 << 20;
  uint32_t device_blocks = 16;
  uint32_t device_least_blocks = 0;
  PipelineRules pipeline;
  uint64_t operation_timeout_ns = 10'000'000'000;
  uint64_t max_held_bytes = 256 << 20;  // for one rank, as Delivery counts
  // The data of an RTS of up to this size are sent behind it if its rank allows that; 0: none are.
  uint64_t push_max_bytes = 0;
  // Each other node is one rank of the job, and not a daemon: only a rank's packets are accepted
  // from it, and its mistakes cost that rank its link, and other ranks nothing.
  bool nodes_are_ranks = false;
  RegistrationCache::Limits registrations;
  uint64_t registration_piece_bytes = 64 << 20;
  // Injects a fault when a copy between a rank and a stage has ended: calls `go_on`, now or later,
  // with the copy or a changed one. Empty: no faults.
  std::function<void(const CopyTask& copied, std::function<void(const CopyTask&)> go_on)>
      copy_fault;
};

// The objects that a home makes for its core.
struct CoreParts {
  std::unique_ptr<transport::Transport> transport;
  // Copiers between stages and private memory, or device memory that only streams reach, of ranks
  // whose RankCare names no copier. Null: there is none.
  std::shared_ptr<Copier> copies = nullptr;
  std::shared_ptr<Copier> device_copies = nullptr;
  MakeExtension extend = {};  // empty: there is no extension
  Home* home = nullptr;       // outlives the core; null: it reaches and matches nothing
};

// The helpers that look after a rank beside its core.
struct RankCare {
  AttentionPtr attention = nullptr;          // null: no thread matches while the rank computes
  std::shared_ptr<Copier> copier = nullptr;  // of the job; null: as CoreParts says
  uint32_t nearest_rail = 0;                 // transport::RmaRequest::rail
};

struct CoreState {
  CoreState(const CoreOptions& options, CoreParts parts, CoreHooks hooks,
            std::function<void()> ring);

  // Returns true if this core, and not CoreHooks::on_rank_ended, tells the ranks here which ranks
  // are gone.
  bool tells_deaths() const { return !hooks.on_rank_ended; }
  // Tells senders of other nodes that messages for the rank have arrived.
  void ReportLanded(ServedRank& rank) {
    rank.delivery.ReportLanded([&](const Delivery::Landed& landed) {
      const WireResult done{landed.send_request, landed.send_generation, 0, 0};
      outbound.Post(*rank.job, PacketKind::kSendDone, rank.rank(), landed.source, done, now_ns);
    });
  }
  TraceCounters Counters() const;

  const CoreOptions options;
  const CoreHooks hooks;
  uint64_t now_ns = 0;

  Tracer tracer;
  // The transport is destroyed first: until then it may hold memory of other members. Claims are
  // destroyed before the objects that they are on.
  Registrations registrations;
  Directory directory;
  StagingDepot depot;
  std::unique_ptr<transport::Transport> transport;
  Registrar registrar;
  Home* const home;                      // may be null
  const std::shared_ptr<Copier> copies;  // these two may be null
  const std::shared_ptr<Copier> device_copies;
  Outbound outbound;
  PrivateMemory private_memory;
  RndvGets rndv_gets;
  StagedSends staged_sends;
  Pushes pushes;
  Landings landings;
  Rtrs rtrs;
  RndvPuts rndv_puts;
  OneSided one_sided;
  const std::unique_ptr<Extension> extension;  // may be null
};

}  // namespace ferry::progress
