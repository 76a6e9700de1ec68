// Ranks send blocks of malloc, which libferry_malloc.so has them lend to the others of their node
// to be read. Rank 0 means harm: it names such memory as the destination of messages of rank 1, in
// the slots where these are described, and of a receive of its own. In the end all exchange
// messages as they should, and check that no other rank has written into their memory.
//
// Prints "rank 1: sends refused N", "rank 0: receives refused N", and "rank R: all right".
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "engine/transfer.h"
#include "ferry/ferry.h"
#include "shm/atomic.h"
#include "shm/layout/inbox_layout.h"
#include "shm/layout/request_layout.h"
#include "shm/layout/session_layout.h"
#include "shm/layout/transfer_layout.h"
#include "shm/wake.h"
#include "tests/e2e/ranks/check.h"
#include "tests/faults/ranks/mapped.h"
#include "tests/faults/ranks/say.h"

namespace {

namespace engine = ferry::engine;
namespace shm = ferry::shm;

using ferry::ranks::Mapped;
using ferry::ranks::Say;

constexpr int kHostile = 0;
constexpr int kSender = 1;
constexpr int kLender = 2;

constexpr size_t kBytes = 1 << 20;  // several chunks; too long to move into a bounce buffer
constexpr int kKept = 1;            // tags: offered at first, and received at last
constexpr int kStolen = 2;          // and three more
constexpr int kGo = 10;
constexpr int kWrongReceive = 11;
constexpr int kRing = 12;
constexpr useconds_t kWorkersTime = 300'000;
constexpr useconds_t kTurn = 1000;

// The first half is sent; the second is where rank 0 would have others write.
struct Block {
  uint8_t* bytes = static_cast<uint8_t*>(std::malloc(2 * kBytes));
  Block() { ferry::ranks::Fill(bytes, 2 * kBytes, Name(ferry_rank())); }
  void ExpectUntouched() const { CHECK_BYTES(bytes, 2 * kBytes, Name(ferry_rank())); }
  static uint64_t Name(int rank) { return static_cast<uint64_t>(rank) + 100; }
};

void SendRefused(const Block& block, int destination, int tag) {
  CHECK_EQ(ferry_send(block.bytes, kBytes, destination, tag), FERRY_ERR_BUFFER);
}

// ---- Rank 0 -------------------------------------------------------------------------------------

struct Offer {
  shm::TransferLayout* transfer;
  shm::WakeLayout* sender;
};

// Finds a message to `destination` in this inbox that has not been taken; null: there is none.
shm::TransferLayout* FindRts(const ferry::ranks::Area& inbox, int destination) {
  const auto& header = reinterpret_cast<const shm::InboxLayout*>(inbox.base)->header;
  auto* transfers = reinterpret_cast<shm::TransferLayout*>(
      inbox.base + shm::InboxTransferOffset(header.local_size));
  for (uint32_t i = 1; i < header.request_limit; ++i) {
    if (shm::LoadAcquire(transfers[i].state) ==
            static_cast<uint32_t>(shm::TransferState::kAnnounced) &&
        shm::LoadAcquire(transfers[i].destination_rank) == static_cast<uint32_t>(destination)) {
      return &transfers[i];
    }
  }
  return nullptr;
}

// Waits for a message of that rank.
Offer AwaitOffer(int rank, int destination) {
  for (;; usleep(kTurn)) {
    for (const ferry::ranks::Area& inbox : Mapped("ferry-inbox")) {
      auto* layout = reinterpret_cast<shm::InboxLayout*>(inbox.base);
      if (layout->header.rank != static_cast<uint32_t>(rank)) {
        continue;
      }
      if (shm::TransferLayout* const found = FindRts(inbox, destination); found != nullptr) {
        return {found, &layout->wake};
      }
    }
  }
}

// The second half of the block whose first half is offered there.
shm::Location SecondHalf(const Offer& offer) {
  const shm::Location& half = offer.transfer->source;
  CHECK_EQ(half.region != 0, 1);  // else it is not lent
  return {half.region, 0, half.address + kBytes};
}

// Takes the message, in place of whom it is for, and says where it is to be copied.
void Steal(const Offer& offer, int owner, const shm::Location& destination) {
  shm::TransferLayout& transfer = *offer.transfer;
  const uint32_t generation = shm::LoadAcquire(transfer.generation);
  shm::StoreRelease(transfer.destination_rank, static_cast<uint32_t>(owner));
  CHECK_EQ(engine::MatchTransfer(transfer, generation, destination, kBytes), 1);
  shm::Wake(offer.sender).Publish();
  while (!engine::Look(transfer, generation).done) {
    usleep(kTurn);
  }
  CHECK_EQ(engine::Look(transfer, generation).error, ferry::ErrorCode::kInvalidBuffer);
  engine::Release(transfer, generation);
}

// Posts a receive and puts another destination into its request, in this rank's own session.
void ReceiveInto(const shm::Location& destination) {
  auto* session = Mapped("ferry-session").at(0).base;
  const uint32_t limit = reinterpret_cast<shm::SessionLayout*>(session)->header.request_limit;
  auto* requests = reinterpret_cast<shm::RequestLayout*>(session + shm::SessionRequestsOffset());
  const Block block;
  ferry_request request{};
  CHECK_OK(ferry_irecv(block.bytes, kBytes, kSender, kWrongReceive, &request));
  for (uint32_t i = 1; i < limit; ++i) {
    if (requests[i].state == static_cast<uint32_t>(shm::RequestState::kPosted) &&
        requests[i].tag == kWrongReceive) {
      requests[i].buffer = destination;
    }
  }
  CHECK_OK(ferry_send(nullptr, 0, kSender, kGo));
  usleep(kWorkersTime);  // it computes: the worker may match and copy for it
  ferry_status status{};
  const int code = ferry_wait(&request, &status);
  CHECK_EQ(code != FERRY_SUCCESS ? code : status.error, FERRY_ERR_BUFFER);
  block.ExpectUntouched();
  Say("receives refused", 1);
}

void BeHostile(const Block& block) {
  ferry_request kept{};
  CHECK_OK(ferry_isend(block.bytes, kBytes, kSender, kKept, &kept));
  const shm::Location own = SecondHalf(AwaitOffer(kHostile, kSender));
  const shm::Location lenders = SecondHalf(AwaitOffer(kLender, kHostile));
  CHECK_EQ(own.region != lenders.region, 1);
  Steal(AwaitOffer(kSender, kLender), kLender, lenders);  // as if that had asked for it
  Steal(AwaitOffer(kSender, kHostile), kLender, lenders);
  Steal(AwaitOffer(kSender, kHostile), kHostile, own);
  const Offer last = AwaitOffer(kSender, kHostile);
  Steal(last, kSender, SecondHalf(last));
  ReceiveInto(lenders);
  Block got;
  CHECK_OK(ferry_recv(got.bytes, kBytes, kLender, kKept, nullptr));
  CHECK_BYTES(got.bytes, kBytes, Block::Name(kLender));
  CHECK_OK(ferry_wait(&kept, nullptr));
}

// ---- The others ---------------------------------------------------------------------------------

void BeSender(const Block& block) {
  SendRefused(block, kLender, kStolen);
  for (int tag = kStolen + 1; tag < kStolen + 4; ++tag) {
    SendRefused(block, kHostile, tag);
  }
  CHECK_OK(ferry_recv(nullptr, 0, kHostile, kGo, nullptr));
  SendRefused(block, kHostile, kWrongReceive);
  Say("sends refused", 5);
  Block got;
  CHECK_OK(ferry_recv(got.bytes, kBytes, kHostile, kKept, nullptr));
  CHECK_BYTES(got.bytes, kBytes, Block::Name(kHostile));
}

void BeLender(const Block& block) { CHECK_OK(ferry_send(block.bytes, kBytes, kHostile, kKept)); }

void GoOn(const Block& block) {
  const int next = ferry::ranks::Right();
  const int previous = ferry::ranks::Left();
  for (int round = 0; round < 20; ++round) {
    Block got;
    ferry_request requests[2];
    ferry_status statuses[2];
    CHECK_OK(ferry_irecv(got.bytes, kBytes, previous, kRing, &requests[0]));
    CHECK_OK(ferry_isend(block.bytes, kBytes, next, kRing, &requests[1]));
    CHECK_OK(ferry_waitall(2, requests, statuses));
    CHECK_BYTES(got.bytes, kBytes, Block::Name(previous));
    std::free(got.bytes);
  }
}

}  // namespace

int main() {
  CHECK_OK(ferry_init(FERRY_THREAD_SINGLE, nullptr));
  CHECK_OK(ferry_barrier());  // so that all inboxes are mapped
  void* heap = nullptr;
  if (ferry_rank() == kLender) {  // its lent memory has a number that rank 0's has not
    CHECK_OK(ferry_alloc(kBytes, FERRY_MEMORY_HOST, 0, &heap));
  }
  const Block block;
  switch (ferry_rank()) {
    case kHostile:
      BeHostile(block);
      break;
    case kSender:
      BeSender(block);
      break;
    default:
      BeLender(block);
  }
  CHECK_OK(ferry_barrier());
  block.ExpectUntouched();
  GoOn(block);
  Say("all right");
  CHECK_OK(ferry_finalize());
  return 0;
}
