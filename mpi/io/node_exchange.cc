#include "mpi/io/node_exchange.h"

#include <utility>

#include "mpi/base/connection.h"

namespace ferry::mpi {
namespace {

constexpr uint64_t kPage = 4096;

// Returns true if no other message will come either.
bool EndsAll(ErrorCode error) {
  return ErrorClassOf(error) == MPI_ERR_PROC_ABORTED || error == front_end->poison();
}

// Returns true if the message may begin later.
bool MayPass(ErrorCode error) {
  return error == ErrorCode::kLimitExceeded || error == ErrorCode::kOutOfMemory;
}

}  // namespace

NodeExchange::~NodeExchange() {
  if (front_end == nullptr) {
    memory_.Leave();
    return;
  }
  GiveUp();
}

Failure NodeExchange::SetUp(const Comm& comm, std::vector<int> leaders, int64_t cell_bytes) {
  comm_ = &comm;
  leaders_ = std::move(leaders);
  room_bytes_ = (MostMessageBytes(cell_bytes) + kPage - 1) / kPage * kPage;
  FERRY_RETURN_FAILURE(memory_.Allocate(
      static_cast<uint64_t>(room_bytes_) * (sends_.size() + receives_.size()), kPage));
  std::byte* room = memory_.base();
  for (Transfer& send : sends_) {
    send.room = std::exchange(room, room + room_bytes_);
  }
  for (Transfer& receive : receives_) {
    receive.room = std::exchange(room, room + room_bytes_);
  }
  return {};
}

client::Message NodeExchange::MessageOf(int node, const std::byte* room, int64_t bytes) const {
  return {.buffer = const_cast<std::byte*>(room),
          .size_bytes = static_cast<uint64_t>(bytes),
          .peer = comm_->WorldRank(leaders_[static_cast<size_t>(node)]),
          .tag = static_cast<int32_t>(kind_),
          .context = comm_->context(Traffic::kPointToPoint)};
}

// Returns true if nothing is under way there. *bytes: what was received. *lost: why nothing was.
bool NodeExchange::IsDone(Transfer* transfer, int64_t* bytes, Failure* lost) {
  client::Completion completion;
  if (transfer->handle == 0 || transfer->handle == client::kCompletedSend) {
    transfer->handle = 0;
    return true;
  }
  if (!front_end->messages->TestNow(transfer->handle, &completion)) {
    return false;
  }
  transfer->handle = 0;
  *bytes = static_cast<int64_t>(completion.size_bytes);
  if (completion.error != ErrorCode::kOk) {
    *bytes = 0;
    Failure* const which = EndsAll(completion.error) ? &failure_ : lost;
    *which = which->ok() ? FailureOf(completion.error) : *which;
  }
  return true;
}

// ---- Receives -----------------------------------------------------------------------------------

Cells::Incoming NodeExchange::FirstExpected() const {
  return kind_ == Kind::kToOwners ? cells_->FirstIncoming() : cells_->FirstAnswer();
}

Cells::Incoming NodeExchange::ExpectedBehind(const Cells::Incoming& one) const {
  return kind_ == Kind::kToOwners ? cells_->NextIncoming(one) : cells_->NextAnswer(one);
}

void NodeExchange::Begin(const Cells& cells) {
  cells_ = &cells;
  next_ = FirstExpected();
  Expect();
}

// Starts receives while there is room, and requests are to be had.
void NodeExchange::Expect() {
  while (next_.begin != kNowhere && expected_ < receives_.size() && failure_.ok()) {
    Transfer& transfer = receives_[(first_ + expected_) % receives_.size()];
    const ErrorCode error = front_end->messages->StartReceive(
        MessageOf(next_.node, transfer.room, room_bytes_), &transfer.handle);
    if (MayPass(error)) {
      return;
    }
    failure_ = FailureOf(error);
    if (!failure_.ok()) {
      transfer.handle = 0;
      return;
    }
    transfer.what = next_;
    ++expected_;
    next_ = ExpectedBehind(next_);
  }
}

const NodeExchange::Arrived* NodeExchange::Front() {
  if (arrived_.message != nullptr) {
    return &arrived_;
  }
  Expect();
  if (expected_ == 0) {
    return nullptr;
  }
  Transfer& oldest = receives_[first_];
  if (!IsDone(&oldest, &arrived_.bytes, &arrived_.failure) || !failure_.ok()) {
    return nullptr;
  }
  arrived_.what = oldest.what;
  arrived_.message = oldest.room;
  return &arrived_;
}

void NodeExchange::Pop() {
  arrived_ = {};
  first_ = (first_ + 1) % receives_.size();
  --expected_;
  Expect();
}

// ---- Sends --------------------------------------------------------------------------------------

std::byte* NodeExchange::RoomToSend() {
  int64_t ignored = 0;
  Transfer& send = sends_[next_send_];
  return IsDone(&send, &ignored, &loss_) ? send.room : nullptr;
}

void NodeExchange::Send(int node, int64_t bytes) {
  Transfer& send = sends_[next_send_];
  const client::Message message = MessageOf(node, send.room, bytes);
  ErrorCode error = front_end->messages->StartSend(message, &send.handle);
  while (MayPass(error) && front_end->poison() == ErrorCode::kOk) {
    (void)front_end->peers->Poll();
    error = front_end->messages->StartSend(message, &send.handle);
  }
  if (error != ErrorCode::kOk) {
    send.handle = 0;
    failure_ = failure_.ok() ? FailureOf(error) : failure_;
  }
  next_send_ = (next_send_ + 1) % sends_.size();
}

// ---- The end ------------------------------------------------------------------------------------

bool NodeExchange::IsOver() {
  bool is_over = expected_ == 0 && next_.begin == kNowhere;
  int64_t ignored = 0;
  for (Transfer& send : sends_) {
    is_over = IsDone(&send, &ignored, &loss_) && is_over;
  }
  return is_over;
}

void NodeExchange::GiveUp() {
  const auto give_up = [](Transfer& transfer) {
    if (transfer.handle != 0 && transfer.handle != client::kCompletedSend) {
      client::Completion ignored;
      (void)front_end->messages->Cancel(transfer.handle);
      front_end->messages->Wait(transfer.handle, &ignored);
    }
    transfer.handle = 0;
  };
  for (Transfer& send : sends_) {
    give_up(send);
  }
  for (Transfer& receive : receives_) {
    give_up(receive);
  }
  expected_ = 0;
  next_ = {};
  arrived_ = {};
}

}  // namespace ferry::mpi
