// The words of the ranks of a meeting (meeting_stream.h): the kinds of packets, and their fields.
//
// Any thread. Nothing blocks.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/status.h"

namespace ferry::client {

// The first byte of a packet.
enum class MeetingKind : char {
  kHello = 'H',    // of a rank: the fields of MeetingHello
  kWelcome = 'W',  // of rank 0, which knows the rank now: nothing
  kPuts = 'P',     // of a rank that has come to a fence: names and words, in turn
  kTable = 'T',    // of rank 0, once all have come: ranks, names and words, in turn
  kEnd = 'E'       // of rank 0: the meeting has failed; a code and words
};

struct MeetingHello {
  std::string job;
  uint32_t size = 0;
  uint32_t rank = 0;
  std::string process;  // "pid 4711 on n7"

  std::string Write() const;
  static std::optional<MeetingHello> Read(std::string_view fields);
};

using MeetingPuts = std::vector<std::pair<std::string, std::string>>;
std::string WritePuts(const MeetingPuts& puts);
std::optional<MeetingPuts> ReadPuts(std::string_view fields);

// The words that all ranks have put, by rank and name.
using MeetingTable = std::map<std::pair<uint32_t, std::string>, std::string>;
void AddToTable(uint32_t rank, const MeetingPuts& puts, std::string* packet);
bool ReadTable(std::string_view fields, MeetingTable* table);

// The fields behind a packet's first byte.
std::string_view FieldsOf(std::string_view packet);
bool IsOf(MeetingKind kind, std::string_view packet);

std::string WriteEnd(const Status& status);
Status ReadEnd(std::string_view fields);

// "this process", for other ranks: "pid 4711 on n7".
std::string NameOfProcess();

// "rank 3", "ranks 0 to 4, 7 and 9", "ranks 0, 2, 4, 6, 8, 10, 12, 14 and 500 more": of ranks in
// order.
std::string NameRanks(const std::vector<uint32_t>& ranks);

}  // namespace ferry::client
