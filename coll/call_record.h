// A record of a rank's call of a collective, which the ranks of the communicator compare (option
// mpi_check): which call, its root, its operation, and the signatures of its data.
//
// All ranks get all records, so that all find the same difference, and say it in the same words.
// They compare only what the standard demands to be equal (MPI 5.0, sections 6.1 to 6.12): for
// intercommunicators the call and the operation, for collectives among neighbours the call.
//
// Plain data and pure functions: any thread, nothing blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "coll/problem.h"

namespace ferry::collective {

// The data of a call, or those for one other rank.
struct DataRecord {
  uint64_t elements = 0;  // basic ones
  uint64_t hash = 0;      // of the type signature; 0: of any type, or of none (MPI_PACKED)
  uint64_t size_bytes = 0;
  bool operator==(const DataRecord&) const = default;
};

struct CallRecord {
  static constexpr size_t kNameBytes = 40;
  static constexpr size_t kTypeBytes = 32;
  static constexpr size_t kTextBytes = 200;

  char name[kNameBytes] = {};  // of the function, without _c
  uint8_t collective = 0;      // enum Collective
  uint8_t is_inter = 0;
  uint8_t in_place = 0;
  uint8_t has_failed = 0;  // the call's arguments were wrong: `text` says how
  uint8_t has_data = 0;    // `data` is what all ranks must have alike
  uint8_t has_lists = 0;   // so many data for each other rank: compared by FindListMismatch
  uint8_t reserved[2] = {};
  int32_t root = 0;
  char type[kTypeBytes] = {};  // the one predefined datatype of the data; empty: several
  char op[kTypeBytes] = {};    // empty: no reduction
  DataRecord data;
  char text[kTextBytes] = {};
};
static_assert(std::is_trivially_copyable_v<CallRecord>);

// Copies as much of `from` as there is room for, and ends it with 0.
void SetText(std::span<char> to, std::string_view from);
// Sets the function's name, without the ending _c.
void SetName(CallRecord* record, std::string_view call);

// A difference between two ranks' calls.
struct CallMismatch {
  enum class Kind { kNone, kFailed, kCall, kRoot, kOp, kInPlace, kType, kCount };
  Kind kind = Kind::kNone;
  std::string text;  // names both ranks, and what each has passed

  bool is_one() const { return kind != Kind::kNone; }
};

// Compares all ranks' records, which are in order of ranks.
CallMismatch FindMismatch(std::span<const CallRecord> records);

// Compares calls in which ranks have data of their own for each other rank: `lists` has `2 * ranks`
// entries for each rank, those that it sends to each and then those that it receives from each. An
// entry with kSaysNothing in all fields is not compared.
inline constexpr uint64_t kSaysNothing = UINT64_MAX;
CallMismatch FindListMismatch(std::span<const CallRecord> records,
                              std::span<const DataRecord> lists);

}  // namespace ferry::collective
