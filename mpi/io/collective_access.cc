#include "mpi/io/collective_access.h"

#include <memory>
#include <vector>

#include "mpi/comm/agree.h"
#include "mpi/io/meeting.h"
#include "mpi/io/two_phase.h"

namespace ferry::mpi {
namespace {

// Each rank moves its own bytes.
Failure CarryApart(File& file, const CollectivePart& part, int64_t* moved) {
  *moved = 0;
  return part.refused.ok() ? CarryIn(file, part.access, moved) : part.refused;
}

struct OrderFacts {
  int32_t error_class = MPI_SUCCESS;
  int64_t etypes = 0;
};

// Moves the shared pointer by what all ranks ask for. *offset: where this rank's part begins.
Failure TakeInOrder(Meeting& meeting, File& file, const CollectivePart& part, int64_t* offset) {
  OrderFacts own;
  own.error_class = part.refused.error_class;
  own.etypes = part.refused.ok() ? part.access.bytes() / file.view()->etype_bytes() : 0;
  std::vector<OrderFacts> all;
  FERRY_RETURN_FAILURE(meeting.Gather(own, &all));
  std::vector<int32_t> classes;
  int64_t before = 0;
  int64_t sum = 0;
  for (const OrderFacts& facts : all) {
    before += static_cast<int>(classes.size()) < meeting.rank() ? facts.etypes : 0;
    classes.push_back(facts.error_class);
    sum += facts.etypes;
  }
  FERRY_RETURN_FAILURE(FirstFailure(classes, meeting.rank(), part.refused));
  OrderFacts begin;
  Failure added;
  if (meeting.rank() == 0) {
    added = file.shared().Add(sum, &begin.etypes);
    begin.error_class = added.error_class;
  }
  std::vector<OrderFacts> begins;
  FERRY_RETURN_FAILURE(meeting.Gather(begin, &begins));
  FERRY_RETURN_FAILURE(FirstFailure({begins[0].error_class}, meeting.rank(), added));
  *offset = begins[0].etypes + before;
  return {};
}

// A file without offsets is used by one rank after the other.
Failure CarryInTurns(Meeting& meeting, File& file, const CollectivePart& part, int64_t* moved) {
  Failure first;
  for (int rank = 0; rank < meeting.size(); ++rank) {
    const Failure own = rank == meeting.rank() ? CarryIn(file, part.access, moved) : Failure();
    const Failure agreed = meeting.Agree(own);
    first = first.ok() ? agreed : first;
  }
  return first;
}

}  // namespace

Failure CarryTogether(const char* call, File& file, const CollectivePart& part, int64_t* moved) {
  Meeting meeting(call, file.comm());
  if (file.view()->converts()) {  // on all ranks, or on none
    return meeting.Agree(CarryApart(file, part, moved));
  }
  if (file.two_phase() == nullptr) {
    file.two_phase() = std::make_shared<TwoPhase>();
  }
  bool is_carried = false;
  Failure own = file.two_phase()->Carry(meeting, file, part, moved, &is_carried);
  if (!is_carried) {
    FERRY_RETURN_FAILURE(own);
    own = CarryApart(file, part, moved);
  }
  return meeting.Agree(own);
}

Failure CarryInOrder(const char* call, File& file, CollectivePart* part, int64_t* moved) {
  Meeting meeting(call, file.comm());
  *moved = 0;
  int64_t offset = 0;
  FERRY_RETURN_FAILURE(TakeInOrder(meeting, file, *part, &offset));
  if (file.posix().is_stream()) {
    return CarryInTurns(meeting, file, *part, moved);
  }
  const Result<int64_t> position = part->access.view->PositionOf(offset);
  part->refused = position.failure();
  if (position.ok()) {
    part->access.position = position.value();
    part->refused = part->access.view->CheckReach(position.value(), part->access.bytes());
  }
  return meeting.Agree(CarryApart(file, *part, moved));
}

}  // namespace ferry::mpi
