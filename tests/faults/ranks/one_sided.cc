// Ranks work in the memory of all others, for ever, until one of them is lost.
//
//   one_sided put         puts, each with its quiet
//   one_sided get         long gets
//   one_sided atomic      atomic operations that find something out
//   one_sided strided     puts and gets of many blocks
//   one_sided accumulate  accumulates that find something out, by CPUs and by ferryd
//   one_sided endure      all of these but the last, until SIGUSR1. A cut link prints
//                         "rank R: cut at NS", and what passes after it "rank R: back at NS"
//
// Prints "rank R: under way" after a few rounds. The first error ends it with status 3.
#include "ferry/one_sided.h"

#include <sched.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <string_view>
#include <vector>

#include "client/api/front_end.h"
#include "tests/e2e/ranks/check.h"
#include "tests/faults/ranks/say.h"

namespace {

using ferry::ranks::Say;
using ferry::ranks::StopOnError;

constexpr size_t kBytes = 1 << 20;
constexpr long kUnderWay = 20;

std::vector<ferry_place> Open() {
  void* memory = nullptr;
  StopOnError(ferry_alloc(kBytes, FERRY_MEMORY_HOST, 0, &memory));
  std::vector<ferry_place> places(static_cast<size_t>(ferry_size()));
  ferry_place& own = places[static_cast<size_t>(ferry_rank())];
  StopOnError(ferry_locate(memory, kBytes, &own));
  for (int distance = 1; distance < ferry_size(); ++distance) {
    const int to = (ferry_rank() + distance) % ferry_size();
    const int from = (ferry_rank() + ferry_size() - distance) % ferry_size();
    ferry_request request;
    StopOnError(ferry_irecv(&places[static_cast<size_t>(from)], sizeof(own), from, 1, &request));
    StopOnError(ferry_send(&own, sizeof(own), to, 1));
    StopOnError(ferry_wait(&request, nullptr));
  }
  return places;
}

// Every second one on elements that no CPU changes at once. The sentence of an error is that of the
// next call with the rank.
int Accumulate(const ferry_place& place, uint8_t* buffer, long round) {
  using ferry::reduction::NumberKind;
  constexpr uint64_t kElements = 3000;
  const auto sum = *ferry::shm::Accumulation::Of(
      ferry::reduction::OpKind::kSum,
      round % 2 == 0 ? NumberKind::kFloat64 : NumberKind::kComplexLongDouble);
  const uint64_t size_bytes = kElements * sum.element_bytes();
  const ferry::client::RemoteAddress there{static_cast<uint32_t>(place.rank), place.segment,
                                           place.offset};
  const ferry::ErrorCode error =
      ferry_front_end(ferry::client::kFrontEndVersion)
          ->one_sided->Accumulate(nullptr, {there, sum, kElements}, buffer, buffer + size_bytes,
                                  ferry::client::WhenDone::kAtReturn);
  if (error == ferry::ErrorCode::kOk) {
    return FERRY_SUCCESS;
  }
  const int next = ferry_get(0, buffer, place, 8);
  return next == FERRY_SUCCESS ? static_cast<int>(error) : next;
}

// Does `what` with that rank's memory. The first error.
int Work(std::string_view what, const ferry_place& place, uint8_t* buffer, long round) {
  if (what == "put") {
    const int error = ferry_put(0, place, buffer, 8 + 1000 * static_cast<size_t>(round % 20));
    return error == FERRY_SUCCESS ? ferry_quiet(0) : error;
  }
  if (what == "get") {
    return ferry_get(0, buffer, place, kBytes);
  }
  if (what == "atomic") {
    uint64_t found = 0;
    return ferry_atomic_fetch(0, FERRY_ATOMIC_ADD, place, 8, 1, 0, &found);
  }
  if (what == "accumulate") {
    return Accumulate(place, buffer, round);
  }
  const int error = ferry_iput(0, place, 40, buffer, 24, 16, 500);
  return error == FERRY_SUCCESS ? ferry_iget(0, buffer, 24, place, 40, 16, 500) : error;
}

bool was_cut = false;

// Works through cuts: reports the first error that is not of a cut.
void Endure(std::string_view what, const ferry_place& place, uint8_t* buffer, long round) {
  static bool is_cut = false;
  const int error = Work(what, place, buffer, round);
  if (error != FERRY_SUCCESS && error != FERRY_ERR_LINK_DOWN) {
    StopOnError(error);
  }
  if (is_cut != (error != FERRY_SUCCESS)) {
    is_cut = !is_cut;
    was_cut = true;
    Say(is_cut ? "cut at" : "back at", static_cast<long>(ferry::ranks::NowNs()));
  }
  if (is_cut) {
    sched_yield();
  }
}

std::atomic<bool> is_enough{false};  // set by a signal

}  // namespace

int main(int argc, char** argv) {
  constexpr std::string_view kAll[] = {"put", "get", "atomic", "strided"};
  const std::string_view what = argc > 1 ? argv[1] : "put";
  CHECK_OK(ferry_init(FERRY_THREAD_SINGLE, nullptr));
  std::signal(SIGUSR1, [](int) { is_enough = true; });
  const std::vector<ferry_place> places = Open();
  std::vector<uint8_t> buffer(kBytes);
  for (long round = 0; !is_enough; ++round) {
    for (int distance = 1; distance < ferry_size(); ++distance) {
      const auto to = static_cast<size_t>((ferry_rank() + distance) % ferry_size());
      if (what == "endure") {
        Endure(kAll[round % 4], places[to], buffer.data(), round);
      } else {
        StopOnError(Work(what, places[to], buffer.data(), round));
      }
    }
    if (round == kUnderWay) {
      Say("under way");
    }
  }
  Say("all right");
  if (was_cut) {  // messages that it cost are to be told of, too, and not only at the end
    CHECK_EQ(ferry_barrier(), FERRY_ERR_LINK_DOWN);
  }
  StopOnError(ferry_finalize());
}
