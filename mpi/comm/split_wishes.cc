#include "mpi/comm/split_wishes.h"

#include <mpi.h>

#include <algorithm>
#include <utility>

#include "common/varint.h"

namespace ferry::mpi {

void SplitWishes::Add(int color, int key) {
  colors_.Add(color);
  keys_.Add(key);
}

void SplitWishes::Append(const SplitWishes& more) {
  colors_.Append(more.colors_);
  keys_.Append(more.keys_);
}

std::string SplitWishes::Packed() const {
  std::string text;
  AppendVarint(size(), &text);
  colors_.Pack(&text);
  keys_.Pack(&text);
  return text;
}

Failure SplitWishes::Unpack(std::string_view text) {
  const std::optional<uint64_t> size = TakeVarint(&text);
  const bool is_whole = size && *size <= INT32_MAX && colors_.Unpack(&text, *size) &&
                        keys_.Unpack(&text, *size) && text.empty();
  return is_whole ? Failure{}
                  : Failure{MPI_ERR_INTERN, "colors and keys of members that cannot be"};
}

Failure SplitWishes::CheckColors() const {
  int rank = 0;
  Failure failure;
  colors_.ForEach([&](int color) {
    if (color < 0 && color != MPI_UNDEFINED && failure.ok()) {
      failure = Failure{MPI_ERR_ARG, "color of rank " + std::to_string(rank) + " is " +
                                         std::to_string(color) +
                                         "; it must be MPI_UNDEFINED or not negative"};
    }
    ++rank;
  });
  return failure;
}

std::vector<int> SplitWishes::Colors() const {
  std::vector<int> colors;
  colors_.ForEachValue([&colors](int color) {
    if (color >= 0 && (colors.empty() || colors.back() != color)) {
      colors.push_back(color);
    }
  });
  std::sort(colors.begin(), colors.end());
  colors.erase(std::unique(colors.begin(), colors.end()), colors.end());
  return colors;
}

std::vector<int> SplitWishes::MembersOf(int color) const {
  std::vector<int> members;
  int rank = 0;
  colors_.ForEach([&](int other) {
    if (other == color) {
      members.push_back(rank);
    }
    ++rank;
  });
  // The keys of the members, in the same order.
  std::vector<int> keys;
  keys.reserve(members.size());
  rank = 0;
  bool is_sorted = true;
  keys_.ForEach([&](int key) {
    if (keys.size() < members.size() && members[keys.size()] == rank) {
      is_sorted = is_sorted && (keys.empty() || keys.back() <= key);
      keys.push_back(key);
    }
    ++rank;
  });
  if (is_sorted) {
    return members;
  }
  std::vector<std::pair<int, int>> order;
  order.reserve(members.size());
  for (size_t i = 0; i < members.size(); ++i) {
    order.emplace_back(keys[i], members[i]);
  }
  std::sort(order.begin(), order.end());
  std::transform(order.begin(), order.end(), members.begin(),
                 [](const auto& entry) { return entry.second; });
  return members;
}

Failure GatherWishes(const Team& team, int color, int key, SplitWishes* wishes) {
  SplitWishes own;
  own.Add(color, key);
  std::string all;
  FERRY_RETURN_FAILURE(MergeToAll(
      team,
      [&own](std::string_view below) {
        SplitWishes more;
        FERRY_RETURN_FAILURE(more.Unpack(below));
        own.Append(more);
        return Failure{};
      },
      [&own] { return own.Packed(); }, &all));
  FERRY_RETURN_FAILURE(wishes->Unpack(all));
  return wishes->size() == static_cast<size_t>(team.size)
             ? Failure{}
             : Failure{MPI_ERR_INTERN, "colors and keys of " + std::to_string(wishes->size()) +
                                           " members in place of " + std::to_string(team.size)};
}

int IndexOfColor(const std::vector<int>& colors, int color) {
  return static_cast<int>(std::lower_bound(colors.begin(), colors.end(), color) - colors.begin());
}

}  // namespace ferry::mpi
