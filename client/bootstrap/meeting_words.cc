#include "client/bootstrap/meeting_words.h"

#include <unistd.h>

#include <algorithm>

#include "client/bootstrap/meeting_stream.h"
#include "common/number_text.h"
#include "config/environment.h"

namespace ferry::client {
namespace {

constexpr size_t kMostRangesNamed = 8;

std::string Begin(MeetingKind kind) { return {static_cast<char>(kind)}; }

// All fields; nothing if the words are not such.
std::optional<std::vector<std::string_view>> ReadFields(std::string_view words) {
  std::vector<std::string_view> fields;
  while (!words.empty()) {
    const std::optional<std::string_view> field = TakeField(&words);
    if (!field) {
      return std::nullopt;
    }
    fields.push_back(*field);
  }
  return fields;
}

}  // namespace

std::string_view FieldsOf(std::string_view packet) {
  return packet.substr(std::min<size_t>(packet.size(), 1));
}

bool IsOf(MeetingKind kind, std::string_view packet) {
  return packet.starts_with(static_cast<char>(kind));
}

std::string MeetingHello::Write() const {
  std::string packet = Begin(MeetingKind::kHello);
  for (const std::string& field : {job, std::to_string(size), std::to_string(rank), process}) {
    AddField(field, &packet);
  }
  return packet;
}

std::optional<MeetingHello> MeetingHello::Read(std::string_view words) {
  const auto fields = ReadFields(words);
  if (!fields || fields->size() != 4) {
    return std::nullopt;
  }
  const auto size = NumberIn<uint32_t>((*fields)[1]);
  const auto rank = NumberIn<uint32_t>((*fields)[2]);
  if (!size || !rank) {
    return std::nullopt;
  }
  return MeetingHello{std::string((*fields)[0]), *size, *rank, std::string((*fields)[3])};
}

std::string WritePuts(const MeetingPuts& puts) {
  std::string packet = Begin(MeetingKind::kPuts);
  for (const auto& [name, words] : puts) {
    AddField(name, &packet);
    AddField(words, &packet);
  }
  return packet;
}

std::optional<MeetingPuts> ReadPuts(std::string_view words) {
  const auto fields = ReadFields(words);
  if (!fields || fields->size() % 2 != 0) {
    return std::nullopt;
  }
  MeetingPuts puts;
  for (size_t i = 0; i < fields->size(); i += 2) {
    puts.emplace_back((*fields)[i], (*fields)[i + 1]);
  }
  return puts;
}

void AddToTable(uint32_t rank, const MeetingPuts& puts, std::string* packet) {
  if (packet->empty()) {
    *packet = Begin(MeetingKind::kTable);
  }
  for (const auto& [name, words] : puts) {
    AddField(std::to_string(rank), packet);
    AddField(name, packet);
    AddField(words, packet);
  }
}

bool ReadTable(std::string_view words, MeetingTable* table) {
  const auto fields = ReadFields(words);
  if (!fields || fields->size() % 3 != 0) {
    return false;
  }
  for (size_t i = 0; i < fields->size(); i += 3) {
    const auto rank = NumberIn<uint32_t>((*fields)[i]);
    if (!rank) {
      return false;
    }
    (*table)[{*rank, std::string((*fields)[i + 1])}] = (*fields)[i + 2];
  }
  return true;
}

std::string WriteEnd(const Status& status) {
  std::string packet = Begin(MeetingKind::kEnd);
  AddField(std::to_string(static_cast<int>(status.code())), &packet);
  AddField(status.message(), &packet);
  return packet;
}

Status ReadEnd(std::string_view words) {
  const auto fields = ReadFields(words);
  const auto code = fields && fields->size() == 2 ? NumberIn<int32_t>((*fields)[0]) : std::nullopt;
  if (!code || *code == 0) {
    return {ErrorCode::kCorrupt, "rank 0 ended the meeting of ranks and did not say why"};
  }
  return {static_cast<ErrorCode>(*code), std::string((*fields)[1])};
}

std::string NameOfProcess() {
  return "pid " + std::to_string(getpid()) + " on " + config::HostName();
}

std::string NameRanks(const std::vector<uint32_t>& ranks) {
  std::vector<std::string> names;
  size_t named = 0;
  for (size_t i = 0; i < ranks.size() && names.size() < kMostRangesNamed; i = named) {
    size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) {
      ++last;
    }
    named = last + 1;
    if (last == i + 1) {  // two are no range
      last = i;
      named = i + 1;
    }
    names.push_back(std::to_string(ranks[i]) +
                    (last == i ? "" : " to " + std::to_string(ranks[last])));
  }
  if (named < ranks.size()) {
    names.push_back(std::to_string(ranks.size() - named) + " more");
  }
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < names.size(); ++i) {
    text += i == 0 ? "" : i + 1 == names.size() ? " and " : ", ";
    text += names[i];
  }
  return text;
}

}  // namespace ferry::client
