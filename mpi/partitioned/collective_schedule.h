// Collectives that a program describes by steps (MPIX_Pschedule_init), after section IV of Temucin
// and others (ExaMPI 2024): what leaves for whom, what arrives from whom, and how it is combined.
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
    int operation = -1;  // among `operations`; -1: what arrives replaces
  };

  int pieces = 1;
  std::vector<Step> steps;
  std::vector<const Op*> operations;

  // MPI_ERR_ARG, MPI_ERR_RANK, MPI_ERR_OP: a step, by its number, names what there is not.
  static Failure Read(const Comm& comm, const Datatype& type, int pieces, int steps,
                      const MPIX_Pstep* given, PieceSchedule* schedule);
  // The most pieces that these steps send to one rank, or expect from one.
  int64_t MostMessages(int ranks) const;
  // What this rank does with `partitions` in a row, each of so many elements.
  collective::Schedule Make(uint32_t partitions, int64_t elements, size_t element_bytes,
                            bool in_place) const;
};

// So many pieces may one rank send to another in one unit: tags tell them apart.
inline constexpr int64_t kMostPieces = 4096;

// The operations of a schedule, by their numbers.
class StepReducer : public collective::Reducer {
 public:
  StepReducer(const std::vector<const Op*>& operations, const Datatype& type);

  // As OpReducer::ChooseDevice: one that all of them can use.
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
