// The lines of PMI-1's wire, such as "cmd=get kvsname=K key=A", for both its ends: ranks
// (pmi_wire.h) and ferryrun's server (tools/ferryrun/pmi_server.h).
//
// Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ferry::client {

// The longest line that is taken from the other end; PMI-1 itself allows 1,024 bytes.
inline constexpr size_t kMostPmiLineBytes = 1 << 16;

// The words "name=value" of a line, by name.
using PmiFields = std::map<std::string, std::string, std::less<>>;
PmiFields ReadPmiLine(std::string_view line);
// Returns the value under that name, or "".
std::string FieldOf(const PmiFields& fields, std::string_view name);

// Takes the first whole line, without its end, out of what has come; nothing if there is none yet.
std::optional<std::string> TakePmiLine(std::string* input);

// The key under which launchers tell the node of each rank.
inline constexpr char kPmiMapping[] = "PMI_process_mapping";
// Returns its value: blocks of nodes that have as many ranks each, in the order of ranks
// ("(vector,(0,2,4))": two nodes of four ranks each, from node 0 on).
std::string PmiMappingText(const std::vector<uint32_t>& node_of_rank);

}  // namespace ferry::client
