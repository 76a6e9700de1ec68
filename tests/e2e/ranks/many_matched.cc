// many_matched PAIRS SIZE ROUNDS FERRYCTL: two ranks, each with PAIRS matched sends to the other
// one and as many receives, all of them started at once, every other one a ready send; the messages
// must arrive complete and in order. Then rank 0 prints its daemon's report on its NIC.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "ferry/ferry.h"
#include "ferry/stream.h"
#include "tests/e2e/ranks/check.h"

namespace {

struct Pairs {
  size_t words;
  std::vector<uint64_t> going;
  std::vector<uint64_t> coming;
  std::vector<ferry_request> receives;
  std::vector<ferry_request> sends;

  Pairs(size_t count, size_t size_bytes)
      : words(size_bytes / sizeof(uint64_t)), going(count * words), coming(count * words) {
    const int partner = 1 - ferry_rank();
    for (size_t i = 0; i < count; ++i) {
      const auto tag = static_cast<int>(i);
      ferry_request request = FERRY_REQUEST_NULL;
      CHECK_OK(ferry_recv_init(&coming[i * words], size_bytes, partner, tag, &request));
      receives.push_back(request);
      auto* const init = i % 2 == 0 ? ferry_send_init : ferry_rsend_init;
      CHECK_OK(init(&going[i * words], size_bytes, partner, tag, &request));
      sends.push_back(request);
    }
    std::vector<ferry_request> all = receives;
    all.insert(all.end(), sends.begin(), sends.end());
    CHECK_OK(ferry_matchall(all.size(), all.data()));
  }

  ~Pairs() {
    for (std::vector<ferry_request>* requests : {&receives, &sends}) {
      for (ferry_request& request : *requests) {
        CHECK_OK(ferry_request_free(&request));
      }
    }
  }

  static uint64_t Word(int rank, size_t index, int round) {
    return static_cast<uint64_t>(rank) << 56 | static_cast<uint64_t>(round) << 40 | index;
  }

  void Exchange(int round) {
    for (size_t i = 0; i < going.size(); ++i) {
      going[i] = Word(ferry_rank(), i, round);
    }
    for (const ferry_request request : receives) {
      CHECK_OK(ferry_start(request));
    }
    CHECK_OK(ferry_barrier());  // so that ready sends find their receives started
    for (const ferry_request request : sends) {
      CHECK_OK(ferry_start(request));
    }
    CHECK_OK(ferry_waitall(receives.size(), receives.data(), nullptr));
    for (size_t i = 0; i < coming.size(); ++i) {
      CHECK_EQ(coming[i], Word(1 - ferry_rank(), i, round));
    }
    CHECK_OK(ferry_waitall(sends.size(), sends.data(), nullptr));
  }
};

}  // namespace

int main(int argc, char** argv) {
  CHECK_EQ(argc, 5);
  CHECK_OK(ferry_init(FERRY_THREAD_SINGLE, nullptr));
  {
    Pairs pairs(std::strtoul(argv[1], nullptr, 10), std::strtoul(argv[2], nullptr, 10));
    const int rounds = std::atoi(argv[3]);
    for (int round = 1; round <= rounds; ++round) {
      pairs.Exchange(round);
    }
    CHECK_OK(ferry_barrier());
    if (ferry_rank() == 0) {
      CHECK_EQ(std::system((std::string(argv[4]) + " nics --json").c_str()), 0);
      CHECK_EQ(std::system((std::string(argv[4]) + " counters --json").c_str()), 0);
    }
    CHECK_OK(ferry_barrier());
  }
  CHECK_OK(ferry_finalize());
  return 0;
}
