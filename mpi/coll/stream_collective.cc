#include "mpi/coll/stream_collective.h"

#include <algorithm>
#include <utility>

#include "coll/problem.h"
#include "coll/stream_order.h"
#include "mpi/base/connection.h"
#include "mpi/coll/scratch.h"
#include "mpi/coll/table.h"
#include "mpi/p2p/request.h"
#include "mpi/p2p/strided_runs.h"
#include "shm/layout/pair_layout.h"

namespace ferry::mpi {

using collective::kHostMemory;
using collective::OrderedStep;
using collective::Place;
using collective::Range;
using collective::Step;
using collective::StepId;
using collective::StepKind;
using collective::StreamAction;

using Kind = client::ProgramStep::Kind;

namespace {

// The most steps that one may have: each start enqueues them all.
constexpr size_t kMostSteps = 65536;
// Longer outputs that the network does not reach are passed on by streams: a copy costs more than
// they do.
constexpr size_t kMostStandInBytes = 64 << 10;

}  // namespace

Result<std::unique_ptr<StreamCollective>> StreamCollective::Make(const Parts& parts) {
  std::unique_ptr<StreamCollective> made(new StreamCollective(parts));
  FERRY_RETURN_FAILURE(made->Build());
  return made;
}

void StreamCollective::Refuse(const Parts& parts) {
  StreamCollective refused(parts);
  (void)refused.MakeRequests(With::kNothing);
  RefuseMatch(std::exchange(refused.requests_, {}));
}

StreamCollective::~StreamCollective() {
  if (front_end == nullptr) {
    return;  // all of it went with the connection
  }
  if (program_ != 0) {
    (void)front_end->queues->FreeProgram(program_);
  }
  for (const client::RequestHandle request : requests_) {
    (void)front_end->messages->FreePersistent(request);
  }
  for (void* const memory : {scratch_, stand_in_}) {
    if (memory != nullptr) {
      (void)front_end->memory->FreeMemory(memory);
    }
  }
}

Failure StreamCollective::Build() {
  if (parts_.operation.reduces && !parts_.operation.reducer.MayRunAnywhere()) {
    return {MPI_ERR_TYPE,
            "its datatype was freed, and the program's own operation needs its handle: keep it"};
  }
  FERRY_RETURN_FAILURE(AddFetches());
  FERRY_RETURN_FAILURE(MakeScratch());
  FERRY_RETURN_FAILURE(MakeStandIn());
  AddStandInCopies(/*fetches=*/true);
  FERRY_RETURN_FAILURE(MakeRequests(With::kData));
  AddOrdered();
  AddStandInCopies(/*fetches=*/false);
  FERRY_RETURN_FAILURE(AddDelivery());
  StatusOr<client::RequestHandle> program = front_end->queues->MakeProgram(
      CollectiveName(parts_.operation.problem.collective), requests_, std::move(steps_));
  if (!program.ok()) {
    return FailureOf(program.status());
  }
  program_ = *program;
  return {};
}

std::byte* StreamCollective::Address(const Range& range) const {
  void* const base = range.place == Place::kInput     ? parts_.operation.input.base()
                     : range.place == Place::kScratch ? scratch_
                     : stand_in_ != nullptr           ? stand_in_
                                                      : parts_.operation.output.base();
  return static_cast<std::byte*>(base) + range.offset_bytes;
}

// ---- A copy of the output that the network reaches ----------------------------------------------

// Returns true if the collective receives data from another node into the output, and sends output
// data to one.
bool StreamCollective::PassesOutputOn() const {
  const auto touches = [this](const Step& step, StepKind kind, const Range& range) {
    return step.kind == kind && range.place == Place::kOutput && range.size_bytes != 0 &&
           IsToAnotherNode(step);
  };
  const std::vector<Step>& steps = parts_.schedule.steps;
  return std::ranges::any_of(
             steps, [&](const Step& step) { return touches(step, StepKind::kReceive, step.to); }) &&
         std::ranges::any_of(
             steps, [&](const Step& step) { return touches(step, StepKind::kSend, step.left); });
}

// Single messages would go through blocks of their own, between which the stream copies.
Failure StreamCollective::MakeStandIn() {
  const collective::Problem& problem = parts_.operation.problem;
  const bool gathers = problem.collective == collective::Collective::kAllgather;
  if (!ChainsInNics() || problem.has_blocks || problem.is_inter ||
      (!gathers && problem.collective != collective::Collective::kBcast)) {
    return {};
  }
  const auto times = gathers ? static_cast<size_t>(parts_.channel.size()) : 1;
  const Range output{Place::kOutput, 0, problem.block_bytes * times};
  if (output.size_bytes > kMostStandInBytes || !PassesOutputOn() || IsReachedByNics(output)) {
    return {};
  }
  StatusOr<void*> memory =
      front_end->memory->AllocateMemory(output.size_bytes, client::MemoryKind::kHost, 0);
  if (!memory.ok()) {
    return FailureOf(memory.status());
  }
  stand_in_ = *memory;
  return {};
}

// Before the collective writes the output, it reads only this rank's own block there, in place.
void StreamCollective::AddStandInCopies(bool fetches) {
  if (stand_in_ == nullptr) {
    return;
  }
  const collective::Problem& problem = parts_.operation.problem;
  auto* const stand_in = static_cast<std::byte*>(stand_in_);
  auto* const output = static_cast<std::byte*>(parts_.operation.output.base());
  const bool gathers = problem.collective == collective::Collective::kAllgather;
  const size_t bytes = problem.block_bytes;
  const auto self = static_cast<size_t>(parts_.channel.self());
  if (!fetches) {
    AddCopy(output, stand_in, gathers ? bytes * static_cast<size_t>(parts_.channel.size()) : bytes);
  } else if (gathers && problem.in_place) {
    AddCopy(stand_in + self * bytes, output + self * bytes, bytes);
  }
}

// ---- Messages -----------------------------------------------------------------------------------

// Takes it from the heap, or from the device that reduces: peers reach it as it is.
Failure StreamCollective::MakeScratch() {
  if (parts_.schedule.scratch_bytes == 0) {
    return {};
  }
  const size_t bytes = parts_.schedule.scratch_bytes;
  const int device = parts_.operation.device;
  StatusOr<void*> scratch =
      device == kHostMemory ? front_end->memory->AllocateMemory(bytes, client::MemoryKind::kHost, 0)
                            : AllocateDeviceScratch(bytes, device);
  if (!scratch.ok()) {
    return FailureOf(scratch.status());
  }
  scratch_ = *scratch;
  return {};
}

Failure StreamCollective::MakeRequests(With what) {
  request_of_.resize(parts_.schedule.steps.size());
  for (size_t i = 0; i < parts_.schedule.steps.size(); ++i) {
    const Step& step = parts_.schedule.steps[i];
    if (step.kind != StepKind::kSend && step.kind != StepKind::kReceive) {
      continue;
    }
    client::RequestHandle handle = 0;
    FERRY_RETURN_FAILURE(MakeRequest(step, what, &handle));
    request_of_[i] = static_cast<uint32_t>(requests_.size());
    requests_.push_back(handle);
  }
  return {};
}

Failure StreamCollective::MakeRequest(const Step& step, With what, client::RequestHandle* handle) {
  const bool is_send = step.kind == StepKind::kSend;
  const Range& range = is_send ? step.left : step.to;
  const size_t size_bytes = what == With::kData ? range.size_bytes : 0;
  const client::Message message{.buffer = size_bytes == 0 ? nullptr : Address(range),
                                .size_bytes = size_bytes,
                                .peer = parts_.channel.WorldRank(step.peer),
                                .tag = static_cast<int32_t>(parts_.number),
                                .context = parts_.comm.context(Traffic::kCollective),
                                .in_place = ChainsInNics()};
  return FailureOf(front_end->messages->MakePersistent(message, is_send, handle));
}

// ---- Steps --------------------------------------------------------------------------------------

Failure StreamCollective::AddFetches() {
  const CollectiveOperation& operation = parts_.operation;
  FERRY_RETURN_FAILURE(AddMoves(operation.input, "sendbuf", true, operation.input_read));
  return AddMoves(operation.output, "recvbuf", true, operation.output_read);
}

Failure StreamCollective::AddDelivery() {
  return parts_.operation.delivers ? AddMoves(parts_.operation.output, "recvbuf", false, {})
                                   : Failure();
}

// Adds the copies between the program's buffer and the copy that stands in for it.
Failure StreamCollective::AddMoves(const CollectiveBuffer& buffer, const char* which, bool fetches,
                                   Portion portion) {
  if (!buffer.is_copy() || (fetches && portion.count == 0)) {
    return {};
  }
  if (!buffer.is_by_stream()) {
    auto* const moved = const_cast<CollectiveBuffer*>(&buffer);
    client::ProgramStep step;
    step.kind = Kind::kCall;
    step.call = [moved, fetches, portion] {
      const Failure failure =
          fetches ? moved->Fetch(portion.first, portion.count) : moved->Deliver();
      return failure.ok() ? ErrorCode::kOk : ErrorCode::kInvalidBuffer;
    };
    steps_.push_back(std::move(step));
    return {};
  }
  const std::vector<gpu::StridedCopy> copies =
      fetches ? buffer.FetchCopies(portion.first, portion.count) : buffer.DeliverCopies();
  const bool by_kernel = !copies.empty() && AreCopiedByKernels(copies.front());
  for (const gpu::StridedCopy& copy : copies) {
    if (by_kernel && copy.block_count > 1) {
      client::ProgramStep step;
      step.kind = Kind::kStrided;
      step.strided = copy;
      steps_.push_back(std::move(step));
    } else {
      ForEachBlock(copy, [this](void* to, const void* from, uint64_t size_bytes) {
        AddCopy(to, from, size_bytes);
      });
    }
    if (steps_.size() > kMostSteps) {
      return {MPI_ERR_TYPE, std::string("the data of ") + which + " are more than " +
                                std::to_string(kMostSteps) +
                                " blocks, in memory that only streams reach: pack it by a kernel"};
    }
  }
  return {};
}

// Returns true if the device has a kernel for such copies, and reaches both ends. It does not reach
// a copy for which the heap had no room. To find out, packs one byte, which the start does again.
bool StreamCollective::AreCopiedByKernels(const gpu::StridedCopy& copy) {
  return front_end->one_sided->LocateHere(copy.packed, 1).region != 0 &&
         front_end->memory->CopyStrided({copy.blocks, copy.packed, 1, 1, 0, true}).ok();
}

void StreamCollective::AddCopy(void* to, const void* from, uint64_t size_bytes) {
  client::ProgramStep step;
  step.kind = Kind::kCopy;
  step.to = to;
  step.from = from;
  step.size_bytes = size_bytes;
  steps_.push_back(std::move(step));
}

bool StreamCollective::IsToAnotherNode(const Step& step) const {
  const auto peer = static_cast<uint32_t>(parts_.channel.WorldRank(step.peer));
  return front_end->NodeOf(peer) != front_end->NodeOf(front_end->rank());
}

// The network reads and writes the memory itself, so that what has come can be passed on.
bool StreamCollective::MayChain(const Step& step) const {
  return IsToAnotherNode(step) &&
         IsReachedByNics(step.kind == StepKind::kSend ? step.left : step.to);
}

bool StreamCollective::IsReachedByNics(const Range& range) const {
  return range.size_bytes == 0 ||
         (front_end->one_sided->LocateHere(Address(range), range.size_bytes).region != 0 &&
          !front_end->IsByStream(Address(range)));
}

void StreamCollective::AddOrdered() {
  collective::ChainRules rules;
  if (ChainsInNics()) {
    rules = {.may_chain = [this](StepId id) { return MayChain(parts_.schedule.steps[id]); },
             .most_followed = shm::kMostFollowed,
             .most_followers = shm::kMostFollowers};
  }
  for (const OrderedStep& ordered : OrderForStream(parts_.schedule, rules)) {
    if (ordered.action == StreamAction::kCompute) {
      AddCompute(parts_.schedule.steps[ordered.step]);
      continue;
    }
    client::ProgramStep step;
    step.kind = ordered.action == StreamAction::kStart ? Kind::kStart : Kind::kWait;
    step.request = request_of_[ordered.step];
    for (const StepId followed : ordered.follows) {
      step.follows.push_back(request_of_[followed]);
    }
    steps_.push_back(std::move(step));
  }
}

void StreamCollective::AddCompute(const Step& step) {
  std::byte* const to = Address(step.to);
  std::byte* const left = Address(step.left);
  if (step.kind == StepKind::kCopy) {
    if (to != left) {
      AddCopy(to, left, step.to.size_bytes);
    }
    return;
  }
  OpReducer& reducer = parts_.operation.reducer;
  std::byte* const right = Address(step.right);
  const size_t count = step.to.size_bytes / parts_.schedule.element_bytes;
  client::ProgramStep added;
  if (parts_.operation.device != kHostMemory) {
    added.kind = Kind::kReduce;
    added.reduction = reducer.OnDevice(left, right, to, count);
  } else {
    added.kind = Kind::kCall;
    added.call = [&reducer, left, right, to, count] {
      return reducer.Reduce(left, right, to, count);
    };
  }
  steps_.push_back(std::move(added));
}

}  // namespace ferry::mpi
