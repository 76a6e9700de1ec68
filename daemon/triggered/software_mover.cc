#include "daemon/triggered/software_mover.h"

#include <cstring>
#include <utility>

#include "shm/counter.h"
#include "shm/counters.h"
#include "shm/word_copy.h"

namespace ferry::daemon {

SoftwareMover::SoftwareMover(Pair& pair, PairKeeper& keeper, PairNetwork& network, bool is_agreed)
    : pair_(&pair),
      keeper_(keeper),
      network_(network),
      is_told_(is_agreed && pair.is_short()),
      clear_(pair.has_cells() ? pair.plan.cell_count - 1 : 0) {}

// ---- Packets of the other daemon ----------------------------------------------------------------

void SoftwareMover::OnWindow(const progress::WirePairWindow& window) {
  to_ = window;
  is_to_known_ = true;
}

void SoftwareMover::OnClear() {
  ++clear_;
  MoveIfClear();
}

void SoftwareMover::OnMessage(const progress::WirePair& message, bool is_in_window,
                              std::span<const std::byte> data) {
  const PairPlan& plan = pair_->plan;
  if (message.round != pair_->rounds + 1 || data.size() != (is_in_window ? 0 : plan.size_bytes) ||
      is_in_window == pair_->is_short()) {
    return keeper_.OnBroken(*pair_, ErrorCode::kCorrupt);
  }
  if (!data.empty()) {
    std::byte* const to = pair_->has_cells() ? plan.cells.address() +
                                                   pair_->rounds % plan.cell_count * plan.cell_bytes
                                             : pair_->message();
    shm::CopyWords(to, data.data(), data.size());
  }
  pair_->done.Add(1);
  keeper_.OnRounds(*pair_, pair_->rounds + 1);
  NoteTransfer();
}

// ---- A turn -------------------------------------------------------------------------------------

uint32_t SoftwareMover::Advance(uint64_t /*now_ns*/) {
  if (pair_->error != ErrorCode::kOk) {
    return 0;
  }
  uint32_t done = TakeStarts() ? 1 : 0;
  if (!pair_->follows.empty() && pair_->error == ErrorCode::kOk) {
    MoveIfClear();
  }
  if (pair_->error == ErrorCode::kOk && must_tell_place()) {
    done += TellPlace() ? 1 : 0;
  }
  if (is_moving_ && !is_writing()) {
    done += Move() ? 1 : 0;
  }
  return done;
}

bool SoftwareMover::IsDue() const {
  return pair_->error == ErrorCode::kOk &&
         (pair_->is_armed() || (must_tell_place() && !pair_->is_short()) ||
          (is_moving_ && !is_writing()));
}

// Takes up new starts. Returns true if the doorbell was written.
bool SoftwareMover::TakeStarts() {
  Starts& starts = pair_->starts;
  if (const ErrorCode code = starts.Refresh(pair_->seen <= pair_->rounds); code != ErrorCode::kOk) {
    keeper_.OnBroken(*pair_, code);
    return true;
  }
  const uint64_t made = starts.Made();
  if (made == pair_->seen) {
    return false;
  }
  // Each start comes after the end of the round before. A receive whose messages are there already
  // (in cells, or of ready sends) may have been started several times since the last look.
  if (made < pair_->seen || made > pair_->rounds + 1) {
    keeper_.OnBroken(*pair_,
                     made >= shm::kCounterFailure ? ErrorCode::kCancelled : ErrorCode::kCorrupt);
    return true;
  }
  while (pair_->seen < made) {
    ++pair_->seen;
    if (pair_->is_send()) {
      MoveIfClear();
    } else if (!pair_->is_ready()) {
      network_.Post(*pair_, progress::PacketKind::kPairClear,
                    progress::WirePair{pair_->plan.peer_number, pair_->seen});
    }
  }
  NoteTransfer();
  return true;
}

// Tells the sender's daemon, which surely knows the pair by now, where its messages go: its rank
// has been told, or this one has. True: it was told now, or the pair has failed.
bool SoftwareMover::TellPlace() {
  const PairPlan& plan = pair_->plan;
  if (pair_->is_short()) {
    if (!pair_->has_cells()) {  // the sender may wait for a word
      is_told_ = true;
      network_.Post(*pair_, progress::PacketKind::kPairNic,
                    progress::WirePairNic{plan.peer_number, 0, 0, /*refused=*/1, 0});
    }
    return false;
  }
  if (window_.code() == ErrorCode::kNotFound) {
    window_ = progress::PinnedMemory(network_.registrar, {.base = pair_->message(),
                                                          .bytes = plan.size_bytes,
                                                          .access = transport::Access::kRemoteWrite,
                                                          .memory = pair_->memory(),
                                                          .device = pair_->device()});
  }
  const ErrorCode code = window_.code();
  if (code == ErrorCode::kWouldBlock) {
    return false;
  }
  if (code != ErrorCode::kOk) {
    keeper_.OnBroken(*pair_, code);
    return true;
  }
  network_.Post(*pair_, progress::PacketKind::kPairWindow,
                progress::WirePairWindow{plan.peer_number, window_.region().key,
                                         window_.region().remote_base});
  is_told_ = true;
  return true;
}

// Call it after a change of these conditions. The receiver's NIC may need turns for what is
// written.
void SoftwareMover::NoteTransfer() {
  const bool receives = !pair_->is_send() && !pair_->is_short() && pair_->error == ErrorCode::kOk &&
                        pair_->seen > pair_->rounds;
  const bool is_now = is_writing() || receives;
  if (std::exchange(in_transfer_, is_now) != is_now) {
    network_.transfer_bytes += is_now ? pair_->plan.size_bytes : -pair_->plan.size_bytes;
  }
}

// ---- Moving messages ----------------------------------------------------------------------------

// Call it after a start of either end, and after a message that it follows. Advance moves the
// message in this turn, or the next.
void SoftwareMover::MoveIfClear() {
  const bool is_clear = pair_->is_ready() || clear_ > pair_->rounds;
  if (is_moving_ || pair_->seen <= pair_->rounds || !is_clear ||
      pair_->followed_rounds() <= pair_->rounds) {
    return;
  }
  is_moving_ = true;
  keeper_.SetDeadline(*pair_, network_.now_ns + network_.timeout_ns, ErrorCode::kTimeout);
  keeper_.Watch(*pair_);
}

// False: it has to be tried again.
bool SoftwareMover::Move() {
  const ErrorCode code = pair_->is_short() ? SendData() : WriteWindow();
  if (code == ErrorCode::kWouldBlock) {
    return false;
  }
  if (code != ErrorCode::kOk || pair_->is_short()) {
    Complete(code);
  }
  return true;
}

ErrorCode SoftwareMover::SendData() {
  const PairPlan& plan = pair_->plan;
  progress::PacketHeader header{};
  header.kind = static_cast<uint8_t>(progress::PacketKind::kPairData);
  header.source = plan.name.rank;
  header.destination = plan.peer;
  const progress::WirePair words{plan.peer_number, pair_->rounds + 1};
  std::byte body[sizeof(words) + kPacketDataBytes];
  std::memcpy(body, &words, sizeof(words));
  if (plan.size_bytes != 0) {
    std::memcpy(body + sizeof(words), plan.window.address(), plan.size_bytes);
  }
  return network_.outbound.Send(*pair_->rank->job, header, {body, sizeof(words) + plan.size_bytes},
                                network_.now_ns);
}

ErrorCode SoftwareMover::WriteWindow() {
  if (!is_to_known_) {
    return ErrorCode::kWouldBlock;
  }
  const PairPlan& plan = pair_->plan;
  if (const ErrorCode code =
          network_.registrations.Hold(pair_->region->memory, plan.window.offset, plan.size_bytes,
                                      progress::UseFor::kTransfer, network_.now_ns, &claim_);
      code != ErrorCode::kOk) {
    return code;
  }
  const progress::Link& link = *pair_->rank->job->RouteTo(plan.peer).link;
  if (link.failure != ErrorCode::kOk) {
    return link.failure;
  }
  transport::RmaRequest write;
  write.peer = link.peer;
  write.local = pair_->message();
  write.region = claim_.handle();
  write.remote_address = to_.address;
  write.key = to_.key;
  write.bytes = plan.size_bytes;
  write.context = PairContextOf(pair_->number());
  write.rail = pair_->rank->nearest_rail;
  const ErrorCode code =
      network_.transport.Write(write, transport::Placement::kRemote, network_.now_ns);
  if (code == ErrorCode::kOk) {
    write_ = {pair_->rank, pair_->region};
    ++write_.region->users;
    ++write_.rank->operations;
    NoteTransfer();
  }
  return code;
}

void SoftwareMover::OnEnd(uint64_t /*context*/, ErrorCode code) {
  const Write ended = std::exchange(write_, {});
  --ended.region->users;
  --ended.rank->operations;
  if (pair_ == nullptr || pair_->error != ErrorCode::kOk) {
    return claim_.Drop();
  }
  NoteTransfer();
  if (code == ErrorCode::kOk) {
    network_.Post(*pair_, progress::PacketKind::kPairArrived,
                  progress::WirePair{pair_->plan.peer_number, pair_->rounds + 1});
  }
  Complete(code);
}

void SoftwareMover::Complete(ErrorCode error) {
  if (error != ErrorCode::kOk) {
    return keeper_.OnBroken(*pair_, error);
  }
  is_moving_ = false;
  keeper_.SetDeadline(*pair_, UINT64_MAX, ErrorCode::kTimeout);
  shm::Statistics(pair_->rank->session->layout()->counters)
      .AddShared(shm::Statistic::kMatchedByDaemon);
  pair_->done.Add(1);
  keeper_.OnRounds(*pair_, pair_->rounds + 1);
}

// A write that the NIC is at goes on, but this mover ignores its end. So may a write of the sender
// go on, which would cost it the connection if its key were gone: then the window is kept for a
// while. No write is under way if the sender was not clear to send.
void SoftwareMover::OnFailed() {
  is_moving_ = false;
  if (std::exchange(in_transfer_, false)) {
    network_.transfer_bytes -= pair_->plan.size_bytes;
  }
  if (!is_writing()) {
    claim_.Drop();
  }
  const bool may_be_written = pair_->seen > pair_->rounds || pair_->is_ready();
  window_.ReleaseAt(may_be_written ? network_.now_ns + network_.timeout_ns : 0);
}

}  // namespace ferry::daemon
