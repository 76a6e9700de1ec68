// A session: one user of MPI in this process, such as a library, beside others (MPI 5.0, section
// 11.3).
//
// It is what groups come from, and what their communicators belong to. The process has joined the
// job as long as one is open; mpi/init/process.h counts them.
//
// Calling thread: any.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string>
#include <utility>

#include "mpi/base/error_handler.h"
#include "mpi/base/object.h"

namespace ferry::mpi {

class Session : public Object, public HasErrorHandler {
 public:
  // `number`: no other session of this process has it, or had it. `memory_kinds`: those that the
  // program asked for.
  Session(uint32_t number, int thread_level, std::string memory_kinds, Ref<ErrorHandler> handler)
      : Object(ForAnyThread()),
        HasErrorHandler(std::move(handler)),
        number(number),
        thread_level(thread_level),
        memory_kinds(std::move(memory_kinds)) {}

  const uint32_t number;
  const int thread_level;
  const std::string memory_kinds;

  // The handle that error handlers get. Set once, before others see the session.
  MPI_Session handle() const { return handle_; }
  void SetHandle(MPI_Session handle) { handle_ = handle; }

 private:
  MPI_Session handle_ = MPI_SESSION_NULL;
};

}  // namespace ferry::mpi
