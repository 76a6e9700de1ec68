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

RegistrationOptions RegistrationOptionsOf(const CoreOptions& options, const CoreHooks& hooks) {
  RegistrationOptions registrations;
  registrations.limits = options.registrations;
  registrations.piece_bytes = options.registration_piece_bytes;
  registrations.timeout_ns = options.operation_timeout_ns;
  registrations.on_refused = hooks.on_memory_refused;
  return registrations;
}

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
    : options_(options),
      hooks_(std::move(hooks)),
      registrations_(registrar_, RegistrationOptionsOf(options, hooks_)),
      depot_(registrar_, options.staging),
      transport_(std::move(parts.transport)),
      registrar_(*transport_, std::move(ring)),
      home_(parts.home),
      copies_(std::move(parts.copies)),
      device_copies_(std::move(parts.device_copies)),
      outbound_(*transport_, directory_),
      private_memory_(*transport_, registrar_, registrations_, parts.home),
      rndv_gets_(*transport_, outbound_, depot_, registrations_, private_memory_, options.pipeline,
                 options.operation_timeout_ns),
      staged_sends_(outbound_, depot_, options.pipeline, options.operation_timeout_ns),
      pushes_(outbound_, options.push_max_bytes),
      landings_(rndv_gets_, *transport_),
      rtrs_(registrar_, outbound_, depot_, options.operation_timeout_ns),
      rndv_puts_(*transport_, outbound_, depot_, registrations_),
      one_sided_(outbound_, rndv_gets_, staged_sends_, registrations_, private_memory_),
      extension_(parts.extend ? parts.extend({*transport_, outbound_, registrar_, registrations_,
                                              one_sided_, options.operation_timeout_ns})
                              : nullptr),
      commands_(outbound_, rndv_gets_, staged_sends_, registrations_, private_memory_, pushes_,
                rtrs_, rndv_puts_, one_sided_, hooks_),
      arrivals_(directory_, outbound_, rndv_gets_, staged_sends_, rtrs_, rndv_puts_, one_sided_,
                extension_.get(),
                {.on_ended =
                     [this](Job& job, uint32_t rank, ErrorCode error) {
                       if (error == ErrorCode::kNotFound) {
                         EndWork(job, rank, error);
                       } else {
                         RankDied(job, rank, error);
                       }
                     },
                 .on_parted = [this](ServedRank& rank, uint32_t peer) { TryJoin(rank, peer); },
                 .on_returned = [this](Job& job, uint32_t node) { ReturnNode(job, node); }}) {
  landings_.on_carried = [this](ServedRank& rank, uint32_t source, Delivery::Result result) {
    if (const auto trouble = arrivals_.Judge(rank, source, result)) {
      OnTrouble(*trouble);
    }
  };
  if (options_.nodes_are_ranks) {
    arrivals_.BelieveRanksOnly();
  }
}

ProgressCore::~ProgressCore() {
  // Streams let go of staging memory before that goes; jobs would keep them longer.
  for (const auto& [id, job] : directory_.jobs()) {
    job->device_stage.copier.reset();
  }
}

// ---- A turn ------------------------------------------------------------------------------------

// A turn sends what ranks say before it looks at the network, and tells ranks what came from there
// before it ends: a message waits for no system call that is not its own. After a while without
// turns the network comes first: a connection that broke meanwhile would take messages, and lose
// them.
uint32_t ProgressCore::Turn(uint64_t now_ns) {
  now_ns_ = now_ns;
  received_ = false;
  uint32_t done = now_ns - polled_ns_ > kStaleNs ? PollTransport() : 0;
  for (const auto& rank : directory_.served()) {
    done += TakeCommands(*rank);
  }
  if (extension_ != nullptr) {
    done += extension_->AdvanceBeforePoll(now_ns);
  }
  outbound_.Flush(now_ns);
  done += PollTransport();
  one_sided_.RetryHeld(now_ns);
  one_sided_.Report(now_ns);
  if (extension_ != nullptr) {
    done += extension_->AdvanceAfterPoll(now_ns);
  }
  done += registrar_.Collect();
  for (const auto& copier : {copies_.get(), device_copies_.get()}) {
    done += copier == nullptr ? 0 : copier->Collect(*this);
  }
  for (const auto& [id, job] : directory_.jobs()) {
    if (job->private_stage.copier != copies_) {
      done += job->private_stage.copier->Collect(*this);
    }
  }
  outbound_.Flush(now_ns);
  rndv_gets_.Advance(now_ns);
  staged_sends_.Advance(now_ns);
  rndv_puts_.Advance(now_ns);
  rtrs_.Advance();
  one_sided_.Advance(now_ns);
  depot_.Advance();
  registrations_.Advance(now_ns);
  registrar_.Advance(now_ns);
  for (const auto& rank : directory_.served()) {
    done += TellNews(*rank);
  }
  ReportBrokenLinks();
  if (now_ns >= next_leaves_ns_) {
    AnnounceLeaves();
  }
  if (now_ns >= next_check_ns_) {
    CheckDeadlines();
  }
  outbound_.Flush(now_ns);  // what these had to say
  transport_->Flush(now_ns);
  if (tracer_.on()) {
    tracer_.Count(Counters());
  }
  return done;
}

uint32_t ProgressCore::PollTransport() {
  polled_ns_ = now_ns_;
  return static_cast<uint32_t>(transport_->Poll(*this, kPollBudget, now_ns_));
}

uint32_t ProgressCore::TakeCommands(ServedRank& rank) {
  if (rank.ended) {
    return 0;
  }
  if (rank.delivery.has_landed() && rank.commands.Peek() != nullptr) {
    ReportLanded(rank);  // in one frame with what the rank says
  }
  uint32_t done = TakeActivity(rank);
  if (done != 0 && rank.core_wake.poison() != ErrorCode::kOk) {
    EndRank(rank, ErrorCode::kCorrupt,
            shm::Describe(shm::ReadFault(rank.session->layout()->fault)));
    return done;
  }
  if (done != 0 && extension_ != nullptr) {
    done += extension_->Look(rank, now_ns_);
  }
  takes_commands_ = true;
  const RankCommands::Outcome outcome = commands_.Drain(rank, kCommandBudget, now_ns_);
  takes_commands_ = false;
  done += outcome.handled;
  if (outcome.violation) {
    EndRank(rank, ErrorCode::kCorrupt, *outcome.violation);
    return done + 1;
  }
  if (outcome.verdict) {
    Execute(rank, *outcome.verdict);
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
    ReportLanded(rank);
    return 0;
  }
  if (!rank.delivery.empty() && rank.delivery.Flush() == Delivery::Result::kQuota) {
    EndRank(rank, ErrorCode::kLimitExceeded, "too many unexpected messages");
    return 1;
  }
  if (rank.delivery.flooded()) {
    EndRank(rank, ErrorCode::kCorrupt,
            "it asks for more than it has requests, and does not read the answers");
    return 1;
  }
  if (rank.delivery.MustReport(received_)) {
    ReportLanded(rank);
  }
  if (rank.delivery.TakeChange()) {
    rank.delivery.wake().PublishChange();
  }
  if (rank.delivery.has_news() && rank.delivery.Announce()) {
    rank.Attend();
  }
  return 0;
}

void ProgressCore::ReportLanded(ServedRank& rank) {
  rank.delivery.ReportLanded([&](const Delivery::Landed& landed) {
    const WireResult done{landed.send_request, landed.send_generation, 0, 0};
    outbound_.Post(*rank.job, PacketKind::kSendDone, rank.rank(), landed.source, done, now_ns_);
  });
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
  arrivals_.OnFrame(message, now_ns_, [this](const Arrivals::Trouble& t) { OnTrouble(t); });
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
    OnTrouble(*trouble);
    return Landings::Nowhere();
  }
  if (!head->is_pushed) {
    return landings_.BeginCarried(*head->link, rank, head->rts);
  }
  if (home_ != nullptr) {
    rank.delivery.ShowLane();
    home_->LetMatch(rank);
    TakeCommands(rank);
  }
  bool over_quota = false;
  const transport::Landing landing = landings_.Begin(*head->link, rank, id, now_ns_, &over_quota);
  if (over_quota) {
    EndRank(rank, ErrorCode::kLimitExceeded, "too many unexpected messages");
  }
  return landing;
}

void ProgressCore::OnLanded(uint64_t context, ErrorCode code) {
  received_ = true;
  landings_.OnLanded(context, Judged(code), now_ns_);
}

// Messages that the connection has lost stay lost: messages have no numbers. Daemons ignore the end
// of a connection that had nothing to lose: each watches the other one's life by itself, and the
// next message connects anew. A rank has no other way to hear that its peer has given up their
// link.
void ProgressCore::OnPeerLost(transport::PeerId peer, bool lossless) {
  if (lossless && !options_.nodes_are_ranks) {
    return;
  }
  for (const auto& [number, link] : directory_.links()) {
    link->broken |= link->peer == peer;
  }
}

// A rank's core turns a lost node into a lost link: only daemons decide if a rank lives.
ErrorCode ProgressCore::Judged(ErrorCode code) const {
  return code == ErrorCode::kNodeUnreachable && options_.nodes_are_ranks ? ErrorCode::kLinkDown
                                                                         : code;
}

void ProgressCore::OnComplete(uint64_t context, ErrorCode ended) {
  const ErrorCode code = Judged(ended);
  if ((context & kPairContext) == kPairContext) {
    extension_->OnComplete(context, code);  // only the extension has such operations
  } else if ((context & kReadContext) != 0) {
    rndv_gets_.OnReadComplete(context, code, now_ns_);
  } else if ((context & kWriteContext) != 0) {
    rndv_puts_.OnWriteComplete(context, code, now_ns_);
  } else if ((context & kPushContext) != 0) {
    pushes_.OnComplete(context, code);
  } else {
    outbound_.OnComplete(LinkOf(context), code);
  }
}

void ProgressCore::OnCopied(const CopyTask& task) {
  if (!options_.copy_fault || task.abandoned) {
    return OnCopiedForGood(task);
  }
  options_.copy_fault(task, [this](const CopyTask& copied) { OnCopiedForGood(copied); });
}

void ProgressCore::OnCopiedForGood(const CopyTask& task) {
  if (task.direction == CopyTask::Direction::kToProcess) {
    rndv_gets_.OnCopied(task, now_ns_);
  } else {
    staged_sends_.OnCopied(task, now_ns_);
  }
}

// ---- Sleeping ----------------------------------------------------------------------------------

bool ProgressCore::PrepareToSleep() {
  for (const auto& rank : directory_.served()) {
    // Pairs with Wake::AnnounceLane: either the rank sees this, or we see its bit below.
    shm::Exchange(rank->seat.wake->sleepers, 1U, std::memory_order_seq_cst);
  }
  shm::FullFence();  // Pairs with Wake::MustRing: the rank sees the above, or we see its command.
  for (const auto& rank : directory_.served()) {
    if (rank->ended) {
      continue;
    }
    if (rank->core_wake.HasActivity() || rank->delivery.has_news() || rank->delivery.has_landed() ||
        (!rank->held && rank->commands.Peek() != nullptr)) {
      return false;
    }
  }
  return !outbound_.any_broken() && !registrar_.has_news() &&
         (extension_ == nullptr || extension_->MaySleep()) &&
         (!transport_->capabilities().wait_fd || transport_->PrepareToSleep());
}

void ProgressCore::Wake() {
  for (const auto& rank : directory_.served()) {
    shm::StoreRelaxed(rank->seat.wake->sleepers, 0);
  }
}

// A peer that reads what was announced here says so only when it is through.
bool ProgressCore::HasTransfers() const {
  const auto is_announced = [](const auto& entry) { return entry.second.announced != 0; };
  return !rndv_gets_.empty() || !staged_sends_.empty() || !pushes_.empty() || !landings_.empty() ||
         !rndv_puts_.empty() || rtrs_.written() != 0 ||
         (extension_ != nullptr && extension_->HasTransfers(now_ns_)) ||
         std::any_of(directory_.served().begin(), directory_.served().end(), [&](const auto& rank) {
           return rank->reached_rts != 0 ||
                  std::any_of(rank->regions.begin(), rank->regions.end(), is_announced);
         });
}

uint64_t ProgressCore::NextTurnNs(uint64_t now_ns) const {
  uint64_t next = transport_->NextPollNs(now_ns);
  bool retry = !transport_->capabilities().wait_fd || rtrs_.closes_windows() ||
               one_sided_.holds_some() ||
               (device_copies_ != nullptr && device_copies_->pending() != 0);
  bool check = !rndv_gets_.empty() || !staged_sends_.empty() || depot_.must_recycle() ||
               registrations_.any_leaving() || rtrs_.awaits_answers() || one_sided_.is_waiting();
  for (const auto& rank : directory_.served()) {
    retry |= !rank->delivery.empty();
    check |= rank->held;
  }
  if (retry) {
    next = std::min(next, now_ns + kRetryNs);
  }
  next = std::min({next, registrar_.next_ns(), next_leaves_ns_});
  if (extension_ != nullptr) {
    next = std::min(next, extension_->NextNs(now_ns));
  }
  return check ? std::min(next, std::max(next_check_ns_, now_ns)) : next;
}

void ProgressCore::CheckDeadlines() {
  next_check_ns_ = now_ns_ + options_.operation_timeout_ns / kChecksPerTimeout;
  rndv_gets_.CheckDeadlines(now_ns_);
  staged_sends_.CheckDeadlines(now_ns_);
  rtrs_.CheckDeadlines(directory_, now_ns_);
  one_sided_.RetryWaiting(now_ns_);
  depot_.Recycle(now_ns_);
  registrations_.Sweep(now_ns_);
  for (const auto& rank : directory_.served()) {
    // A rank that computes takes nothing by its links for as long as it likes.
    if (rank->held && !rank->ended && !rank->claim.waiting() && !rank->asks_too_much &&
        !options_.nodes_are_ranks &&
        now_ns_ - rank->held_since_ns > options_.operation_timeout_ns) {
      EndRank(*rank, ErrorCode::kNodeUnreachable,
              "its next message has waited too long for a node that is not connected");
    }
  }
}

}  // namespace ferry::progress
