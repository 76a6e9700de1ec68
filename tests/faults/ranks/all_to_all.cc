// Every rank sends messages of several sizes to every other one, and checks those that it gets.
#include <vector>

#include "ferry/ferry.h"
#include "tests/e2e/ranks/check.h"
#include "tests/faults/ranks/say.h"

namespace {

using ferry::ranks::StopOnError;

constexpr size_t kSizes[] = {8, 4096, 70'000};
constexpr size_t kStride = 70'016;

uint64_t NameOf(int from, int to, size_t size) {
  return (static_cast<uint64_t>(from) * 1024 + static_cast<uint64_t>(to)) * 1024 + size % 1024;
}

void ExchangeWithAll(size_t size, std::vector<char>* out, std::vector<char>* in) {
  const int ranks = ferry_size();
  std::vector<ferry_request> requests;
  for (int i = 0; i < ranks; ++i) {
    const int from = (ferry_rank() + i) % ranks;
    requests.emplace_back();
    StopOnError(
        ferry_irecv(&(*in)[kStride * static_cast<size_t>(from)], size, from, 3, &requests.back()));
  }
  for (int i = 0; i < ranks; ++i) {
    const int to = (ferry_rank() + i) % ranks;
    char* message = &(*out)[kStride * static_cast<size_t>(to)];
    ferry::ranks::Fill(message, size, NameOf(ferry_rank(), to, size));
    requests.emplace_back();
    StopOnError(ferry_isend(message, size, to, 3, &requests.back()));
  }
  StopOnError(ferry_waitall(requests.size(), requests.data(), nullptr));
  for (int from = 0; from < ranks; ++from) {
    CHECK_BYTES(&(*in)[kStride * static_cast<size_t>(from)], size,
                NameOf(from, ferry_rank(), size));
  }
}

}  // namespace

int main() {
  CHECK_OK(ferry_init(FERRY_THREAD_SINGLE, nullptr));
  std::vector<char> out(kStride * static_cast<size_t>(ferry_size()));
  std::vector<char> in(out.size());
  for (size_t size : kSizes) {
    ExchangeWithAll(size, &out, &in);
  }
  ferry::ranks::Say("all right");
  StopOnError(ferry_finalize());
}
