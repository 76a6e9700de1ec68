// Carries operations out: one executor for each placement that a process offers.
//
// Calling thread: the program engine's. Nothing blocks.
#pragma once

#include <cstdint>

#include "common/error_code.h"
#include "engine/program/operation.h"

namespace ferry::engine {

enum class ProgramId : uint64_t {};

// One run of one operation.
struct Token {
  ProgramId program{};
  uint32_t operation = 0;
  uint32_t run = 0;  // a number that no two runs in a row share
};

class Executor {
 public:
  virtual ~Executor() = default;

  // kOk: the operation is under way, and ProgramEngine::Completed will tell of its end, perhaps
  // before this returns. kWouldBlock: no room; the engine tries elsewhere, or later. Anything else:
  // it failed.
  virtual ErrorCode Begin(const Operation& operation, Token token) = 0;
  // The operation failed, or will never run: its `remote_done` is to fail with `error`.
  virtual void Renounce(const Operation& operation, ErrorCode error) = 0;
  // The operation took too long: its end is of no interest any more, but what it uses must be kept
  // until then.
  virtual void Abandon(const Operation& operation, Token token) = 0;
};

}  // namespace ferry::engine
