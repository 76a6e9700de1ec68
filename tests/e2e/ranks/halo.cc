// Halo exchanges on streams and by CPUs: every cell of every block, owned or ghost, is compared
// with a serial program's. Runs every box of ranks that the job's number of ranks makes, in one to
// three dimensions. With the word "disagree": two ranks whose descriptions do not fit together.
// With "late": the neighbour's next message is there before the stream has unpacked the last one.
// With "death": one rank is killed, while ready sends are used, or standard ones with one word
// more.
#include "ferry/halo.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <deque>
#include <map>
#include <semaphore>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/e2e/ranks/check.h"

namespace {

using Triple = std::array<int, 3>;
using ferry::Sends;

struct Case {
  int dimensions;
  Triple ranks;
  std::array<bool, 3> periodic;
  bool faces, edges, corners;
  int ghost;
  int components;  // of 4 bytes
};

// The whole grid, as the serial program sees it: nothing here is the library's own geometry. Ranks
// at odd places have a cell more.
class Grid {
 public:
  explicit Grid(const Case& of) : of_(of) {}

  Triple PlaceOf(int rank) const {
    const auto& n = of_.ranks;
    return {rank % n[0], (rank / n[0]) % n[1], rank / n[0] / n[1]};
  }
  int CellsAt(int axis, int place) const {
    return axis < of_.dimensions ? 3 + axis + of_.ghost + place % 2 : 1;
  }
  int FirstAt(int axis, int place) const {
    int first = 0;
    for (int i = 0; i < place; ++i) {
      first += CellsAt(axis, i);
    }
    return first;
  }
  Triple CellsOf(int rank) const {
    const Triple place = PlaceOf(rank);
    return {CellsAt(0, place[0]), CellsAt(1, place[1]), CellsAt(2, place[2])};
  }
  int Ghost(int axis) const { return axis < of_.dimensions ? of_.ghost : 0; }

  enum class Kind { kOwned, kGhost, kNothing };
  struct Seen {
    Kind kind;
    Triple cell;  // of the whole grid
  };
  // The cell at `at` of a rank's block, ghosts counted.
  Seen See(int rank, const Triple& at) const {
    const Triple place = PlaceOf(rank);
    Seen seen{Kind::kOwned, {}};
    int axes = 0;
    for (int axis = 0; axis < 3; ++axis) {
      const auto a = static_cast<size_t>(axis);
      const int whole = FirstAt(axis, of_.ranks[a]);
      const int inside = at[a] - Ghost(axis);
      axes += inside < 0 || inside >= CellsAt(axis, place[a]) ? 1 : 0;
      seen.cell[a] = FirstAt(axis, place[a]) + inside;
      if (seen.cell[a] < 0 || seen.cell[a] >= whole) {
        if (!of_.periodic[a]) {
          return {Kind::kNothing, {}};
        }
        seen.cell[a] = (seen.cell[a] + whole) % whole;
      }
    }
    if (axes == 0) {
      return seen;
    }
    const bool wanted = axes == 1 ? of_.faces : axes == of_.dimensions ? of_.corners : of_.edges;
    seen.kind = wanted ? Kind::kGhost : Kind::kNothing;
    return seen;
  }
  template <typename Use>
  void ForEachCell(int rank, Use&& use) const {
    const Triple cells = CellsOf(rank);
    size_t index = 0;
    for (int z = 0; z < cells[2] + 2 * Ghost(2); ++z) {
      for (int y = 0; y < cells[1] + 2 * Ghost(1); ++y) {
        for (int x = 0; x < cells[0] + 2 * Ghost(0); ++x) {
          use(index++, See(rank, {x, y, z}));
        }
      }
    }
  }

 private:
  const Case of_;
};

int32_t ValueOf(const Triple& cell, int round, int component) {
  return ((cell[2] * 100 + cell[1]) * 100 + cell[0]) * 7 + round * 1000 + component;
}
// The value in ghosts before a scatter depends on the rank, since several ranks have ghosts of one
// cell.
int32_t GhostOf(int rank, const Triple& cell, int round, int component) {
  return (rank + 1) * 10 + cell[0] + cell[1] * 2 + cell[2] * 3 + round + component;
}
constexpr int32_t kUntouched = -77;

enum class Kind { kGather, kScatter };

// One round, from the stream's point of view: the field is filled, exchanged, compared.
struct Round {
  const Grid* grid;
  const std::vector<Grid::Seen>* seen;  // of the field's cells
  const std::vector<std::vector<int>>*
      from;  // of the cells: the ranks whose ghosts are scattered to it
  int components;
  int number;
  Kind kind;
  int32_t* field;
  size_t wrong = 0;
};

void FillField(void* argument) {
  const Round& round = *static_cast<Round*>(argument);
  for (size_t i = 0; i < round.seen->size(); ++i) {
    const auto& [kind, cell] = (*round.seen)[i];
    for (int c = 0; c < round.components; ++c) {
      round.field[i * static_cast<size_t>(round.components) + static_cast<size_t>(c)] =
          kind == Grid::Kind::kOwned ? ValueOf(cell, round.number, c)
          : kind == Grid::Kind::kGhost && round.kind == Kind::kScatter
              ? GhostOf(ferry_rank(), cell, round.number, c)
              : kUntouched;
    }
  }
}

int32_t Wanted(const Round& round, size_t index, int component) {
  const auto& [kind, cell] = (*round.seen)[index];
  if (kind == Grid::Kind::kNothing) {
    return kUntouched;
  }
  const int32_t value = ValueOf(cell, round.number, component);
  if (round.kind == Kind::kGather) {
    return value;
  }
  if (kind == Grid::Kind::kGhost) {
    return GhostOf(ferry_rank(), cell, round.number, component);
  }
  int32_t sum = value;
  for (const int rank : (*round.from)[index]) {
    sum += GhostOf(rank, cell, round.number, component);
  }
  return sum;
}

void CompareField(void* argument) {
  Round& round = *static_cast<Round*>(argument);
  for (size_t i = 0; i < round.seen->size(); ++i) {
    for (int c = 0; c < round.components; ++c) {
      const size_t at = i * static_cast<size_t>(round.components) + static_cast<size_t>(c);
      round.wrong += round.field[at] != Wanted(round, i, c) ? 1 : 0;
    }
  }
}

// The ranks that have a ghost of each of this rank's own cells; a rank counts once for each of its
// ghosts.
std::vector<std::vector<int>> GhostsOfOwned(const Grid& grid, const std::vector<Grid::Seen>& seen) {
  std::map<Triple, size_t> owned;
  for (size_t i = 0; i < seen.size(); ++i) {
    if (seen[i].kind == Grid::Kind::kOwned) {
      owned.emplace(seen[i].cell, i);
    }
  }
  std::vector<std::vector<int>> from(seen.size());
  for (int rank = 0; rank < ferry_size(); ++rank) {
    grid.ForEachCell(rank, [&](size_t, const Grid::Seen& cell) {
      const auto found = owned.find(cell.cell);
      if (cell.kind == Grid::Kind::kGhost && found != owned.end()) {
        from[found->second].push_back(rank);
      }
    });
  }
  return from;
}

ferry::HaloBlock BlockOf(const Case& of) {
  ferry::HaloBlock block;
  block.dimensions = of.dimensions;
  block.cells = Grid(of).CellsOf(ferry_rank());
  block.ghost = of.ghost;
  block.element_bytes = static_cast<size_t>(of.components) * sizeof(int32_t);
  block.ranks = of.ranks;
  block.periodic = of.periodic;
  block.faces = of.faces;
  block.edges = of.edges;
  block.corners = of.corners;
  return block;
}

// Enqueues everything before it waits for anything.
void Run(const Case& of, Sends sends, ferry_stream stream) {
  const Grid grid(of);
  std::vector<Grid::Seen> seen;
  grid.ForEachCell(ferry_rank(), [&](size_t, const Grid::Seen& cell) { seen.push_back(cell); });
  const std::vector<std::vector<int>> from = GhostsOfOwned(grid, seen);
  ferry::Halo halo(BlockOf(of), stream, sends);
  CHECK_EQ(halo.field_bytes(), seen.size() * static_cast<size_t>(of.components) * sizeof(int32_t));
  ferry::Buffer<int32_t> field(halo.field_bytes() / sizeof(int32_t), FERRY_MEMORY_DEVICE);
  std::deque<Round> rounds;
  for (int number = 0; number < 7; ++number) {
    const Kind kind = number % 3 == 1 ? Kind::kScatter : Kind::kGather;
    rounds.push_back({&grid, &seen, &from, of.components, number, kind, field.data()});
    ferry::Check(ferry_stream_launch(stream, FillField, &rounds.back()));
    if (kind == Kind::kScatter) {
      halo.EnqueueScatter(field.data());
    } else {
      halo.EnqueueGather(field.data());
    }
    ferry::Check(ferry_stream_launch(stream, CompareField, &rounds.back()));
  }
  halo.Wait();
  for (const Round& round : rounds) {
    if (round.wrong != 0) {
      std::fprintf(stderr,
                   "rank %d: %d dimensions, ranks %dx%dx%d, periodic %d%d%d, wants %d%d%d, ghost "
                   "%d, sends %d, round %d\n",
                   ferry_rank(), of.dimensions, of.ranks[0], of.ranks[1], of.ranks[2],
                   of.periodic[0], of.periodic[1], of.periodic[2], of.faces, of.edges, of.corners,
                   of.ghost, static_cast<int>(sends), round.number);
    }
    CHECK_EQ(round.wrong, 0);
  }
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

// What a ghost cell holds when the stream comes by.
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
