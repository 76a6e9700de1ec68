// Matched persistent requests, started by the ranks and by streams, in all directions: every byte
// of every message is checked. Any even number of ranks, on any nodes; rank r and r^1 are partners.
#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>
#include <thread>
#include <vector>

#include "ferry/ferry.h"
#include "ferry/stream.h"
#include "tests/e2e/ranks/buffer.h"
#include "tests/e2e/ranks/check.h"

namespace {

using ferry::ranks::Buffer;
using ferry::ranks::kDevice;
using ferry::ranks::Kind;

int Partner() { return ferry_rank() ^ 1; }

enum class Mode { kStandard, kReady };

// One message each way, again and again; its receive may have more room.
class Pair {
 public:
  Pair(Kind kind, size_t size, Mode mode, int tag, size_t more_room = 0)
      : going_(kind, size + 8), coming_(kind, size + more_room + 8), size_(size) {
    CHECK_OK((mode == Mode::kReady ? ferry_rsend_init : ferry_send_init)(going_.at(8), size,
                                                                         Partner(), tag, &send_));
    CHECK_OK(ferry_recv_init(coming_.at(8), size + more_room, Partner(), tag, &receive_));
  }
  ~Pair() {
    CHECK_OK(ferry_request_free(&send_));
    CHECK_OK(ferry_request_free(&receive_));
  }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;

  std::vector<ferry_request> both() const { return {receive_, send_}; }
  ferry_request send() const { return send_; }
  ferry_request receive() const { return receive_; }
  // The message that this rank sends in that round, or its partner.
  uint64_t Message(int round, int rank) const {
    return static_cast<uint64_t>(round) * 1000 + static_cast<uint64_t>(rank) * 10 + size_;
  }
  void Fill(int round) { going_.Fill(8, size_, Message(round, ferry_rank())); }
  void Check(int round) {
    coming_.Check(8, size_, Message(round, Partner()));
    coming_.CheckByte(0, 0);
  }

 private:
  Buffer going_;
  Buffer coming_;
  const size_t size_;
  ferry_request send_ = FERRY_REQUEST_NULL;
  ferry_request receive_ = FERRY_REQUEST_NULL;
};

class Stream {
 public:
  Stream() {
    CHECK_OK(ferry_stream_create(0, &stream_));
    CHECK_OK(ferry_queue_init(FERRY_QUEUE_FERRY, &stream_, &queue_));
  }
  ~Stream() {
    CHECK_OK(ferry_queue_free(&queue_));
    CHECK_OK(ferry_stream_destroy(&stream_));
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  ferry_queue queue() const { return queue_; }
  ferry_stream stream() const { return stream_; }

 private:
  ferry_stream stream_ = nullptr;
  ferry_queue queue_ = FERRY_QUEUE_NULL;
};

int rounds = 20;  // of each kind

void AwaitGate(void* is_open) {
  while (!static_cast<std::atomic<bool>*>(is_open)->load(std::memory_order_acquire)) {
    std::this_thread::yield();
  }
}

// A ready send needs a receive that is started: the ranks tell each other.
void AwaitPartner() {
  ferry_request request = FERRY_REQUEST_NULL;
  CHECK_OK(ferry_isend(nullptr, 0, Partner(), 999, &request));
  CHECK_OK(ferry_recv(nullptr, 0, Partner(), 999, nullptr));
  CHECK_OK(ferry_wait(&request, nullptr));
}

void ByRanks(Pair& pair, int first_round) {
  for (int round = first_round; round < first_round + rounds; ++round) {
    pair.Fill(round);
    ferry_request receive = pair.receive();
    ferry_request send = pair.send();
    CHECK_OK(ferry_start(receive));
    AwaitPartner();
    CHECK_OK(ferry_start(send));
    ferry_status status;
    CHECK_OK(ferry_wait(&receive, &status));
    CHECK_EQ(status.source, Partner());
    CHECK_OK(ferry_wait(&send, nullptr));
    pair.Check(round);
  }
}

void ByStreams(Pair& pair, Stream& stream, int first_round) {
  for (int round = first_round; round < first_round + rounds; ++round) {
    pair.Fill(round);
    CHECK_OK(ferry_enqueue_start(stream.queue(), pair.receive()));
    CHECK_OK(ferry_queue_wait(stream.queue()));
    AwaitPartner();
    CHECK_OK(ferry_enqueue_start(stream.queue(), pair.send()));
    CHECK_OK(ferry_enqueue_waitall(stream.queue(), 2, pair.both().data()));
    CHECK_OK(ferry_queue_wait(stream.queue()));
    pair.Check(round);
  }
}

// Streams carry out rounds while no CPU looks: each sends what the last one received.
void Enqueued(Kind kind, size_t size, Stream& stream) {
  Buffer going(kind, size);
  Buffer coming(kind, size);
  going.Fill(0, size, static_cast<uint64_t>(ferry_rank()));
  ferry_request requests[2];
  CHECK_OK(ferry_recv_init(coming.at(0), size, Partner(), 50, &requests[0]));
  CHECK_OK(ferry_send_init(going.at(0), size, Partner(), 50, &requests[1]));
  CHECK_OK(ferry_matchall(2, requests));
  const int ahead = 5 * rounds + 1;  // an odd number
  for (int i = 0; i < ahead; ++i) {
    CHECK_OK(ferry_enqueue_startall(stream.queue(), 2, requests));
    CHECK_OK(ferry_enqueue_waitall(stream.queue(), 2, requests));
    CHECK_OK(ferry_stream_memcpy(stream.stream(), going.at(0), coming.at(0), size));
  }
  CHECK_OK(ferry_queue_wait(stream.queue()));
  coming.Check(0, size, static_cast<uint64_t>(Partner()));  // an odd number of exchanges
  CHECK_OK(ferry_request_free(&requests[0]));
  CHECK_OK(ferry_request_free(&requests[1]));
}

// One call matches a receive of host memory, and a send of device memory, which may be refused.
void OneEndOfEach(size_t size) {
  Buffer going(kDevice, size);
  Buffer coming(ferry::ranks::kHeap, size);
  ferry_request requests[2];
  CHECK_OK(ferry_recv_init(coming.at(0), size, Partner(), 70, &requests[0]));
  CHECK_OK(ferry_send_init(going.at(0), size, Partner(), 70, &requests[1]));
  CHECK_OK(ferry_matchall(2, requests));
  for (int round = 0; round < rounds; ++round) {
    going.Fill(0, size, static_cast<uint64_t>(round + ferry_rank()));
    ferry_request started[2] = {requests[0], requests[1]};
    CHECK_OK(ferry_start(started[0]));
    CHECK_OK(ferry_start(started[1]));
    CHECK_OK(ferry_waitall(2, started, nullptr));
    coming.Check(0, size, static_cast<uint64_t>(round + Partner()));
  }
  CHECK_OK(ferry_request_free(&requests[0]));
  CHECK_OK(ferry_request_free(&requests[1]));
}

// One side by its rank, the other by a stream.
void Mixed(Pair& pair, Stream& stream, int first_round) {
  for (int round = first_round; round < first_round + rounds; ++round) {
    pair.Fill(round);
    if ((ferry_rank() + round) % 2 == 0) {
      CHECK_OK(ferry_enqueue_startall(stream.queue(), 2, pair.both().data()));
      CHECK_OK(ferry_enqueue_waitall(stream.queue(), 2, pair.both().data()));
      CHECK_OK(ferry_queue_wait(stream.queue()));
    } else {
      std::vector<ferry_request> requests = pair.both();
      CHECK_OK(ferry_start(requests[0]));
      CHECK_OK(ferry_start(requests[1]));
      CHECK_OK(ferry_waitall(2, requests.data(), nullptr));
    }
    pair.Check(round);
  }
}

// Between nodes a short standard send is over before its receive has started; and a receive whose
// messages are there already starts again and again, faster than a daemon looks.
void Ahead(Stream& stream) {
  constexpr size_t kSize = 64;
  constexpr int kBurst = 50;
  const bool sends = ferry_rank() % 2 == 0;
  Buffer memory(kDevice, kSize);
  ferry_request request = FERRY_REQUEST_NULL;
  CHECK_OK((sends ? ferry_send_init(memory.at(0), kSize, Partner(), 60, &request)
                  : ferry_recv_init(memory.at(0), kSize, Partner(), 60, &request)));
  CHECK_OK(ferry_match(request));
  for (int round = 0; round < rounds; ++round) {
    if (sends) {
      memory.Fill(0, kSize, static_cast<uint64_t>(round));
      CHECK_OK(ferry_enqueue_start(stream.queue(), request));
      CHECK_OK(ferry_enqueue_wait(stream.queue(), request));
      CHECK_OK(ferry_queue_wait(stream.queue()));
      AwaitPartner();
    } else {
      AwaitPartner();  // only now
      CHECK_OK(ferry_enqueue_start(stream.queue(), request));
      CHECK_OK(ferry_enqueue_wait(stream.queue(), request));
      CHECK_OK(ferry_queue_wait(stream.queue()));
      memory.Check(0, kSize, static_cast<uint64_t>(round));
    }
    std::atomic<bool> is_open{sends};  // the receiver's stream begins last
    CHECK_OK(ferry_stream_launch(stream.stream(), AwaitGate, &is_open));
    for (int i = 0; i < kBurst; ++i) {
      CHECK_OK(ferry_enqueue_start(stream.queue(), request));
      CHECK_OK(ferry_enqueue_wait(stream.queue(), request));
    }
    AwaitPartner();
    is_open.store(true, std::memory_order_release);
    CHECK_OK(ferry_queue_wait(stream.queue()));
  }
  CHECK_OK(ferry_request_free(&request));
}

}  // namespace

// matched [ahead|few|device]: only messages that leave ahead of their receives, or only a few
// rounds and sizes of everything else, for slow networks, and of those only device memory.
int main(int argc, char** argv) {
  CHECK_OK(ferry_init(FERRY_THREAD_SINGLE, nullptr));
  const std::string_view what = argc > 1 ? argv[1] : "";
  std::vector<size_t> sizes = {0, 1, 64, 8192, 8193, 300'000};
  std::vector<Kind> kinds = {ferry::ranks::kDevice, ferry::ranks::kHeap, ferry::ranks::kPinned,
                             ferry::ranks::kPrivate};
  if (what == "device") {
    kinds = {kDevice};
  }
  if (what == "few" || what == "device") {
    rounds = 2;
    sizes = {0, 64, 8193, 300'000};
  }
  if (what == "ahead") {
    Stream stream;
    Ahead(stream);
  } else {
    Stream stream;
    int tag = 0;
    OneEndOfEach(100'000);
    for (const Kind kind : kinds) {
      for (const size_t size : sizes) {
        for (const Mode mode : {Mode::kStandard, Mode::kReady}) {
          Pair pair(kind, size, mode, tag++);
          CHECK_OK(ferry_matchall(2, pair.both().data()));
          ByRanks(pair, 0);
          ByStreams(pair, stream, 100);
          if (mode == Mode::kStandard) {
            Mixed(pair, stream, 200);
          }
        }
        Enqueued(kind, size, stream);
      }
      // Short and long messages into receives that have room for long ones.
      for (const size_t size : {size_t{100}, size_t{8192}, size_t{20'000}}) {
        Pair pair(kind, size, Mode::kStandard, tag++, 30'000);
        CHECK_OK(ferry_matchall(2, pair.both().data()));
        ByRanks(pair, 0);
        ByStreams(pair, stream, 100);
      }
    }
  }
  CHECK_OK(ferry_finalize());
  return 0;
}
