#include "mpi/comm/agree.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "mpi/base/error_codes.h"

namespace ferry::mpi {
namespace {

// Before the data of each message: how its sender has fared so far. After a failure the data are
// zeros, and a message with the sentence follows.
struct Mark {
  int32_t error_class = MPI_SUCCESS;
  uint32_t text_bytes = 0;
};

constexpr size_t kMostTextBytes = 1024;

// The binomial tree in which rank r is the parent of r + 1, r + 2, r + 4, ... below its lowest set
// bit: the ranks r + d .. r + 2 d - 1 lie below r + d.
int LowestBit(int rank, int size) {
  if (rank != 0) {
    return rank & -rank;
  }
  int bit = 1;
  while (bit < size) {
    bit *= 2;
  }
  return bit;
}

// Keeps the failure that a member has met first.
void Meet(Failure failure, Failure* met) {
  if (met->ok()) {
    *met = std::move(failure);
  }
}

Failure Send(Line* line, int rank, const void* data, size_t size_bytes, const Failure& met) {
  std::vector<char> message(sizeof(Mark) + size_bytes);
  const Mark mark{.error_class = met.error_class,
                  .text_bytes = static_cast<uint32_t>(std::min(met.text.size(), kMostTextBytes))};
  memcpy(message.data(), &mark, sizeof(mark));
  if (met.ok() && size_bytes != 0) {
    memcpy(message.data() + sizeof(mark), data, size_bytes);
  }
  FERRY_RETURN_FAILURE(line->Send(rank, message.data(), message.size()));
  return mark.text_bytes == 0 ? Failure{} : line->Send(rank, met.text.data(), mark.text_bytes);
}

Failure Receive(Line* line, int rank, void* data, size_t size_bytes) {
  std::vector<char> message(sizeof(Mark) + size_bytes);
  FERRY_RETURN_FAILURE(line->Receive(rank, message.data(), message.size()));
  Mark mark;
  memcpy(&mark, message.data(), sizeof(mark));
  if (mark.error_class == MPI_SUCCESS) {
    if (size_bytes != 0) {
      memcpy(data, message.data() + sizeof(mark), size_bytes);
    }
    return {};
  }
  Failure theirs{mark.error_class,
                 std::string(std::min<size_t>(mark.text_bytes, kMostTextBytes), 0)};
  if (!theirs.text.empty()) {
    FERRY_RETURN_FAILURE(line->Receive(rank, theirs.text.data(), theirs.text.size()));
  }
  return theirs;
}

}  // namespace

Failure Broadcast(const Team& team, void* data, size_t size_bytes, Failure met) {
  const int reach = LowestBit(team.rank, team.size);
  if (team.rank != 0) {
    Meet(Receive(team.line, team.rank - reach, data, size_bytes), &met);
  }
  for (int distance = reach / 2; distance > 0; distance /= 2) {
    if (team.rank + distance < team.size) {
      // One that is gone must not keep this member from the next operation, in which those wait
      // for it that have their data.
      (void)Send(team.line, team.rank + distance, data, size_bytes, met);
    }
  }
  return met;
}

Failure Gather(const Team& team, const void* data, size_t size_bytes, void* all, Failure met) {
  const int reach = LowestBit(team.rank, team.size);
  const size_t below = std::min(reach, team.size - team.rank);
  std::vector<char> own;
  char* block = static_cast<char*>(all);
  if (team.rank != 0) {
    own.resize(below * size_bytes);
    block = own.data();
  }
  if (size_bytes > 0) {
    memcpy(block, data, size_bytes);
  }
  for (int distance = 1; distance < reach && team.rank + distance < team.size; distance *= 2) {
    const size_t count = std::min(distance, team.size - team.rank - distance);
    Meet(
        Receive(team.line, team.rank + distance, block + distance * size_bytes, count * size_bytes),
        &met);
  }
  if (team.rank != 0) {
    Meet(Send(team.line, team.rank - reach, block, below * size_bytes, met), &met);
  }
  return met;
}

Failure GatherToAll(const Team& team, const void* data, size_t size_bytes, void* all) {
  Failure met = Gather(team, data, size_bytes, all);
  return Broadcast(team, all, size_bytes * static_cast<size_t>(team.size), std::move(met));
}

Failure MergeToAll(const Team& team, const std::function<Failure(std::string_view below)>& merge,
                   const std::function<std::string()>& pack, std::string* all) {
  const int reach = LowestBit(team.rank, team.size);
  Failure met;
  uint64_t size = 0;
  for (int distance = 1; distance < reach && team.rank + distance < team.size; distance *= 2) {
    std::string below;
    Failure failure = Receive(team.line, team.rank + distance, &size, sizeof(size));
    if (failure.ok()) {
      below.resize(size);
      failure = Receive(team.line, team.rank + distance, below.data(), size);
    }
    Meet(failure.ok() ? merge(below) : std::move(failure), &met);
  }
  *all = pack();
  size = all->size();
  if (team.rank != 0) {
    const bool is_sent = met.ok();
    Meet(Send(team.line, team.rank - reach, &size, sizeof(size), met), &met);
    if (is_sent) {
      Meet(Send(team.line, team.rank - reach, all->data(), size, met), &met);
    }
  }
  FERRY_RETURN_FAILURE(Broadcast(team, &size, sizeof(size), std::move(met)));
  all->resize(size);
  return Broadcast(team, all->data(), size);
}

Failure JoinToAll(const Team& team, std::vector<char> data, std::vector<char>* all) {
  std::string joined(data.begin(), data.end());
  std::string text;
  FERRY_RETURN_FAILURE(MergeToAll(
      team,
      [&joined](std::string_view below) {
        joined += below;
        return Failure{};
      },
      [&joined] { return std::move(joined); }, &text));
  all->assign(text.begin(), text.end());
  return Failure{};
}

Failure Exchange(Line* line, int rank, bool lower, const void* mine, size_t mine_bytes,
                 void* theirs, size_t theirs_bytes, Failure met) {
  if (!lower) {
    Meet(Receive(line, rank, theirs, theirs_bytes), &met);
  }
  Meet(Send(line, rank, mine, mine_bytes, met), &met);
  if (lower) {
    Meet(Receive(line, rank, theirs, theirs_bytes), &met);
  }
  return met;
}

Failure Synchronise(const Team& team) { return GatherToAll(team, nullptr, 0, nullptr); }

Failure FirstFailure(const std::vector<int32_t>& classes, int rank, const Failure& own) {
  if (!own.ok()) {
    return own;
  }
  for (size_t other = 0; other < classes.size(); ++other) {
    if (classes[other] != MPI_SUCCESS && static_cast<int>(other) != rank) {
      const char* const name = PredefinedErrorName(classes[other]);
      return {classes[other], "the call failed on rank " + std::to_string(other) + ", with " +
                                  (name == nullptr ? "an error" : name)};
    }
  }
  return {};
}

}  // namespace ferry::mpi
