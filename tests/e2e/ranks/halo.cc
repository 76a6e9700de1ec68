// Halo exchanges on streams and by CPUs: every cell of every block, owned or ghost, is compared
// with a serial program's. Runs every box of ranks that the job's number of ranks makes, in one to
// three dimensions. With the word "disagree": two ranks whose descriptions do not fit together.
// With "late": the neighbour's next message is there before the stream has unpacked the last one.
// With "death": one rank is killed, while ready sends are used, or standard ones with one word
// more.
#include <algorithm>
#include <array>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <semaphore>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/e2e/ranks/check.h"
#include "tests/e2e/ranks/halo_rounds.h"

namespace {

using namespace ferry::halo_rounds;  // NOLINT(google-build-using-namespace)
using ferry::Sends;

void Run(const Case& of, Sends sends, ferry_stream stream) {
  ferry::halo_rounds::Run<ferry::EmulatedDevice>(of, sends, stream, [](size_t bytes) {
    return ferry::Buffer<std::byte>(bytes, FERRY_MEMORY_DEVICE);
  });
}

// All boxes of the job's ranks in so many dimensions.
std::vector<Triple> Boxes(int dimensions) {
  std::vector<Triple> boxes;
  const int size = ferry_size();
  for (int z = 1; z <= (dimensions > 2 ? size : 1); ++z) {
    for (int y = 1; y <= (dimensions > 1 ? size : 1); ++y) {
      for (int x = 1; x <= size; ++x) {
        if (x * y * z == size) {
          boxes.push_back({x, y, z});
        }
      }
    }
  }
  return boxes;
}

void RunAll(ferry_stream stream) {
  constexpr Sends kSends[] = {Sends::kReady, Sends::kStandard, Sends::kByCpu, Sends::kStaged};
  int count = 0;
  for (int dimensions = 1; dimensions <= 3; ++dimensions) {
    // All axes are periodic or none, where every mixture would take too long.
    const int all = (1 << dimensions) - 1;
    const bool has_mixtures = dimensions < 3 && ferry_size() <= 4;
    for (const Triple& ranks : Boxes(dimensions)) {
      for (int periodic = 0; periodic <= all; periodic += has_mixtures ? 1 : all) {
        // The exchanged parts, and the rest, vary from case to case; over time each way to send
        // meets all of them.
        const int wanted = dimensions == 3   ? 1 + count % 7
                           : dimensions == 2 ? 1 + 2 * (count % 3)
                                             : 1;
        const Case of{dimensions,
                      ranks,
                      {(periodic & 1) != 0, (periodic & 2) != 0, (periodic & 4) != 0},
                      (wanted & 1) != 0 || dimensions == 1,
                      (wanted & 2) != 0,
                      (wanted & 4) != 0,
                      1 + count % 2,
                      count % 3 == 0 ? 3 : 1};
        if (!of.faces && !of.corners && dimensions == 2) {
          continue;
        }
        for (const Sends sends : kSends) {
          if (ferry_size() <= 4 || sends == kSends[count % 4]) {  // larger jobs: each in its turn
            Run(of, sends, stream);
          }
        }
        Case all = of;
        all.faces = all.edges = all.corners = true;
        Run(all, kSends[count % 2], stream);
        ++count;
      }
    }
  }
}

// A scatter in which ghosts replace the owner's values, for cells that have one ghost each.
void RunReplacing(ferry_stream stream) {
  const int size = ferry_size();
  ferry::HaloBlock block;
  block.dimensions = 1;
  block.cells = {4, 1, 1};
  block.ranks = {size, 1, 1};
  block.periodic[0] = true;
  block.element_bytes = sizeof(int32_t);
  ferry::Halo halo(block, stream, Sends::kReady);
  ferry::Buffer<int32_t> field(6, FERRY_MEMORY_DEVICE);
  const std::array<int32_t, 6> values = {100 + ferry_rank(), 1, 2, 3, 4, 200 + ferry_rank()};
  ferry::Check(ferry_memcpy(field.data(), values.data(), sizeof(values)));
  halo.EnqueueScatterReplacing(field.data());
  halo.Wait();
  std::array<int32_t, 6> now;
  ferry::Check(ferry_memcpy(now.data(), field.data(), sizeof(now)));
  CHECK_EQ(now[0], values[0]);
  CHECK_EQ(now[1], 200 + (ferry_rank() + size - 1) % size);
  CHECK_EQ(now[2], 2);
  CHECK_EQ(now[4], 100 + (ferry_rank() + 1) % size);
  CHECK_EQ(now[5], values[5]);
}

template <typename Use>
void ExpectRefusal(const std::string& wanted, Use&& use) {
  try {
    use();
  } catch (const std::invalid_argument& error) {
    if (std::string(error.what()).find(wanted) != std::string::npos) {
      return;
    }
    std::fprintf(stderr, "\"%s\" is not in: %s\n", wanted.c_str(), error.what());
    std::exit(1);
  }
  std::fprintf(stderr, "no refusal with \"%s\"\n", wanted.c_str());
  std::exit(1);
}

void RunMistakes(ferry_stream stream) {
  ferry::HaloBlock block;
  block.dimensions = 1;
  block.cells = {4, 1, 1};
  block.ranks = {ferry_size() + 1, 1, 1};
  ExpectRefusal("the job has " + std::to_string(ferry_size()) + " ranks",
                [&] { ferry::Halo(block, stream, Sends::kReady); });
  block.ranks[0] = ferry_size();
  block.element_bytes = 6;
  ferry::Halo halo(block, stream, Sends::kReady);
  ExpectRefusal("EnqueueGather: the field is null", [&] { halo.EnqueueGather(nullptr); });
  int32_t number = 0;
  ExpectRefusal("no multiple of the 4 bytes", [&] { halo.EnqueueScatter(&number); });
}

void RunDisagreement(ferry_stream stream) {
  ferry::HaloBlock block;
  block.dimensions = 2;
  block.cells = {4, 4 + ferry_rank(), 1};
  block.ranks = {2, 1, 1};
  ExpectRefusal("cells[1] is " + std::to_string(4 + ferry_rank()) + ", but rank " +
                    std::to_string(1 - ferry_rank()) + ", a neighbour, has",
                [&] { ferry::Halo(block, stream, Sends::kReady); });
}

// A device whose stream stands still until the CPU waits for it and the neighbour's message of this
// exchange is there.
struct LateDevice : ferry::EmulatedDevice {
  static constexpr int kNeighbour = 1;
  static constexpr int kSentTag = 1;  // the neighbour: it has sent, and the data have been taken

  template <typename Body>
  static void Launch(Stream stream, const ferry::HaloKernel* kernel) {
    Hold(stream);
    EmulatedDevice::Launch<Body>(stream, kernel);
  }
  static void Copy(Stream stream, void* destination, const void* source, size_t size_bytes) {
    Hold(stream);
    EmulatedDevice::Copy(stream, destination, source, size_bytes);
  }
  static void Synchronize(Stream stream) {
    if (std::exchange(is_held, false)) {
      ferry::Request::Receive(nullptr, 0, kNeighbour, kSentTag).Wait();
      gate.release();
    }
    EmulatedDevice::Synchronize(stream);
  }

 private:
  static void Hold(Stream stream) {
    if (!std::exchange(is_held, true)) {
      ferry::Check(ferry_stream_launch(
          stream, [](void*) { gate.acquire(); }, nullptr));
    }
  }

  static inline bool is_held = false;
  static inline std::binary_semaphore gate{0};
};

constexpr int kLateRounds = 4;

// The neighbour of a late rank. Its messages are long and lie where the other one reads them: they
// are copied once, so they have been sent only when they are where the receive wants them.
void RunNeighbourOfLate(const ferry::HaloBlock& block, Sends sends) {
  const auto neighbours = ferry::halo::NeighboursOf(block, ferry_rank());
  ferry::halo::CompareWithNeighbours(block, static_cast<int>(sends), neighbours);
  const ferry::halo::Neighbour& late = neighbours.at(0);
  const int receive_tag = ferry::halo::TagOf(block, ferry::halo::Opposite(late.step));
  const ferry::Buffer<uint8_t> in(block.element_bytes);
  const ferry::Buffer<uint8_t> out(block.element_bytes);
  for (int round = 0; round < kLateRounds; ++round) {
    auto receive = ferry::Request::Receive(in.data(), in.size(), late.rank, receive_tag);
    std::fill_n(out.data(), out.size(), static_cast<uint8_t>(round));
    ferry::Request::Send(out.data(), out.size(), late.rank, ferry::halo::TagOf(block, late.step))
        .Wait();
    ferry::Request::Send(nullptr, 0, late.rank, LateDevice::kSentTag).Wait();
    receive.Wait();
  }
  ferry::Request::Send(nullptr, 0, late.rank, LateDevice::kSentTag).Wait();
}

// The value of a ghost cell when the stream comes by.
struct GhostSeen {
  const uint8_t* cell;
  size_t size_bytes;
  int number;
  size_t wrong = 0;
};

void LookAtGhost(void* argument) {
  GhostSeen& seen = *static_cast<GhostSeen*>(argument);
  seen.wrong =
      seen.size_bytes - static_cast<size_t>(std::count(seen.cell, seen.cell + seen.size_bytes,
                                                       static_cast<uint8_t>(seen.number)));
}

void RunLate(ferry_stream stream, Sends sends) {
  ferry::HaloBlock block;
  block.dimensions = 1;
  block.cells = {2, 1, 1};
  block.ranks = {2, 1, 1};
  block.element_bytes = 100'000;
  if (ferry_rank() == LateDevice::kNeighbour) {
    return RunNeighbourOfLate(block, sends);
  }
  ferry::BasicHalo<LateDevice> halo(block, stream, sends);
  const ferry::Buffer<uint8_t> field(halo.field_bytes(), FERRY_MEMORY_DEVICE);
  std::deque<GhostSeen> ghosts;
  for (int round = 0; round < kLateRounds; ++round) {
    halo.EnqueueGather(field.data());
    ghosts.push_back({field.data() + 3 * block.element_bytes, block.element_bytes, round});
    ferry::Check(ferry_stream_launch(stream, LookAtGhost, &ghosts.back()));
  }
  halo.Wait();
  for (const GhostSeen& seen : ghosts) {
    CHECK_EQ(seen.wrong, 0);
  }
}

// Rank 1 dies between exchanges. The others' streams do not hang, and their halos can be freed.
void RunDeath(ferry_stream stream, ferry::Sends sends) {
  ferry::HaloBlock block;
  block.dimensions = 1;
  block.cells = {4, 1, 1};
  block.ranks = {ferry_size(), 1, 1};
  block.periodic[0] = true;
  ferry::Halo halo(block, stream, sends);
  const ferry::Buffer<double> field(6, FERRY_MEMORY_DEVICE);
  halo.EnqueueGather(field.data());
  halo.Wait();
  if (ferry_rank() == 1) {
    std::raise(SIGKILL);
  }
  try {
    for (int i = 0; i < 5; ++i) {
      halo.EnqueueGather(field.data());
    }
    halo.Wait();
  } catch (const ferry::Error& error) {
    CHECK_EQ(error.code(), FERRY_ERR_PEER_DIED);
    return;
  }
  CHECK_EQ(0, FERRY_ERR_PEER_DIED);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const ferry::Session session;
    ferry_stream stream = nullptr;
    ferry::Check(ferry_stream_create(0, &stream));
    const std::string what = argc > 1 ? argv[1] : "";
    if (what == "disagree") {
      RunDisagreement(stream);
    } else if (what == "late") {
      RunLate(stream, Sends::kByCpu);
      RunLate(stream, Sends::kStaged);
    } else if (what == "death") {
      RunDeath(stream, argc > 2 ? Sends::kStandard : Sends::kReady);
      std::printf("rank %d has seen it\n", ferry_rank());
      std::fflush(stdout);
    } else {
      RunMistakes(stream);
      RunReplacing(stream);
      RunAll(stream);
    }
    ferry::Check(ferry_stream_destroy(&stream));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank %d: %s\n", ferry_rank(), error.what());
    return 1;
  }
}
