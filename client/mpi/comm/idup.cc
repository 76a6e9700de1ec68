#include "client/mpi/comm/idup.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "client/core/front_end.h"
#include "client/mpi/comm/numbers.h"
#include "client/mpi/request/status.h"
#include "client/mpi/runtime/process.h"

namespace ferry::mpi {
namespace {

class Idup : public Request {
 public:
  Idup(Comm& parent, Ref<Comm> duplicate)
      : parent_(Ref<Comm>::Share(&parent)), duplicate_(std::move(duplicate)) {}

  // Makes the number, and sends it to all others.
  Failure Give() {
    grant_ = GrantNumbers(1);
    for (const RankSet* side : {&parent_->group(), &parent_->peers()}) {
      for (int rank = 0; rank < side->size(); ++rank) {
        if (side->WorldRank(rank) == WorldRankOfSelf()) {
          continue;
        }
        client::Message message = MessageTo(side->WorldRank(rank));
        client::RequestHandle handle = 0;
        if (Failure failure = Begun(message, true, &handle); !failure.ok()) {
          return failure;
        }
        if (handle != client::kCompletedSend) {
          pending_.push_back(handle);
        }
      }
      if (!parent_->is_inter()) {
        break;
      }
    }
    return {};
  }
  Failure Expect(int maker) {
    client::Message message = MessageTo(maker);
    pending_.resize(1);
    return Begun(message, false, &pending_.front());
  }

  bool IsDone() override {
    return std::all_of(pending_.begin(), pending_.end(),
                       [](client::RequestHandle handle) { return front_end->IsComplete(handle); });
  }
  Failure End(MPI_Status* status) override {
    SetEmptyStatus(status);
    Failure failure;
    for (client::RequestHandle handle : pending_) {
      client::Completion completion;
      front_end->Wait(handle, &completion);  // it is complete
      if (failure.ok()) {
        failure = FailureOf(completion.error);
      }
    }
    pending_.clear();
    if (failure.ok()) {
      failure = Check(grant_);
    }
    if (failure.ok()) {
      duplicate_->SetNumber(grant_.Number(0));
    }
    return failure;
  }
  void Look(MPI_Status* status) override { SetEmptyStatus(status); }
  Comm* comm() const override { return parent_.get(); }

 private:
  client::Message MessageTo(int world_rank) {
    client::Message message;
    message.buffer = &grant_;
    message.size_bytes = sizeof(grant_);
    message.peer = world_rank;
    message.context = parent_->context(Traffic::kIdup);
    return message;
  }
  static Failure Begun(const client::Message& message, bool sends, client::RequestHandle* handle) {
    return FailureOf(sends ? front_end->StartSend(message, handle)
                           : front_end->StartReceive(message, handle));
  }

  const Ref<Comm> parent_;
  const Ref<Comm> duplicate_;
  NumberGrant grant_;
  std::vector<client::RequestHandle> pending_;
};

// The first process of an intracommunicator; the lower of the two first ones of an
// intercommunicator.
int MakerOf(const Comm& parent) {
  int own = parent.group().WorldRank(0);
  return parent.is_inter() ? std::min(own, parent.peers().WorldRank(0)) : own;
}

}  // namespace

Failure BeginDuplicate(Comm& parent, Ref<Comm>* duplicate, Ref<Request>* request) {
  *duplicate = parent.is_inter()
                   ? MakeInterComm(parent, kUnusableNumber, parent.group(), parent.peers())
                   : MakeComm(parent, kUnusableNumber, parent.group());
  Ref<Idup> idup = MakeRef<Idup>(parent, *duplicate);
  int maker = MakerOf(parent);
  Failure failure = maker == WorldRankOfSelf() ? idup->Give() : idup->Expect(maker);
  *request = std::move(idup);
  return failure;
}

}  // namespace ferry::mpi
