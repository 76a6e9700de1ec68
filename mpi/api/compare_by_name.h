// Compares collective calls that pass no data with what the other ranks call (option mpi_check):
// those that make communicators, windows and files out of a communicator, those that end them, and
// fences. Such calls exchange messages of their own, or none, so that ranks in different ones would
// wait for each other for ever.
//
// Calling thread: the program's.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "mpi/api/call.h"
#include "mpi/coll/comparison.h"
#include "mpi/comm/comm.h"

namespace ferry::mpi {

// The words of a call beside its name.
struct CallWords {
  // Why it is refused if it is not ok.
  const char* refusal = "its arguments are wrong";
  // Arguments that all ranks must pass alike, in less than CallRecord::kTypeBytes; null: none.
  const char* alike = nullptr;
  int alike_class = MPI_ERR_OTHER;  // where they do not
  // It ends something, which it does all the same where a rank is gone.
  bool ends = false;
};

// To be called once the arguments of the call have been looked at, and whether they are
// right or not: if they are wrong the other ranks learn of it, and nothing blocks. Refuses the call
// on all ranks if another one has called something else, or could not go on. Blocks until all have
// come. `comm`: null where the call names none; then nothing is compared.
void CompareByName(Call& call, Comm* comm, const CallWords& words = {});

// As CompareByName, for a call that does not wait for others, and is right: those that call
// something else learn of it, and this rank does not. Nothing blocks.
void TellByName(const Call& call, Comm& comm);

// As CompareByName, for a call that does not block, and is right: `go_on` is called, under the lock
// of the communicator's channel, if the calls belong together, with a number that is the same on
// all ranks. It stays callable until then.
std::shared_ptr<Comparison> BeginComparison(const char* call, Comm& comm,
                                            std::function<void(uint32_t number)> go_on);

}  // namespace ferry::mpi
