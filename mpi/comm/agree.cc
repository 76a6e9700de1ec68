#include "mpi/comm/agree.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "mpi/base/error_codes.h"

namespace ferry::mpi {
namespace {

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

}  // namespace

Failure Broadcast(const Team& team, void* data, size_t size_bytes) {
  int reach = LowestBit(team.rank, team.size);
  if (team.rank != 0) {
    FERRY_RETURN_FAILURE(team.line->Receive(team.rank - reach, data, size_bytes));
  }
  for (int distance = reach / 2; distance > 0; distance /= 2) {
    if (team.rank + distance < team.size) {
      FERRY_RETURN_FAILURE(team.line->Send(team.rank + distance, data, size_bytes));
    }
  }
  return Failure{};
}

Failure Gather(const Team& team, const void* data, size_t size_bytes, void* all) {
  int reach = LowestBit(team.rank, team.size);
  size_t below = std::min(reach, team.size - team.rank);
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
    size_t count = std::min(distance, team.size - team.rank - distance);
    FERRY_RETURN_FAILURE(team.line->Receive(team.rank + distance, block + distance * size_bytes,
                                            count * size_bytes));
  }
  return team.rank == 0 ? Failure{} : team.line->Send(team.rank - reach, block, below * size_bytes);
}

Failure GatherToAll(const Team& team, const void* data, size_t size_bytes, void* all) {
  FERRY_RETURN_FAILURE(Gather(team, data, size_bytes, all));
  return Broadcast(team, all, size_bytes * team.size);
}

void BroadcastToThoseLeft(const Team& team, void* data, size_t size_bytes) {
  const int reach = LowestBit(team.rank, team.size);
  if (team.rank != 0 && !team.line->Receive(team.rank - reach, data, size_bytes).ok()) {
    memset(data, 0, size_bytes);
  }
  for (int distance = reach / 2; distance > 0; distance /= 2) {
    if (team.rank + distance < team.size) {
      (void)team.line->Send(team.rank + distance, data, size_bytes);  // it may be gone
    }
  }
}

void GatherToThoseLeft(const Team& team, const void* data, size_t size_bytes, void* all) {
  const int reach = LowestBit(team.rank, team.size);
  const size_t below = std::min(reach, team.size - team.rank);
  std::vector<char> blocks(below * size_bytes);
  memcpy(blocks.data(), data, size_bytes);
  for (int distance = 1; distance < reach && team.rank + distance < team.size; distance *= 2) {
    const size_t count = std::min(distance, team.size - team.rank - distance);
    char* const block = blocks.data() + distance * size_bytes;
    if (!team.line->Receive(team.rank + distance, block, count * size_bytes).ok()) {
      memset(block, 0, count * size_bytes);
    }
  }
  if (team.rank != 0) {
    (void)team.line->Send(team.rank - reach, blocks.data(), blocks.size());  // it may be gone
  } else {
    memcpy(all, blocks.data(), blocks.size());
  }
  BroadcastToThoseLeft(team, all, size_bytes * static_cast<size_t>(team.size));
}

namespace {

Failure SendSized(Line* line, int rank, std::string_view data) {
  const uint64_t size = data.size();
  FERRY_RETURN_FAILURE(line->Send(rank, &size, sizeof(size)));
  return size == 0 ? Failure{} : line->Send(rank, data.data(), size);
}

Failure ReceiveSized(Line* line, int rank, std::string* data) {
  uint64_t size = 0;
  FERRY_RETURN_FAILURE(line->Receive(rank, &size, sizeof(size)));
  data->resize(size);
  return size == 0 ? Failure{} : line->Receive(rank, data->data(), size);
}

}  // namespace

Failure MergeToAll(const Team& team, const std::function<Failure(std::string_view below)>& merge,
                   const std::function<std::string()>& pack, std::string* all) {
  const int reach = LowestBit(team.rank, team.size);
  // A member that cannot merge goes on, so that no other one waits for it.
  Failure met;
  for (int distance = 1; distance < reach && team.rank + distance < team.size; distance *= 2) {
    std::string below;
    FERRY_RETURN_FAILURE(ReceiveSized(team.line, team.rank + distance, &below));
    if (Failure failure = merge(below); !failure.ok() && met.ok()) {
      met = std::move(failure);
    }
  }
  *all = pack();
  if (team.rank != 0) {
    FERRY_RETURN_FAILURE(SendSized(team.line, team.rank - reach, *all));
  }
  uint64_t size = all->size();
  FERRY_RETURN_FAILURE(Broadcast(team, &size, sizeof(size)));
  all->resize(size);
  FERRY_RETURN_FAILURE(size == 0 ? Failure{} : Broadcast(team, all->data(), size));
  return met;
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

Failure Synchronise(const Team& team) {
  for (int distance = 1; distance < team.size; distance *= 2) {
    FERRY_RETURN_FAILURE(team.line->Send((team.rank + distance) % team.size, nullptr, 0));
    FERRY_RETURN_FAILURE(
        team.line->Receive((team.rank - distance + team.size) % team.size, nullptr, 0));
  }
  return Failure{};
}

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
