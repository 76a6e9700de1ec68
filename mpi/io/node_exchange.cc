#include "mpi/io/node_exchange.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "mpi/base/connection.h"
#include "shm/atomic.h"

namespace ferry::mpi {
namespace {

constexpr uint64_t kPage = 4096;

constexpr int32_t kNoticeTag = 2;  // behind those of the kinds

// Returns true if no other message will come either.
bool EndsAll(ErrorCode error) {
  return error == ErrorCode::kLinkDown || ErrorClassOf(error) == MPI_ERR_PROC_ABORTED ||
         error == front_end->poison();
}

// Returns true if the message may start later.
bool MayPass(ErrorCode error) {
  return error == ErrorCode::kLimitExceeded || error == ErrorCode::kOutOfMemory;
}

bool IsUnderWay(client::RequestHandle handle) {
  return handle != 0 && handle != client::kCompletedSend;
}

void EndInVain(client::RequestHandle handle) {
  if (IsUnderWay(handle)) {
    client::Completion ignored;
    (void)front_end->messages->Cancel(handle);
    front_end->messages->Wait(handle, &ignored);
  }
}

void Keep(Failure* first, const Failure& failure) {
  if (first->ok()) {
    *first = failure;
  }
}

}  // namespace

NodeExchange::~NodeExchange() {
  if (front_end == nullptr) {
    memory_.Leave();
    return;
  }
  GiveUp();
  for (const client::RequestHandle notice : notices_) {
    EndInVain(notice);
  }
}

Failure NodeExchange::SetUp(const Comm& comm, std::vector<int> leaders, int64_t cell_bytes) {
  const int64_t most_bytes = static_cast<int64_t>(sizeof(Header)) + MostMessageBytes(cell_bytes);
  room_bytes_ = (most_bytes + kPage - 1) / kPage * kPage;
  FERRY_RETURN_FAILURE(memory_.Allocate(
      static_cast<uint64_t>(room_bytes_) * (sends_.size() + receives_.size()), kPage));
  comm_ = &comm;
  leaders_ = std::move(leaders);
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

client::Message NodeExchange::NoticeTo(int32_t peer, Header* notice) const {
  return {.buffer = notice,
          .size_bytes = sizeof(*notice),
          .peer = peer,
          .tag = kNoticeTag,
          .context = comm_->context(Traffic::kPointToPoint)};
}

// ---- One message --------------------------------------------------------------------------------

// Starts a message that waits. A send that is refused starts once more without its bytes, which
// needs no memory: so the other node does not wait for it. False: it may start later, or the call
// has ended.
bool NodeExchange::Start(Transfer* transfer, bool is_send) {
  client::Messaging& messages = *front_end->messages;
  constexpr auto kHeaderBytes = static_cast<int64_t>(sizeof(Header));
  while (end_ == ErrorCode::kOk) {
    const client::Message message = MessageOf(transfer->what.node, transfer->room, transfer->bytes);
    const ErrorCode error = is_send ? messages.StartSend(message, &transfer->handle)
                                    : messages.StartReceive(message, &transfer->handle);
    if (error == ErrorCode::kOk) {
      transfer->is_waiting = false;
      return true;
    }
    transfer->handle = 0;
    if (MayPass(error)) {
      return false;
    }
    if (EndsAll(error) || !is_send || transfer->bytes == kHeaderBytes) {
      End(error);
      return false;
    }
    const Failure refused = FailureOf(error);
    const Header header{.error_class = refused.error_class};
    std::memcpy(transfer->room, &header, sizeof(header));
    transfer->bytes = kHeaderBytes;
    Keep(&loss_, refused);
  }
  return false;
}

// Returns true if nothing is under way there. *bytes: what was received. *lost: why nothing was.
bool NodeExchange::IsDone(Transfer* transfer, int64_t* bytes, Failure* lost) {
  if (transfer->is_waiting) {
    return false;
  }
  client::Completion completion;
  if (IsUnderWay(transfer->handle) &&
      !front_end->messages->TestNow(transfer->handle, &completion)) {
    return false;
  }
  transfer->handle = 0;
  *bytes = completion.error == ErrorCode::kOk ? static_cast<int64_t>(completion.size_bytes) : 0;
  if (EndsAll(completion.error) && completion.error != ErrorCode::kOk) {
    End(completion.error);
  } else {
    Keep(lost, FailureOf(completion.error));
  }
  return true;
}

// ---- Calls that end before their end ------------------------------------------------------------

void NodeExchange::End(ErrorCode why) { end_ = end_ == ErrorCode::kOk ? why : end_; }

void NodeExchange::NoteCuts() { (void)IsCut(); }

// A cut may be over by now, and has lost messages all the same: what got worse was a cut unless it
// shows what else it was.
bool NodeExchange::IsCut() {
  const uint32_t changes = shm::LoadAcquire(front_end->death_epoch());
  if (changes == std::exchange(changes_, changes)) {
    return false;
  }
  uint32_t dead = 0;
  bool is_any_cut = false;
  for (uint32_t rank = 0; rank < front_end->size(); ++rank) {
    const ErrorCode state = front_end->peers->PeerState(rank);
    is_any_cut = is_any_cut || state == ErrorCode::kLinkDown;
    dead += state != ErrorCode::kOk && state != ErrorCode::kLinkDown ? 1 : 0;
  }
  const bool has_died = dead != std::exchange(dead_, dead);
  return !has_died && (!is_any_cut || IsCutOff());
}

bool NodeExchange::IsCutOff() const {
  return std::any_of(leaders_.begin(), leaders_.end(), [this](int leader) {
    return front_end->peers->PeerState(static_cast<uint32_t>(comm_->WorldRank(leader))) ==
           ErrorCode::kLinkDown;
  });
}

ErrorCode NodeExchange::Look() {
  if (IsCut() || IsCutOff()) {
    End(ErrorCode::kLinkDown);
  }
  client::Completion found;
  Header notice;
  if (end_ == ErrorCode::kOk &&
      front_end->messages->Probe(NoticeTo(client::kAny, &notice), /*block=*/false, &found) ==
          ErrorCode::kOk &&
      front_end->messages->Receive(NoticeTo(found.source, &notice), &found) == ErrorCode::kOk) {
    const bool is_known = notice.error != 0 && found.error == ErrorCode::kOk;
    End(is_known ? static_cast<ErrorCode>(notice.error) : ErrorCode::kLinkDown);
  }
  return end_;
}

void NodeExchange::Leave(ErrorCode why) {
  End(why);
  if (comm_ == nullptr || notice_.error != 0) {
    return;  // it is not set up, or has told them
  }
  notice_.error = static_cast<uint32_t>(why);
  for (const int leader : leaders_) {
    const int peer = comm_->WorldRank(leader);
    client::RequestHandle handle = 0;
    // A leader that hears nothing is cut off from this one, and sees that itself.
    if (peer != static_cast<int>(front_end->rank()) &&
        front_end->messages->StartSend(NoticeTo(peer, &notice_), &handle) == ErrorCode::kOk &&
        IsUnderWay(handle)) {
      notices_.push_back(handle);
    }
  }
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
  while (next_.begin != kNowhere && expected_ < receives_.size() && end_ == ErrorCode::kOk) {
    Transfer& transfer = receives_[(first_ + expected_) % receives_.size()];
    transfer.what = next_;
    transfer.bytes = room_bytes_;
    if (!Start(&transfer, /*is_send=*/false)) {
      return;
    }
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
  int64_t bytes = 0;
  if (!IsDone(&oldest, &bytes, &arrived_.failure) || end_ != ErrorCode::kOk) {
    return nullptr;
  }
  Header header;
  const auto has_header = bytes >= static_cast<int64_t>(sizeof(header));
  if (has_header) {
    std::memcpy(&header, oldest.room, sizeof(header));
  }
  if (has_header && header.error_class != MPI_SUCCESS) {
    arrived_.failure = {header.error_class, "another node could not send its bytes"};
  } else if (!has_header || header.bytes != bytes - static_cast<int64_t>(sizeof(header))) {
    Keep(&arrived_.failure, {MPI_ERR_INTERN, "a message of another node is cut short"});
  }
  arrived_.what = oldest.what;
  arrived_.message = oldest.room + sizeof(header);
  arrived_.bytes = header.bytes;
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
  StartSends();
  int64_t ignored = 0;
  Transfer& send = sends_[next_send_];
  return IsDone(&send, &ignored, &loss_) ? send.room + sizeof(Header) : nullptr;
}

void NodeExchange::Send(int node, int64_t bytes, const Failure& failure) {
  Transfer& send = sends_[next_send_];
  const Header header{.error_class = failure.error_class, .bytes = failure.ok() ? bytes : 0};
  std::memcpy(send.room, &header, sizeof(header));
  send.what.node = node;
  send.bytes = static_cast<int64_t>(sizeof(header)) + header.bytes;
  send.is_waiting = true;
  next_send_ = (next_send_ + 1) % sends_.size();
  StartSends();
}

// In the order in which they were given.
void NodeExchange::StartSends() {
  for (size_t i = 0; i < sends_.size(); ++i) {
    Transfer& send = sends_[(next_send_ + i) % sends_.size()];
    if (send.is_waiting && !Start(&send, /*is_send=*/true)) {
      return;
    }
  }
}

// ---- The end ------------------------------------------------------------------------------------

bool NodeExchange::IsOver() {
  StartSends();
  bool is_over = expected_ == 0 && next_.begin == kNowhere;
  int64_t ignored = 0;
  for (Transfer& send : sends_) {
    is_over = IsDone(&send, &ignored, &loss_) && is_over;
  }
  return is_over;
}

void NodeExchange::GiveUp() {
  for (Transfer& send : sends_) {
    EndInVain(std::exchange(send.handle, 0));
    send.is_waiting = false;
  }
  for (Transfer& receive : receives_) {
    EndInVain(std::exchange(receive.handle, 0));
  }
  expected_ = 0;
  next_ = {};
  arrived_ = {};
}

}  // namespace ferry::mpi
