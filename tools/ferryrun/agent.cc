#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "common/rank_exits.h"
#include "common/rank_table.h"
#include "config/environment.h"
#include "tools/ferryrun/agent_protocol.h"
#include "tools/ferryrun/binding.h"
#include "tools/ferryrun/daemons.h"
#include "tools/ferryrun/deadlock_watch.h"
#include "tools/ferryrun/hosts.h"
#include "tools/ferryrun/job.h"
#include "tools/ferryrun/launch.h"
#include "tools/ferryrun/output.h"
#include "tools/ferryrun/rank_lives.h"
#include "tools/ferryrun/rank_process.h"
#include "tools/ferryrun/rank_servers.h"
#include "tools/ferryrun/signals.h"
#include "tools/ferryrun/slots.h"
#include "tools/ferryrun/why_question.h"

namespace ferry::tools {
namespace {

constexpr size_t kBlockBytes = 1 << 14;
constexpr int kDrainBlocks = 64;      // more than a pipe holds
constexpr int kFlushLimitMs = 5000;   // for last words to a ferryrun that does not listen
constexpr int kRoomLimitMs = 60'000;  // for an answer to one that listens slowly

class Agent {
 public:
  Agent(SignalSource signals, Slots slots)
      : signals_(std::move(signals)), slots_(std::move(slots)), out_(STDOUT_FILENO) {}

  int Run() {
    fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK);
    *out_.text() += Greeting();
    while (!over_) {
      Poll();
    }
    Finish();
    return 0;
  }

 private:
  struct LocalRank {
    uint32_t number;
    RankProcess process;
    std::string input = {};  // on its way
    bool input_ends = false;
    bool ended = false;
  };

  void Poll();
  void ReadWords();
  void ReadRank(LocalRank* rank, UniqueFd* fd, char stream);
  void FeedRank(LocalRank* rank);
  void OnSignals();
  void OnSlots();
  void OnDaemonEnd();
  void PassNoticesOn();
  void PassWordsOn();
  Status Exchange(const Frame& frame);
  void AskAbsent(const Frame& frame);
  void AskProfile(const Frame& frame);
  bool MakeRoom();
  void AskWhy(const std::string& job_id);
  void AnswerWhy();
  void Handle(const Frame& frame);
  Status Dispatch(const Frame& frame);
  Status SetUp(const Frame& frame);
  Status Serve(const Frame& frame);
  Status LearnJob(const Frame& frame);
  Status CreateJob(const Frame& frame);
  Status StartOne(const Frame& frame);
  void Finish();
  void Say(FrameKind kind, uint32_t rank, std::string_view payload) {
    AppendFrame(kind, rank, payload, out_.text());
  }

  SignalSource signals_;
  Slots slots_;
  FrameReader reader_{/*greeting=*/false};
  OutputSink out_;
  AgentSetUp set_up_;
  config::Options options_;
  std::string address_;
  PrivateDaemons private_;
  std::optional<ServingDaemon> daemon_;
  std::optional<AgentJob> all_of_job_;
  std::optional<CreatedJob> job_;
  std::unique_ptr<DeadlockWatch> deadlocks_;  // null: it looks for none
  std::string name_space_;
  std::optional<RankServers> servers_;  // of that job
  BoundRanks bound_;                    // in the order in which they start
  std::vector<LocalRank> ranks_;
  WhyQuestion why_;
  uint64_t why_deadline_ns_ = 0;    // when to answer with what there is; 0: never
  std::optional<RankExits> exits_;  // of the ranks, as ferryrun counts them
  bool over_ = false;               // end everything
  bool asked_ = false;              // because of kStop
};

void Agent::Poll() {
  std::vector<pollfd> fds = {{STDIN_FILENO, POLLIN, 0},
                             {signals_.fd(), POLLIN, 0},
                             {out_.empty() ? -1 : out_.fd(), POLLOUT, 0},
                             {slots_.notice_fd(), POLLIN, 0},
                             {slots_.fd(), POLLIN, 0},
                             {servers_ ? servers_->fd() : -1, POLLIN, 0},
                             {deadlocks_ ? deadlocks_->fd() : -1, POLLIN, 0}};
  const size_t first_rank = fds.size();
  for (const LocalRank& rank : ranks_) {
    const bool full = out_.IsFull();
    fds.push_back({full ? -1 : rank.process.out.get(), POLLIN, 0});
    fds.push_back({full ? -1 : rank.process.err.get(), POLLIN, 0});
    fds.push_back({rank.input.empty() ? -1 : rank.process.in.get(), POLLOUT, 0});
  }
  const size_t first_answer = fds.size();
  why_.AppendInterests(&fds);
  const uint64_t now_ns = MonotonicNs();
  const uint64_t rest_ns = why_deadline_ns_ - std::min(why_deadline_ns_, now_ns);
  const int ready = poll(fds.data(), fds.size(),
                         why_deadline_ns_ == 0 ? -1 : static_cast<int>(rest_ns / 1'000'000 + 1));
  if (ready >= 0) {
    why_.OnReady(fds.data() + first_answer);
    AnswerWhy();
  }
  if (ready <= 0) {
    return;
  }
  PassNoticesOn();
  if (fds[5].revents != 0) {
    servers_->Serve();
    PassWordsOn();
  }
  if (fds[6].revents != 0) {
    for (const std::string& sentence : deadlocks_->Take()) {
      Say(FrameKind::kDeadlock, 0, sentence);
    }
  }
  for (size_t i = 0; i < ranks_.size(); ++i) {
    const pollfd* own = &fds[first_rank + 3 * i];
    if (own[0].revents != 0) {
      ReadRank(&ranks_[i], &ranks_[i].process.out, 1);
    }
    if (own[1].revents != 0) {
      ReadRank(&ranks_[i], &ranks_[i].process.err, 2);
    }
    if (own[2].revents != 0) {
      FeedRank(&ranks_[i]);
    }
  }
  if (fds[4].revents != 0) {
    OnSlots();
  }
  if (fds[1].revents != 0) {
    OnSignals();
  }
  if (fds[0].revents != 0) {
    ReadWords();
  }
  over_ |= out_.Flush() != 0;
}

void Agent::ReadWords() {
  char bytes[kBlockBytes];
  const ssize_t size = read(STDIN_FILENO, bytes, sizeof(bytes));
  if (size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR)) {
    over_ = true;  // the ferryrun that gave orders is gone
    return;
  }
  if (size > 0) {
    reader_.Feed({bytes, static_cast<size_t>(size)});
  }
  while (!over_) {
    const StatusOr<std::optional<Frame>> frame = reader_.Next();
    over_ |= !frame.ok();
    if (over_ || !frame->has_value()) {
      return;
    }
    Handle(**frame);
  }
}

void Agent::ReadRank(LocalRank* rank, UniqueFd* fd, char stream) {
  char bytes[1 + kBlockBytes];
  bytes[0] = stream;
  const ssize_t size = read(fd->get(), bytes + 1, kBlockBytes);
  if (size > 0) {
    Say(FrameKind::kOutput, rank->number, {bytes, 1 + static_cast<size_t>(size)});
  } else if (size == 0 || (errno != EINTR && errno != EAGAIN)) {
    fd->Reset();
  }
}

void Agent::FeedRank(LocalRank* rank) {
  if (!rank->input.empty()) {
    const ssize_t size = write(rank->process.in.get(), rank->input.data(), rank->input.size());
    // Input that cannot be written counts as taken: the rank has closed its input.
    const bool closed = size < 0 && errno != EINTR && errno != EAGAIN;
    const size_t taken =
        closed ? rank->input.size() : static_cast<size_t>(std::max<ssize_t>(size, 0));
    rank->input.erase(0, taken);
    rank->input_ends |= closed;
    Say(FrameKind::kTaken, rank->number, NumberPayload(static_cast<int32_t>(taken)));
  }
  if (rank->input.empty() && rank->input_ends) {
    rank->process.in.Reset();
  }
}

void Agent::OnSignals() {
  while (const std::optional<int> signal = signals_.Next()) {
    if (*signal == SIGCHLD) {
      OnDaemonEnd();
    } else {
      over_ |= IsEnding(*signal);
    }
  }
}

void Agent::OnSlots() {
  slots_.Receive();
  for (LocalRank& rank : ranks_) {
    const std::optional<ProcessEnd> end = slots_.EndOf(rank.process.pid);
    if (!rank.ended && end) {
      rank.ended = true;
      PassNoticesOn();  // its own have come before its end
      Say(FrameKind::kEnded, rank.number, EndPayload(*end));
    }
  }
  over_ |= slots_.lost();  // the guard was killed, and with it the ranks
}

void Agent::OnDaemonEnd() {
  for (PrivateDaemon& daemon : private_.processes()) {
    ProcessEnd end;
    if (!daemon.end_was_reported() && HasEnded(daemon.pid(), &end)) {
      daemon.MarkEndReported();
      Say(FrameKind::kDaemonEnded, 0,
          daemon.Name() + " " + Describe(end) + " while the job ran" + daemon.LastWords());
    }
  }
}

void Agent::PassNoticesOn() {
  while (const std::optional<RankNotice> notice = slots_.NextNotice()) {
    if (job_ && IsOfLostDaemon(*notice)) {
      job_->GiveUp();
    }
    Say(FrameKind::kNotice, notice->rank, NoticePayload(*notice));
  }
}

// Of ranks that do not use Ferry.
void Agent::PassWordsOn() {
  for (const ExchangeMessage& message : servers_->TakeWords()) {
    Say(FrameKind::kExchange, message.rank, ToText(message));
  }
}

Status Agent::Exchange(const Frame& frame) {
  const StatusOr<ExchangeMessage> message = ReadExchange(frame.payload);
  FERRY_RETURN_IF_ERROR(message.status());
  if (servers_) {
    servers_->Take(*message);
    PassWordsOn();
  }
  return {};
}

void Agent::AskAbsent(const Frame& frame) {
  const auto program = static_cast<uint32_t>(ReadNumber(frame));
  const std::string how = frame.payload.substr(std::min(sizeof(program), frame.payload.size()));
  const StatusOr<bool> absent =
      job_ ? job_->TellRankEnded(frame.rank, how, program) : StatusOr<bool>(false);
  if (absent.ok() && *absent) {
    Say(FrameKind::kAbsent, frame.rank, "");
  }
}

// Blocks for as long as daemon and ferryrun take: the ranks have ended, or have not begun.
void Agent::AskProfile(const Frame& frame) {
  control::JobProfileRequest request;
  Status status(ErrorCode::kCorrupt, "a question that cannot be read, or before there is a daemon");
  if (daemon_ && request.ParseFromString(frame.payload)) {
    status = daemon_->client.Read(&LauncherClient::Stub::JobProfile, request,
                                  [&](const control::JobProfilePart& part) {
                                    Say(FrameKind::kProfile, frame.rank, part.SerializeAsString());
                                    return MakeRoom();
                                  });
  }
  Say(FrameKind::kProfileEnd, frame.rank, status.ok() ? "" : FailedPayload(status));
}

// Writes to ferryrun until little is left. False: it is gone, or takes nothing.
bool Agent::MakeRoom() {
  over_ |= out_.Flush() != 0;
  while (!over_ && out_.IsFull()) {
    pollfd room = {out_.fd(), POLLOUT, 0};
    const int ready = poll(&room, 1, kRoomLimitMs);
    over_ |= ready == 0 || (ready < 0 && errno != EINTR) || out_.Flush() != 0;
  }
  return !over_;
}

void Agent::AskWhy(const std::string& job_id) {
  (void)why_.Take();
  if (daemon_) {
    why_.Ask({daemon_->run_directory}, job_id);
  }
  why_deadline_ns_ = MonotonicNs() + WhyQuestion::kLimitNs;
}

void Agent::AnswerWhy() {
  if (why_deadline_ns_ != 0 && (!why_.IsOpen() || MonotonicNs() >= why_deadline_ns_)) {
    why_deadline_ns_ = 0;
    Say(FrameKind::kWhy, 0, why_.Take());
  }
}

void Agent::Handle(const Frame& frame) {
  if (const Status status = Dispatch(frame); !status.ok()) {
    Say(FrameKind::kFailed, frame.rank, FailedPayload(status));
  }
}

Status Agent::Dispatch(const Frame& frame) {
  switch (frame.kind) {
    case FrameKind::kSetUp:
      return SetUp(frame);
    case FrameKind::kServe:
      return Serve(frame);
    case FrameKind::kJob:
      return LearnJob(frame);
    case FrameKind::kCreateJob:
      return CreateJob(frame);
    case FrameKind::kStartRank:
      return StartOne(frame);
    case FrameKind::kSignal:
      slots_.Signal(ReadNumber(frame));
      return {};
    case FrameKind::kInput:
      for (LocalRank& rank : ranks_) {
        if (rank.number == frame.rank && rank.process.in.valid()) {
          rank.input += frame.payload;
          rank.input_ends |= frame.payload.empty();
          FeedRank(&rank);
        }
      }
      return {};
    case FrameKind::kAskWhy:
      AskWhy(frame.payload);
      AnswerWhy();
      return {};
    case FrameKind::kAskProfile:
      AskProfile(frame);
      return {};
    case FrameKind::kWindow:
      for (const LocalRank& rank : ranks_) {
        Resize(rank.process.out.get(), ReadWindow(frame));
      }
      return {};
    case FrameKind::kAskAbsent:
      AskAbsent(frame);
      return {};
    case FrameKind::kExchange:
      return Exchange(frame);
    case FrameKind::kStop:
      exits_ = ReadRankExits(frame.payload);
      over_ = asked_ = true;
      return {};
    default:
      return {ErrorCode::kCorrupt, "no agent is asked for that"};
  }
}

Status Agent::SetUp(const Frame& frame) {
  StatusOr<AgentSetUp> message = ReadSetUp(frame.payload);
  FERRY_RETURN_IF_ERROR(message.status());
  set_up_ = std::move(*message);
  std::vector<const char*> entries;
  for (const std::string& option : set_up_.options) {
    entries.push_back(option.c_str());
  }
  entries.push_back(nullptr);
  // This host's settings, then the user's.
  FERRY_RETURN_IF_ERROR(config::ApplyEnvironment(config::ProcessEnvironment(), &options_));
  FERRY_RETURN_IF_ERROR(config::ApplyEnvironment(entries.data(), &options_));
  FERRY_RETURN_IF_ERROR(config::FinishOptions(config::ProcessEnvironment(), &options_));
  AgentFound found;
  if (set_up_.needs_address) {
    StatusOr<std::string> address = AddressOfThisHost(set_up_.host, set_up_.network);
    FERRY_RETURN_IF_ERROR(address.status());
    found.address = address_ = *address;
  }
  if (!set_up_.private_daemon) {
    StatusOr<std::optional<ServingDaemon>> running =
        FindRunningDaemon(options_, set_up_.names_run_directory);
    FERRY_RETURN_IF_ERROR(running.status());
    daemon_ = std::move(*running);
    found.control_address = daemon_ ? daemon_->control_address : "";
  }
  Say(FrameKind::kFound, 0, ToText(found));
  return {};
}

Status Agent::Serve(const Frame& frame) {
  const StatusOr<AgentServe> message = ReadServe(frame.payload);
  FERRY_RETURN_IF_ERROR(message.status());
  StatusOr<BoundRanks> bound = BoundRanks::Bind(message->binding, /*daemons=*/0);
  FERRY_RETURN_IF_ERROR(bound.status());
  bound_ = std::move(*bound);
  name_space_ = message->name_space;
  std::vector<std::string> bindings;
  const size_t told = message->tells_bindings ? message->binding.threads.size() : 0;
  for (size_t rank = 0; rank < told; ++rank) {
    bindings.push_back(bound_.Text(rank));
  }
  if (message->private_daemon) {
    daemon_.reset();
    PrivatePlan plan{.program = set_up_.ferryd,
                     .first_node = message->node,
                     .address = address_,
                     .life_fd = STDIN_FILENO};
    if (!message->authority.empty()) {
      plan.authority = {message->authority, message->authority_key};
    }
    FERRY_RETURN_IF_ERROR(private_.Start(plan, options_, &signals_));
    StatusOr<std::vector<ServingDaemon>> serving = private_.Connect();
    FERRY_RETURN_IF_ERROR(serving.status());
    daemon_ = std::move(serving->front());
  }
  Say(FrameKind::kServing, 0,
      ToText(AgentServing{daemon_->run_directory, daemon_->control_address, std::move(bindings)}));
  return {};
}

Status Agent::LearnJob(const Frame& frame) {
  StatusOr<AgentJob> message = ReadJob(frame.payload);
  FERRY_RETURN_IF_ERROR(message.status());
  all_of_job_ = std::move(*message);
  return {};
}

Status Agent::CreateJob(const Frame& frame) {
  control::CreateJobRequest request;
  if (!all_of_job_ || !request.ParseFromString(all_of_job_->request) || !daemon_) {
    return {ErrorCode::kCorrupt, "a job that cannot be read, or before there is a daemon"};
  }
  const std::vector<uint32_t>& nodes = all_of_job_->node_of_rank;
  request.set_packed_nodes(PackNodes(nodes));
  request.set_node(static_cast<uint32_t>(ReadNumber(frame)));
  StatusOr<CreatedJob> job = CreatedJob::Create(daemon_->client, request);
  FERRY_RETURN_IF_ERROR(job.status());
  job_.emplace(std::move(*job));
  deadlocks_ = DeadlockWatch::Start({&*daemon_, 1}, request.job_id(), set_up_.deadlock_check_s);
  servers_.emplace(ServedJobOf(request, nodes, name_space_, {request.node()}));
  Say(FrameKind::kCreated, 0, "");
  return {};
}

Status Agent::StartOne(const Frame& frame) {
  StatusOr<AgentRank> message = tools::ReadRank(frame.payload);
  FERRY_RETURN_IF_ERROR(message.status());
  if (!servers_ || message->part >= all_of_job_->parts.size() ||
      all_of_job_->parts[message->part].program.empty()) {
    return {ErrorCode::kCorrupt, "a rank without a program, or before there is a job"};
  }
  const AgentJob::Part& part = all_of_job_->parts[message->part];
  RankCommand command{
      .rank = frame.rank, .program = part.program, .environment = EnvironmentForRanks()};
  SetVariables(part.variables, &command.environment);
  SetVariables(message->variables, &command.environment);
  struct stat there {};
  if (part.must || stat(part.directory.c_str(), &there) == 0) {
    command.directory = part.directory;
  }
  command.cpus = bound_.CpusOf(ranks_.size());
  command.terminal = all_of_job_->terminal;
  command.is_held = message->is_held;
  StatusOr<RankProcess> process = StartRank(command, &slots_, &*servers_);
  FERRY_RETURN_IF_ERROR(process.status());
  fcntl(process->in.get(), F_SETFL, O_NONBLOCK);
  Say(FrameKind::kStarted, frame.rank, NumberPayload(process->pid));
  LocalRank rank{.number = frame.rank, .process = std::move(*process)};
  if (frame.rank != 0) {
    rank.process.in.Reset();  // only rank 0 has an input
  }
  ranks_.push_back(std::move(rank));
  OnSlots();  // it may have ended already, and that been said
  return {};
}

// Leaves nothing behind, and says the last words.
void Agent::Finish() {
  slots_.Finish();
  if (slots_.lost()) {
    std::vector<pid_t> spared;
    for (const PrivateDaemon& daemon : private_.processes()) {
      spared.push_back(daemon.pid());
    }
    slots_.EndAll(spared);
  }
  for (LocalRank& rank : ranks_) {
    for (auto [fd, stream] :
         {std::pair{&rank.process.out, char{1}}, {&rank.process.err, char{2}}}) {
      for (int block = 0; asked_ && block < kDrainBlocks && fd->valid(); ++block) {
        ReadRank(&rank, fd, stream);
      }
    }
  }
  if (job_ && exits_) {
    job_->NoteExits(*exits_);
  }
  if (job_ && !private_.processes().empty() && options_.job_records.empty()) {
    job_->GiveUp();  // it ends with its daemon
  }
  deadlocks_.reset();
  job_.reset();
  daemon_.reset();  // a gRPC server waits for idle clients to hang up
  std::string complaints;
  for (const std::string& complaint : private_.Stop(set_up_.grace_ms)) {
    complaints += (complaints.empty() ? "" : "\n") + complaint;
  }
  Say(FrameKind::kStopped, 0, complaints);
  while (asked_ && !out_.empty() && out_.Flush() == 0) {
    pollfd room = {out_.fd(), POLLOUT, 0};
    if (poll(&room, 1, kFlushLimitMs) <= 0) {
      return;
    }
  }
}

}  // namespace

int RunAgent() {
  StatusOr<SignalSource> signals = SignalSource::Create();
  if (!signals.ok()) {
    return 1;
  }
  StatusOr<Slots> slots = Slots::Create();
  if (!slots.ok()) {
    std::fprintf(stderr, "ferryrun: %s\n", slots.status().message().c_str());
    return 1;
  }
  return Agent(std::move(*signals), std::move(*slots)).Run();
}

}  // namespace ferry::tools
