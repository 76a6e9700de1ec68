// ready_together PAIRS SIZE ROUNDS FERRYCTL: two ranks, each with PAIRS matched ready sends to the
// other one that one call starts on a queue, all rounds enqueued in turn. Then rank 0 prints its
// daemon's report on its NIC, and the sends are started in other ways: alone, by the rank, without
// one that was freed.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "ferry/ferry.h"
#include "ferry/stream.h"
#include "tests/e2e/ranks/check.h"
#include "tests/e2e/ranks/queue.h"

namespace {

using namespace ferry::ranks;  // NOLINT: the helpers of this folder

class ReadySends {
 public:
  ReadySends(size_t count, size_t size_bytes)
      : words_(size_bytes / sizeof(uint64_t)), going_(count * words_), coming_(count * words_) {
    for (size_t i = 0; i < count; ++i) {
      const auto tag = static_cast<int>(i);
      ferry_request request = FERRY_REQUEST_NULL;
      CHECK_OK(ferry_recv_init(&coming_[i * words_], size_bytes, Partner(), tag, &request));
      receives_.push_back(request);
      CHECK_OK(ferry_rsend_init(&going_[i * words_], size_bytes, Partner(), tag, &request));
      sends_.push_back(request);
    }
    std::vector<ferry_request> all = receives_;
    all.insert(all.end(), sends_.begin(), sends_.end());
    CHECK_OK(ferry_matchall(all.size(), all.data()));
  }
  ~ReadySends() {
    while (!sends_.empty()) {
      DropFirst();
    }
  }
  void DropFirst() {
    CHECK_OK(ferry_request_free(&sends_.front()));
    sends_.erase(sends_.begin());
    CHECK_OK(ferry_request_free(&receives_.front()));
    receives_.erase(receives_.begin());
    ++dropped_;
  }

  // The receives are started when this returns, at both ends.
  void Begin() {
    ++round_;
    for (size_t i = dropped_ * words_; i < going_.size(); ++i) {
      going_[i] = Word(ferry_rank(), i);
    }
    for (const ferry_request request : receives_) {
      CHECK_OK(ferry_start(request));
    }
    CHECK_OK(ferry_barrier());
  }
  void StartTogether(const Stream& stream, size_t first = 0) {
    CHECK_OK(ferry_enqueue_startall(stream.queue, sends_.size() - first, &sends_[first]));
  }
  void WaitOnQueue(const Stream& stream, size_t first = 0) {
    CHECK_OK(ferry_enqueue_waitall(stream.queue, sends_.size() - first, &sends_[first]));
    CHECK_OK(ferry_queue_wait(stream.queue));
  }
  void Check() {
    CHECK_OK(ferry_waitall(receives_.size(), receives_.data(), nullptr));
    for (size_t i = dropped_ * words_; i < coming_.size(); ++i) {
      CHECK_EQ(coming_[i], Word(1 - ferry_rank(), i));
    }
    CHECK_OK(ferry_barrier());
  }
  ferry_request& first() { return sends_.front(); }

 private:
  uint64_t Word(int rank, size_t index) const {
    return static_cast<uint64_t>(rank) << 56 | round_ << 40 | index;
  }

  const size_t words_;
  uint64_t round_ = 0;
  size_t dropped_ = 0;
  std::vector<uint64_t> going_;
  std::vector<uint64_t> coming_;
  std::vector<ferry_request> receives_;
  std::vector<ferry_request> sends_;
};

void Together(ReadySends& sends, const Stream& stream) {
  sends.Begin();
  sends.StartTogether(stream);
  sends.WaitOnQueue(stream);
  sends.Check();
}

}  // namespace

int main(int argc, char** argv) {
  CHECK_EQ(argc, 5);
  CHECK_OK(ferry_init(FERRY_THREAD_SINGLE, nullptr));
  {
    Stream stream;
    ReadySends sends(std::strtoul(argv[1], nullptr, 10), std::strtoul(argv[2], nullptr, 10));
    for (int round = std::atoi(argv[3]); round > 0; --round) {
      Together(sends, stream);
    }
    if (ferry_rank() == 0) {
      CHECK_EQ(std::system((std::string(argv[4]) + " nics --json").c_str()), 0);
    }
    CHECK_OK(ferry_barrier());

    sends.Begin();  // one alone, the others together
    CHECK_OK(ferry_enqueue_start(stream.queue, sends.first()));
    sends.StartTogether(stream, 1);
    sends.WaitOnQueue(stream);
    sends.Check();
    Together(sends, stream);
    sends.Begin();  // one by the rank
    CHECK_OK(ferry_start(sends.first()));
    sends.StartTogether(stream, 1);
    sends.WaitOnQueue(stream, 1);
    CHECK_OK(ferry_wait(&sends.first(), nullptr));
    sends.Check();
    Together(sends, stream);
    sends.DropFirst();
    Together(sends, stream);
    stream.End();
  }
  CHECK_OK(ferry_finalize());
  return 0;
}
