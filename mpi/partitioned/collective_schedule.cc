#include "mpi/partitioned/collective_schedule.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "coll/schedule_builder.h"
#include "mpi/base/handle_table.h"

namespace ferry::mpi {
namespace {

using collective::kHostMemory;
using collective::Place;
using collective::Range;
using collective::Schedule;
using collective::ScheduleBuilder;

using Messages = std::vector<PieceSchedule::Message>;

// One side of a step: `degree` messages with `peers`, of `pieces` among `count`.
Failure ReadSide(const Comm& comm, int degree, const int* peers, const int* pieces, int count,
                 const char* side, Messages* messages) {
  const std::string name = side;
  if (degree < 0) {
    return {MPI_ERR_ARG, "the " + name + "degree is " + std::to_string(degree)};
  }
  if (degree > 0 && (peers == nullptr || pieces == nullptr)) {
    return {MPI_ERR_ARG,
            "the arrays for the " + name + "degree of " + std::to_string(degree) + " are null"};
  }
  for (int i = 0; i < degree; ++i) {
    if (!comm.IsPeer(peers[i])) {
      return {MPI_ERR_RANK, "it names rank " + std::to_string(peers[i]) +
                                ", but the communicator has ranks 0 to " +
                                std::to_string(comm.size() - 1)};
    }
    if (pieces[i] < 0 || pieces[i] >= count) {
      return {MPI_ERR_ARG,
              "it names piece " + std::to_string(pieces[i]) + " of " + std::to_string(count)};
    }
    messages->push_back({peers[i], pieces[i]});
  }
  return {};
}

Failure ReadOp(MPI_Op handle, const Datatype& type, PieceSchedule* schedule, int* operation) {
  if (handle == MPI_OP_NULL) {
    return {};
  }
  const Op* const op = ops.Find(handle);
  if (op == nullptr) {
    return {MPI_ERR_OP, "op is no operation: was it freed?"};
  }
  FERRY_RETURN_FAILURE(op->Check(type));
  auto& operations = schedule->operations;
  const auto found = std::find(operations.begin(), operations.end(), op);
  *operation = static_cast<int>(found - operations.begin());
  if (found == operations.end()) {
    operations.push_back(op);
  }
  return {};
}

Failure ReadStep(const Comm& comm, const Datatype& type, const MPIX_Pstep& given,
                 PieceSchedule* schedule) {
  PieceSchedule::Step step;
  FERRY_RETURN_FAILURE(ReadSide(comm, given.outdegree, given.destinations, given.leaving,
                                schedule->pieces, "out", &step.leaving));
  FERRY_RETURN_FAILURE(ReadSide(comm, given.indegree, given.sources, given.arriving,
                                schedule->pieces, "in", &step.arriving));
  if (given.indegree > 0) {
    FERRY_RETURN_FAILURE(ReadOp(given.op, type, schedule, &step.operation));
  }
  schedule->steps.push_back(std::move(step));
  return {};
}

// Adds the steps of one partition, whose pieces lie in the output.
class PartitionSteps {
 public:
  PartitionSteps(int pieces, int64_t elements, size_t element_bytes, const Range& output,
                 ScheduleBuilder* builder)
      : each_(elements / pieces),
        rest_(elements % pieces),
        element_bytes_(element_bytes),
        output_(output),
        builder_(*builder) {}

  // Pieces without elements travel, too: where ranks do not agree on which these are, they find it
  // out.
  void Add(const PieceSchedule::Step& step) {
    for (const auto& [peer, index] : step.leaving) {
      const Range piece = PieceAt(index);
      if (piece.size_bytes == 0) {
        builder_.Notify(peer);
      } else {
        builder_.Send(peer, piece);
      }
    }
    for (const auto& [peer, index] : step.arriving) {
      const Range piece = PieceAt(index);
      if (piece.size_bytes == 0) {
        builder_.Await(peer);
      } else if (step.operation < 0) {
        builder_.Receive(peer, piece);
      } else {
        const Range arrived = NextSlot().Part(0, piece.size_bytes);
        builder_.Receive(peer, arrived);
        builder_.Reduce(piece, arrived, piece, static_cast<uint32_t>(step.operation));
      }
    }
  }

 private:
  Range PieceAt(int index) const {
    const int64_t first = index * each_ + std::min<int64_t>(index, rest_);
    const int64_t count = each_ + (index < rest_ ? 1 : 0);
    return output_.Part(static_cast<size_t>(first) * element_bytes_,
                        static_cast<size_t>(count) * element_bytes_);
  }

  // Two in turn, so that one may be received while the other is combined.
  Range NextSlot() {
    Range& slot = slots_[next_slot_++ % slots_.size()];
    if (slot.size_bytes == 0) {
      slot = builder_.Scratch(static_cast<size_t>(each_ + (rest_ == 0 ? 0 : 1)) * element_bytes_);
    }
    return slot;
  }

  const int64_t each_;
  const int64_t rest_;
  const size_t element_bytes_;
  const Range output_;
  ScheduleBuilder& builder_;
  std::array<Range, 2> slots_;
  size_t next_slot_ = 0;
};

}  // namespace

Failure PieceSchedule::Read(const Comm& comm, const Datatype& type, int pieces, int steps,
                            const MPIX_Pstep* given, PieceSchedule* schedule) {
  if (pieces < 1 || steps < 0) {
    return {MPI_ERR_ARG, pieces < 1 ? "pieces is " + std::to_string(pieces)
                                    : "steps is " + std::to_string(steps)};
  }
  if (steps > 0 && given == nullptr) {
    return {MPI_ERR_ARG, "the schedule is null"};
  }
  schedule->pieces = pieces;
  for (int i = 0; i < steps; ++i) {
    if (Failure failure = ReadStep(comm, type, given[i], schedule); !failure.ok()) {
      failure.text = "step " + std::to_string(i) + ": " + failure.text;
      return failure;
    }
  }
  return {};
}

int64_t PieceSchedule::MostMessages(int ranks) const {
  std::vector<int64_t> sent(static_cast<size_t>(ranks));
  std::vector<int64_t> received = sent;
  int64_t most = 0;
  for (const Step& step : steps) {
    for (const Message& message : step.leaving) {
      most = std::max(most, ++sent[static_cast<size_t>(message.peer)]);
    }
    for (const Message& message : step.arriving) {
      most = std::max(most, ++received[static_cast<size_t>(message.peer)]);
    }
  }
  return most;
}

Schedule PieceSchedule::Make(uint32_t partitions, int64_t elements, size_t element_bytes,
                             bool in_place) const {
  ScheduleBuilder builder(std::max<size_t>(element_bytes, 1));
  const size_t bytes = static_cast<size_t>(elements) * element_bytes;
  for (uint32_t i = 0; i < partitions; ++i) {
    const Range output{Place::kOutput, i * bytes, bytes};
    if (!in_place) {
      builder.Copy({Place::kInput, i * bytes, bytes}, output);
    }
    PartitionSteps partition(pieces, elements, element_bytes, output, &builder);
    for (const Step& step : steps) {
      partition.Add(step);
    }
  }
  return builder.Finish();
}

StepReducer::StepReducer(const std::vector<const Op*>& operations, const Datatype& type) {
  for (const Op* const op : operations) {
    reducers_.emplace_back(*op, type).Keep();
  }
}

int StepReducer::ChooseDevice(const void* input, const void* output, int64_t count) {
  int device = kHostMemory;
  for (size_t i = 0; i < reducers_.size(); ++i) {
    const int chosen = reducers_[i].ChooseDevice({input, output}, count);
    if (chosen == kHostMemory || (i > 0 && chosen != device)) {
      return kHostMemory;
    }
    device = chosen;
  }
  return device;
}

}  // namespace ferry::mpi
