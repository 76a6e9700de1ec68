// Communicators (MPI 5.0, sections 7.4 and 7.8).
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "mpi/api/call.h"
#include "mpi/api/compare_by_name.h"
#include "mpi/api/function.h"
#include "mpi/coll/channel.h"
#include "mpi/coll/comparison.h"
#include "mpi/coll/table.h"
#include "mpi/comm/agree.h"
#include "mpi/comm/comm.h"
#include "mpi/comm/creation.h"
#include "mpi/comm/line_to_members.h"
#include "mpi/info/info.h"
#include "mpi/init/process.h"
#include "mpi/p2p/request.h"
#include "mpi/p2p/send_buffer.h"
#include "mpi/p2p/status.h"

namespace ferry::mpi {
namespace {

// Copies what a duplicate has of its parent beside the groups, and gives it its handle. If a copy
// callback fails, what was copied is deleted again, and there is no duplicate.
void GiveDuplicate(Call& call, MPI_Comm parent_handle, const Comm& parent, const Info* info,
                   Ref<Comm> duplicate, MPI_Comm* newcomm) {
  duplicate->SetTopology(parent.topology());
  if (info != nullptr) {
    duplicate->SetHints(WithHints(duplicate->hints(), info->entries(), ServedMemoryKinds()));
  }
  Comm& made = *duplicate;
  MPI_Comm handle = MPI_COMM_NULL;
  call.Give(std::move(duplicate), &handle);
  if (!call.ok()) {
    return;
  }
  if (Failure failure = parent.attributes().CopyTo(parent_handle, &made.attributes());
      !failure.ok()) {
    (void)made.attributes().DeleteAll(handle);
    comms.Remove(handle)->Release();
    call.Refuse(failure);
    return;
  }
  *newcomm = handle;
}

int Dup(Call call, MPI_Comm comm, bool with_info, MPI_Info info, MPI_Comm* newcomm) {
  Comm* const parent = call.Find(comm);
  const Info* const hints = with_info ? call.FindOrNull(info) : nullptr;
  call.Need(newcomm, "newcomm");
  CompareByName(call, parent);
  FERRY_RETURN_ERROR(call.result());
  *newcomm = MPI_COMM_NULL;  // if it fails
  Result<Ref<Comm>> made = parent->is_inter() ? DuplicateInter(*parent) : Duplicate(*parent);
  call.Refuse(made.failure());
  return call.Then(
      [&] { GiveDuplicate(call, comm, *parent, hints, std::move(made).value(), newcomm); });
}

// ---- MPI_Comm_idup: a duplicate whose number arrives later --------------------------------------

// The first process of an intracommunicator; the lower of the two first ones of an
// intercommunicator.
int MakerOf(const Comm& parent) {
  int own = parent.group().WorldRank(0);
  return parent.is_inter() ? std::min(own, parent.peers().WorldRank(0)) : own;
}

class Idup : public Request {
 public:
  Idup(Comm& parent, Ref<Comm> duplicate)
      : parent_(Ref<Comm>::Share(&parent)), duplicate_(std::move(duplicate)) {}

  // Exchanges the number, once the other ranks have begun the same where ranks compare their calls
  // (option mpi_check).
  Failure Begin(const char* call) {
    if (!ComparesCalls()) [[likely]] {
      return Exchange();
    }
    comparison_ = BeginComparison(call, *parent_, [this](uint32_t number) {
      // Comparisons may end in another order than they begin.
      tag_ = static_cast<int32_t>(number & 0x3fffffffU);
      exchanged_ = Exchange();
    });
    return {};
  }

  bool IsDone() override {
    if (comparison_ != nullptr && !Channel::Of(*parent_).Advance(*comparison_)) {
      return front_end->poison() != ErrorCode::kOk;
    }
    return std::all_of(pending_.begin(), pending_.end(), [](client::RequestHandle handle) {
      return front_end->messages->IsComplete(handle);
    });
  }
  Failure End(MPI_Status* status) override {
    SetEmptyStatus(status);
    if (comparison_ != nullptr && !comparison_->is_done()) {
      return FailureOf(front_end->poison());
    }
    Failure failure =
        comparison_ == nullptr || comparison_->failure().ok() ? exchanged_ : comparison_->failure();
    for (client::RequestHandle handle : pending_) {
      client::Completion completion;
      front_end->messages->Wait(handle, &completion);  // it is complete
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
  Comm* comm() const override { return parent_.get(); }

 private:
  // One process makes the number, and sends it to all others.
  Failure Exchange() {
    const int maker = MakerOf(*parent_);
    return maker == WorldRankOfSelf() ? Give() : Expect(maker);
  }
  Failure Give() {
    grant_ = GrantNumbers(1);
    for (const RankSet* side : {&parent_->group(), &parent_->peers()}) {
      for (int rank = 0; rank < side->size(); ++rank) {
        if (side->WorldRank(rank) == WorldRankOfSelf()) {
          continue;
        }
        client::Message message = MessageTo(side->WorldRank(rank));
        client::RequestHandle handle = 0;
        FERRY_RETURN_FAILURE(Begun(message, true, &handle));
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
    Failure failure = Begun(message, false, &pending_.front());
    if (!failure.ok()) {
      pending_.clear();
    }
    return failure;
  }
  client::Message MessageTo(int world_rank) {
    client::Message message;
    message.buffer = &grant_;
    message.size_bytes = sizeof(grant_);
    message.peer = world_rank;
    message.tag = tag_;
    message.context = parent_->context(Traffic::kIdup);
    return message;
  }
  static Failure Begun(const client::Message& message, bool sends, client::RequestHandle* handle) {
    return FailureOf(sends ? front_end->messages->StartSend(message, handle)
                           : front_end->messages->StartReceive(message, handle));
  }

  const Ref<Comm> parent_;
  const Ref<Comm> duplicate_;
  NumberGrant grant_;
  int32_t tag_ = 0;
  std::vector<client::RequestHandle> pending_;
  std::shared_ptr<Comparison> comparison_;  // null: none
  Failure exchanged_;
};

// Begins to duplicate `parent`, of either kind. *duplicate has the parent's groups, and may be used
// once *request is complete. Collective, in one order for all calls on `parent`; does not block:
// the process that makes the number sends it to all others at once, in a context that nothing else
// uses, so that calls meet in order. Calling thread: any, one at a time for one parent.
Failure BeginDuplicate(const char* call, Comm& parent, Ref<Comm>* duplicate,
                       Ref<Request>* request) {
  *duplicate = parent.is_inter()
                   ? MakeInterComm(parent, kUnusableNumber, parent.group(), parent.peers())
                   : MakeComm(parent, kUnusableNumber, parent.group());
  Ref<Idup> idup = MakeRef<Idup>(parent, *duplicate);
  Failure failure = idup->Begin(call);
  *request = std::move(idup);
  return failure;
}

int BeginDup(Call call, MPI_Comm comm, bool with_info, MPI_Info info, MPI_Comm* newcomm,
             MPI_Request* request) {
  Comm* const parent = call.Find(comm);
  const Info* const hints = with_info ? call.FindOrNull(info) : nullptr;
  call.Need(newcomm, "newcomm", request, "request");
  if (!call.ok()) {
    CompareByName(call, parent);
    return call.result();
  }
  Ref<Comm> made;
  Ref<Request> begun;
  call.Refuse(BeginDuplicate(call.name(), *parent, &made, &begun));
  if (call.ok()) {
    GiveDuplicate(call, comm, *parent, hints, std::move(made), newcomm);
  }
  if (call.ok()) {
    *request = begun.Leave()->Publish();
  } else if (begun) {
    Abandon(begun.Leave());  // others may have sent, or wait for what was sent
  }
  return call.result();
}

int Free(Call call, MPI_Comm* comm, bool waits) {
  call.NeedRunning();
  call.Need(comm, "comm");
  Comm* const found = call.ok() ? call.Find(*comm) : nullptr;
  if (found != nullptr && comms.IsPredefined(*comm)) {
    call.Refuse(MPI_ERR_COMM, found->name() + " is predefined and cannot be freed");
  }
  if (call.ok() && waits) {
    CompareByName(call, found, {.ends = true});
  }
  if (call.ok() && waits) {
    call.Refuse(FlushBuffer(found));
  }
  if (call.ok() && waits) {
    call.Refuse(found->is_inter() ? SynchroniseInter(*found) : SynchroniseAll(*found));
  }
  if (call.ok()) {
    call.Refuse(found->attributes().DeleteAll(*comm));
  }
  return call.Then([&] {
    // Programs whose ranks free it at different times are right as long as nothing has to wait.
    if (!waits && found->number() != kUnusableNumber) {
      TellByName(call, *found);
    }
    FreeBuffer(found);
    comms.Remove(*comm)->Release();
    *comm = MPI_COMM_NULL;
  });
}

// Refuses groups of the same processes in different orders (option mpi_check). Groups of different
// processes do not meet.
Failure CompareGroups(const Comm& parent, const RankSet& group, int tag) {
  std::vector<int> members = group.WorldRanks();
  if (!group.Contains(WorldRankOfSelf()) ||
      !std::all_of(members.begin(), members.end(),
                   [&parent](int in_job) { return parent.group().Contains(in_job); })) {
    return {};  // CreateGroup says what is wrong
  }
  uint64_t own = 0;
  for (const int in_job : members) {
    own = own * 0x100000001b3U + static_cast<uint64_t>(in_job) + 1;
  }
  std::sort(members.begin(), members.end());
  const RankSet sorted = RankSet::Of(std::move(members));
  LineToMembers line(parent.context(Traffic::kGroupCreation), sorted, tag);
  const Team team{&line, sorted.RankOf(WorldRankOfSelf()), sorted.size()};
  std::vector<uint64_t> all(static_cast<size_t>(sorted.size()));
  FERRY_RETURN_FAILURE(GatherToAll(team, &own, sizeof(own), all.data()));
  const auto other =
      std::find_if(all.begin(), all.end(), [&](uint64_t each) { return each != own; });
  return other == all.end()
             ? Failure()
             : Failure{MPI_ERR_GROUP, "the members passed the group in different orders: rank " +
                                          std::to_string(parent.RankOf(sorted.WorldRank(
                                              static_cast<int>(other - all.begin())))) +
                                          " of the communicator in another one than this rank"};
}

Failure CheckTag(int tag) {
  return tag >= 0 && tag <= kTagMax ? Failure{}
                                    : Failure{MPI_ERR_TAG, "tag is " + std::to_string(tag)};
}

int CompareSides(const Comm& a, const Comm& b) {
  if (a.is_inter() != b.is_inter()) {
    return MPI_UNEQUAL;
  }
  const int near = Compare(a.group(), b.group());
  const int far = Compare(a.peers(), b.peers());
  if (near == MPI_UNEQUAL || far == MPI_UNEQUAL) {
    return MPI_UNEQUAL;
  }
  return near == MPI_IDENT && far == MPI_IDENT ? MPI_CONGRUENT : MPI_SIMILAR;
}

}  // namespace

// ---- Properties ---------------------------------------------------------------------------------

FERRY_MPI_CALL(int, MPI_Comm_size, (MPI_Comm comm, int* size)) {
  Call call(FERRY_MPI_NAME);
  const Comm* const found = call.Find(comm);
  call.Need(size, "size");
  return call.Then([&] { *size = found->size(); });
}

FERRY_MPI_CALL(int, MPI_Comm_rank, (MPI_Comm comm, int* rank)) {
  Call call(FERRY_MPI_NAME);
  const Comm* const found = call.Find(comm);
  call.Need(rank, "rank");
  return call.Then([&] { *rank = found->rank(); });
}

FERRY_MPI_CALL(int, MPI_Comm_compare, (MPI_Comm comm1, MPI_Comm comm2, int* result)) {
  Call call(FERRY_MPI_NAME);
  const Comm* const first = call.Find(comm1);
  const Comm* const second = call.Find(comm2);
  call.Need(result, "result");
  return call.Then([&] {
    *result = first == second ? static_cast<int>(MPI_IDENT) : CompareSides(*first, *second);
  });
}

FERRY_MPI_CALL(int, MPI_Comm_group, (MPI_Comm comm, MPI_Group* group)) {
  Call call(FERRY_MPI_NAME);
  const Comm* const found = call.Find(comm);
  call.Need(group, "group");
  return call.Then([&] { call.Give(MakeRef<Group>(found->group(), found->session()), group); });
}

// ---- New communicators --------------------------------------------------------------------------

FERRY_MPI_CALL(int, MPI_Comm_dup, (MPI_Comm comm, MPI_Comm* newcomm)) {
  return Dup(FERRY_MPI_NAME, comm, false, MPI_INFO_NULL, newcomm);
}

FERRY_MPI_CALL(int, MPI_Comm_dup_with_info, (MPI_Comm comm, MPI_Info info, MPI_Comm* newcomm)) {
  return Dup(FERRY_MPI_NAME, comm, true, info, newcomm);
}

FERRY_MPI_CALL(int, MPI_Comm_idup, (MPI_Comm comm, MPI_Comm* newcomm, MPI_Request* request)) {
  return BeginDup(FERRY_MPI_NAME, comm, false, MPI_INFO_NULL, newcomm, request);
}

FERRY_MPI_CALL(int, MPI_Comm_idup_with_info,
               (MPI_Comm comm, MPI_Info info, MPI_Comm* newcomm, MPI_Request* request)) {
  return BeginDup(FERRY_MPI_NAME, comm, true, info, newcomm, request);
}

FERRY_MPI_CALL(int, MPI_Comm_split, (MPI_Comm comm, int color, int key, MPI_Comm* newcomm)) {
  Call call(FERRY_MPI_NAME);
  Comm* const parent = call.Find(comm);
  call.Need(newcomm, "newcomm");
  CompareByName(call, parent);
  return call.Then([&] {
    call.Give(parent->is_inter() ? SplitInter(*parent, color, key) : Split(*parent, color, key),
              newcomm);
  });
}

FERRY_MPI_CALL(int, MPI_Comm_split_type,
               (MPI_Comm comm, int split_type, int key, MPI_Info info, MPI_Comm* newcomm)) {
  Call call(FERRY_MPI_NAME);
  Comm* const parent = call.Find(comm);
  Info* const hints = call.FindOrNull(info);
  call.Need(newcomm, "newcomm");
  CompareByName(call, parent);
  return call.Then([&] { call.Give(SplitByType(*parent, split_type, key, hints), newcomm); });
}

FERRY_MPI_CALL(int, MPI_Comm_create, (MPI_Comm comm, MPI_Group group, MPI_Comm* newcomm)) {
  Call call(FERRY_MPI_NAME);
  Comm* const parent = call.Find(comm);
  const Group* const members = call.Find(group);
  call.Need(newcomm, "newcomm");
  CompareByName(call, parent);
  return call.Then([&] {
    call.Give(
        parent->is_inter() ? CreateInter(*parent, members->ranks) : Create(*parent, members->ranks),
        newcomm);
  });
}

FERRY_MPI_CALL(int, MPI_Comm_create_group,
               (MPI_Comm comm, MPI_Group group, int tag, MPI_Comm* newcomm)) {
  Call call(FERRY_MPI_NAME);
  const Comm* const parent = call.FindIntra(comm);
  const Group* const members = call.Find(group);
  call.Need(newcomm, "newcomm");
  call.Refuse(CheckTag(tag));
  if (call.ok() && ComparesCalls()) {
    call.Refuse(CompareGroups(*parent, members->ranks, tag));
  }
  return call.Then([&] { call.Give(CreateGroup(*parent, members->ranks, tag), newcomm); });
}

FERRY_MPI_CALL(int, MPI_Comm_free, (MPI_Comm * comm)) { return Free(FERRY_MPI_NAME, comm, false); }

// A program ends its operations on it before it calls this, so all that is left is to wait until
// all have called it.
FERRY_MPI_CALL(int, MPI_Comm_disconnect, (MPI_Comm * comm)) {
  return Free(FERRY_MPI_NAME, comm, true);
}

// Always MPI_COMM_NULL: Ferry does not spawn processes yet.
FERRY_MPI_CALL(int, MPI_Comm_get_parent, (MPI_Comm * parent)) {
  Call call(FERRY_MPI_NAME);
  call.NeedRunning();
  call.Need(parent, "parent");
  return call.Then([&] { *parent = MPI_COMM_NULL; });
}

// ---- Names and hints ----------------------------------------------------------------------------

FERRY_MPI_CALL(int, MPI_Comm_set_name, (MPI_Comm comm, const char* comm_name)) {
  Call call(FERRY_MPI_NAME);
  Comm* const found = call.Find(comm);
  call.Need(comm_name, "comm_name");
  return call.Then([&] {
    found->SetName(std::string(comm_name).substr(0, MPI_MAX_OBJECT_NAME - 1));
    front_end->calls->ForgetNames();
  });
}

FERRY_MPI_CALL(int, MPI_Comm_get_name, (MPI_Comm comm, char* comm_name, int* resultlen)) {
  Call call(FERRY_MPI_NAME);
  call.NeedRunning();
  const Comm* const found = comm == MPI_COMM_NULL ? nullptr : call.Find(comm);
  call.Need(comm_name, "comm_name", resultlen, "resultlen");
  return call.Then([&] {
    const std::string name = found == nullptr ? "MPI_COMM_NULL" : found->name();
    CopyValue(name, MPI_MAX_OBJECT_NAME - 1, comm_name);
    *resultlen = static_cast<int>(name.size());
  });
}

FERRY_MPI_CALL(int, MPI_Comm_set_info, (MPI_Comm comm, MPI_Info info)) {
  Call call(FERRY_MPI_NAME);
  Comm* const found = call.Find(comm);
  const Info* const given = call.FindOrNull(info);
  if (call.ok() && given != nullptr) {
    found->SetHints(WithHints(found->hints(), given->entries(), ServedMemoryKinds()));
  }
  return call.result();
}

FERRY_MPI_CALL(int, MPI_Comm_get_info, (MPI_Comm comm, MPI_Info* info_used)) {
  Call call(FERRY_MPI_NAME);
  const Comm* const found = call.Find(comm);
  call.Need(info_used, "info_used");
  return call.Then([&] {
    std::vector<Info::Entry> hints = found->hints();
    hints.push_back(MemoryKindsFor(found->session().get()));
    call.Give(MakeRef<Info>(std::move(hints)), info_used);
  });
}

}  // namespace ferry::mpi
