// PieceSchedule: collectives that a program describes by steps (MPIX_Pschedule_init), after section
// IV of Temucin and others (ExaMPI 2024). A step lists the pieces that leave, with their
// destinations, those that arrive, with their sources, and the operation that combines them.
//
// Calling thread: any; nothing blocks.
#pragma once

#include <mpix.h>

#include <cstdint>
#include <vector>

#include "coll/messenger.h"
#include "coll/schedule.h"
#include "mpi/base/failure.h"
#include "mpi/coll/op_reducer.h"
#include "mpi/comm/comm.h"
#include "mpi/datatype/datatype.h"
#include "mpi/op/op.h"

namespace ferry::mpi {

// The steps, checked.
struct PieceSchedule {
  struct Message {
    int peer = 0;
    int piece = 0;
  };
  struct Step {
    std::vector<Message> leaving;
    std::vector<Message> arriving;
    int operation = -1;  // index in `operations`; -1: an arriving piece replaces the old one
  };

  int pieces = 1;
  std::vector<Step> steps;
  std::vector<const Op*> operations;

  // Reads and checks the program's steps. MPI_ERR_ARG, MPI_ERR_RANK, MPI_ERR_OP: a step, named by
  // its number, has a piece, rank or operation that does not exist.
  static Failure Read(const Comm& comm, const Datatype& type, int pieces, int steps,
                      const MPIX_Pstep* given, PieceSchedule* schedule);
  // The most pieces that these steps send to one rank, or expect from one.
  int64_t MostMessages(int ranks) const;
  // Makes this rank's schedule for a unit of `partitions` neighbouring partitions of `elements`
  // elements each.
  collective::Schedule Make(uint32_t partitions, int64_t elements, size_t element_bytes,
                            bool in_place) const;
};

// The most pieces that one rank may send to another in one unit: tags tell them apart.
inline constexpr int64_t kMostPieces = 4096;

// The operations of a schedule, by their numbers.
class StepReducer : public collective::Reducer {
 public:
  StepReducer(const std::vector<const Op*>& operations, const Datatype& type);

  // Like OpReducer::ChooseDevice: chooses a device that all of the operations can use.
  int ChooseDevice(const void* input, const void* output, int64_t count);

  ErrorCode Reduce(const void* left, const void* right, void* to, size_t count) override {
    return ReduceBy(0, left, right, to, count);
  }
  ErrorCode ReduceBy(uint32_t operation, const void* left, const void* right, void* to,
                     size_t count) override {
    return reducers_[operation].Reduce(left, right, to, count);
  }

 private:
  std::vector<OpReducer> reducers_;
};

}  // namespace ferry::mpi
