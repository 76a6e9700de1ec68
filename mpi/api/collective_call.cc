#include "mpi/api/collective_call.h"

#include <string>
#include <utility>
#include <vector>

#include "mpi/api/compare_by_name.h"
#include "mpi/base/connection.h"
#include "mpi/base/handle_table.h"
#include "mpi/base/tool_watch.h"
#include "mpi/coll/channel.h"
#include "mpi/coll/collective_request.h"
#include "mpi/coll/comparison.h"
#include "mpi/coll/helper.h"
#include "mpi/init/fail.h"

namespace ferry::mpi {

using collective::CallRecord;
using collective::Collective;
using collective::DataRecord;
using collective::kSaysNothing;
using collective::Problem;
using collective::RunFailure;

int FindComm(const CollectiveCall& call, MPI_Comm handle, Comm** comm) {
  Threads::BeginCall();
  *comm = comms.Find(handle);
  if (*comm == nullptr) [[unlikely]] {
    return FailComm(call.name, handle);
  }
  if (call.mode != CallMode::kBlocking && call.request == nullptr) [[unlikely]] {
    return Fail(call.name, *comm, MPI_ERR_ARG, "the address for the request is null");
  }
  if (call.info != MPI_INFO_NULL && infos.Find(call.info) == nullptr) [[unlikely]] {
    return FailHandle(call.name, *comm, MPI_ERR_INFO, "MPI_Info", call.info);
  }
  return MPI_SUCCESS;
}

int FailCollective(const CollectiveCall& call, Comm& comm, const Failure& failure) {
  return Fail(call.name, &comm, failure);
}

namespace {

int Run(const CollectiveCall& call, Comm& comm, CollectiveOperation* operation) {
  Channel& channel = Channel::Of(comm);
  DeviceOperands operands(operation);
  // Between nodes the data are needed in host memory at any rate.
  const bool is_kept = operation->ReducesOnDevice() && channel.MayHaveOneBoard() &&
                       operation->KeepOnDevice(&operands);
  if (!is_kept) [[likely]] {
    operation->FetchForRun();
  }
  RunFailure run_failure;
  channel.Run(&operation->problem, operation->MakeBinding(is_kept ? &operands : nullptr),
              &run_failure, operation->number);
  const Failure failure = operation->Finish(run_failure);
  return failure.ok() ? MPI_SUCCESS : Fail(call.name, &comm, failure);
}

// Tells a tool of its entry and exit.
int RunWatched(ToolWatch& watch, const CollectiveCall& call, Comm& comm,
               CollectiveOperation* operation) {
  shm::CallDescription description;
  DescribeProblem(comm, operation->problem, &description);
  description.name = client::CallOf(call.name);
  if (const client::CallNote& note = *front_end->calls->current(); note.has_number) {
    description.number = note.number;
    description.flags |= shm::kCallHasNumber;
  }
  watch.CollectiveEntered(description);
  const int result = Run(call, comm, operation);
  watch.CollectiveLeft(description);
  return result;
}

}  // namespace

int RunBlocking(const CollectiveCall& call, Comm& comm, CollectiveOperation* operation) {
  ToolWatch* const watch = CurrentToolWatch();
  return watch == nullptr ? Run(call, comm, operation) : RunWatched(*watch, call, comm, operation);
}

void RenounceNonblocking(Comm& comm) {
  Channel& channel = Channel::Of(comm);
  channel.RenounceNonblocking();
  if (channel.IsBusy()) {
    WatchChannel(comm, channel);
  }
}

int BeginCollective(const CollectiveCall& call, Comm& comm,
                    std::unique_ptr<CollectiveOperation> operation) {
  const bool persistent = call.mode == CallMode::kPersistent;
  if (!persistent) {
    front_end->calls->Count(client::CallOf(call.name), PayloadBytes(operation->problem));
  }
  Ref<CollectiveRequest> request =
      MakeRef<CollectiveRequest>(comm, std::move(operation), persistent);
  const MPI_Request handle = request->Publish();
  Failure failure;
  if (handle == nullptr) {
    failure = {MPI_ERR_NO_MEM, "no memory for another request"};
  } else if (CollectiveRequest* const published = request.Leave(); !persistent) {
    failure = published->Begin();
    if (!failure.ok()) {
      published->Unpublish(handle);
    }
  }
  if (!failure.ok()) {
    if (!persistent) {
      RenounceNonblocking(comm);
    }
    *call.request = MPI_REQUEST_NULL;
    return Fail(call.name, &comm, failure);
  }
  *call.request = handle;
  return MPI_SUCCESS;
}

// ---- Records for the comparison of calls --------------------------------------------------------

namespace {

// The lists of the forms with v and w, and of a reduce_scatter: the data sent to each rank, then
// those received from each. Entries that this rank knows nothing of say nothing.
std::vector<DataRecord> ListsOf(const Comm& comm, const CollectiveOperation& operation) {
  const Problem& problem = operation.problem;
  const auto ranks = static_cast<size_t>(comm.size());
  const auto self = static_cast<size_t>(comm.rank());
  const auto root = static_cast<size_t>(problem.root);
  std::vector<DataRecord> sent(ranks, {.elements = kSaysNothing});
  std::vector<DataRecord> received = sent;
  switch (problem.collective) {
    case Collective::kGather:
      if (self == root) {
        received = operation.output.block_records();
      } else {
        sent[root] = operation.input.RecordOfPart(1);
      }
      break;
    case Collective::kScatter:
      if (self == root) {
        sent = operation.input.block_records();
      } else {
        received[root] = operation.output.RecordOfPart(1);
      }
      break;
    case Collective::kAllgather:
      received = operation.output.block_records();
      sent.assign(ranks, problem.in_place ? received[self] : operation.input.RecordOfPart(1));
      break;
    case Collective::kAlltoall:
      received = operation.output.block_records();
      sent = problem.in_place ? received : operation.input.block_records();
      break;
    default: {  // a reduce_scatter: each names the parts of all
      const Datatype& type = operation.reducer.type();
      for (size_t i = 0; i < ranks; ++i) {
        const auto bytes = static_cast<int64_t>(problem.receive_blocks[i].size_bytes);
        sent[i] = RecordOf(type.size_bytes() == 0 ? 0 : bytes / type.size_bytes(), type);
      }
      received.assign(ranks, sent[self]);
    }
  }
  sent.insert(sent.end(), received.begin(), received.end());
  return sent;
}

// The datatype that all ranks' data are of, and how much of it, where all have the same amount.
void DescribeData(const Comm& comm, const CollectiveOperation& operation, CallRecord* record) {
  const Problem& problem = operation.problem;
  const bool is_root = comm.rank() == problem.root;
  const CollectiveBuffer* buffer = &operation.output;
  int64_t times = 1;
  switch (problem.collective) {
    case Collective::kBarrier:
      return;
    case Collective::kBcast:
      break;
    case Collective::kGather:
      buffer = is_root ? &operation.output : &operation.input;
      times = is_root ? comm.size() : 1;
      break;
    case Collective::kScatter:
      buffer = is_root ? &operation.input : &operation.output;
      times = is_root ? comm.size() : 1;
      break;
    case Collective::kAllgather:
    case Collective::kAlltoall:
      times = comm.size();
      break;
    default:
      buffer = problem.in_place ? &operation.output : &operation.input;
      times = problem.collective == Collective::kReduceScatter ? comm.size() : 1;
  }
  if (buffer->type() == nullptr) {
    return;
  }
  record->has_data = 1;
  record->data = buffer->RecordOfPart(times);
  if (const BasicType* const basic = buffer->type()->basic(); basic != nullptr) {
    collective::SetText(record->type, basic->name);
  }
}

// Describes a rank's call, for the others to compare (channel/comparison.h).
// `failure`: what was wrong with the call's arguments; then the operation is not looked at.
CallDescription DescribeCall(const char* call, const Comm& comm,
                             const CollectiveOperation& operation, const Failure& failure) {
  CallDescription description;
  CallRecord& record = description.record;
  const Problem& problem = operation.problem;
  SetName(&record, call);
  record.collective = static_cast<uint8_t>(problem.collective);
  record.is_inter = comm.is_inter() ? 1 : 0;
  if (!failure.ok()) {
    record.has_failed = 1;
    collective::SetText(record.text, failure.text);
    return description;
  }
  record.root = HasRoot(problem.collective) ? problem.root : 0;
  record.in_place = problem.in_place ? 1 : 0;
  if (operation.reduces) {
    const Op& op = operation.reducer.op();
    collective::SetText(record.op, op.IsPredefined() ? op.name() : "an operation of its own");
  }
  if (!operation.cut.empty()) {
    const std::string op = record.op;
    collective::SetText(record.op, op.empty() ? operation.cut : operation.cut + " by " + op);
  }
  if (comm.is_inter() || IsAmongNeighbours(problem.collective)) {
    return description;
  }
  if (problem.has_blocks) {
    record.has_lists = 1;
    description.lists = ListsOf(comm, operation);
  } else {
    DescribeData(comm, operation, &record);
  }
  return description;
}

// The others are told, and this rank goes on.
void TellOthers(Comm& comm, Channel& channel, CallDescription description, uint32_t number,
                bool persistent) {
  const auto told = channel.Compare(std::move(description), number, persistent, nullptr);
  if (!channel.Advance(*told)) {
    WatchChannel(comm, channel);
  }
}

// Blocks.
Failure AwaitComparison(Channel& channel, CallDescription description, uint32_t number) {
  const auto compared = channel.Compare(std::move(description), number, false, nullptr);
  channel.Await(*compared);
  return compared->is_done() ? compared->failure() : FailureOf(front_end->poison());
}

}  // namespace

Failure CompareCalls(const CollectiveCall& call, Comm& comm, CollectiveOperation* operation,
                     Failure failure) {
  Channel& channel = Channel::Of(comm);
  auto description =
      std::make_unique<CallDescription>(DescribeCall(call.name, comm, *operation, failure));
  const bool is_persistent = call.mode == CallMode::kPersistent;
  if (is_persistent && failure.ok()) {
    operation->description = std::move(description);  // compared at each start
    return failure;
  }
  const uint32_t number = is_persistent ? channel.NextPersistentNumber() : channel.TakeNumber();
  operation->number = number;
  if (is_persistent || !failure.ok()) {
    TellOthers(comm, channel, std::move(*description), number, is_persistent);
    return failure;
  }
  if (call.mode == CallMode::kNonblocking) {
    operation->description = std::move(description);
    return failure;
  }
  failure = AwaitComparison(channel, std::move(*description), number);
  if (failure.ok()) {
    channel.Enter();
  }
  return failure;
}

Failure CompareInits(const CollectiveCall& call, Comm& comm, const CollectiveOperation& operation,
                     Failure failure) {
  Channel& channel = Channel::Of(comm);
  channel.Name(call.name);
  CallDescription description = DescribeCall(call.name, comm, operation, failure);
  const uint32_t number = channel.TakeNumber();
  if (failure.ok()) {
    return AwaitComparison(channel, std::move(description), number);
  }
  TellOthers(comm, channel, std::move(description), number, false);
  return failure;
}

namespace {

CallDescription DescribeByName(const char* call, const Comm& comm) {
  CallDescription description;
  SetName(&description.record, call);
  description.record.is_inter = comm.is_inter() ? 1 : 0;
  return description;
}

}  // namespace

void CompareByName(Call& call, Comm* comm, const CallWords& words) {
  if (comm == nullptr || !ComparesCalls()) [[likely]] {
    return;
  }
  Channel& channel = Channel::Of(*comm);
  channel.Name(call.name());
  CallDescription description = DescribeByName(call.name(), *comm);
  const uint32_t number = channel.TakeNumber();
  if (!call.ok()) {
    description.record.has_failed = 1;
    collective::SetText(description.record.text, words.refusal);
    TellOthers(*comm, channel, std::move(description), number, false);
    return;
  }
  collective::SetText(description.record.op, words.alike == nullptr ? "" : words.alike);
  Failure failure = AwaitComparison(channel, std::move(description), number);
  if (words.ends && failure.error_class == MPI_ERR_PROC_ABORTED) {
    return;
  }
  if (failure.error_class == MPI_ERR_OP) {
    failure.error_class = words.alike_class;
  }
  call.Refuse(failure);
}

void TellByName(const Call& call, Comm& comm) {
  if (!ComparesCalls()) [[likely]] {
    return;
  }
  Channel& channel = Channel::Of(comm);
  (void)channel.CountCall();
  const uint32_t number = channel.TakeNumber();
  TellOthers(comm, channel, DescribeByName(call.name(), comm), number, false);
}

std::shared_ptr<Comparison> BeginComparison(const char* call, Comm& comm,
                                            std::function<void(uint32_t number)> go_on) {
  Channel& channel = Channel::Of(comm);
  (void)channel.CountCall();
  const uint32_t number = channel.TakeNumber();
  auto compared = channel.Compare(DescribeByName(call, comm), number, false,
                                  [go_on = std::move(go_on), number] { go_on(number); });
  if (!channel.Advance(*compared)) {
    WatchChannel(comm, channel);
  }
  return compared;
}

// ---- Arguments ----------------------------------------------------------------------------------

Failure FindDatatype(MPI_Datatype handle, const char* which, const Datatype** type) {
  *type = datatypes.Find(handle);
  if (*type == nullptr) [[unlikely]] {
    return {MPI_ERR_TYPE,
            std::string(which) + " is no datatype: is it MPI_DATATYPE_NULL, or was it freed?"};
  }
  return {};
}

Failure FailRoot(const Comm& comm, int root) {
  return {MPI_ERR_ROOT, "the root " + std::to_string(root) +
                            " is no rank of the communicator, which has ranks 0 to " +
                            std::to_string(comm.size() - 1)};
}

Failure FailInPlace(const char* which) {
  return {MPI_ERR_BUFFER, std::string(which) + " is MPI_IN_PLACE, which is not allowed here"};
}

Failure FailDistinct() {
  return {MPI_ERR_BUFFER, "sendbuf and recvbuf are the same memory: pass MPI_IN_PLACE"};
}

Failure CheckArray(const Numbers& numbers, const char* which) {
  if (numbers.is_null()) [[unlikely]] {
    return {MPI_ERR_ARG, std::string(which) + " is null"};
  }
  return {};
}

}  // namespace ferry::mpi
