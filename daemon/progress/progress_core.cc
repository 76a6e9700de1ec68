#include "daemon/progress/progress_core.h"

#include <algorithm>
#include <semaphore>
#include <utility>

#include "shm/atomic.h"
#include "shm/fault.h"
#include "shm/fence.h"

namespace ferry::daemon {
namespace {

constexpr int kPollBudget = 64;
constexpr uint32_t kCommandBudget = 32;  // of one rank in one turn
// For what nobody announces: a rank making room, a stream that failed.
constexpr uint64_t kRetryNs = 1'000'000;
// Nothing tells of a doorbell that a stream writes: a sleep lasts as long as it may be late.
constexpr uint64_t kDoorbellNs = 50'000;
constexpr uint64_t kChecksPerTimeout = 8;
constexpr uint64_t kStaleNs = 20'000;  // what was seen of the network longer ago
// Requests of devices in one turn. So many come only from producers that go on, and that soon wait
// for room.
constexpr uint32_t kManyRequests = 32;

RegistrationOptions RegistrationOptionsOf(const CoreOptions& options, const PlaneHooks& hooks) {
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
  const auto staging = StagingPool::Create(registrar, shape, options.settle_staging);
  FERRY_RETURN_IF_ERROR(staging.status());
  while (registrar.pending() != 0) {
    rung.acquire();
    registrar.Collect();
  }
  return (*staging)->failure();
}

}  // namespace

StatusOr<std::unique_ptr<ProgressCore>> ProgressCore::Create(
    const CoreOptions& options, std::unique_ptr<transport::Transport> transport, PlaneHooks hooks,
    std::function<void()> ring) {
  const uint64_t longest = sizeof(PacketHeader) + sizeof(WireOneSided) + shm::kCellBytes;
  if (transport->capabilities().max_message_bytes < longest) {
    return Status(ErrorCode::kInvalidArgument,
                  "the transport carries messages of " +
                      std::to_string(transport->capabilities().max_message_bytes) +
                      " bytes, the data plane needs " + std::to_string(longest) +
                      ": raise TransportOptions::receive_buffer_bytes");
  }
  FERRY_RETURN_IF_ERROR(TryStaging(options, *transport));
  return std::unique_ptr<ProgressCore>(
      new ProgressCore(options, std::move(transport), std::move(hooks), std::move(ring)));
}

ProgressCore::ProgressCore(const CoreOptions& options,
                           std::unique_ptr<transport::Transport> transport, PlaneHooks hooks,
                           std::function<void()> ring)
    : options_(options),
      hooks_(std::move(hooks)),
      registrations_(registrar_, RegistrationOptionsOf(options, hooks_)),
      depot_(registrar_, options.settle_staging, options.faults, options.staging),
      transport_(std::move(transport)),
      registrar_(*transport_, ring),
      copies_(std::make_shared<CopyPool>(options.copy_workers, ring)),
      device_copies_(options.gpus == nullptr
                         ? nullptr
                         : std::make_shared<DeviceCopier>(options.gpus, std::move(ring))),
      outbound_(*transport_, directory_),
      pulls_(*transport_, outbound_, depot_, registrations_, options.pipeline,
             options.operation_timeout_ns),
      feeds_(outbound_, depot_, options.pipeline, options.operation_timeout_ns),
      adverts_(registrar_, outbound_, options.operation_timeout_ns),
      puts_(*transport_, outbound_, registrations_),
      one_sided_(outbound_, pulls_, feeds_, registrations_),
      pairs_(*transport_, outbound_, registrar_, registrations_, options.operation_timeout_ns,
             options.deferred_work),
      rings_(pairs_, one_sided_, options.operation_timeout_ns),
      commands_(outbound_, pulls_, feeds_, registrations_, adverts_, puts_, one_sided_),
      arrivals_(directory_, outbound_, pulls_, feeds_, adverts_, puts_, one_sided_, pairs_,
                [this](Job& job, uint32_t rank, ErrorCode error) {
                  if (error == ErrorCode::kNotFound) {
                    EndWork(job, rank, error);
                  } else {
                    RankDied(job, rank, error);
                  }
                }) {}

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
  uint32_t asked = rings_.Advance(now_ns);
  done += pairs_.Advance(now_ns);
  outbound_.Flush(now_ns);
  done += PollTransport();
  one_sided_.Report(now_ns);
  done += pairs_.Advance(now_ns);  // what came may have cleared messages to be sent
  asked += rings_.Advance(now_ns);
  is_asked_ = asked >= kManyRequests;
  done += asked;
  done += registrar_.Collect();
  done += copies_->Collect(*this);
  if (device_copies_ != nullptr) {
    done += device_copies_->Collect(*this);
  }
  for (const auto& [id, job] : directory_.jobs()) {
    if (job->private_stage.copier != copies_) {
      done += job->private_stage.copier->Collect(*this);
    }
  }
  outbound_.Flush(now_ns);
  pulls_.Advance(now_ns);
  feeds_.Advance(now_ns);
  puts_.Advance(now_ns);
  adverts_.Advance();
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
  if (done != 0 && rank.daemon_wake.poison() != ErrorCode::kOk) {
    EndRank(rank, ErrorCode::kCorrupt,
            shm::Describe(shm::ReadFault(rank.session->layout()->fault)));
    return done;
  }
  if (done != 0) {
    done += rings_.Look(rank, now_ns_);
  }
  const RankCommands::Outcome outcome = commands_.Drain(rank, kCommandBudget, now_ns_);
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
      rank.attention->Raise();
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
    rank.attention->Raise();
  }
  return 0;
}

void ProgressCore::ReportLanded(ServedRank& rank) {
  rank.delivery.ReportLanded([&](const Delivery::Landed& landed) {
    const WireResult done{landed.send_request, landed.send_generation, 0, 0};
    outbound_.Post(*rank.job, PacketKind::kSendDone, rank.rank(), landed.source, done, now_ns_);
  });
}

// The bit of a rank of the node asks for the worker; the daemon's own bit only woke us.
uint32_t ProgressCore::TakeActivity(ServedRank& rank) {
  const Job& job = *rank.job;
  const auto lanes = static_cast<uint32_t>(job.rank_of_local.size());
  uint32_t taken = 0;
  for (uint32_t word = 0; word <= lanes / 64; ++word) {
    for (uint64_t bits = rank.daemon_wake.TakeActivity(word); bits != 0; bits &= bits - 1) {
      const uint32_t lane = word * 64 + static_cast<uint32_t>(__builtin_ctzll(bits));
      ServedRank* target = lane < lanes ? job.served[job.rank_of_local[lane]] : nullptr;
      if (target != nullptr) {
        target->attention->Raise();
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

void ProgressCore::OnComplete(uint64_t context, ErrorCode code) {
  if ((context & kPairContext) == kPairContext) {
    pairs_.OnComplete(context, code);
  } else if ((context & kReadContext) != 0) {
    pulls_.OnReadComplete(context, code, now_ns_);
  } else if ((context & kWriteContext) != 0) {
    puts_.OnWriteComplete(context, code, now_ns_);
  } else {
    outbound_.OnComplete(LinkOf(context), code);
  }
}

void ProgressCore::OnCopied(const CopyTask& task) {
  if (options_.faults == nullptr || task.abandoned) {
    return OnCopiedForGood(task);
  }
  const ErrorCode fault = options_.faults->Pass(task.direction == CopyTask::Direction::kToProcess
                                                    ? FaultPoint::kStagingCopyOut
                                                    : FaultPoint::kStagingCopyIn);
  CopyTask copied = task;
  if (fault == ErrorCode::kWouldBlock) {
    return options_.faults->Hold([this, copied] { OnCopiedForGood(copied); });
  }
  copied.result = fault == ErrorCode::kOk ? task.result : fault;
  OnCopiedForGood(copied);
}

void ProgressCore::OnCopiedForGood(const CopyTask& task) {
  if (task.direction == CopyTask::Direction::kToProcess) {
    pulls_.OnCopied(task, now_ns_);
  } else {
    feeds_.OnCopied(task, now_ns_);
  }
}

// ---- Sleeping ----------------------------------------------------------------------------------

bool ProgressCore::PrepareToSleep() {
  for (const auto& rank : directory_.served()) {
    // Pairs with Wake::AnnounceLane: either the rank sees this, or we see its bit below.
    shm::Exchange(rank->session->layout()->daemon_wake.sleepers, 1U, std::memory_order_seq_cst);
  }
  shm::FullFence();  // Pairs with Wake::MustRing: the rank sees the above, or we see its command.
  for (const auto& rank : directory_.served()) {
    if (rank->ended) {
      continue;
    }
    if (rank->daemon_wake.HasActivity() || rank->delivery.has_news() ||
        rank->delivery.has_landed() || (!rank->held && rank->commands.Peek() != nullptr)) {
      return false;
    }
  }
  return !outbound_.any_broken() && !pairs_.any_newly_armed() &&
         (!transport_->capabilities().wait_fd || transport_->PrepareToSleep());
}

void ProgressCore::Wake() {
  for (const auto& rank : directory_.served()) {
    shm::StoreRelaxed(rank->session->layout()->daemon_wake.sleepers, 0);
  }
}

// A peer that reads what was offered here says so only when it is through.
bool ProgressCore::HasTransfers() const {
  const auto is_offered = [](const auto& entry) { return entry.second.offered != 0; };
  return !pulls_.empty() || !feeds_.empty() || !puts_.empty() || adverts_.written() != 0 ||
         pairs_.is_armed() || pairs_.transfer_bytes() != 0 || rings_.is_hot(now_ns_) ||
         std::any_of(directory_.served().begin(), directory_.served().end(), [&](const auto& rank) {
           return std::any_of(rank->regions.begin(), rank->regions.end(), is_offered);
         });
}

uint64_t ProgressCore::NextTurnNs(uint64_t now_ns) const {
  uint64_t next = transport_->NextPollNs(now_ns);
  bool retry = !transport_->capabilities().wait_fd || adverts_.closes_windows() ||
               (device_copies_ != nullptr && device_copies_->pending() != 0);
  bool check = !pulls_.empty() || !feeds_.empty() || depot_.must_recycle() ||
               registrations_.any_leaving() || adverts_.awaits_answers() || one_sided_.is_waiting();
  for (const auto& rank : directory_.served()) {
    retry |= !rank->delivery.empty();
    check |= rank->held;
  }
  if (retry) {
    next = std::min(next, now_ns + kRetryNs);
  }
  next = std::min(
      {next, pairs_.next_ns(), rings_.NextNs(now_ns), registrar_.next_ns(), next_leaves_ns_});
  if (pairs_.is_armed()) {
    next = std::min(next, now_ns + kDoorbellNs);
  }
  return check ? std::min(next, std::max(next_check_ns_, now_ns)) : next;
}

void ProgressCore::CheckDeadlines() {
  next_check_ns_ = now_ns_ + options_.operation_timeout_ns / kChecksPerTimeout;
  pulls_.CheckDeadlines(now_ns_);
  feeds_.CheckDeadlines(now_ns_);
  adverts_.CheckDeadlines(directory_, now_ns_);
  one_sided_.RetryWaiting(now_ns_);
  depot_.Recycle(now_ns_);
  registrations_.Sweep(now_ns_);
  for (const auto& rank : directory_.served()) {
    if (rank->held && !rank->ended && !rank->claim.waiting() &&
        now_ns_ - rank->held_since_ns > options_.operation_timeout_ns) {
      EndRank(*rank, ErrorCode::kNodeUnreachable,
              "its next message has waited too long for a node that is not connected");
    }
  }
}

}  // namespace ferry::daemon
