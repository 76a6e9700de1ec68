#include "internode/core/progress_core.h"

#include <algorithm>
#include <cassert>
#include <semaphore>
#include <utility>

#include "shm/atomic.h"
#include "shm/fault.h"
#include "shm/fence.h"

namespace ferry::progress {
namespace {

constexpr int kPollBudget = 64;
constexpr uint32_t kCommandBudget = 32;  // of one rank in one turn
// Time between looks for changes that are not announced: a rank making room, a stream that failed.
constexpr uint64_t kRetryNs = 1'000'000;
constexpr uint64_t kChecksPerTimeout = 8;
constexpr uint64_t kStaleNs = 20'000;  // what was seen of the network longer ago

// Each job gets its own when it needs some; a daemon that could give none should say so now.
Status TryStaging(const CoreOptions& options, transport::Transport& transport) {
  std::counting_semaphore<> rung{0};
  Registrar registrar(transport, [&rung] { rung.release(); });
  const StagingShape shape{options.staging_block_bytes, options.staging_blocks,
                           options.staging_least_blocks};
  const auto staging = StagingPool::Create(registrar, shape, options.staging.settle);
  FERRY_RETURN_IF_ERROR(staging.status());
  for (registrar.Collect(); registrar.pending() != 0; registrar.Collect()) {
    rung.acquire();
  }
  return (*staging)->failure();
}

}  // namespace

StatusOr<std::unique_ptr<ProgressCore>> ProgressCore::Create(const CoreOptions& options,
                                                             CoreParts parts, CoreHooks hooks,
                                                             std::function<void()> ring) {
  const uint64_t longest = sizeof(PacketHeader) + sizeof(WireOneSided) + shm::kCellBytes;
  const uint64_t most = parts.transport->capabilities().max_message_bytes;
  if (most < longest) {
    return Status(ErrorCode::kInvalidArgument,
                  "the transport carries messages of " + std::to_string(most) +
                      " bytes, the data plane needs " + std::to_string(longest) +
                      ": raise TransportOptions::receive_buffer_bytes");
  }
  if (options.staging_blocks != 0) {
    FERRY_RETURN_IF_ERROR(TryStaging(options, *parts.transport));
  }
  return std::unique_ptr<ProgressCore>(
      new ProgressCore(options, std::move(parts), std::move(hooks), std::move(ring)));
}

ProgressCore::ProgressCore(const CoreOptions& options, CoreParts parts, CoreHooks hooks,
                           std::function<void()> ring)
    : state_(options, std::move(parts), std::move(hooks), std::move(ring)),
      ends_(state_),
      commands_(state_.outbound, state_.rndv_gets, state_.staged_sends, state_.registrations,
                state_.private_memory, state_.pushes, state_.rtrs, state_.rndv_puts,
                state_.one_sided, state_.hooks),
      arrivals_(
          state_.directory, state_.outbound, state_.rndv_gets, state_.staged_sends, state_.rtrs,
          state_.rndv_puts, state_.one_sided, state_.extension.get(),
          {.on_ended =
               [this](Job& job, uint32_t rank, ErrorCode error) {
                 if (error == ErrorCode::kNotFound) {
                   ends_.EndWork(job, rank, error);
                 } else {
                   ends_.RankDied(job, rank, error);
                 }
               },
           .on_parted = [this](ServedRank& rank, uint32_t peer) { ends_.TryJoin(rank, peer); },
           .on_returned = [this](Job& job, uint32_t node) { ends_.ReturnNode(job, node); }}),
      control_(state_, ends_, arrivals_, *this) {
  state_.landings.on_carried = [this](ServedRank& rank, uint32_t source, Delivery::Result result) {
    if (const auto trouble = arrivals_.Judge(rank, source, result)) {
      ends_.OnTrouble(*trouble);
    }
  };
  if (state_.options.nodes_are_ranks) {
    arrivals_.BelieveRanksOnly();
  }
}

ProgressCore::~ProgressCore() {
  // Streams let go of staging memory before that goes; jobs would keep them longer.
  for (const auto& [id, job] : state_.directory.jobs()) {
    job->device_stage.copier.reset();
  }
}

// ---- A turn ------------------------------------------------------------------------------------

// A turn sends what ranks say before it looks at the network, and tells ranks what came from there
// before it ends: a message waits for no system call that is not its own. After a while without
// turns the network comes first: a connection that broke meanwhile would take messages, and lose
// them.
uint32_t ProgressCore::Turn(uint64_t now_ns) {
  state_.now_ns = now_ns;
  received_ = false;
  uint32_t done = now_ns - polled_ns_ > kStaleNs ? PollTransport() : 0;
  for (const auto& rank : state_.directory.served()) {
    done += TakeCommands(*rank);
  }
  if (state_.extension != nullptr) {
    done += state_.extension->AdvanceBeforePoll(now_ns);
  }
  state_.outbound.Flush(now_ns);
  done += PollTransport();
  state_.one_sided.memory().RetryHeld(now_ns);
  state_.one_sided.memory().Report(now_ns);
  if (state_.extension != nullptr) {
    done += state_.extension->AdvanceAfterPoll(now_ns);
  }
  done += state_.registrar.Collect();
  for (const auto& copier : {state_.copies.get(), state_.device_copies.get()}) {
    done += copier == nullptr ? 0 : copier->Collect(*this);
  }
  for (const auto& [id, job] : state_.directory.jobs()) {
    if (job->private_stage.copier != state_.copies) {
      done += job->private_stage.copier->Collect(*this);
    }
  }
  state_.outbound.Flush(now_ns);
  state_.rndv_gets.Advance(now_ns);
  state_.staged_sends.Advance(now_ns);
  state_.rndv_puts.Advance(now_ns);
  state_.rtrs.Advance();
  state_.one_sided.memory().Advance(now_ns);
  state_.depot.Advance();
  state_.registrations.Advance(now_ns);
  state_.registrar.Advance(now_ns);
  for (const auto& rank : state_.directory.served()) {
    done += TellNews(*rank);
  }
  ends_.ReportLinksDown();
  if (now_ns >= ends_.next_leaves_ns()) {
    ends_.AnnounceLeaves();
  }
  if (now_ns >= next_check_ns_) {
    CheckDeadlines();
  }
  state_.outbound.Flush(now_ns);  // what these had to say
  state_.transport->Flush(now_ns);
  if (state_.tracer.on()) {
    state_.tracer.Count(state_.Counters());
  }
  return done;
}

uint32_t ProgressCore::PollTransport() {
  polled_ns_ = state_.now_ns;
  return static_cast<uint32_t>(state_.transport->Poll(*this, kPollBudget, state_.now_ns));
}

uint32_t ProgressCore::TakeCommands(ServedRank& rank) {
  if (rank.ended) {
    return 0;
  }
  if (rank.delivery.has_landed() && rank.commands.Peek() != nullptr) {
    state_.ReportLanded(rank);  // in one frame with what the rank says
  }
  uint32_t done = TakeActivity(rank);
  if (done != 0 && rank.core_wake.poison() != ErrorCode::kOk) {
    ends_.EndRank(rank, ErrorCode::kCorrupt,
                  shm::Describe(shm::ReadFault(rank.session->layout()->fault)));
    return done;
  }
  if (done != 0 && state_.extension != nullptr) {
    done += state_.extension->Look(rank, state_.now_ns);
  }
  takes_commands_ = true;
  const RankCommands::Outcome outcome = commands_.Drain(rank, kCommandBudget, state_.now_ns);
  takes_commands_ = false;
  done += outcome.handled;
  if (outcome.violation) {
    ends_.EndRank(rank, ErrorCode::kCorrupt, *outcome.violation);
    return done + 1;
  }
  if (outcome.verdict) {
    ends_.Execute(rank, *outcome.verdict);
  }
  if (outcome.made_room) {
    rank.delivery.wake().Publish();
    if (rank.delivery.wake().MustAttend()) {
      rank.Attend();
    }
  }
  return done;
}

uint32_t ProgressCore::TellNews(ServedRank& rank) {
  if (rank.ended) {
    state_.ReportLanded(rank);
    return 0;
  }
  if (!rank.delivery.empty() && rank.delivery.Flush() == Delivery::Result::kQuota) {
    ends_.EndRank(rank, ErrorCode::kLimitExceeded, "too many unexpected messages");
    return 1;
  }
  if (rank.delivery.flooded()) {
    ends_.EndRank(rank, ErrorCode::kCorrupt,
                  "it asks for more than it has requests, and does not read the answers");
    return 1;
  }
  if (rank.delivery.MustReport(received_)) {
    state_.ReportLanded(rank);
  }
  if (rank.delivery.TakeChange()) {
    rank.delivery.wake().PublishChange();
  }
  if (rank.delivery.has_news() && rank.delivery.Announce()) {
    rank.Attend();
  }
  return 0;
}

// The bit of a rank of the node asks for the worker; the core's own bit only woke us.
uint32_t ProgressCore::TakeActivity(ServedRank& rank) {
  const Job& job = *rank.job;
  const auto lanes = static_cast<uint32_t>(job.rank_of_local.size());
  uint32_t taken = 0;
  for (uint32_t word = 0; word <= rank.seat.lane / 64; ++word) {
    for (uint64_t bits = rank.core_wake.TakeActivity(word); bits != 0; bits &= bits - 1) {
      const uint32_t lane = word * 64 + static_cast<uint32_t>(__builtin_ctzll(bits));
      ServedRank* target = lane < lanes ? job.served[job.rank_of_local[lane]] : nullptr;
      if (target != nullptr) {
        target->Attend();
      }
      ++taken;
    }
  }
  return taken;
}

void ProgressCore::OnReceive(transport::PeerId /*sender*/, std::span<const std::byte> message) {
  received_ = true;
  arrivals_.OnFrame(message, state_.now_ns,
                    [this](const Arrivals::Trouble& t) { ends_.OnTrouble(t); });
}

// A rank may match a pushed message before its data has come, which then goes to its place at once.
transport::Landing ProgressCore::OnHead(transport::PeerId /*sender*/,
                                        std::span<const std::byte> header,
                                        uint64_t attachment_bytes) {
  assert(!takes_commands_);  // a turn takes commands, then polls
  const std::optional<Arrivals::Head> head = arrivals_.FindHead(header, attachment_bytes);
  if (!head) {
    return {};
  }
  OnReceive(transport::kUnknownPeer, head->before);
  ServedRank& rank = *head->rank;
  if (rank.ended) {
    return Landings::Nowhere();
  }
  IncomingId id{};
  if (const auto trouble = arrivals_.OnHead(*head, &id)) {
    ends_.OnTrouble(*trouble);
    return Landings::Nowhere();
  }
  if (!head->is_pushed) {
    return state_.landings.BeginCarried(*head->link, rank, head->rts);
  }
  if (state_.home != nullptr) {
    rank.delivery.ShowLane();
    state_.home->LetMatch(rank);
    TakeCommands(rank);
  }
  bool over_quota = false;
  const transport::Landing landing =
      state_.landings.Begin(*head->link, rank, id, state_.now_ns, &over_quota);
  if (over_quota) {
    ends_.EndRank(rank, ErrorCode::kLimitExceeded, "too many unexpected messages");
  }
  return landing;
}

void ProgressCore::OnLanded(uint64_t context, ErrorCode code) {
  received_ = true;
  state_.landings.OnLanded(context, Judged(code), state_.now_ns);
}

// Messages that the connection has lost stay lost: messages have no numbers. Daemons ignore the end
// of a connection that had nothing to lose: each watches the other one's life by itself, and the
// next message connects anew. A rank has no other way to hear that its peer has given up their
// link.
void ProgressCore::OnConnectionEnded(transport::PeerId peer, bool lossless) {
  if (lossless && !state_.options.nodes_are_ranks) {
    return;
  }
  for (const auto& [number, link] : state_.directory.links()) {
    link->broken |= link->peer == peer;
  }
}

// A rank's core turns a lost node into a lost link: only daemons decide if a rank lives.
ErrorCode ProgressCore::Judged(ErrorCode code) const {
  return code == ErrorCode::kNodeUnreachable && state_.options.nodes_are_ranks
             ? ErrorCode::kLinkDown
             : code;
}

void ProgressCore::OnComplete(uint64_t context, ErrorCode ended) {
  const ErrorCode code = Judged(ended);
  if ((context & kPairContext) == kPairContext) {
    state_.extension->OnComplete(context, code);  // only the extension has such operations
  } else if ((context & kReadContext) != 0) {
    state_.rndv_gets.OnReadComplete(context, code, state_.now_ns);
  } else if ((context & kWriteContext) != 0) {
    state_.rndv_puts.OnWriteComplete(context, code, state_.now_ns);
  } else if ((context & kPushContext) != 0) {
    state_.pushes.OnComplete(context, code);
  } else {
    state_.outbound.OnComplete(LinkOf(context), code);
  }
}

void ProgressCore::OnCopied(const CopyTask& task) {
  if (!state_.options.copy_fault || task.abandoned) {
    return OnCopiedForGood(task);
  }
  state_.options.copy_fault(task, [this](const CopyTask& copied) { OnCopiedForGood(copied); });
}

void ProgressCore::OnCopiedForGood(const CopyTask& task) {
  if (task.direction == CopyTask::Direction::kToProcess) {
    state_.rndv_gets.OnCopied(task, state_.now_ns);
  } else {
    state_.staged_sends.OnCopied(task, state_.now_ns);
  }
}

// ---- Sleeping ----------------------------------------------------------------------------------

bool ProgressCore::PrepareToSleep() {
  for (const auto& rank : state_.directory.served()) {
    // Pairs with Wake::AnnounceLane: either the rank sees this, or we see its bit below.
    shm::Exchange(rank->seat.wake->sleepers, 1U, std::memory_order_seq_cst);
  }
  shm::FullFence();  // Pairs with Wake::MustRing: the rank sees the above, or we see its command.
  for (const auto& rank : state_.directory.served()) {
    if (rank->ended) {
      continue;
    }
    if (rank->core_wake.HasActivity() || rank->delivery.has_news() || rank->delivery.has_landed() ||
        (!rank->held && rank->commands.Peek() != nullptr)) {
      return false;
    }
  }
  return !state_.outbound.any_broken() && !state_.registrar.has_news() &&
         (state_.extension == nullptr || state_.extension->MaySleep()) &&
         (!state_.transport->capabilities().wait_fd || state_.transport->PrepareToSleep());
}

void ProgressCore::Wake() {
  for (const auto& rank : state_.directory.served()) {
    shm::StoreRelaxed(rank->seat.wake->sleepers, 0);
  }
}

// A peer that reads what was announced here says so only when it is through.
bool ProgressCore::HasTransfers() const {
  const auto is_announced = [](const auto& entry) { return entry.second.announced != 0; };
  return !state_.rndv_gets.empty() || !state_.staged_sends.empty() || !state_.pushes.empty() ||
         !state_.landings.empty() || !state_.rndv_puts.empty() || state_.rtrs.written() != 0 ||
         (state_.extension != nullptr && state_.extension->HasTransfers(state_.now_ns)) ||
         std::any_of(state_.directory.served().begin(), state_.directory.served().end(),
                     [&](const auto& rank) {
                       return rank->reached_rts != 0 ||
                              std::any_of(rank->regions.begin(), rank->regions.end(), is_announced);
                     });
}

uint64_t ProgressCore::NextTurnNs(uint64_t now_ns) const {
  uint64_t next = state_.transport->NextPollNs(now_ns);
  bool retry = !state_.transport->capabilities().wait_fd || state_.rtrs.closes_windows() ||
               state_.one_sided.memory().holds_some() ||
               (state_.device_copies != nullptr && state_.device_copies->pending() != 0);
  bool check = !state_.rndv_gets.empty() || !state_.staged_sends.empty() ||
               state_.depot.must_recycle() || state_.registrations.any_leaving() ||
               state_.rtrs.awaits_answers() || state_.one_sided.memory().is_waiting();
  for (const auto& rank : state_.directory.served()) {
    retry |= !rank->delivery.empty();
    check |= rank->held;
  }
  if (retry) {
    next = std::min(next, now_ns + kRetryNs);
  }
  next = std::min({next, state_.registrar.next_ns(), ends_.next_leaves_ns()});
  if (state_.extension != nullptr) {
    next = std::min(next, state_.extension->NextNs(now_ns));
  }
  return check ? std::min(next, std::max(next_check_ns_, now_ns)) : next;
}

void ProgressCore::CheckDeadlines() {
  next_check_ns_ = state_.now_ns + state_.options.operation_timeout_ns / kChecksPerTimeout;
  state_.rndv_gets.CheckDeadlines(state_.now_ns);
  state_.staged_sends.CheckDeadlines(state_.now_ns);
  state_.rtrs.CheckDeadlines(state_.directory, state_.now_ns);
  state_.one_sided.memory().RetryWaiting(state_.now_ns);
  state_.depot.Recycle(state_.now_ns);
  state_.registrations.Sweep(state_.now_ns);
  for (const auto& rank : state_.directory.served()) {
    // A rank that computes takes nothing by its links for as long as it likes.
    if (rank->held && !rank->ended && !rank->claim.waiting() && !rank->asks_too_much &&
        !state_.options.nodes_are_ranks &&
        state_.now_ns - rank->held_since_ns > state_.options.operation_timeout_ns) {
      ends_.EndRank(*rank, ErrorCode::kNodeUnreachable,
                    "its next message has waited too long for a node that is not connected");
    }
  }
}

}  // namespace ferry::progress
