#include "coll/call_record.h"

#include <algorithm>
#include <cstring>

#include "common/counted.h"

namespace ferry::collective {
namespace {

using Kind = CallMismatch::Kind;

std::string RankText(size_t rank) { return "rank " + std::to_string(rank); }

std::string DataText(const DataRecord& data, const char* type) {
  return (type[0] == 0 ? Counted(data.elements, "element")
                       : std::to_string(data.elements) + " " + type) +
         " (" + Counted(data.size_bytes, "byte") + ")";
}

// "rank 2 passed the root 1, but rank 0 the root 0"
CallMismatch Both(Kind kind, const char* verb, size_t rank, const std::string& theirs, size_t other,
                  const std::string& others) {
  return {kind,
          RankText(rank) + " " + verb + " " + theirs + ", but " + RankText(other) + " " + others};
}

// Data of any type or of none have no hash: then the bytes must be the same.
bool HaveSameSignature(const DataRecord& a, const DataRecord& b) {
  if (a.hash == 0 || b.hash == 0) {
    return a.size_bytes == b.size_bytes;
  }
  return a.elements == b.elements && a.hash == b.hash;
}

Kind DataKind(const DataRecord& a, const DataRecord& b) {
  return a.elements == b.elements && a.hash != 0 && b.hash != 0 ? Kind::kType : Kind::kCount;
}

// Returns true for collectives in which either all ranks pass MPI_IN_PLACE or none does.
bool IsInPlaceForAll(Collective collective) {
  return collective == Collective::kAllgather || collective == Collective::kAlltoall ||
         collective == Collective::kAllreduce;
}

CallMismatch Compare(size_t rank, const CallRecord& record, size_t other,
                     const CallRecord& others) {
  if (std::strcmp(record.name, others.name) != 0) {
    return Both(Kind::kCall, "called", rank, record.name, other, others.name);
  }
  if (std::strcmp(record.op, others.op) != 0) {
    return Both(Kind::kOp, "passed", rank, record.op, other, others.op);
  }
  const auto collective = static_cast<Collective>(record.collective);
  if (record.is_inter != 0 || IsAmongNeighbours(collective)) {
    return {};
  }
  if (record.root != others.root) {
    return Both(Kind::kRoot, "passed the root", rank, std::to_string(record.root), other,
                "the root " + std::to_string(others.root));
  }
  if (record.in_place != others.in_place && IsInPlaceForAll(collective)) {
    return {Kind::kInPlace, RankText(record.in_place != 0 ? rank : other) +
                                " passed MPI_IN_PLACE, but " +
                                RankText(record.in_place != 0 ? other : rank) + " did not"};
  }
  if (record.has_data != 0 && others.has_data != 0 &&
      !HaveSameSignature(record.data, others.data)) {
    return Both(DataKind(record.data, others.data), "passed", rank,
                DataText(record.data, record.type), other, DataText(others.data, others.type));
  }
  return {};
}

}  // namespace

void SetText(std::span<char> to, std::string_view from) {
  const size_t length = std::min(to.size() - 1, from.size());
  std::copy_n(from.begin(), length, to.begin());
  std::fill(to.begin() + static_cast<ptrdiff_t>(length), to.end(), 0);
}

void SetName(CallRecord* record, std::string_view call) {
  if (call.ends_with("_c")) {
    call.remove_suffix(2);
  }
  SetText(record->name, call);
}

CallMismatch FindMismatch(std::span<const CallRecord> records) {
  for (size_t rank = 1; rank < records.size(); ++rank) {
    if (std::strcmp(records[rank].name, records[0].name) != 0) {
      return Compare(rank, records[rank], 0, records[0]);
    }
  }
  for (size_t rank = 0; rank < records.size(); ++rank) {
    if (records[rank].has_failed != 0) {
      return {Kind::kFailed,
              RankText(rank) + " could not go through with it: " + records[rank].text};
    }
  }
  // Others are not compared with a rank that knows nothing of a thing (beside the root, of no
  // vector).
  size_t first_with_data = 0;
  while (first_with_data + 1 < records.size() && records[first_with_data].has_data == 0) {
    ++first_with_data;
  }
  for (size_t rank = 1; rank < records.size(); ++rank) {
    CallMismatch found = Compare(rank, records[rank], 0, records[0]);
    if (!found.is_one() && rank > first_with_data && first_with_data != 0) {
      found = Compare(rank, records[rank], first_with_data, records[first_with_data]);
    }
    if (found.is_one()) {
      return found;
    }
  }
  return {};
}

CallMismatch FindListMismatch(std::span<const CallRecord> records,
                              std::span<const DataRecord> lists) {
  const size_t ranks = records.size();
  for (size_t from = 0; from < ranks; ++from) {
    for (size_t to = 0; to < ranks; ++to) {
      const DataRecord& sent = lists[from * 2 * ranks + to];
      const DataRecord& received = lists[to * 2 * ranks + ranks + from];
      if (sent.elements == kSaysNothing || received.elements == kSaysNothing ||
          HaveSameSignature(sent, received)) {
        continue;
      }
      return {DataKind(sent, received),
              RankText(from) + " passed " + DataText(sent, "") + " for " + RankText(to) +
                  ", which expects " + DataText(received, "") +
                  (sent.elements == received.elements ? " of another type" : "")};
    }
  }
  return {};
}

}  // namespace ferry::collective
