// Rendezvous gets: asks cores for the data of RTSs of other nodes that receives have matched.
//
// Part of RankEngine. Calling thread: the holder of the rank's progress lease, for every member.
// Nothing blocks.
#pragma once

#include <cstdint>

#include "engine/engine_context.h"

namespace ferry::engine {

class RndvGetCommands : private EngineContext {
 public:
  explicit RndvGetCommands(const EngineContext& context) : EngineContext(context) {}
  RndvGetCommands(const RndvGetCommands&) = delete;
  RndvGetCommands& operator=(const RndvGetCommands&) = delete;

  // Describes the remote source and the rank's own destination in the request's transfer slot, for
  // the core.
  void Describe(shm::RequestLayout& slot, uint32_t request, const Arrival& arrival);
  // Asks the core that brought the RTS to fetch, in the open transaction; without room the request
  // waits in the control chain.
  void Stage(uint32_t request, Effects& effects);
  // Asks for those that found no room.
  void FlushControls(Effects& effects);

 private:
  bool TryStage(uint32_t request, Effects& effects);
  void FlushControl(Core core, Effects& effects);
};

}  // namespace ferry::engine
