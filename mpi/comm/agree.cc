#include "mpi/comm/agree.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

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

namespace {

Failure SendSized(Line* line, int rank, const std::vector<char>& data) {
  uint64_t size = data.size();
  FERRY_RETURN_FAILURE(line->Send(rank, &size, sizeof(size)));
  return size == 0 ? Failure{} : line->Send(rank, data.data(), size);
}

// Appends it to `data`.
Failure ReceiveSized(Line* line, int rank, std::vector<char>* data) {
  uint64_t size = 0;
  FERRY_RETURN_FAILURE(line->Receive(rank, &size, sizeof(size)));
  size_t before = data->size();
  data->resize(before + size);
  return size == 0 ? Failure{} : line->Receive(rank, data->data() + before, size);
}

}  // namespace

Failure JoinToAll(const Team& team, std::vector<char> data, std::vector<char>* all) {
  int reach = LowestBit(team.rank, team.size);
  for (int distance = 1; distance < reach && team.rank + distance < team.size; distance *= 2) {
    FERRY_RETURN_FAILURE(ReceiveSized(team.line, team.rank + distance, &data));
  }
  if (team.rank != 0) {
    FERRY_RETURN_FAILURE(SendSized(team.line, team.rank - reach, data));
  }
  uint64_t size = data.size();
  FERRY_RETURN_FAILURE(Broadcast(team, &size, sizeof(size)));
  *all = std::move(data);
  all->resize(size);
  return size == 0 ? Failure{} : Broadcast(team, all->data(), size);
}

Failure Synchronise(const Team& team) {
  for (int distance = 1; distance < team.size; distance *= 2) {
    FERRY_RETURN_FAILURE(team.line->Send((team.rank + distance) % team.size, nullptr, 0));
    FERRY_RETURN_FAILURE(
        team.line->Receive((team.rank - distance + team.size) % team.size, nullptr, 0));
  }
  return Failure{};
}

}  // namespace ferry::mpi
