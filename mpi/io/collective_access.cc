#include "mpi/io/collective_access.h"

#include <memory>
#include <vector>

#include "mpi/comm/agree.h"
#include "mpi/io/background.h"
#include "mpi/io/io_thread.h"
#include "mpi/io/meeting.h"
#include "mpi/io/two_phase.h"

namespace ferry::mpi {
namespace {

class Transfer : public IoWork {
 public:
  Transfer(File& file, const Access& access) : file_(file), access_(access) {}

  int64_t moved() const { return moved_; }
  const Failure& failure() const { return failure_; }

  State Work() override {
    failure_ = CarryIn(file_, access_, &moved_);
    return State::kOver;
  }

 private:
  File& file_;
  const Access& access_;
  int64_t moved_ = 0;
  Failure failure_;
};

// Each rank moves its own bytes.
Failure CarryApart(const Meeting& meeting, File& file, const CollectivePart& part, int64_t* moved) {
  if (!part.refused.ok() || part.is_carried) {
    return part.is_carried ? part.carried : part.refused;
  }
  if (meeting.background() == nullptr) {
    return CarryIn(file, part.access, moved);
  }
  Transfer transfer(file, part.access);
  meeting.background()->Do(&transfer, LineOf(file, part.access.is_write));
  *moved = transfer.moved();
  return transfer.failure();
}

// Calls that do not block go by the same memory, and come first.
Failure AwaitCallsBefore(File& file) {
  BackgroundCalls* const calls = BackgroundCalls::Find(file);
  return calls == nullptr || !calls->IsBusy() ? Failure() : calls->AwaitIdle();
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

// A file that has no offsets, on some rank at least, is used by one rank after the other.
Failure CarryInTurns(Meeting& meeting, File& file, const CollectivePart& part, int64_t* moved) {
  Failure first;
  for (int rank = 0; rank < meeting.size(); ++rank) {
    const Failure own = rank == meeting.rank() ? CarryApart(meeting, file, part, moved) : Failure();
    const Failure agreed = meeting.Agree(own);
    first = first.ok() ? agreed : first;
  }
  return first;
}

}  // namespace

Failure CarryTogether(const char* call, File& file, const CollectivePart& part, int64_t* moved) {
  *moved = 0;
  FERRY_RETURN_FAILURE(AwaitCallsBefore(file));
  Meeting meeting(call, file.comm());
  return CarryTogether(meeting, file, part, moved);
}

Failure CarryTogether(Meeting& meeting, File& file, const CollectivePart& part, int64_t* moved) {
  if (part.view->converts()) {  // on all ranks, or on none
    return meeting.Agree(CarryApart(meeting, file, part, moved));
  }
  if (file.two_phase() == nullptr) {
    file.two_phase() = std::make_shared<TwoPhase>();
  }
  TwoPhase::Way way = TwoPhase::Way::kApart;
  Failure own = file.two_phase()->Carry(meeting, file, part, moved, &way);
  if (own.ok() && (way == TwoPhase::Way::kAlone || way == TwoPhase::Way::kApart)) {
    own = CarryApart(meeting, file, part, moved);
  }
  if (way == TwoPhase::Way::kAlone) {
    return own;
  }
  own = meeting.Agree(own);
  if (!own.ok()) {
    file.two_phase()->Forget();
  }
  if (way == TwoPhase::Way::kBetweenNodes && part.access.is_write) {
    file.NoteWritesElsewhere();
  }
  return own;
}

Failure CarryInOrder(const char* call, File& file, CollectivePart* part, int64_t* moved) {
  *moved = 0;
  FERRY_RETURN_FAILURE(AwaitCallsBefore(file));
  Meeting meeting(call, file.comm());
  int64_t offset = 0;
  FERRY_RETURN_FAILURE(TakeInOrder(meeting, file, *part, &offset));
  const Result<int64_t> position = part->access.view->PositionOf(offset);
  part->refused = position.failure();
  if (position.ok()) {
    part->access.position = position.value();
    part->refused = part->access.view->CheckReach(position.value(), part->access.bytes());
  }
  return file.is_stream_somewhere() ? CarryInTurns(meeting, file, *part, moved)
                                    : meeting.Agree(CarryApart(meeting, file, *part, moved));
}

}  // namespace ferry::mpi
