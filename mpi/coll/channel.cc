#include "mpi/coll/channel.h"

#include <algorithm>
#include <string>
#include <utility>

#include "coll/messages/await_run.h"
#include "mpi/base/connection.h"
#include "mpi/coll/comparison.h"
#include "mpi/coll/table.h"

namespace ferry::mpi {
namespace {

using collective::Binding;
using collective::BoardResult;
using collective::Collective;
using collective::CollectiveRun;
using collective::FrontMessenger;
using collective::Problem;
using collective::RunFailure;
using collective::TwoLevels;

// Numbers of persistent operations lie in the upper half, where no others do but those of
// comparisons, each of which takes two. Those of operations of several runs lie below.
constexpr uint32_t kNumbers = 1U << 16;
constexpr uint32_t kFirstUnitNumber = kNumbers;
constexpr uint32_t kFirstPersistent = kFirstUnitNumber + Channel::kUnitNumbers;
constexpr uint32_t kPersistentNumbers = 1U << 15;
constexpr uint32_t kPersistentComparisons = kFirstPersistent + kPersistentNumbers;
constexpr uint32_t kComparisons = kPersistentComparisons + kPersistentNumbers;

uint32_t ComparisonNumber(uint32_t number, bool persistent) {
  return persistent ? kPersistentComparisons + number * 2 % kPersistentNumbers
                    : kComparisons + number * 2 % (1U << 16);
}

}  // namespace

Failure DescribeFailedRun(const RunFailure& failure) {
  const std::string peer = "rank " + std::to_string(failure.peer);
  switch (failure.mismatch) {
    case RunFailure::Mismatch::kNone: {
      if (failure.code == ErrorCode::kCancelled) {
        return {MPI_ERR_OTHER, (failure.peer >= 0 ? peer : "another rank") +
                                   " could not go through with it, or left it for another one"};
      }
      Failure described = FailureOf(failure.code);  // and forgets what came after the first one
      if (failure.text != nullptr) {
        described.text = *failure.text;
      }
      if (failure.peer >= 0) {
        described.text = "a message with " + peer + " failed: " + described.text;
      }
      return described;
    }
    case RunFailure::Mismatch::kCollective:
      return {MPI_ERR_OTHER, peer + " called another collective at the same time: " +
                                 CollectiveName(static_cast<Collective>(failure.other - 1))};
    case RunFailure::Mismatch::kRoot:
      return {MPI_ERR_ROOT, peer + " passed the root " + std::to_string(failure.other) +
                                ", not this rank's (or MPI_IN_PLACE, unlike this one)"};
    case RunFailure::Mismatch::kSize:
      break;
  }
  // A notice of a run that failed (runner.h).
  if ((failure.received_bytes == 0) != (failure.expected_bytes == 0)) {
    return {MPI_ERR_OTHER, peer + " could not go through with it, or it passed a count of 0"};
  }
  const std::string expected = std::to_string(failure.expected_bytes) + " bytes";
  if (failure.received_bytes == failure.expected_bytes) {
    return {MPI_ERR_TRUNCATE, peer + " sent more than the " + expected +
                                  " expected: it passed another count or datatype, or called "
                                  "another collective"};
  }
  return {MPI_ERR_COUNT, peer + " sent " + std::to_string(failure.received_bytes) +
                             " bytes in place of " + expected +
                             ": it passed another count or datatype, or called another collective"};
}

Channel& Channel::MakeFor(Comm& comm) {
  return static_cast<Channel&>(*comm.Extend(std::make_unique<Channel>(comm)));
}

NumberList Channel::NodesOf(const FrontMessenger& messenger) {
  return NumberList::Of(static_cast<size_t>(messenger.size()), [&messenger](size_t peer) {
    return front_end->NodeOf(static_cast<uint32_t>(messenger.WorldRank(static_cast<int>(peer))));
  });
}

Channel::Channel(const Comm& comm)
    : comm_(comm),
      messenger_(comm),
      watch_(comm, messenger_.world_ranks(), messenger_.self()),
      runner_(&messenger_),
      kept_(&runner_, messenger_.self(), NodesOf(messenger_)) {
  const NumberList nodes = NodesOf(messenger_);
  const size_t different = nodes.CountDistinct();
  if (comm.is_inter() || different == nodes.size()) {
    return;
  }
  if (different == 1) {
    boards_ = Boards::kOne;
  } else if (CollectiveTable().NamesBoardsOfNodes()) {
    boards_ = Boards::kInEachNode;
  }
}

Channel::~Channel() {
  board_queue_.reset();
  levels_.reset();
  board_.reset();
  comparisons_.clear();
  kept_.Clear();
}

std::unique_lock<std::mutex> Channel::Lock() {
  std::unique_lock lock(mutex_, std::defer_lock);
  if (Threads::AreAllowed()) {
    lock.lock();
  }
  return lock;
}

// ---- Schedules ----------------------------------------------------------------------------------

Channel::Taken Channel::TakeLocked(const Problem& problem) {
  return kept_.Take(problem, CollectiveTable());
}

Channel::Taken Channel::Take(const Problem& problem) {
  const auto lock = Lock();
  return TakeLocked(problem);
}

void Channel::GiveBack(Taken taken) {
  const auto lock = Lock();
  GiveBackLocked(std::move(taken));
}

collective::Schedule Channel::MakeSchedule(const Problem& problem) const {
  return kept_.MakeSchedule(problem, CollectiveTable());
}

collective::Schedule Channel::MakeScheduleOfQueue(const Problem& problem) const {
  return kept_.MakeSchedule(problem, QueueTable());
}

std::unique_ptr<CollectiveRun> Channel::Prepare(
    std::shared_ptr<const collective::Schedule> schedule) {
  const auto lock = Lock();
  return runner_.Prepare(std::move(schedule));
}

void Channel::GiveBack(std::unique_ptr<CollectiveRun> run) {
  const auto lock = Lock();
  run.reset();
}

// ---- Running ------------------------------------------------------------------------------------

// The number of a start: the one that it has, or the next of those that are not persistent.
uint32_t Channel::NextNumber(uint32_t number) {
  return number != kNoNumber ? number : next_number_++ % kNumbers;
}

uint32_t Channel::TakeNumber() {
  const auto lock = Lock();
  return NextNumber(kNoNumber);
}

// Every call takes a number of its messages, for it may need them once others have taken theirs.
void Channel::StartNonblocking(Started* started, Problem* problem, const Binding& binding) {
  problem->rank = self();
  problem->size = size();
  const auto lock = Lock();
  started->number = entered_nonblocking_;
  started->problem = problem;
  started->binding = binding;
  started->message_number = NextNumber(kNoNumber);
  BoardQueue* const queue = BoardQueueLocked();
  if (queue != nullptr && queue->MayTake(*problem)) {
    started->is_on_board = true;
    queue->Add(started);
  } else {
    if (queue != nullptr) {
      queue->Skip(started->number);
    }
    StartByMessages(started);
  }
  AdvanceLocked();
}

void Channel::StartByMessages(Started* started) {
  started->taken = TakeLocked(*started->problem);
  StartLocked(started->taken.run(), started->binding, started->message_number);
}

void Channel::RenounceNonblocking() {
  if (ComparesCalls()) {
    return;  // it has its number, and there is no board
  }
  const auto lock = Lock();
  (void)NextNumber(kNoNumber);
  if (BoardQueue* const queue = BoardQueueLocked(); queue != nullptr) {
    queue->Renounce(entered_nonblocking_);
    AdvanceLocked();
  }
}

// The one that the call entered last may use. Null: there is none.
BoardQueue* Channel::BoardQueueLocked() {
  if (entered_nonblocking_ >= kBoardCall && boards_ == Boards::kOne && board_queue_ == nullptr) {
    board_queue_ = std::make_unique<BoardQueue>(
        comm_,
        [this](BoardCall* call, BoardResult result) {
          auto* const ended = static_cast<Started*>(call);
          ended->is_on_board = false;
          if (result != BoardResult::kDone) {
            ended->problem->of_devices = result == BoardResult::kElsewhere;
            StartByMessages(ended);
          }
        },
        [this] { return waiting_ != 0; });
  }
  return board_queue_.get();
}

void Channel::StartPersistent(CollectiveRun* run, const Binding& binding, uint32_t number) {
  const auto lock = Lock();
  StartLocked(run, binding, number);
  AdvanceLocked();
}

void Channel::StartUnit(CollectiveRun* run, const Binding& binding, uint32_t number,
                        const RunFailure& before) {
  const auto lock = Lock();
  runner_.Start(run, binding, number, before);
}

uint32_t Channel::NextPersistentNumber() {
  const auto lock = Lock();
  return kFirstPersistent + next_persistent_++ % kPersistentNumbers;
}

// Ranks free their operations at different times, so which numbers are free differs among them:
// none are skipped.
Failure Channel::TakeUnitNumbers(uint32_t count, uint32_t* first) {
  const auto lock = Lock();
  taken_units_.resize(kUnitNumbers);
  *first = std::exchange(next_unit_, (next_unit_ + count) % kUnitNumbers);
  for (uint32_t i = 0; i < count; ++i) {
    if (taken_units_[(*first + i) % kUnitNumbers]) {
      return {MPI_ERR_OTHER, "the communicator has " + std::to_string(kUnitNumbers) +
                                 " numbers for the units of partitioned collectives, and requests "
                                 "that were made long ago still have those whose turn it is: free "
                                 "some, or use several communicators"};
    }
  }
  for (uint32_t i = 0; i < count; ++i) {
    taken_units_[(*first + i) % kUnitNumbers] = true;
  }
  return {};
}

void Channel::GiveBackUnitNumbers(uint32_t first, uint32_t count) {
  const auto lock = Lock();
  for (uint32_t i = 0; i < count; ++i) {
    taken_units_[(first + i) % kUnitNumbers] = false;
  }
}

uint32_t Channel::UnitNumber(uint32_t first, uint32_t unit) {
  return kFirstUnitNumber + (first + unit) % kUnitNumbers;
}

std::shared_ptr<Comparison> Channel::Compare(CallDescription own, uint32_t number, bool persistent,
                                             std::function<void()> go_on) {
  const auto lock = Lock();
  comparisons_.push_back(std::make_shared<Comparison>(
      this, std::move(own), ComparisonNumber(number, persistent), std::move(go_on)));
  std::shared_ptr<Comparison> made = comparisons_.back();
  AdvanceLocked();
  return made;
}

Status Channel::StartProgram(ProgramRun* run) {
  const auto lock = Lock();
  FERRY_RETURN_IF_ERROR(front_end->queues->StartProgram(run->program));
  run->is_under_way = true;
  programs_.push_back(run);
  AdvanceLocked();
  return {};
}

// Returns whether anything has happened.
bool Channel::StepComparisons() {
  bool any = false;
  for (size_t i = 0; i < comparisons_.size(); ++i) {
    any = comparisons_[i]->Step() || any;
  }
  std::erase_if(comparisons_, [](const auto& comparison) { return comparison->is_done(); });
  return any;
}

// Goes on until nothing more happens: an operation that a step has begun may be over at once,
// without a notice.
void Channel::AdvanceLocked() {
  do {
    while (runner_.Advance()) {
    }
  } while ((board_queue_ != nullptr && board_queue_->Step()) ||
           (!comparisons_.empty() && StepComparisons()));
  std::erase_if(programs_, [](ProgramRun* run) {
    run->is_under_way = !front_end->queues->AdvanceProgram(run->program, &run->error);
    return run->is_done();
  });
}

Channel::Progress Channel::AdvanceAll() {
  const auto lock = Lock();
  const auto ended = [this] {
    return runner_.ended_runs() + (board_queue_ != nullptr ? board_queue_->ended() : 0);
  };
  const uint64_t before = ended();
  const size_t programs = programs_.size();
  AdvanceLocked();
  return {.is_busy = IsBusyLocked(),
          .has_ended = ended() != before || programs_.size() != programs};
}

bool Channel::IsBusyLocked() const {
  return runner_.is_busy() || !programs_.empty() || !comparisons_.empty() ||
         (board_queue_ != nullptr && board_queue_->is_busy());
}

// For a single thread, which may hold receives (front_messenger.h).
void Channel::RunPatiently(CollectiveRun* run) {
  struct Waiting {
    Channel* channel;
    CallWatch::Wait wait;
    void Advance() {
      channel->AdvanceLocked();
      channel->watch_.Listen();
    }
    void Look() { wait.Look(); }
    uint64_t end_ns() const { return wait.end_ns(); }
  } waiting{this, CallWatch::Wait(&watch_, watch_.blocking_call())};
  AwaitRun(front_end, &messenger_, runner_, *run, &waiting);
}

void Channel::Renounce() {
  if (levels_ != nullptr) {
    if (!ComparesCalls()) {
      (void)TakeNumber();
    }
    levels_->Renounce(entered_);
  } else if (board_ != nullptr) {
    board_->board().Renounce(entered_);
  } else if (!ComparesCalls()) {
    (void)TakeNumber();  // as the others do, who may go on
  }
}

void Channel::AwaitCall(const CallWatch::Call& call, bool (*done)(void*), void* argument) {
  struct Waiting {
    CallWatch* watch;
    bool (*done)(void*);
    void* argument;
  } waiting{&watch_, done, argument};
  CallWatch::Wait wait(&watch_, call);
  while (!done(argument) && front_end->poison() == ErrorCode::kOk) {
    front_end->peers->WaitFor(
        [](void* self) {
          const auto& [watch, is_done, its_argument] = *static_cast<Waiting*>(self);
          watch->Listen();
          return is_done(its_argument);
        },
        &waiting, client::kAny, wait.end_ns());
    wait.Look();
  }
}

void Channel::MakeBoard() {
  const NumberList nodes = NodesOf(messenger_);
  std::vector<int> near;  // those of this rank's node
  for (int peer = 0; peer < size(); ++peer) {
    if (nodes[static_cast<size_t>(peer)] == nodes[static_cast<size_t>(self())]) {
      near.push_back(peer);
    }
  }
  if (near.size() > 1) {
    board_ = NodeBoard::SetUp(comm_, near, &watch_);
  }
  if (boards_ == Boards::kInEachNode) {
    levels_ = std::make_unique<TwoLevels>(
        nodes, self(), board_ != nullptr ? &board_->board() : nullptr,
        board_ != nullptr ? board_->limits() : collective::BoardLimits(), &messenger_);
  }
}

// False: it is to go by messages.
bool Channel::RunOnBoard(Problem* problem, const Binding& binding, RunFailure* failure) {
  if (CollectiveTable().LeavesToBoard(*problem)) {
    const BoardResult result = board_->Run(entered_, *problem, binding, failure);
    if (result == BoardResult::kDone) {
      return true;
    }
    problem->of_devices = result == BoardResult::kElsewhere;
  }
  board_->board().Skip(entered_);
  return false;
}

class Channel::Parts : public collective::PartsByMessages {
 public:
  Parts(Channel* channel, uint32_t number) : channel_(*channel), number_(number) {}
  RunFailure Run(const Problem& part, const Binding& binding, const RunFailure& before) override {
    return channel_.RunByMessages(part, binding, number_, before);
  }

 private:
  Channel& channel_;
  const uint32_t number_;
};

void Channel::Run(Problem* problem, const Binding& binding, RunFailure* failure, uint32_t number) {
  problem->rank = self();
  problem->size = size();
  if (levels_ != nullptr && levels_->Takes(*problem, CollectiveTable())) {
    Parts parts(this, number != kNoNumber ? number : TakeNumber());
    *failure = levels_->Run(entered_, *problem, binding, &parts);
  } else if (levels_ != nullptr || board_ == nullptr || !RunOnBoard(problem, binding, failure)) {
    if (levels_ != nullptr) {
      levels_->Skip(entered_);
    }
    const bool has_failed =
        binding.on_device != nullptr && binding.on_device->Fetch() != ErrorCode::kOk;
    *failure = RunByMessages(*problem, binding, number,
                             {.code = has_failed ? ErrorCode::kCancelled : ErrorCode::kOk});
  }
  BlameEndedRank(failure);
}

// A rank that has given up, or told others so, may have done so because of one that has died.
void Channel::BlameEndedRank(RunFailure* failure) const {
  if (failure->code != ErrorCode::kCancelled && failure->code != ErrorCode::kTruncated) {
    return;
  }
  ErrorCode how = ErrorCode::kOk;
  if (const int dead = FindEnded(&how); dead >= 0) {
    *failure = {.code = how, .peer = dead};
  }
}

int Channel::FindEnded(ErrorCode* how) const {
  int left = -1;
  for (int peer = 0; peer < size(); ++peer) {
    *how = front_end->peers->PeerState(static_cast<uint32_t>(WorldRank(peer)));
    if (peer == self() || *how == ErrorCode::kOk || *how == front_end->poison()) {
      continue;
    }
    if (*how != ErrorCode::kNotFound) {
      return peer;
    }
    left = peer;
  }
  *how = ErrorCode::kNotFound;
  return left;
}

void Channel::GiveUp(collective::CollectiveRun* run) {
  const auto lock = Lock();
  GiveUpLocked(run);
}

void Channel::GiveUpLocked(collective::CollectiveRun* run) {
  do {
    runner_.CancelMessagesOf(run);
  } while (!run->is_done() && runner_.Advance());
}

void Channel::Abandon() {
  const auto lock = Lock();
  board_queue_.reset();
  for (int phase = 0; phase < Comparison::kPhases && !comparisons_.empty(); ++phase) {
    for (const std::shared_ptr<Comparison>& comparison : comparisons_) {
      GiveUpLocked(comparison->run());
    }
    (void)StepComparisons();
  }
}

RunFailure Channel::RunByMessages(const Problem& problem, const Binding& binding, uint32_t number,
                                  const RunFailure& before) {
  const bool is_patient = !Threads::AreAllowed();
  Taken taken;
  {
    const auto lock = Lock();
    taken = TakeLocked(problem);
    messenger_.SetPatient(is_patient);
    runner_.Start(taken.run(), binding, NextNumber(number), before);
  }
  if (is_patient) {
    RunPatiently(taken.run());
  } else {
    Await(*taken.run());
  }
  const auto lock = Lock();
  messenger_.SetPatient(false);
  AdvanceLocked();  // poisoned, the link gives up: so do all messages, at once
  const RunFailure failure = taken.run()->failure();
  if (taken.run()->is_done()) [[likely]] {
    GiveBackLocked(std::move(taken));
  } else {
    taken.Abandon();
  }
  return failure;
}

}  // namespace ferry::mpi
